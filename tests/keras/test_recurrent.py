"""RNN: the results of keras.layers.RNN for tensors, and cells of values."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors

RANDOM = np.random.default_rng(0)
STEPS = RANDOM.random([4, 3, 2], np.float32)
CELLS = {
    "simple": lambda: keras.layers.SimpleRNNCell(5),
    "lstm": lambda: keras.layers.LSTMCell(5),
    "a list": lambda: [keras.layers.LSTMCell(5), keras.layers.SimpleRNNCell(4)],
}


def assert_close(found, expected):
    tf.nest.map_structure(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6),
        tf.nest.flatten(found),
        tf.nest.flatten(expected),
    )


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_sequences": True, "return_state": True},
        {"go_backwards": True},
        {"unroll": True, "return_sequences": True},
    ],
    ids=str,
)
def test_a_cell_of_tensors_gives_what_it_gives_in_keras(cell, options, in_function):
    cell = CELLS[cell]()
    ours, plain = xt.keras.RNN(cell, **options), keras.layers.RNN(cell, **options)
    expected = plain(STEPS)
    call = tf.function(ours) if in_function else ours
    assert_close(call(tf.constant(STEPS)), expected)


@keras.saving.register_keras_serializable("tests")
class Remembered(xt.keras.Layer):
    """A cell whose inputs, outputs and states are MaskedTensors: unknown steps keep the state."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.kernel = keras.layers.Dense(units)
        self.recurrent = keras.layers.Dense(units)

    def get_initial_state(self, batch_size=None):
        zeros = tf.zeros([batch_size, self.units])
        return xt.types.MaskedTensor(zeros, tf.zeros_like(zeros, tf.bool))

    def call(self, step, states):
        (state,) = states
        known = step.mask[:, :1]
        values = tf.tanh(self.kernel(step.values) + self.recurrent(state.values))
        state = xt.types.MaskedTensor(tf.where(known, values, state.values), state.mask | known)
        return state, state

    def get_config(self):
        return {**super().get_config(), "units": self.units}


MASK = np.ones([4, 3, 2], bool)
MASK[0, 1:] = False  # of the first row, the last two steps are unknown
MASK[1] = False
MASKED = xt.types.MaskedTensor(STEPS, MASK)


def of_masked(**options):
    inputs = xt.keras.Input(tf.type_spec_from_value(MASKED))
    states = xt.keras.RNN(Remembered(5), **options)(inputs)
    return xt.keras.Model(inputs, states)


@pytest.mark.whole("saves and loads models")
def test_a_cell_takes_and_returns_values(tmp_path):
    model = of_masked(return_sequences=True)
    states = model(MASKED)
    assert states.values.shape == (4, 3, 5)
    np.testing.assert_array_equal(states.mask[:2, :, 0], [[True] * 3, [False] * 3])
    np.testing.assert_array_equal(states.values[0, 2], states.values[0, 0])
    predicted = model.predict(MASKED, batch_size=3, verbose=0)
    np.testing.assert_allclose(predicted.values, states.values, rtol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(MASKED).values, states.values)


VALID = np.array([[True, False, True], [False] * 3, [False, True, False], [True] * 3])


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    "options",
    [
        {"return_sequences": True, "return_state": True},
        {"go_backwards": True},
        {"unroll": True},
        {"zero_output_for_mask": True, "return_sequences": True},
        {"zero_output_for_mask": True},
    ],
    ids=str,
)
def test_a_mask_gives_what_it_gives_in_keras(cell, options, in_function):
    cell = CELLS[cell]()
    ours, plain = xt.keras.RNN(cell, **options), keras.layers.RNN(cell, **options)
    expected = plain(STEPS, mask=VALID)
    call = tf.function(ours) if in_function else ours
    assert_close(call(tf.constant(STEPS), mask=tf.constant(VALID)), expected)


def test_a_mask_of_keras_goes_through_the_layer():
    inputs = keras.Input((3, 2))
    masked = keras.layers.Masking()(inputs)
    cell = keras.layers.SimpleRNNCell(5)
    ours = xt.keras.RNN(cell, return_sequences=True)(masked)
    plain = keras.layers.RNN(cell, return_sequences=True)(masked)
    mean = keras.layers.GlobalAveragePooling1D()
    steps = np.where(VALID[:, :, np.newaxis], STEPS, 0)
    model = xt.keras.Model(inputs, [mean(ours), mean(plain)])
    found, expected = model(steps)
    np.testing.assert_allclose(found[::2], expected[::2], rtol=1e-5)


