"""`xt.serving.flat_signature`: functions of any values as functions of plain tensors."""

import functools
import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor.serving import flat_signature
from tests.apis.kinds import KINDS, assert_same
from tests.keras import sample_models
from tests.samples import declared
from tests.serving.sample import (
    RAGGED,
    RECIPE,
    RECIPE_SPEC,
    Kitchen,
    Point,
    assert_alike,
    content,
    names,
    raises,
    served,
)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("ragged", RAGGED)
def test_a_flat_function_gives_the_same_results(kind, ragged):
    traces = []

    def double(value):
        traces.append(value)
        return kind.doubled(value)

    signature = flat_signature(double, kind.spec, ragged=ragged)
    assert len(traces) == 1
    for size in (1, 3):
        value = kind.make(size)
        assert_same(served(signature, value), kind.doubled(value))
    assert len(traces) == 1


def test_inputs_have_the_names_of_the_arguments():
    def function(a, /, b, *rest, c, d=1, **others):
        return {"sum": tf.add_n([a, b, *rest, c, *others.values()]) + d}

    number = tf.TensorSpec([], tf.int32)
    signature = flat_signature(function, number, number, number, number, c=number, other=number)
    assert names(signature.inputs) == ["a", "b", "c", "other", "rest__0", "rest__1"]
    assert str(signature.parameters) == "(a, /, b, *rest, c, other)"
    assert served(signature, 1, 2, 3, 4, c=5, other=6)["sum"] == 22
    with_d = flat_signature(function, number, number, c=number, d=number)
    assert names(with_d.inputs) == ["a", "b", "c", "d"]
    assert served(with_d, 1, b=2, c=3, d=10)["sum"] == 16
    assert served(with_d, 1, 2, c=3)["sum"] == 7


class SignedKitchen(Kitchen):
    __call__ = Kitchen.signed


def test_any_function_of_a_module_can_be_flattened():
    kitchen = Kitchen()
    minutes = RECIPE["steps.minutes"]
    number = tf.TensorSpec([], tf.int32)
    for function, args, kwargs, expected in [
        (lambda recipe: recipe["steps.minutes"] * 3, [RECIPE_SPEC], {}, minutes * 3),
        (kitchen, [RECIPE_SPEC], {}, minutes * 3),
        (kitchen, [RECIPE_SPEC, True], {}, minutes * -3),
        (functools.partial(kitchen, flip=True), [RECIPE_SPEC], {}, minutes * -3),
        (kitchen.traced, [RECIPE_SPEC], {}, minutes * 3 + 1),
        (kitchen.traced, [], {"recipe": RECIPE_SPEC, "flip": True}, minutes * -3 + 1),
        (kitchen.traced, [RECIPE_SPEC, number], {}, minutes * 3 + 1),
        (kitchen.signed, [], {}, minutes + 1),
        (SignedKitchen(), [], {}, minutes + 1),
    ]:
        signature = flat_signature(function, *args, **kwargs)
        roots = [component.path.names[0] for component in signature.inputs.components]
        assert set(roots) <= {"recipe", "plus"}
        assert roots.count("recipe") == 2
        assert_alike(served(signature, RECIPE), expected)


def test_a_concrete_function_is_not_traced_again():
    kitchen = Kitchen()
    signature = flat_signature(kitchen.traced.get_concrete_function(RECIPE_SPEC, flip=True))
    assert str(signature.parameters) == "(recipe, plus)"
    assert_alike(served(signature, RECIPE, 5), RECIPE["steps.minutes"] * -3 + 5)


def test_a_plain_method_is_converted_by_autograph_as_in_a_tf_function():
    class Cook(tf.Module):
        def __call__(self, recipe):
            most = tf.constant(0)
            for minutes in recipe["steps.minutes"].flat_values:
                if minutes > most:
                    most = minutes
            return most

    signature = flat_signature(Cook(), RECIPE_SPEC)
    assert names(signature.outputs) == ["output_0"]
    assert served(signature, RECIPE) == 20


def test_a_request_may_omit_arguments_with_defaults():
    ones, number = tf.ragged.constant([[1.0]]), tf.TensorSpec([])

    def function(x, scale=2.0, plus=ones, other=0.0):
        return x * scale + plus.flat_values[0] + other

    specs = number, number, tf.RaggedTensorSpec([None, None])
    signature = flat_signature(function, *specs)
    assert content(signature.encode(3.0)) == {"x": 3.0}
    assert served(signature, 3.0) == 7.0
    assert served(signature, 3.0, plus=ones * 5.0) == 11.0
    assert served(signature, 3.0, 4.0) == 13.0


