"""EmbeddingBag equals the same over padded tensors, and over lists without the nulls."""

import functools

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from tests.keras.layers.samples import WORDS, nullable_lists, ragged, valid

INT4 = pytest.mark.skipif(
    tuple(map(int, keras.__version__.split(".")[:2])) < (3, 11),
    reason="Keras 3.11 is the first that quantizes to int4",
)
TAGS = [["salt", "oil", "salt"], [], ["leek"], ["beer", "rice"]]


def combined(vectors, mask, combiner, scores, empty):
    """The reference over padded vectors."""
    mask = mask[:, :, np.newaxis]
    count = mask.sum(axis=1)
    if combiner == "sum":
        result = (vectors * mask).sum(axis=1)
    elif combiner == "mean":
        result = (vectors * mask).sum(axis=1) / np.maximum(count, 1)
    elif combiner == "max":
        result = np.where(mask, vectors, -np.inf).max(axis=1)
    else:
        weights = np.exp(scores) * mask
        result = (vectors * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-30)
    return np.where(count == 0, empty, result)


def over_padded(bag, ids, empty=0.0):
    values, mask = ids.to_tensor().numpy(), tf.sequence_mask(ids.row_lengths()).numpy()
    if not values.shape[1]:
        return np.full([len(values), bag.embedding.output_dim], empty)
    vectors = bag.embedding(values).numpy()
    scores = None if bag.score is None else bag.score(vectors).numpy()
    return combined(vectors, mask, bag.combiner, scores, empty)


COMBINER = pytest.mark.parametrize("combiner", ["sum", "mean", "max", "attention"])


@functools.cache
def bag_of_ids(combiner):
    return xt.keras.layers.EmbeddingBag(3, input_dim=7, combiner=combiner, empty=0.5)


@pytest.mark.whole("draws many values")
@COMBINER
@given(rows=nullable_lists(st.integers(0, 6), min_size=1))
def test_ids_equal_padded_ids(combiner, rows):
    bag = bag_of_ids(combiner)
    result = bag(ragged(rows, pa.int32()))
    expected = over_padded(bag, ragged(valid(rows), pa.int32()), 0.5)
    assert result.shape == (len(rows), 3)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


SOURCES = {
    "vocabulary": ({"vocabulary": WORDS}, lambda: keras.layers.StringLookup(vocabulary=WORDS)),
    "hash": ({"num_bins": 5}, lambda: keras.layers.Hashing(5)),
}


@COMBINER
@pytest.mark.parametrize("source", SOURCES)
def test_strings_are_looked_up_or_hashed(source, combiner):
    options, reference = SOURCES[source]
    tags = tf.ragged.constant(TAGS)
    bag = xt.keras.layers.EmbeddingBag(3, combiner=combiner, **options)
    result = bag(tags)
    ids = tags.with_flat_values(reference()(tags.flat_values))
    np.testing.assert_allclose(result, over_padded(bag, ids), rtol=1e-5, atol=1e-6)
    assert not result[1].numpy().any()


