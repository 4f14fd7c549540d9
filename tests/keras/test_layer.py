"""Layers of every kind of value: called and traced, masked, distributed over steps, configured."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor._keras.lowering import lowered
from tests.keras import kinds
from tests.keras.kinds import COUNT, KINDS

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
RECORDS = KINDS["records"].value


class Beside(xt.keras.Layer):
    """Takes values in nests and by keyword, and returns them beside plain tensors."""

    def call(self, pair, *, extra, plain, training=None):
        first, second = pair["both"]
        assert training is True
        assert type(first) is type(second) is type(extra)
        return [first, {"extra": extra, "plain": plain * 2.0}]


@EACH
def test_values_in_nests_by_keyword_and_beside_tensors(kind):
    layer, plain = Beside(), tf.ones([COUNT, 2])
    nest = {"both": (kind.value, kind.value)}
    first, rest = layer(nest, extra=kind.value, plain=plain, training=True)
    assert kinds.numbers(first) == kinds.numbers(rest["extra"]) == kinds.numbers(kind.value)
    np.testing.assert_array_equal(rest["plain"], plain * 2)
    # The same symbolically, into a model of Keras's own and into ours.
    placeholders = [xt.keras.Input(kind.spec, name=name) for name in ("a", "b", "c")]
    x = keras.Input((2,), name="x")
    nest = {"both": tuple(placeholders[:2])}
    first, rest = layer(nest, extra=placeholders[2], plain=x, training=True)
    assert type(first) is type(kind.value)
    model = xt.keras.Model([*placeholders, x], [first, rest])
    first, rest = model([kind.value, kind.rows(0, COUNT), kind.value, plain])
    assert kinds.numbers(first) == kinds.numbers(rest["extra"]) == kinds.numbers(kind.value)
    np.testing.assert_array_equal(rest["plain"], plain * 2)


class Twice(xt.keras.Layer):
    """Returns values, from values or from a plain tensor."""

    def call(self, inputs):
        if isinstance(inputs, xt.StructuredTensor):
            return inputs.with_updates(taste=inputs["taste"] * 2)
        return {"made": xt.DenseStructuredTensor([None], {"x": inputs * 2}), "plain": inputs}


def test_a_model_of_plain_keras_runs_layers_that_return_values():
    recipe = xt.keras.Input(KINDS["records"].spec)
    twice = Twice()
    taste = twice(twice(recipe))["taste"]
    made = Twice()(taste)
    outputs = {"taste": taste, "x": made["made"]["x"], "plain": made["plain"]}
    flat = tf.nest.flatten(lowered(recipe))
    model = keras.Model(flat, outputs)
    values = tf.nest.flatten(lowered(RECORDS))
    for result in (model(values), tf.function(model)(values)):
        np.testing.assert_array_equal(result["taste"], RECORDS["taste"] * 4)
        np.testing.assert_array_equal(result["x"], RECORDS["taste"] * 8)
        np.testing.assert_array_equal(result["plain"], RECORDS["taste"] * 4)
    # Inside another one, which asks it for shapes, and from a tensor in the middle of it.
    again = keras.Model(flat, model(flat)["x"])
    np.testing.assert_array_equal(again(values), RECORDS["taste"] * 8)
    tail = keras.Model(taste, made["made"]["x"])
    np.testing.assert_array_equal(tail(RECORDS["taste"]), RECORDS["taste"] * 2)


def test_a_layer_that_returns_another_type_than_it_was_traced_with_is_an_error():
    class Moody(xt.keras.Layer):
        mood = "taste"

        def call(self, inputs):
            return inputs.with_only(self.mood)

    recipe = xt.keras.Input(KINDS["records"].spec)
    layer = Moody()
    model = xt.keras.Model(recipe, layer(recipe))
    assert model(RECORDS).field_names() == ("taste",)
    layer.mood = "title"
    with pytest.raises(errors.DTypeError, match="as the layer returned when the model was built"):
        model(RECORDS)


@EACH
def test_a_dtype_policy_casts_floats_alone(kind):
    class Seen(kind.features):
        def call(self, value):
            type(self).seen = value
            return tf.cast(super().call(keep), tf.float16)

    keep = kind.value
    for autocast, dtype in ((True, tf.float16), (False, tf.float32)):
        Seen(dtype="mixed_float16", autocast=autocast)(kind.value)
        before = tf.nest.flatten(kind.value, expand_composites=True)
        after = tf.nest.flatten(Seen.seen, expand_composites=True)
        for one, other in zip(before, after, strict=True):
            expected = dtype if one.dtype == tf.float32 else one.dtype
            assert other.dtype == expected
            cast = one if expected == one.dtype else tf.cast(one, expected)
            np.testing.assert_array_equal(cast, other)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_whole_model_in_mixed_precision_is_that_of_plain_keras(policy):
    kind = KINDS["records"]
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        model, bare = kinds.twins(kind)
        history = model.fit(kind.value, kinds.RATINGS, 4, shuffle=False, verbose=0).history
        plain = bare.fit(kind.bare_dataset(kinds.RATINGS), shuffle=False, verbose=0).history
    finally:
        keras.config.set_dtype_policy(before)
    assert model.compute_dtype == policy.removeprefix("mixed_")
    assert history == plain


# Masks.


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


@EACH
def test_the_masks_of_arguments_are_passed_on(kind):
    class Kept(xt.keras.Layer):
        def call(self, value, tensor, value_mask=None, tensor_mask=None):
            return tf.cast(tensor_mask, tf.int32) + (0 if value_mask is None else 2)

    numbers = np.array([[1, 2, 0]] * COUNT)
    embedded = keras.layers.Embedding(5, 2, mask_zero=True)(numbers)
    np.testing.assert_array_equal(Kept()(kind.value, embedded), numbers > 0)
    given = Kept()(kind.value, embedded, value_mask=tf.ones([COUNT], tf.bool))
    np.testing.assert_array_equal(given, 2 + (numbers > 0))
    placeholder, number = xt.keras.Input(kind.spec), keras.Input((3,), dtype="int64", name="number")
    embedded = keras.layers.Embedding(5, 2, mask_zero=True)(number)
    model = xt.keras.Model([placeholder, number], Kept()(placeholder, embedded))
    np.testing.assert_array_equal(model([kind.value, numbers]), numbers > 0)


def test_masked_says_what_it_takes():
    with pytest.raises(errors.UnsupportedTypeError, match="__keras_mask__"):
        xt.keras.Masked()(RECORDS)


# Wrappers.

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


@pytest.mark.filterwarnings("ignore:.*unbuilt state:UserWarning")
def test_dense_steps_are_those_of_keras():
    dense = keras.layers.Dense(4)
    x = tf.random.normal([3, 5, 2], seed=1)
    expected = keras.layers.TimeDistributed(dense)(x)
    np.testing.assert_allclose(xt.keras.TimeDistributed(dense)(x), expected, rtol=1e-6)
    with pytest.raises(errors.UnsupportedTypeError, match="records in ragged rows"):
        xt.keras.TimeDistributed(Doubling())(RECORDS)


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


# Specs and values in configurations.


@keras.saving.register_keras_serializable("tests.keras")
class Nearest(xt.keras.Layer):
    """A layer with a spec and a value among its arguments."""

    def __init__(self, spec, value, **kwargs):
        super().__init__(**kwargs)
        self.spec, self.value = spec, value

    def get_config(self):
        return {**super().get_config(), "spec": self.spec, "value": self.value}

    def call(self, inputs):
        assert self.spec.is_compatible_with(inputs)
        return tf.nest.flatten(self.value, expand_composites=True)[0]


@EACH
def test_specs_and_values_in_a_configuration_come_back(kind):
    layer = Nearest(kind.spec, kind.value)
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    again = keras.saving.deserialize_keras_object(config)
    assert again.spec == kind.spec
    assert type(again.value) is type(kind.value)
    assert kinds.numbers(again.value) == kinds.numbers(kind.value)
    again(kind.value)
    written = json.loads(json.dumps(xt.keras.serialize(kind.spec)))
    assert keras.saving.deserialize_keras_object(written) == kind.spec


def test_only_specs_and_values_are_serialized_by_extensor():
    with pytest.raises(errors.DTypeError, match="Keras serializes all else"):
        xt.keras.serialize(3)
    _, spec = kinds.fresh_masked_type()
    with pytest.raises(errors.RegistrationError):
        xt.keras.serialize(spec([None, 3], tf.float32))


def test_the_order_of_fields_is_kept_whichever_was_seen_first():
    class Same(xt.keras.Layer):
        def call(self, inputs):
            return inputs

    orders = [("taste", "title", "minutes"), ("minutes", "taste", "title")]
    for names in orders:
        assert Same()(RECORDS.with_only(*names)).field_names() == names
