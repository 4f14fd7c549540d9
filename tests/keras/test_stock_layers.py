"""Identity, Lambda, TimeDistributed, and Masked, with the layers that use its mask."""

import json

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras import kinds
from tests.keras.kinds import COUNT, KINDS

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


RECORDS = KINDS["records"].value


def vectors():
    values = np.random.default_rng(0).random((19, 2), np.float32)
    return RECORDS["ingredients.name"].with_flat_values(tf.constant(values))


class Sequence:
    """A type that hands over its mask."""

    def __init__(self, steps, length):
        self.steps, self.length = steps, length

    def __tf_type_spec__(self):
        return SequenceSpec(self.steps.shape, self.length.shape)

    def __keras_mask__(self):
        return self.steps, tf.sequence_mask(self.length, tf.shape(self.steps)[1])


class SequenceSpec(xt.StackableTypeSpec):
    value_type = Sequence

    def __init__(self, steps, length):
        self.steps, self.length = tf.TensorShape(steps), tf.TensorShape(length)

    @property
    def component_specs(self):
        return tf.TensorSpec(self.steps, tf.float32), tf.TensorSpec(self.length, tf.int64)

    def to_components(self, value):
        return value.steps, value.length

    def from_components(self, components):
        return Sequence(*components)

    def serialize(self):
        return self.steps, self.length


MASKED = {
    "ragged": vectors(),
    "a type of the user's": Sequence(vectors().to_tensor(), vectors().row_lengths()),
}


USES = {
    "LSTM": lambda: keras.layers.LSTM(3),
    "GRU": lambda: keras.layers.Bidirectional(keras.layers.GRU(2)),
    "pooling": keras.layers.GlobalAveragePooling1D,
}


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("layer", USES)
@pytest.mark.parametrize("case", MASKED)
def test_a_mask_reaches_the_layers_that_use_masks(case, layer):
    value, layer = MASKED[case], USES[layer]()
    # Row by row there is nothing to mask.
    expected = np.concatenate([layer(vectors()[i][tf.newaxis]) for i in range(COUNT)])
    np.testing.assert_allclose(layer(xt.keras.Masked()(value)), expected, rtol=1e-5, atol=1e-6)
    placeholder = xt.keras.Input(tf.data.Dataset.from_tensor_slices(value).batch(3).element_spec)
    model = xt.keras.Model(placeholder, layer(xt.keras.Masked()(placeholder)))
    np.testing.assert_allclose(model(value), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        model.predict(value, batch_size=3, verbose=0), expected, rtol=1e-5, atol=1e-6
    )


def test_a_mask_reaches_attention():
    attention = keras.layers.MultiHeadAttention(2, 3)
    padded = xt.keras.Masked()(vectors())
    result = attention(padded, padded)
    for i in range(COUNT):
        row = vectors()[i][tf.newaxis]
        np.testing.assert_allclose(result[i][: row.shape[1]], attention(row, row)[0], atol=1e-5)


def test_masked_says_what_it_takes():
    with pytest.raises(errors.UnsupportedTypeError, match="__keras_mask__"):
        xt.keras.Masked()(RECORDS)


RAGGED = {
    "ragged": lambda: vectors(),
    "records": lambda: RECORDS["ingredients"],
}


@keras.saving.register_keras_serializable("tests.keras")
class Doubling(xt.keras.Layer):
    def call(self, inputs):
        if isinstance(inputs, xt.StructuredTensor):
            return inputs.with_updates(amount=inputs["amount"] * 2)
        return inputs * 2


@pytest.mark.parametrize("case", RAGGED)
def test_a_layer_is_applied_to_each_step_of_ragged_rows(case):
    value = RAGGED[case]()
    result = xt.keras.TimeDistributed(Doubling())(value)
    assert type(result) is type(value)
    before, after = (part.to_list() if case == "ragged" else part["amount"].to_list()
                     for part in (value, result))  # fmt: skip
    assert after == tf.nest.map_structure(lambda number: number * 2, before)
    spec = tf.data.Dataset.from_tensor_slices(value).batch(3).element_spec
    placeholder = xt.keras.Input(spec)
    layer = xt.keras.TimeDistributed(Doubling())
    model = xt.keras.Model(placeholder, layer(placeholder))
    assert kinds.numbers(model(value)) == kinds.numbers(result)
    assert kinds.numbers(keras.models.clone_model(model)(value)) == kinds.numbers(result)


def test_time_distributed_keeps_the_names_of_dimensions():
    steps = xt.DenseStructuredTensor([3], {"x": [1.0, 2.0, 3.0]})
    ragged = xt.RaggedStructuredTensor.from_row_lengths(steps, [2, 1])
    dense = xt.DenseStructuredTensor([1, 3], {"x": [[1.0, 2.0, 3.0]]})
    for value in (ragged, dense):
        named = value.with_dims(("recipe", "step"))
        result = xt.keras.TimeDistributed(xt.keras.Lambda(lambda s: (s, s["x"])))(named)
        assert result[0].dims == (None, "step")  # layers do not know the name of the batch