def test_a_default_that_does_not_match_the_spec_is_not_used():
    def function(x, scale=2.0, other=None):
        return x * scale + other

    signature = flat_signature(function, *[tf.TensorSpec([])] * 3)
    assert str(signature.parameters) == "(x, scale, other)"
    with pytest.raises(TypeError, match="scale"):
        signature.encode(3.0, other=1.0)
    assert served(signature, 3.0, 2.0, 1.0) == 7.0
    assert signature.function(x=3.0, other=1.0)["output_0"] == 7.0  # who needs no such signature


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (lambda x: x, ["output_0"]),
        (lambda x: (x, [x]), ["output_0", "output_1__0"]),
        (lambda x: {"a": x, "b": {"c": (x,)}}, ["a", "b__c__0"]),
        (lambda x: Point(x, x), ["x", "y"]),
        (lambda x: {"a": x, "nothing": None}, ["a"]),
        (lambda x: {"x": tf.ragged.stack([x])}, ["x", "x__row_splits"]),
    ],
)
def test_outputs_have_the_keys_of_the_result(result, expected):
    signature = flat_signature(result, tf.TensorSpec([2]))
    assert names(signature.outputs) == expected
    assert sorted(signature.function(tf.constant([1.0, 2.0]))) == expected
    assert_alike(served(signature, [1.0, 2.0]), result(tf.constant([1.0, 2.0])))


@pytest.mark.whole("saves and loads models")
@pytest.mark.parametrize("make", [sample_models.functional, sample_models.Rating])
@pytest.mark.parametrize("ragged", RAGGED)
def test_a_keras_model_is_called_for_inference(tmp_path, make, ragged):
    model, recipes = make(), sample_models.recipes()
    model(recipes)
    spec = sample_models.batches().element_spec[0]
    signature = flat_signature(model, spec, training=False, ragged=ragged)
    argument = next(iter(inspect.signature(model.call).parameters))
    assert {component.path.names[0] for component in signature.inputs.components} == {argument}
    xt.serving.save(model, tmp_path / "model", signature)
    function = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    client = xt.serving.load_client(tmp_path / "model")
    np.testing.assert_array_equal(client.decode(function(**client.encode(recipes))), model(recipes))


def plain_functional():
    x, y = keras.Input([2], name="x"), keras.Input([], dtype="int32", name="y")
    total = keras.ops.sum(x, axis=1) + keras.ops.cast(y, "float32")
    return keras.Model({"x": x, "y": y}, total)


def plain_sequential():
    return keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])


@pytest.fixture(scope="module", params=[sample_models.functional, sample_models.Rating])
def fitted(request):
    model = request.param()
    model.compile("sgd", "mse")
    model.fit(sample_models.batches(), verbose=0)
    return model


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("is_fitted", [True, False], ids=["fitted", "loaded"])
def test_a_built_model_needs_no_specs(tmp_path, fitted, is_fitted):
    model, recipes = fitted, sample_models.recipes()
    if not is_fitted:
        model.save(tmp_path / "model.keras")
        model = keras.saving.load_model(tmp_path / "model.keras")
        if isinstance(getattr(model, "input", None), list):
            pytest.skip("Keras 3.10 loads a model of one input as one of a list of one input")
    spec = sample_models.batches().element_spec[0]
    assert str(flat_signature(model).inputs) == str(flat_signature(model, spec).inputs)
    xt.serving.save(model, tmp_path / "model")
    function = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    client = xt.serving.load_client(tmp_path / "model")
    np.testing.assert_array_equal(client.decode(function(**client.encode(recipes))), model(recipes))


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (plain_functional, {"x": tf.ones([3, 2]), "y": tf.constant([1, 2, 3])}),
        (plain_sequential, tf.ones([3, 2])),
    ],
)
def test_a_functional_model_of_keras_needs_no_specs(tmp_path, make, inputs):
    model = make()
    xt.serving.save(model, tmp_path / "model")
    function = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    client = xt.serving.load_client(tmp_path / "model")
    np.testing.assert_allclose(client.decode(function(**client.encode(inputs))), model(inputs))


@pytest.mark.parametrize("base", [keras.Model, xt.keras.Model])
def test_a_model_that_was_never_called_needs_specs(base, tmp_path):
    class Doubled(base):
        def call(self, x):
            return x * 2

    error = raises(errors.DTypeError, xt.serving.save, Doubled(), tmp_path / "model")
    assert "missing" in error.received
    assert "element_spec" in error.fix


def test_wrong_specs_are_errors():
    number = tf.TensorSpec([])
    error = raises(errors.DTypeError, flat_signature, lambda x, y: x, number)
    assert "(x, y)" in error.expected
    assert "'y'" in error.received
    error = raises(errors.DTypeError, flat_signature, lambda x: x, number, number)
    assert isinstance(error, TypeError)
    error = raises(errors.ProtocolError, flat_signature, 3, number)
    assert error.received == "int"
    error = raises(errors.StructureError, flat_signature, lambda x: None, number)
    assert "returns 0 tensors" in error.received
    error = raises(errors.StructureError, flat_signature, lambda x: x, number, ragged="splits")
    assert "'row_splits' or 'row_lengths'" in error.expected
    value = declared.Labelled([1.0], {1: tf.constant(1), "1": tf.constant(1)})
    error = raises(errors.StructureError, flat_signature, lambda x: x.label[1], value)
    assert error.path == "x.label.1"
