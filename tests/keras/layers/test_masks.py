"""The layers for lists use the masks that layers of Keras put on dense tensors."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras.layers.samples import vectors

LENGTHS = [2, 0, 3, 1]
LAYERS = {
    "EmbeddingBag": lambda: xt.keras.layers.EmbeddingBag(3, input_dim=9, combiner="sum", empty=2.0),
    "ListPooling": lambda: xt.keras.layers.ListPooling("mean", empty=2.0),
    "ListRNN": lambda: xt.keras.layers.ListRNN(keras.layers.GRU(3), empty=2.0),
    "ListRNN, outputs": lambda: xt.keras.layers.ListRNN(keras.layers.GRU(3, return_sequences=True)),
    "ListAttention": lambda: xt.keras.layers.ListAttention(2, 4),
}


def lists(name):
    if name == "EmbeddingBag":
        return tf.RaggedTensor.from_row_lengths(tf.range(sum(LENGTHS)), LENGTHS)
    return vectors(LENGTHS)


def assert_equal(one, other):
    if isinstance(other, tf.RaggedTensor):
        np.testing.assert_array_equal(one.row_splits, other.row_splits)
        one, other = one.flat_values, other.flat_values
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.whole("many cases")
@pytest.mark.filterwarnings("error")  # of Keras, about a mask that a layer does not support
@pytest.mark.parametrize("name", LAYERS)
def test_padding_with_a_mask_gives_what_the_lists_give(name):
    keras.utils.set_random_seed(0)
    layer, value = LAYERS[name](), lists(name)
    expected = layer(value)
    padded = xt.keras.Masked()(value)
    assert_equal(layer(padded), expected)
    mask = tf.sequence_mask(LENGTHS)
    assert_equal(layer(value.to_tensor(), mask=mask), expected)


@pytest.mark.whole("many cases")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", LAYERS)
def test_padding_with_a_mask_in_a_functional_model(name):
    keras.utils.set_random_seed(0)
    layer, value = LAYERS[name](), lists(name)
    expected = layer(value)
    inputs = xt.keras.Input(tf.type_spec_from_value(value))
    model = xt.keras.Model(inputs, layer(xt.keras.Masked()(inputs)))
    assert_equal(model(value), expected)
    assert_equal(tf.function(model)(value), expected)


@pytest.mark.filterwarnings("error")
def test_an_embedding_with_masked_zeros_before_a_recurrent_layer():
    keras.utils.set_random_seed(0)
    ids = np.array([[3, 0, 4, 0], [0, 0, 0, 0], [1, 2, 0, 5]])
    embedding, gru = keras.layers.Embedding(6, 3, mask_zero=True), keras.layers.GRU(4)
    vectors = embedding(ids)
    result = xt.keras.layers.ListRNN(gru)(vectors)
    np.testing.assert_allclose(result[::2], gru(vectors)[::2], rtol=1e-5)
    assert not result[1].numpy().any()  # an empty list


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("one", [True, False], ids=["a vector", "a list"])
def test_masks_of_the_items_and_of_the_query(one):
    keras.utils.set_random_seed(0)
    layer = xt.keras.layers.ListAttention(2, 4, empty=0.5)
    value, queries = vectors(LENGTHS), vectors([1, 2, 0, 3], size=5, seed=2)
    query = tf.ones([4, 5]) if one else queries
    expected = layer(value, query=query)
    masked = xt.keras.Masked()
    result = layer(masked(value), query=query if one else masked(query))
    assert_equal(result, expected)
