"""ListAttention equals the attention of Keras over each list by itself."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras.layers.samples import rows_of, vectors

LENGTHS = [2, 0, 3, 1]


def layer_and_reference(**options):
    layer = xt.keras.layers.ListAttention(2, 4, **options)
    return layer, lambda query, row: layer.attention(query[np.newaxis], row[np.newaxis])[0]


def test_self_attention_equals_that_of_each_list():
    layer, reference = layer_and_reference()
    value = vectors(LENGTHS)
    result = layer(value)
    assert result.row_lengths().numpy().tolist() == LENGTHS
    for got, row in zip(rows_of(result), rows_of(value), strict=True):
        if len(row):
            np.testing.assert_allclose(got, reference(row, row), rtol=1e-4, atol=1e-5)


def test_a_query_vector_equals_that_of_each_list():
    layer, reference = layer_and_reference(empty=-2.0)
    value = vectors(LENGTHS)
    queries = np.random.default_rng(1).random([4, 5], np.float32)
    result = layer(value, query=tf.constant(queries))
    for got, query, row in zip(result.numpy(), queries, rows_of(value), strict=True):
        expected = reference(query[np.newaxis], row)[0] if len(row) else np.full(3, -2.0)
        assert got.shape == (5,) or got.shape == np.shape(expected)
        np.testing.assert_allclose(got, expected if len(row) else -2.0, rtol=1e-4, atol=1e-5)


def test_a_list_of_queries_equals_that_of_each_list():
    layer, reference = layer_and_reference(output_shape=6, empty=1.5)
    value, queries = vectors(LENGTHS), vectors([1, 2, 0, 3], size=5, seed=2)
    result = layer(value, query=queries)
    assert result.row_lengths().numpy().tolist() == [1, 2, 0, 3]
    triples = zip(rows_of(result), rows_of(queries), rows_of(value), strict=True)
    for got, query, row in triples:
        if len(query):
            expected = reference(query, row) if len(row) else np.full([len(query), 6], 1.5)
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_lists_in_lists_attend_to_their_own_list():
    layer, _ = layer_and_reference()
    value = tf.RaggedTensor.from_row_lengths(vectors([2, 0, 3]), [1, 0, 2])
    result = layer(value)
    assert result.nested_row_lengths()[0].numpy().tolist() == [1, 0, 2]
    np.testing.assert_allclose(result.flat_values, layer(value.values).flat_values, rtol=1e-5)
    queries = tf.RaggedTensor.from_row_lengths(tf.ones([3, 4]), [1, 0, 2])
    layer, _ = layer_and_reference()
    result = layer(value, query=queries)
    assert result.row_lengths().numpy().tolist() == [1, 0, 2]
    expected = layer(value.values, query=tf.ones([3, 4]))
    np.testing.assert_allclose(result.flat_values, expected, rtol=1e-5)


def test_null_items_get_no_attention():
    layer, _ = layer_and_reference()
    value = vectors([3, 2])
    mask = tf.RaggedTensor.from_row_splits([True, False, True, True, False], value.row_splits)
    expected = layer(tf.ragged.boolean_mask(value, mask))
    result = layer(xt.types.MaskedTensor(value, mask))
    np.testing.assert_allclose(result.flat_values, expected.flat_values, rtol=1e-5)


def test_all_lists_may_be_empty():
    layer, _ = layer_and_reference()
    assert layer(vectors([0, 0])).shape[0] == 2
    result = layer(vectors([0, 0]), query=tf.ones([2, 3]))
    np.testing.assert_array_equal(result, np.zeros([2, 3]))


def test_dropout_is_only_applied_in_training():
    layer, _ = layer_and_reference(dropout=0.5)
    value = vectors(LENGTHS)
    once, again = layer(value), layer(value)
    np.testing.assert_array_equal(once.flat_values, again.flat_values)
    keras.utils.set_random_seed(0)
    assert np.abs(layer(value, training=True).flat_values - once.flat_values).max() > 0


@pytest.mark.filterwarnings("ignore:.*unbuilt state:UserWarning")
def test_queries_with_other_dimensions_are_refused():
    layer, _ = layer_and_reference()
    deeper = tf.RaggedTensor.from_row_lengths(vectors([2, 0, 3]), [1, 2])
    with pytest.raises(errors.StructureError, match="query: expected 0 dimensions"):
        layer(vectors([2, 1]), query=deeper)


def test_numbers_are_vectors_of_size_one():
    for numbers in (tf.ragged.constant([[1.0, 2.0], [], [3.0]]), tf.ones([2, 3])):
        layer, _ = layer_and_reference()
        vectors = layer(numbers[..., tf.newaxis])
        assert_same_rows(layer(numbers), vectors)
    numbers = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    assert_same_rows(layer(numbers, query=numbers), layer(numbers))
    masked = xt.types.MaskedTensor(tf.ones([2, 3]), [[True, False, True], [True, True, False]])
    assert_same_rows(layer(masked), layer(tf.ragged.constant([[1.0, 1.0]] * 2)))


def assert_same_rows(one, other):
    for got, wanted in zip(rows_of(one), rows_of(other), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*unbuilt state:UserWarning")
def test_lists_of_what_is_no_vector_are_refused():
    layer, _ = layer_and_reference()
    records = xt.RaggedStructuredTensor.from_row_lengths(
        xt.DenseStructuredTensor([1], {"a": ["x"]}), [1]
    )
    for lists in (tf.ragged.constant([["a"], []]), records):
        with pytest.raises(errors.UnsupportedTypeError, match=r"list_attention.*TimeDistributed"):
            layer(lists)
        with pytest.raises(errors.UnsupportedTypeError, match=r"query: expected lists of vectors"):
            layer(vectors([1]), query=lists)
