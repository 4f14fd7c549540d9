"""TimeBuckets equals NumPy's digitize of integers."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors

NANOSECONDS = 1_700_000_000_000_000_000
TIMES = st.integers(NANOSECONDS - 50, NANOSECONDS + 50)


@given(st.lists(TIMES, min_size=1, unique=True).map(sorted), st.lists(TIMES))
def test_the_buckets_are_those_of_numpy(boundaries, times):
    layer = xt.keras.layers.TimeBuckets(bin_boundaries=boundaries)
    times = np.array(times, np.int64)
    result = layer(tf.constant(times))
    assert result.dtype == tf.int32
    np.testing.assert_array_equal(result, np.digitize(times, boundaries))


def test_adapted_buckets_have_the_same_number_of_times():
    times = NANOSECONDS + np.random.default_rng(0).integers(0, 10**12, 4000)
    layer = xt.keras.layers.TimeBuckets(8)
    layer.adapt(tf.data.Dataset.from_tensor_slices(times).batch(1000))
    counts = np.bincount(layer(tf.constant(times)).numpy())
    assert len(counts) == 8
    assert counts.min() > 400
    assert counts.max() < 600
    again = xt.keras.layers.TimeBuckets.from_config(layer.get_config())
    np.testing.assert_array_equal(again(tf.constant(times)), layer(tf.constant(times)))


def test_one_second_among_nanoseconds_is_found():
    times = NANOSECONDS + np.arange(60) * 10**9
    layer = xt.keras.layers.TimeBuckets(4)
    layer.adapt(times)
    assert set(layer(tf.constant(times)).numpy()) == {0, 1, 2, 3}


def test_a_model_may_have_the_layer():
    time = keras.Input((), dtype="int64")
    model = keras.Model(time, xt.keras.layers.TimeBuckets(bin_boundaries=[10, 20])(time))
    assert model(np.array([5, 10, 25])).numpy().tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:.*unbuilt state:UserWarning")
def test_what_is_missing_is_named():
    with pytest.raises(errors.ArgumentError, match="num_bins or bin_boundaries"):
        xt.keras.layers.TimeBuckets()
    with pytest.raises(errors.StructureError, match="Call adapt"):
        xt.keras.layers.TimeBuckets(4)(tf.constant([1]))
    with pytest.raises(errors.StructureError, match="at least one time"):
        xt.keras.layers.TimeBuckets(4).adapt(np.array([], np.int64))
    with pytest.raises(errors.ArgumentError, match=r"num_bins=\.\.\."):
        xt.keras.layers.TimeBuckets(bin_boundaries=[1]).adapt(np.array([1]))
