"""ListAttention equals the attention of Keras over each list by itself."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given

import extensor as xt
from extensor import errors
from tests.keras.layers.samples import (
    nullable_lists,
    ragged,
    records_of_numbers,
    rows_of,
    vectors,
)

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


def test_records_of_numbers_are_vectors_of_all_their_fields():
    layer, reference = layer_and_reference()
    records, rows = records_of_numbers(LENGTHS)
    for got, row in zip(rows_of(layer(records)), rows, strict=True):
        assert got.shape == row.shape
        if len(row):
            np.testing.assert_allclose(got, reference(row, row), rtol=1e-4, atol=1e-5)


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


MIXED = [5, 0, 1, 40, 3, 2, 0, 17, 9, 1, 40, 20]


def in_graph(function):
    """A function that runs in a graph, as the steps of fit do: there, lists are in buckets."""
    return tf.function(function, autograph=False)


@pytest.mark.parametrize("lengths", [MIXED, LENGTHS, [3, 3, 3], [0, 0], [], [1], [0, 9]])
def test_results_and_gradients_in_a_graph_are_those_of_padded_lists(lengths):
    layer = xt.keras.layers.ListAttention(3, 4, output_shape=6, dtype="float64")
    value = tf.cast(vectors(lengths), tf.float64)
    layer(vectors([1]))
    weights = layer.trainable_weights
    up = tf.constant(np.random.default_rng(5).normal(size=[sum(lengths), 6]))

    def padded(flat):
        ragged = value.with_values(flat)
        mask = tf.sequence_mask(ragged.row_lengths(), max([*lengths, 1]))
        dense = ragged.to_tensor(shape=[None, max([*lengths, 1]), None])
        return tf.boolean_mask(layer.attention(dense, dense, value_mask=mask), mask)

    def of_loss(function):
        def run(flat):
            with tf.GradientTape() as tape:
                tape.watch(flat)
                found = function(flat)
                loss = tf.reduce_sum(found * up)
            gradients = tape.gradient(loss, [flat, *(weight.value for weight in weights)])
            return found, [tf.convert_to_tensor(gradient) for gradient in gradients]

        return in_graph(run)(value.values)

    found, gradients = of_loss(lambda flat: layer(value.with_values(flat)).values)
    expected, wanted = of_loss(padded)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    for got, gradient in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(got, gradient, rtol=1e-6, atol=1e-9)


@functools.cache
def layer_and_its_graph():
    layer = xt.keras.layers.ListAttention(2, 3)
    return layer, tf.function(layer, autograph=False, reduce_retracing=True)


@pytest.mark.whole("draws many values")
@given(rows=nullable_lists())
def test_a_graph_gives_what_eager_calls_give_also_of_nulls(rows):
    layer, traced = layer_and_its_graph()
    value = ragged([*rows, [1.0, None]])
    expected = layer(value)
    found = traced(value)
    np.testing.assert_array_equal(found.row_splits, expected.row_splits)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-5, atol=1e-6)


def test_a_graph_gives_what_eager_calls_give_of_lists_in_lists_and_tensors():
    layer = xt.keras.layers.ListAttention(2, 4)
    nested = tf.RaggedTensor.from_row_lengths(vectors(MIXED), [3, 0, 9])
    layer(nested)
    for value in (nested, tf.ones([2, 5, 3]), tf.ones([2, 0, 3])):
        found, expected = in_graph(layer)(value), layer(value)
        assert found.shape.as_list() == expected.shape.as_list()
        np.testing.assert_allclose(found.flat_values, expected.flat_values, rtol=1e-5, atol=1e-6)


def test_second_derivatives_in_a_graph_are_those_of_eager_calls():
    layer, _ = layer_and_reference()
    value = vectors([3, 1, 9])
    layer(value)

    def second(flat):
        with tf.GradientTape() as outer:
            outer.watch(flat)
            with tf.GradientTape() as tape:
                tape.watch(flat)
                loss = tf.reduce_sum(layer(value.with_values(flat)).values ** 2)
            [found] = tape.gradient(loss, [flat])
            square = tf.reduce_sum(tf.convert_to_tensor(found) ** 2)
        return tf.convert_to_tensor(outer.gradient(square, flat))

    expected = second(value.values)
    assert np.abs(expected).max() > 0
    np.testing.assert_allclose(in_graph(second)(value.values), expected, rtol=1e-3, atol=1e-4)


def test_a_nan_stays_in_its_list_in_a_graph():
    layer, _ = layer_and_reference()
    flat = vectors(MIXED).values.numpy()
    flat[0] = np.nan
    found = rows_of(in_graph(layer)(vectors(MIXED).with_values(tf.constant(flat))))
    assert np.isnan(found[0]).all()
    assert np.isfinite(np.concatenate(found[1:])).all()


def test_half_precision_in_a_graph():
    layer = xt.keras.layers.ListAttention(2, 4, dtype="mixed_float16")
    value = vectors(MIXED)
    expected, found = layer(value), in_graph(layer)(value)
    assert found.dtype == tf.float16
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-2, atol=4e-3)


def test_weights_have_the_same_paths_if_the_first_call_is_in_a_graph():
    paths = []
    for call in (lambda layer: layer, in_graph):
        layer = xt.keras.layers.ListAttention(2, 4, name="own")
        call(layer)(vectors(LENGTHS))
        own = [weight.path.split("/") for weight in layer.weights]
        paths.append([(path[0], *path[2:]) for path in own])  # without the number of the layer
    assert paths[0] == paths[1]
    assert len(paths[0]) == 8


@pytest.mark.whole("writes files")
def test_a_saved_model_gives_the_same_results_and_gradients(tmp_path):
    layer, _ = layer_and_reference()
    value = vectors(MIXED)
    expected = layer(value)
    module = tf.Module()
    module.layer = layer
    spec = tf.RaggedTensorSpec([None, None, 3], ragged_rank=1)
    module.call = tf.function(lambda value: layer(value), input_signature=[spec])
    tf.saved_model.save(module, tmp_path / "saved")
    loaded = tf.saved_model.load(tmp_path / "saved")
    np.testing.assert_allclose(loaded.call(value).values, expected.values, rtol=1e-5, atol=1e-6)
    gradients = []
    for call in (layer, loaded.call):
        with tf.GradientTape() as tape:
            tape.watch(value.values)
            loss = tf.reduce_sum(call(value).values ** 2)
        gradients.append(tf.convert_to_tensor(tape.gradient(loss, value.values)))
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-4, atol=1e-4)