@pytest.mark.filterwarnings("ignore:.*unbuilt state:UserWarning")
def test_dense_steps_are_those_of_keras():
    dense = keras.layers.Dense(4)
    x = tf.random.normal([3, 5, 2], seed=1)
    expected = keras.layers.TimeDistributed(dense)(x)
    np.testing.assert_allclose(xt.keras.TimeDistributed(dense)(x), expected, rtol=1e-6)
    with pytest.raises(errors.UnsupportedTypeError, match="records in ragged rows"):
        xt.keras.TimeDistributed(Doubling())(RECORDS)


STEPS = {
    "masked": xt.types.MaskedTensor(
        tf.reshape(tf.range(24.0), [2, 3, 4]), [[True, True, False], [True, False, False]]
    ),
    "records": xt.DenseStructuredTensor(
        [2, 3],
        {
            "amount": tf.reshape(tf.range(6.0), [2, 3]),
            "word": tf.constant([["a", "b", "c"], ["d", "e", "f"]]),
            "list": tf.RaggedTensor.from_uniform_row_length(
                tf.ragged.constant([[1], [], [2, 3], [4], [], [5]]), 3
            ),
        },
    ),
}


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("case", STEPS)
def test_a_layer_is_applied_to_each_step_of_values_that_stack(case):
    value = STEPS[case]
    seen = []

    class Step(xt.keras.Layer):
        def call(self, steps):
            seen.append(tf.type_spec_from_value(steps))
            return {"same": steps, "rank": tf.zeros(tf.shape(steps)[:1])}

    layer = xt.keras.TimeDistributed(Step())
    placeholder = xt.keras.Input(tf.data.Dataset.from_tensor_slices(value).batch(1).element_spec)
    outputs = layer(placeholder)
    model = xt.keras.Model(placeholder, outputs)
    assert outputs["rank"].shape == (None, 3)
    for result in (layer(value), model(value), model.predict(value, batch_size=1, verbose=0)):
        assert type(result["same"]) is type(value)
        assert kinds.numbers(result["same"]) == kinds.numbers(value)
        assert result["rank"].shape == (2, 3)
    assert {spec.shape.rank for spec in seen} == {1 if case == "records" else 2}


@keras.saving.register_keras_serializable("tests.keras")
def title_of(records, prefix=""):
    return tf.strings.join([prefix, records["title"]])


@EACH
def test_identity_and_lambda_take_values(kind):
    assert kinds.numbers(xt.keras.Identity()(kind.value)) == kinds.numbers(kind.value)
    assert kinds.numbers(xt.keras.Lambda(lambda v: v)(kind.value)) == kinds.numbers(kind.value)


def test_a_lambda_of_a_registered_function_comes_back():
    layer = xt.keras.Lambda(title_of, {"prefix": "a "}, name="title")
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    again = keras.saving.deserialize_keras_object(config)
    assert again.name == "title"
    assert again(RECORDS).numpy().tolist() == [b"a " + title for title in RECORDS["title"].numpy()]


NULL_STEPS = {
    "ragged": ([[[1.0, 2.0], None], [[3.0, 4.0]], None, []], pa.list_(pa.list_(pa.float32(), 2))),
    "fixed": ([[[1.0, 2.0], None], [[3.0, 4.0], [5.0, 6.0]], None], None),
}


@pytest.mark.parametrize("case", NULL_STEPS)
def test_outputs_for_null_steps_are_null(case):
    rows, kind = NULL_STEPS[case]
    kind = kind or pa.list_(pa.list_(pa.float32(), 2), 2)
    value = xt.from_arrow(pa.table({"x": pa.array(rows, kind)}), nulls="mask")["x"]
    dense = keras.layers.Dense(3, bias_initializer="ones")
    layer = xt.keras.TimeDistributed(dense)
    inputs = xt.keras.Input(tf.data.Dataset.from_tensor_slices(value).batch(2).element_spec)
    model = xt.keras.Model(inputs, layer(inputs))
    for found in (layer(value).to_py(), model(value).to_py()):
        assert [row and [step is None for step in row] for row in found] == [
            row and [step is None for step in row] for row in rows
        ]
        np.testing.assert_allclose(found[1][0], dense(tf.constant([[3.0, 4.0]]))[0], rtol=1e-6)
    pooled = xt.keras.layers.ListPooling("mean")(layer(value))
    np.testing.assert_allclose(pooled[0], dense(tf.constant([[1.0, 2.0]]))[0], rtol=1e-6)
    assert not pooled[2].numpy().any()


def test_a_layer_of_ours_gets_null_steps_in_ragged_rows():
    rows = [[{"a": 1.0}, None], None, [{"a": 2.0}]]
    table = pa.table({"x": pa.array(rows, pa.list_(pa.struct({"a": pa.float32()})))})
    value = xt.from_arrow(table, nulls="mask")["x"]
    result = xt.keras.TimeDistributed(xt.keras.Identity())(value)
    assert result.to_py() == value.to_py()
