"""What the docs say about ragged tensors in plain Keras and awkward is true of these releases."""

import awkward as ak
import keras
import pytest
import tensorflow as tf

LISTS = [[1, 2], [], [3]]


@pytest.fixture
def embedding():
    return keras.layers.Embedding(4, 2, embeddings_initializer="ones")


def test_an_embedding_and_pooling_take_a_ragged_input(embedding):
    words = keras.Input([None], dtype="int32", ragged=True)
    vectors = embedding(words)
    assert vectors.ragged
    model = keras.Model(words, keras.layers.GlobalAveragePooling1D()(vectors))
    assert model(tf.ragged.constant([[1, 2], [3]])).numpy().tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("layer", [keras.layers.Dense, keras.layers.LSTM])
def test_dense_layers_and_recurrent_layers_do_not(embedding, layer):
    vectors = embedding(tf.ragged.constant(LISTS))
    assert isinstance(vectors, tf.RaggedTensor)
    with pytest.raises((TypeError, ValueError)):
        layer(2)(vectors)


def test_awkward_makes_ragged_tensors_of_lists_but_not_of_records():
    assert ak.to_raggedtensor(ak.Array(LISTS)).to_list() == LISTS
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        ak.to_raggedtensor(ak.Array([[{"a": 1}], []]))
