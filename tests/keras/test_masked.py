"""Masked: ragged tensors as padded tensors with their masks, also where all rows are empty."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt

EMPTY = tf.RaggedTensor.from_row_splits(tf.zeros([0, 2]), tf.constant([0, 0, 0], tf.int64))
SOME = tf.RaggedTensor.from_row_splits(tf.ones([3, 2]), tf.constant([0, 3, 3], tf.int64))
LAYERS = {
    "LSTM": lambda: keras.layers.LSTM(3),
    "GRU": lambda: keras.layers.GRU(3),
    "max pooling": keras.layers.GlobalMaxPooling1D,
}


def mask_of(tensor):
    return tensor._keras_mask.numpy().tolist()


# Max pooling has no masks in Keras, which warns.
@pytest.mark.whole("traces many functions")
@pytest.mark.filterwarnings("ignore:Layer 'global_max_pooling1d.*mask:UserWarning")
@pytest.mark.parametrize("layer", LAYERS)
def test_rows_that_are_all_empty_have_one_masked_step(layer):
    padded = xt.keras.Masked()(EMPTY)
    assert padded.shape == [2, 1, 2]
    assert mask_of(padded) == [[False], [False]]
    layer = LAYERS[layer]()
    # An empty row beside a longer one, and alone.
    beside = layer(xt.keras.Masked()(SOME))[1]
    np.testing.assert_allclose(layer(padded)[0], beside)
    placeholder = xt.keras.Input(tf.RaggedTensorSpec([None, None, 2], tf.float32, 1))
    model = xt.keras.Model(placeholder, layer(xt.keras.Masked()(placeholder)))
    np.testing.assert_allclose(model.predict(EMPTY, verbose=0)[0], beside)
    np.testing.assert_allclose(tf.function(model)(EMPTY)[0], beside)


def test_two_ragged_dimensions_have_a_mask_for_both():
    rows = tf.ragged.constant([[[1, 2], [3]], [], [[], [4]]], dtype=tf.float32)
    padded = xt.keras.Masked()(rows)
    assert padded.numpy().tolist() == [[[1, 2], [3, 0]], [[0, 0], [0, 0]], [[0, 0], [4, 0]]]
    assert mask_of(padded) == [
        [[True, True], [True, False]], [[False] * 2] * 2, [[False] * 2, [True, False]]
    ]  # fmt: skip
    empty = tf.ragged.constant([[[]], []], ragged_rank=2, dtype=tf.float32)
    padded = xt.keras.Masked()(empty)
    assert padded.shape == [2, 1, 1]
    assert mask_of(padded) == [[[False]], [[False]]]


def test_an_lstm_over_the_inner_of_two_ragged_dimensions_skips_its_padding():
    steps = tf.RaggedTensor.from_nested_row_lengths(
        tf.random.stateless_normal([6, 2], [1, 2]), [[2, 1], [1, 3, 2]]
    )
    inner = keras.layers.LSTM(3)
    result = keras.layers.TimeDistributed(inner)(xt.keras.Masked()(steps))
    assert result.shape == [2, 2, 3]
    for i, row in enumerate(steps):
        for j, sequence in enumerate(row):
            np.testing.assert_allclose(result[i, j], inner(sequence[tf.newaxis])[0], atol=1e-6)


def test_an_inner_dimension_of_equal_sizes_is_not_masked():
    rows = tf.RaggedTensor.from_row_splits(
        tf.RaggedTensor.from_uniform_row_length(tf.range(6.0), 2), [0, 1, 3]
    )
    padded = xt.keras.Masked()(rows)
    assert padded.shape == [2, 2, 2]
    assert mask_of(padded) == [[True, False], [True, True]]