def test_a_vocabulary_of_ints_and_one_in_a_file(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("\n".join(WORDS))
    of_file = xt.keras.layers.EmbeddingBag(3, vocabulary=str(file), combiner="sum")
    of_list = xt.keras.layers.EmbeddingBag(3, vocabulary=WORDS, combiner="sum")
    tags = tf.ragged.constant(TAGS)
    of_file(tags), of_list(tags)
    of_list.set_weights(of_file.get_weights())
    np.testing.assert_array_equal(of_file(tags), of_list(tags))
    of_ints = xt.keras.layers.EmbeddingBag(3, vocabulary=[10, 20], combiner="sum")
    result = of_ints(tf.ragged.constant([[10], [20], [7], [8]]))
    assert np.array_equal(result[2], result[3])
    assert len(of_ints.get_weights()[0]) == 3
    np.testing.assert_array_equal(result[0], of_ints.get_weights()[0][1])


@pytest.mark.whole("many cases")
@COMBINER
def test_lists_in_lists_keep_their_rows(combiner):
    ids = tf.ragged.constant([[[1, 2], []], [], [[3]]])
    bag = xt.keras.layers.EmbeddingBag(2, input_dim=4, combiner=combiner)
    result = bag(ids)
    assert result.row_lengths().numpy().tolist() == [2, 0, 1]
    np.testing.assert_allclose(result.flat_values, bag(ids.values), rtol=1e-6)


@COMBINER
def test_dense_lists_with_and_without_a_mask(combiner):
    ids = tf.constant([[1, 2, 3], [3, 0, 0]])
    bag = xt.keras.layers.EmbeddingBag(2, input_dim=4, combiner=combiner)
    rows = tf.RaggedTensor.from_tensor(ids)
    np.testing.assert_allclose(bag(ids), bag(rows), rtol=1e-6)
    masked = xt.types.MaskedTensor(ids, [[True, False, True], [True, False, False]])
    np.testing.assert_allclose(bag(masked), bag(tf.ragged.constant([[1, 3], [3]])), rtol=1e-6)


@pytest.mark.whole("many cases")
@COMBINER
def test_gradients_equal_those_over_padded_ids(combiner):
    ids = tf.ragged.constant([[1, 2, 1], [], [3]])
    bag = xt.keras.layers.EmbeddingBag(2, input_dim=4, combiner=combiner)
    bag(ids)
    padded, mask = ids.to_tensor(), tf.sequence_mask(ids.row_lengths())[..., tf.newaxis]
    weight = tf.cast(mask, tf.float32)
    count = tf.maximum(tf.reduce_sum(weight, axis=1), 1.0)

    def reference():
        vectors = bag.embedding(padded)
        if combiner == "max":
            largest = tf.reduce_max(tf.where(mask, vectors, -1e9), axis=1)
            return tf.where(tf.reduce_any(mask, axis=1), largest, 0.0)
        if combiner == "attention":
            powers = tf.exp(bag.score(vectors)) * weight
            weights = tf.math.divide_no_nan(powers, tf.reduce_sum(powers, axis=1, keepdims=True))
            return tf.reduce_sum(vectors * weights, axis=1)
        total = tf.reduce_sum(vectors * weight, axis=1)
        return total / count if combiner == "mean" else total

    found = []
    for function in (lambda: bag(ids), reference):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(function() ** 2)
        gradients = tape.gradient(loss, bag.trainable_weights)
        found.append([tf.convert_to_tensor(gradient).numpy() for gradient in gradients])
    for ours, expected in zip(*found, strict=True):
        assert np.abs(ours).sum() > 0
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("combiner", ["sum", "mean"])
def test_a_batch_without_any_item_has_no_gradient(combiner, count):
    """TensorFlow does not write to the memory of the gradient then."""
    bag = xt.keras.layers.EmbeddingBag(64, input_dim=1000, combiner=combiner)
    together = xt.keras.layers.EmbeddingBags({"ids": bag})
    lists = tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int64), [0] * count)
    records = xt.DenseStructuredTensor([count], {"ids": lists})
    bag(lists)
    calls = {bag: lists, together: records}
    for _ in range(10):
        for layer, value in calls.items():
            tf.fill([1000, 64], np.nan).numpy()  # memory that may come again
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(layer(value) ** 2)
            [gradient] = tape.gradient(loss, layer.trainable_weights)
            assert not tf.convert_to_tensor(gradient).numpy().any()


def test_half_precision():
    bag = xt.keras.layers.EmbeddingBag(2, input_dim=4, dtype="mixed_float16")
    assert bag(tf.ragged.constant([[1], []])).dtype == tf.float16
    assert bag.trainable_weights[0].dtype == "float32"


