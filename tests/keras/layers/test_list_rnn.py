"""ListRNN equals the recurrent layer of Keras over each list by itself."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras.layers.samples import records_of_numbers, rows_of, vectors

LENGTHS = [2, 0, 3, 1]
LAYERS = {
    "LSTM": keras.layers.LSTM,
    "GRU": keras.layers.GRU,
    "RNN": lambda units, **options: keras.layers.RNN(keras.layers.SimpleRNNCell(units), **options),
    "Bidirectional": lambda units, **o: keras.layers.Bidirectional(keras.layers.LSTM(units, **o)),
}
EACH = pytest.mark.parametrize("name", LAYERS)


@pytest.mark.whole("many cases")
@EACH
def test_the_last_output_equals_that_of_each_list(name):
    layer = xt.keras.layers.ListRNN(LAYERS[name](4), empty=0.25)
    value = vectors(LENGTHS)
    result = layer(value)
    for got, row in zip(result.numpy(), rows_of(value), strict=True):
        expected = layer.layer(row[np.newaxis])[0] if len(row) else 0.25
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.whole("many cases")
@EACH
def test_all_outputs_equal_those_of_each_list(name):
    layer = xt.keras.layers.ListRNN(LAYERS[name](4, return_sequences=True))
    value = vectors(LENGTHS)
    result = layer(value)
    assert result.row_lengths().numpy().tolist() == LENGTHS
    for got, row in zip(rows_of(result), rows_of(value), strict=True):
        if len(row):
            np.testing.assert_allclose(got, layer.layer(row[np.newaxis])[0], rtol=1e-4, atol=1e-5)


def test_the_states_are_those_of_keras():
    layer = xt.keras.layers.ListRNN(keras.layers.LSTM(4, return_state=True))
    value = vectors(LENGTHS)
    output, *states = layer(value)
    assert len(states) == 2
    np.testing.assert_allclose(output[2], layer.layer(value[2][tf.newaxis])[0][0], rtol=1e-4)
    np.testing.assert_allclose(states[1][2], layer.layer(value[2][tf.newaxis])[2][0], rtol=1e-4)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "Bidirectional"])
def test_no_list_is_without_a_step_for_cudnn(name):
    kind, masks = LAYERS[name](4).__class__, []

    class Seeing(kind):
        def call(self, sequences, initial_state=None, mask=None, training=None):
            if tf.executing_eagerly():  # and not while Keras builds the layer
                masks.append(mask.numpy().tolist())
            return super().call(sequences, initial_state, mask, training)

    inner = keras.layers.LSTM(4, return_state=True) if name == "Bidirectional" else 4
    options = {} if name == "Bidirectional" else {"return_state": True}
    layer = xt.keras.layers.ListRNN(Seeing(inner, **options), empty=0.25)
    output, *states = layer(vectors(LENGTHS))
    # cuDNN refuses a list whose steps are all masked.
    assert masks == [[[step < max(length, 1) for step in range(3)] for length in LENGTHS]]
    assert output[1].numpy().tolist() == [0.25] * output.shape[1]
    assert all(state[1].numpy().tolist() == [0.0] * 4 for state in states)


def test_the_first_call_may_have_one_list():
    layer = xt.keras.layers.ListRNN(keras.layers.GRU(4))
    value = vectors([3])
    np.testing.assert_allclose(layer(value), layer.layer(value.to_tensor()), rtol=1e-5)


def test_numbers_are_vectors_of_size_one():
    numbers = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    layer = xt.keras.layers.ListRNN(keras.layers.GRU(2))
    np.testing.assert_allclose(layer(numbers), layer(tf.expand_dims(numbers, -1)), rtol=1e-5)


def test_records_of_numbers_are_vectors_of_all_their_fields():
    layer = xt.keras.layers.ListRNN(keras.layers.GRU(4), empty=0.25)
    records, rows = records_of_numbers(LENGTHS)
    for got, row in zip(layer(records).numpy(), rows, strict=True):
        expected = layer.layer(row[np.newaxis])[0] if len(row) else 0.25
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_lists_in_lists_and_nulls():
    value = tf.RaggedTensor.from_row_lengths(vectors([2, 0, 3]), [1, 0, 2])
    layer = xt.keras.layers.ListRNN(keras.layers.GRU(2))
    result = layer(value)
    assert result.row_lengths().numpy().tolist() == [1, 0, 2]
    np.testing.assert_allclose(result.flat_values, layer(value.values), rtol=1e-5)
    flat = vectors([3, 2])
    mask = tf.RaggedTensor.from_row_splits([True, False, True, True, False], flat.row_splits)
    expected = layer(tf.ragged.boolean_mask(flat, mask))
    np.testing.assert_allclose(layer(xt.types.MaskedTensor(flat, mask)), expected, rtol=1e-5)


@pytest.mark.whole("many cases")
@EACH
def test_all_lists_may_be_empty(name):
    layer = xt.keras.layers.ListRNN(LAYERS[name](4))
    assert not layer(vectors([0, 0])).numpy().any()


@pytest.mark.parametrize("compiled", [False, True])
def test_backwards_all_outputs_equal_those_of_each_list(compiled):
    layer = xt.keras.layers.ListRNN(
        keras.layers.GRU(4, return_sequences=True, go_backwards=True, use_cudnn=False)
    )
    value = vectors(LENGTHS)
    if compiled:
        records = xt.DenseStructuredTensor([4], {"x": value}).to_static({"x": 5})
        model = xt.keras.Sequential([xt.keras.Lambda(lambda r: r["x"]), layer])
        model.compile("sgd", "mse", jit_compile=True)
        result = model.predict(records, verbose=0)
        result = [row[mask] for row, mask in zip(result.values, result.mask, strict=True)]
    else:
        result = rows_of(layer(value))
    for got, row in zip(result, rows_of(value), strict=True):
        assert len(got) == len(row)
        if len(row):
            np.testing.assert_allclose(got, layer.layer(row[np.newaxis])[0], rtol=1e-4, atol=1e-5)
