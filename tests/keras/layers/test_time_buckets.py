"""TimeBuckets equals NumPy's digitize of integers."""

import keras
import numpy as np
import pyarrow as pa
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


LISTS = {
    "fixed": ([[1, 2], None, [3, 9]], pa.list_(pa.timestamp("s"), 2)),
    "fixed, null items": ([[1, None], None, [3, 9]], pa.list_(pa.timestamp("s"), 2)),
    "ragged": ([[1, 2], None, [3, None, 9], []], pa.list_(pa.timestamp("s"))),
    "one each": ([1, None, 3, 9], pa.timestamp("s")),
}


@pytest.mark.parametrize("case", LISTS)
def test_times_in_lists_and_with_nulls(case):
    rows, kind = LISTS[case]
    plain = pa.list_(pa.int64(), 2) if "fixed" in case else pa.list_(pa.int64())
    plain = pa.int64() if case == "one each" else plain
    column = pa.array(rows, plain).cast(kind)
    records = xt.from_arrow(pa.table({"t": column}), nulls="mask")
    every = [t for row in rows for t in (row if isinstance(row, list) else [row]) if t is not None]
    expected = xt.keras.layers.TimeBuckets(2)
    expected.adapt(np.array(every))
    for data in (records["t"], tf.data.Dataset.from_tensor_slices(records["t"]).batch(2)):
        layer = xt.keras.layers.TimeBuckets(2)
        layer.adapt(data)
        if data is records["t"]:
            assert layer.bin_boundaries == expected.bin_boundaries
    features = xt.keras.layers.RecordFeatures({"t": expected}, output_mode="records")
    inputs = xt.keras.Input(tf.type_spec_from_value(records["t"]))
    model = xt.keras.Model(inputs, expected(inputs))
    for found in (expected(records["t"]), model(records["t"])):
        assert found.to_py() == features(records)["t"].to_py()
        assert found.fill(0).dtype == tf.int32


def test_ragged_times_without_nulls():
    times = tf.ragged.constant([[1, 5], [], [9]])
    layer = xt.keras.layers.TimeBuckets(2)
    layer.adapt(times)
    assert layer(times).to_list() == [[0, 1], [], [1]]
    with pytest.raises(errors.UnsupportedTypeError, match="got DenseStructuredTensor"):
        layer.adapt(tf.data.Dataset.from_tensors(xt.DenseStructuredTensor([1], {"t": [1]})))


@given(st.lists(st.floats(-5, 5), unique=True).map(sorted), st.lists(st.integers(-6, 6)))
def test_boundaries_between_integers_are_those_of_numpy(boundaries, times):
    layer = xt.keras.layers.TimeBuckets(bin_boundaries=boundaries)
    found = layer(tf.constant(times, tf.int64)).numpy()
    np.testing.assert_array_equal(found, np.digitize(np.array(times, np.int64), boundaries))


@pytest.mark.parametrize(
    "boundaries", [[500, 100], [1, 3, 2], [np.datetime64("2020-01-01")], [float("nan")], [[1]]]
)
def test_boundaries_that_are_not_ascending_numbers_are_an_error(boundaries):
    with pytest.raises(errors.ArgumentError, match=r"bin_boundaries .* ascending, got \["):
        xt.keras.layers.TimeBuckets(bin_boundaries=boundaries)


@pytest.mark.parametrize("num_bins", [0, -1, 1.5])
def test_the_number_of_buckets_is_positive(num_bins):
    with pytest.raises(errors.ArgumentError, match=f"num_bins of 1 or more, got {num_bins}"):
        xt.keras.layers.TimeBuckets(num_bins)


def test_times_that_are_further_apart_than_half_of_int64():
    times = np.array(["1700-01-01", "1700-01-02", "2250-01-01", "2250-01-02"], "M8[ns]")
    layers = [xt.keras.layers.TimeBuckets(2), xt.keras.layers.RecordFeatures(num_bins=2)]
    layers[0].adapt(times.astype(np.int64))
    layers[1].adapt(xt.from_arrow(pa.table({"at": times})))
    for layer in [layers[0], layers[1].layers["at"]]:
        assert layer(tf.constant(times.astype(np.int64))).numpy()[[0, 2]].tolist() == [0, 1]


@pytest.mark.parametrize("times", [[1.7, np.nan], np.array([2**63], np.uint64)], ids=str)
def test_what_int64_does_not_hold_is_an_error(times):
    """1.7 was the time 1, NaN and large numbers times before all others."""
    for use in (
        lambda: xt.keras.layers.TimeBuckets(bin_boundaries=[0, 2])(tf.constant(times)),
        lambda: xt.keras.layers.TimeBuckets(2).adapt(np.array(times)),
    ):
        with pytest.raises(errors.DTypeError, match="expected times as integers of int64, got "):
            use()