def test_a_masked_step_keeps_states_and_outputs_that_are_values():
    layer = xt.keras.RNN(Remembered(5), return_sequences=True, return_state=True)
    known = xt.types.MaskedTensor(STEPS, np.ones([4, 3, 2], bool))
    outputs, state = layer(known, mask=tf.constant(VALID))
    assert outputs.mask[0].numpy().all()
    np.testing.assert_array_equal(outputs.values[0, 1], outputs.values[0, 0])
    assert not outputs.values[1].numpy().any()  # no step
    assert not outputs.mask[1].numpy().any()
    np.testing.assert_array_equal(state.values, outputs.values[:, 2])
    unmasked = layer(known)[0]
    np.testing.assert_allclose(outputs.values[3], unmasked.values[3], rtol=1e-5)


@pytest.mark.whole("saves and loads models")
def test_cells_of_values_in_a_list(tmp_path):
    inputs = xt.keras.Input(tf.type_spec_from_value(MASKED))
    outputs = xt.keras.RNN([Remembered(5), Remembered(4)], return_sequences=True)(inputs)
    model = xt.keras.Model(inputs, outputs)
    first, second = model.layers[-1].cell.cells
    each = xt.keras.RNN(second, return_sequences=True)(
        xt.keras.RNN(first, return_sequences=True)(MASKED)
    )
    np.testing.assert_allclose(model(MASKED).values, each.values, rtol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(MASKED).values, model(MASKED).values)


def test_the_first_states_of_cells_in_a_list():
    cells = CELLS["a list"]()
    ours, plain = xt.keras.RNN(cells), keras.layers.RNN(cells)
    first = [[tf.ones([4, 5]), tf.ones([4, 5])], tf.ones([4, 4])]
    expected = plain(STEPS, initial_state=first)
    assert_close(ours(tf.constant(STEPS), initial_state=first), expected)


def test_options_of_keras_that_cannot_be():
    cell = keras.layers.SimpleRNNCell(5)
    with pytest.raises(errors.ArgumentError, match=r"stateful.*initial_state"):
        xt.keras.RNN(cell, stateful=True)
    with pytest.raises(errors.ArgumentError, match="cells"):
        xt.keras.RNN([])
    spec = tf.TensorSpec([None, None, 2])
    with pytest.raises(errors.UnsupportedTypeError, match="unroll"):
        tf.function(xt.keras.RNN(cell, unroll=True), input_signature=[spec]).get_concrete_function()


@pytest.mark.whole("trains models")
def test_all_weights_of_a_cell_are_trained():
    inputs = xt.keras.Input(tf.type_spec_from_value(MASKED))
    state = xt.keras.RNN(Remembered(5))(inputs)
    model = xt.keras.Model(inputs, keras.layers.Dense(1)(state.values))
    before = model.get_weights()
    model.compile("sgd", "mse")
    model.fit(MASKED, np.ones([4, 1]), verbose=0)
    assert len(before) == 6
    for old, new in zip(before, model.get_weights(), strict=True):
        assert (old != new).any()


class Counted(xt.keras.Layer):
    """Counts the words of all steps, and returns the records of the step."""

    def get_initial_state(self, batch_size=None):
        return tf.zeros([batch_size], tf.int64)

    def call(self, step, states):
        return step, states[0] + step["words"].row_lengths()


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("in_function", [False, True])
def test_steps_are_records_with_ragged_fields(in_function):
    words = tf.ragged.constant([[["a"], []], [["b", "c"], ["d"]], [[], []]])
    words = tf.RaggedTensor.from_uniform_row_length(words.values, 2)
    records = xt.DenseStructuredTensor([3, 2], {"words": words, "n": [[1, 2], [3, 4], [5, 6]]})
    layer = xt.keras.RNN(Counted(), return_sequences=True, return_state=True)
    outputs, counts = (tf.function(layer) if in_function else layer)(records)
    assert outputs.to_py() == records.to_py()
    assert counts.numpy().tolist() == [1, 3, 0]
    last, _ = xt.keras.RNN(Counted(), return_state=True)(records)
    assert last.to_py() == records[:, 1].to_py()


def test_the_first_states_may_be_given():
    cell = keras.layers.SimpleRNNCell(5)
    ours, plain = xt.keras.RNN(cell), keras.layers.RNN(cell)
    first = RANDOM.random([4, 5], np.float32)
    expected = plain(STEPS, initial_state=[first])
    np.testing.assert_allclose(ours(tf.constant(STEPS), initial_state=first), expected, rtol=1e-5)


@pytest.mark.parametrize("steps", [tf.ragged.constant([[1.0], []]), tf.zeros([3])])
def test_steps_are_a_dimension_of_one_size(steps):
    cell = keras.layers.SimpleRNNCell(5)
    cell.build((None, 1))
    with pytest.raises(errors.UnsupportedTypeError, match="ListRNN"):
        xt.keras.RNN(cell)(steps)