@pytest.mark.parametrize("combiner", ["sum", "mean"])
def test_a_quantized_bag_gives_about_the_same(combiner):
    bag = xt.keras.layers.EmbeddingBag(8, input_dim=4, combiner=combiner)
    lists = tf.ragged.constant([[1, 3, 3], [], [0]])
    before = bag(lists).numpy()
    bag.embedding.quantize("int8")
    np.testing.assert_allclose(bag(lists), before, atol=0.01 * np.abs(before).max())


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method:UserWarning")
@pytest.mark.parametrize("mode", ["int8", pytest.param("int4", marks=INT4)])
def test_a_quantized_model_comes_back(mode, tmp_path):
    records = xt.struct.constant(
        [{"ids": [1, 3], "x": [[1.0, 2.0]]}, {"ids": [2], "x": [[3.0, 1.0]]}]
    )
    spec = xt.DenseStructuredTensorSpec(
        [None],
        {
            "ids": tf.RaggedTensorSpec([None, None], tf.int32),
            "x": tf.RaggedTensorSpec([None, None, 2], tf.float32, 1),
        },
    )
    inputs = xt.keras.Input(spec)
    bag = xt.keras.layers.EmbeddingBag(2, input_dim=4, combiner="attention")(inputs["ids"])
    pooled = xt.keras.layers.ListPooling("attention")(inputs["x"])
    model = xt.keras.Model(inputs, keras.layers.Add()([bag, pooled]))
    model.quantize(mode)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    records = spec.cast(records)
    np.testing.assert_array_equal(
        again.predict(records, verbose=0), model.predict(records, verbose=0)
    )


@pytest.mark.parametrize("options", [{}, {"num_bins": 3, "input_dim": 3}])
def test_one_source_of_ids_is_required(options):
    with pytest.raises(errors.ArgumentError, match="one of vocabulary, num_bins and input_dim"):
        xt.keras.layers.EmbeddingBag(2, **options)


def test_another_combiner_is_refused():
    with pytest.raises(errors.ArgumentError, match="sum, mean, max, attention, got 'median'"):
        xt.keras.layers.EmbeddingBag(2, input_dim=3, combiner="median")


@pytest.mark.parametrize("words", [["a", "a\0"], ["b", "\0"], [b"b\0"]])
def test_a_word_that_keras_would_change_is_named(words):
    with pytest.raises(errors.ArgumentError, match=r"bag: expected strings that do not end in NUL"):
        xt.keras.layers.EmbeddingBag(2, vocabulary=words, name="bag")


@pytest.mark.parametrize("made", [np.array, tuple, pa.array, tf.constant], ids=lambda m: m.__name__)
@pytest.mark.parametrize("words", [["salt", "oil"], [5, 7]], ids=["strings", "ints"])
def test_a_vocabulary_of_an_array_is_that_of_a_list(made, words):
    bag = xt.keras.layers.EmbeddingBag(2, vocabulary=made(words))
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(bag))
    expected = xt.keras.layers.EmbeddingBag(2, vocabulary=words).lookup(tf.constant(words))
    for each in (bag, again):
        np.testing.assert_array_equal(each.lookup(tf.constant(words)), expected)


@pytest.mark.parametrize("words", [{"salt"}, (word for word in ["salt"]), 5])
def test_a_vocabulary_without_an_order_is_refused(words):
    with pytest.raises(errors.ArgumentError, match=f"list .*, got {type(words).__name__}"):
        xt.keras.layers.EmbeddingBag(2, vocabulary=words)


@pytest.mark.parametrize("combiner", ["sum", "max"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "uint64"])
def test_ids_of_any_integer_dtype(dtype, combiner):
    ids = tf.ragged.constant([[1, 2, 1], [], [3]])
    bag = xt.keras.layers.EmbeddingBag(2, input_dim=4, combiner=combiner)
    np.testing.assert_array_equal(bag(tf.cast(ids, dtype)), bag(ids))


def test_items_that_are_no_ids_are_named():
    bag = xt.keras.layers.EmbeddingBag(2, input_dim=4, name="bag")
    with pytest.raises(
        errors.DTypeError, match=r"bag: expected ids that are .*, got strings\. Give"
    ):
        bag.call(tf.ragged.constant(TAGS))
    records = xt.struct.constant([{"a": [{"b": 1}]}])
    with pytest.raises(
        errors.UnsupportedTypeError, match="bag: expected lists of words or ids, got"
    ):
        bag.call(records["a"])
