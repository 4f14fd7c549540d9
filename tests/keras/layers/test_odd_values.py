"""RecordFeatures of NaN, words that Keras changes, too many words, and vectors that may be null."""

import datetime as dt
import math

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import ArgumentError, StructureError

layers = xt.keras.layers


def adapted(column, **options):
    records = xt.from_arrow(pa.table({"x": column}), nulls="mask")
    features = layers.RecordFeatures(**options)
    features.adapt(records)
    return features, features(records).numpy()


@pytest.mark.parametrize(
    "kind", [pa.float32(), pytest.param(pa.float64(), marks=pytest.mark.whole("five seconds"))]
)
def test_nan_is_left_out_of_statistics_and_taken_for_null(kind):
    with pytest.warns(UserWarning, match="x: 2 values with NaN left out of the statistics"):
        _, found = adapted(pa.array([1.0, math.nan, 4.0, None, math.nan, 7.0], kind))
    _, wanted = adapted(pa.array([1.0, None, 4.0, None, None, 7.0], kind))
    np.testing.assert_array_equal(found, wanted)
    rows = [[1.0, math.nan], [4.0], [math.nan], [7.0, 7.0]]
    with pytest.warns(UserWarning, match="2 values with NaN"):
        _, found = adapted(pa.array(rows, pa.list_(kind)))
    nulls = [[None if math.isnan(item) else item for item in row] for row in rows]
    np.testing.assert_array_equal(found, adapted(pa.array(nulls, pa.list_(kind)))[1])


@pytest.mark.parametrize("words", [["a", "a\0"], ["\0", "b"]])
def test_a_word_that_keras_would_change_is_named(words):
    with pytest.raises(ArgumentError, match=r"x: expected strings that do not end in NUL.*Hashing"):
        adapted(pa.array(words))
    records = xt.from_arrow(pa.table({"x": words}))
    hashed = layers.RecordFeatures({"x": keras.layers.Hashing(1000)})(records).numpy()
    assert (hashed[0] != hashed[1]).any()


def test_bytes_that_are_no_text_are_named():
    with pytest.raises(ArgumentError, match=r"x: expected strings of UTF-8, .* got b'\\xff'"):
        adapted(pa.array([b"a", b"\xff"]))


@pytest.mark.parametrize("output_mode", ["concat", "records"])
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_numbers_that_half_precision_cannot_hold(policy, output_mode):
    day = [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1), dt.datetime(2022, 1, 1)]
    numbers = [100_001.0, 100_003.0, 100_005.0]
    table = pa.table({"x": pa.array(numbers, pa.float32()), "y": [7, 8, 9], "z": day})
    records = xt.from_arrow(table)
    normalized = layers.RecordFeatures(output_mode=output_mode, dtype=policy)
    normalized.adapt(records.without("z"))
    scaled = layers.RecordFeatures.from_spec(xt.spec_of(records[["z"]]), dtype=policy)
    keras.config.set_dtype_policy(policy)
    try:
        given = layers.RecordFeatures(output_mode=output_mode)
        given.adapt(records.without("z"))
        for features in (normalized, given):
            found = features(records.without("z"))
            column = found["x"] if output_mode == "records" else found[:, 0]
            assert column.dtype.size == 2
            wanted = (np.array(numbers) - 100_003) / np.std(numbers)
            np.testing.assert_allclose(tf.cast(column, tf.float32), wanted, rtol=0.01)
        own = layers.RecordFeatures.from_spec(xt.spec_of(records[["z"]]))
        for features in (scaled, own):
            found = tf.cast(features(records[["z"]]), tf.float32)[:, 0]
            np.testing.assert_allclose(found, [50, 51, 52], rtol=0.004)
    finally:
        keras.config.set_dtype_policy("float32")


def test_many_different_strings_are_named_with_what_to_do():
    words = pa.array([str(i) for i in range(1001)])
    with pytest.warns(UserWarning, match=r"x: 1002 columns.*max_tokens=.*Hashing.*without\('x'\)"):
        adapted(words)
    assert adapted(words, max_tokens=20)[1].shape == (1001, 20)


@pytest.mark.parametrize("output_mode", ["concat", "records"])
def test_lists_of_one_size_that_may_be_null(output_mode):
    vectors = pa.array([[1.0, 2.0], None, [3.0, 6.0]], pa.list_(pa.float32(), 2))
    records = xt.from_arrow(pa.table({"x": vectors}), nulls="mask")
    features = layers.RecordFeatures(output_mode=output_mode)
    features.adapt(records)
    found = features(records)
    if output_mode == "records":
        assert found.to_py() == [{"x": [-1.0, -1.0]}, {"x": None}, {"x": [1.0, 1.0]}]
    else:
        assert found.numpy().tolist() == [[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]]
    assert layers.ListPooling("mean")(records["x"]).numpy().tolist() == [1.5, 0.0, 4.5]


def test_a_field_of_strings_that_are_all_null_is_named():
    with pytest.raises(StructureError, match="x: expected at least one string, got none"):
        adapted(pa.array([None, None], pa.string()))


def test_infinity_is_left_out_of_statistics_and_taken_for_null():
    text = r"x: 1 value with NaN and 2 values with infinity \(in float32\) left out"
    with pytest.warns(UserWarning, match=text):
        _, found = adapted(pa.array([1.0, math.inf, 3.0, math.nan, -math.inf]))
    assert found[:, 0].tolist() == [-1, 0, 1, 0, 0]
    with pytest.warns(UserWarning, match="x: 1 value with infinity"):
        assert adapted(pa.array([1.0, 1e300, 3.0]))[1][:, 0].tolist() == [-1, 0, 1]
    bins = {"x": keras.layers.Discretization(num_bins=2)}
    with pytest.warns(UserWarning, match="x: 1 value with infinity"):
        _, found = adapted(pa.array([1.0, math.inf, 3.0]), layers=bins)
    assert found.sum(axis=1).tolist() == [1, 0, 1]
    of_spec = layers.RecordFeatures.from_spec(
        xt.spec_of(xt.from_arrow(pa.table({"x": [1.0, math.inf]})))
    )
    assert of_spec(xt.from_arrow(pa.table({"x": [1.0, math.inf]})))[:, 0].numpy().tolist() == [1, 0]
    with pytest.raises(StructureError, match="x: expected numbers whose variance float32 can hold"):
        adapted(pa.array([1e30, -1e30]))


@pytest.mark.parametrize("kind", [pa.list_(pa.float32(), 2), pa.list_(pa.list_(pa.float32(), 2))])
def test_the_statistics_of_vectors_are_those_of_each_column(kind):
    rows = [[1.0, math.nan], [3.0, 4.0], None, [None, 8.0]]
    deep = kind.value_type != pa.float32()
    with pytest.warns(UserWarning, match="x: 1 value with NaN"):
        _, found = adapted(pa.array([[row] for row in rows] if deep else rows, kind))
    assert found.tolist() == [[-1, 0], [1, -1], [0, 0], [0, 1]]


def test_a_column_without_a_number_keeps_the_numbers_that_come_later():
    kind = pa.list_(pa.float32(), 2)
    features, _ = adapted(pa.array([[1.0, None], [3.0, None]], kind))
    later = xt.from_arrow(pa.table({"x": pa.array([[2.0, 5.0]], kind)}), nulls="mask")
    assert features(later).numpy().tolist() == [[0, 5]]
