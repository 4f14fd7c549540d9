"""ListPooling equals NumPy over each list by itself."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given

import extensor as xt
from extensor import errors
from tests.keras.layers import samples
from tests.keras.layers.samples import nullable_lists, ragged, rows_of, valid, vectors

COMBINER = pytest.mark.parametrize("combiner", ["sum", "mean", "max", "attention"])


def pooled(items, combiner, scores, empty):
    """The reference for one list."""
    items = np.asarray(items, np.float32)
    if not len(items):
        return np.full(items.shape[1:], empty)
    if combiner == "attention":
        weights = np.exp(scores) / np.exp(scores).sum()
        return np.tensordot(weights, items, 1)
    return getattr(items, combiner)(axis=0)


def scores_of(layer, items):
    if layer.score is None or not len(items):
        return np.zeros(len(items))
    return layer.score(np.reshape(items, [len(items), -1])).numpy()[:, 0]


@pytest.mark.whole("draws many values")
@COMBINER
@given(rows=nullable_lists(min_size=1))
def test_numbers_equal_those_of_each_list(combiner, rows):
    layer = xt.keras.layers.ListPooling(combiner, empty=-1.0)
    result = layer(ragged(rows))
    expected = [pooled(row, combiner, scores_of(layer, row), -1.0) for row in valid(rows)]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@COMBINER
def test_vectors_equal_those_of_each_list(combiner):
    value = vectors([2, 0, 3, 1])
    layer = xt.keras.layers.ListPooling(combiner)
    result = layer(value)
    expected = [pooled(row, combiner, scores_of(layer, row), 0.0) for row in rows_of(value)]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@COMBINER
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_adds_up_many_items(policy, combiner):
    layer = xt.keras.layers.ListPooling(combiner, dtype=policy)
    result = layer(tf.ragged.constant([[2.5] * 5000, [300.0] * 300, []]))
    with np.errstate(over="ignore"):  # the sum is infinite in float16
        known = np.array({"sum": [12500.0, 90000.0]}.get(combiner, [2.5, 300.0]))
        known = known.astype(result.dtype.as_numpy_dtype).astype(np.float32)
    np.testing.assert_allclose(tf.cast(result, tf.float32)[:2], known, rtol=0.01)


def test_the_mean_of_vectors_equals_that_of_keras_over_padded_vectors():
    value = vectors([2, 4, 3, 1])
    expected = keras.layers.GlobalAveragePooling1D()(xt.keras.Masked()(value))
    np.testing.assert_allclose(xt.keras.layers.ListPooling()(value), expected, rtol=1e-5)


@COMBINER
def test_lists_in_lists_keep_their_rows(combiner):
    value = tf.RaggedTensor.from_row_lengths(vectors([2, 0, 3]), [1, 0, 2])
    layer = xt.keras.layers.ListPooling(combiner)
    result = layer(value)
    assert result.row_lengths().numpy().tolist() == [1, 0, 2]
    np.testing.assert_allclose(result.flat_values, layer(value.values), rtol=1e-6)


@COMBINER
def test_lists_of_records_give_records(combiner):
    steps = samples.records()["steps"]
    steps = xt.keras.Lambda(lambda masked: masked)(steps)  # a MaskedTensor of records, with nulls
    numbers = _without_verbs(steps)
    layer = xt.keras.layers.ListPooling(combiner, empty=-1.0)
    result = layer(numbers)
    assert result.field_names() == ("minutes",)
    rows = [
        [s["minutes"] for s in row or () if s is not None]
        for row in samples.table()["steps"].to_pylist()
    ]
    scores = {m: scores_of(layer, [m or 0.0])[0] for row in rows for m in row}
    expected = []
    for row in rows:
        known = [m for m in row if m is not None]
        expected.append(pooled(known, combiner, [scores[m] for m in known], -1.0))
    np.testing.assert_allclose(result["minutes"], expected, rtol=1e-5)


def _without_verbs(value):
    if isinstance(value, xt.types.MaskedTensor):
        return xt.types.MaskedTensor(_without_verbs(value.values), value.mask)
    return value.without("verb")


def test_attention_weighs_whole_records():
    random = np.random.default_rng(2)
    fields = {"a": random.random([5, 2], np.float32), "b": random.random(5, np.float32)}
    steps = xt.RaggedStructuredTensor.from_row_splits(
        xt.DenseStructuredTensor([5], fields), [0, 3, 3, 5]
    )
    layer = xt.keras.layers.ListPooling("attention")
    result = layer(steps)
    both = np.concatenate([fields["a"], fields["b"][:, np.newaxis]], axis=1)
    cut = tf.RaggedTensor.from_row_splits(both, [0, 3, 3, 5])
    expected = [pooled(row, "attention", scores_of(layer, row), 0.0) for row in rows_of(cut)]
    got = np.concatenate([result["a"], result["b"][:, np.newaxis]], axis=1)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("value", [-1e5, 1e5])
def test_attention_does_not_overflow(value):
    layer = xt.keras.layers.ListPooling("attention")
    numbers = tf.ragged.constant([[value, value], []])
    np.testing.assert_allclose(layer(numbers), [value, 0.0], rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*unbuilt state:UserWarning")
def test_a_field_of_strings_is_refused_by_its_path():
    steps = xt.RaggedStructuredTensor.from_row_splits(
        xt.DenseStructuredTensor([1], {"verb": ["mix"]}), [0, 1]
    )
    with pytest.raises(errors.UnsupportedTypeError, match=r"pool.verb: expected numbers.*string"):
        xt.keras.layers.ListPooling(name="pool")(steps)
    inner = xt.DenseStructuredTensor([1], {"verbs": tf.ragged.constant([[1.0, 2.0]])})
    steps = xt.RaggedStructuredTensor.from_row_splits(inner, [0, 1])
    with pytest.raises(errors.UnsupportedTypeError, match=r"pool.verbs: expected numbers"):
        xt.keras.layers.ListPooling(name="pool")(steps)


# What has no valid item: of each form, the rows are one with 2.0 and 4.0, and one without any.
NOTHING_VALID = {
    "ragged": lambda: tf.ragged.constant([[2.0, 4.0], []]),
    "ragged of null items": lambda: xt.types.MaskedTensor(
        tf.ragged.constant([[2.0, 4.0], [np.nan]]), tf.ragged.constant([[True, True], [False]])
    ),
    "ragged null list": lambda: xt.types.MaskedTensor(
        tf.ragged.constant([[2.0, 4.0], [np.nan]]), tf.constant([True, False])
    ),
    "dense of null items": lambda: xt.types.MaskedTensor(
        tf.constant([[2.0, np.nan, 4.0], [np.nan, 1.0, 2.0]]),
        tf.constant([[True, False, True], [False, False, False]]),
    ),
    "dense null list": lambda: xt.types.MaskedTensor(
        tf.constant([[2.0, 4.0], [np.nan, 1.0]]), tf.constant([True, False])
    ),
}


@pytest.mark.whole("many cases")
@COMBINER
@pytest.mark.parametrize("form", NOTHING_VALID)
def test_a_row_without_a_valid_item_has_the_value_of_an_empty_list(combiner, form):
    value = NOTHING_VALID[form]()
    layer = xt.keras.layers.ListPooling(combiner, empty=-1.0)
    layer(value)  # creates the weights of the scores
    known = [2.0, 4.0]
    expected = [pooled(known, combiner, scores_of(layer, known), -1.0), -1.0]
    np.testing.assert_allclose(layer(value), expected, rtol=1e-5)
    np.testing.assert_allclose(tf.function(layer)(value), expected, rtol=1e-5)
    leaves = tf.nest.flatten(value, expand_composites=True)
    (numbers,) = (leaf for leaf in leaves if leaf.dtype.is_floating)
    with tf.GradientTape() as tape:
        tape.watch(numbers)
        result = layer(value)
    gradient = tape.gradient(result, numbers)
    assert gradient is not None
    assert np.isfinite(tf.convert_to_tensor(gradient)).all()


@COMBINER
def test_a_dense_tensor_with_all_items_null_has_the_value_of_empty_lists(combiner):
    value = xt.types.MaskedTensor(tf.ones([2, 3, 4]), tf.zeros([2, 3], tf.bool))
    result = xt.keras.layers.ListPooling(combiner, empty=-1.0)(value)
    np.testing.assert_array_equal(result, -np.ones([2, 4]))


@pytest.mark.whole("many cases")
@COMBINER
def test_a_mask_of_keras_leaves_items_out(combiner):
    rows = np.array([[[2.0], [0.0], [4.0]], [[0.0], [0.0], [0.0]]], np.float32)
    layer = xt.keras.layers.ListPooling(combiner, empty=-1.0)
    masking = keras.layers.Masking()
    steps = keras.Input((3, 1))
    model = keras.Model(steps, layer(masking(steps)))
    known = rows[0, [0, 2]]
    expected = [pooled(known, combiner, scores_of(layer, known), -1.0), [-1.0]]
    np.testing.assert_allclose(layer(masking(rows)), expected, rtol=1e-5)
    np.testing.assert_allclose(layer(rows, mask=np.any(rows, -1)), expected, rtol=1e-5)
    np.testing.assert_allclose(model.predict(rows, verbose=0), expected, rtol=1e-5)
    if combiner == "mean":
        average = keras.layers.GlobalAveragePooling1D()(masking(rows)).numpy()
        np.testing.assert_allclose(average[0], expected[0], rtol=1e-5)
        assert np.isnan(average[1]).all()  # what `empty` replaces
