"""Layers that return values, in functional graphs of Keras."""

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras.kinds import KINDS

RECORDS = KINDS["records"].value


class Twice(xt.keras.Layer):
    """Returns values, from values or from a plain tensor."""

    def call(self, inputs):
        if isinstance(inputs, xt.StructuredTensor):
            return inputs.with_updates(taste=inputs["taste"] * 2)
        return {"made": xt.DenseStructuredTensor([None], {"x": inputs * 2}), "plain": inputs}


def test_a_model_of_plain_keras_runs_layers_that_return_values():
    taste = keras.Input((3,), name="taste")
    made = Twice()(taste)
    twice = Twice()(Twice()(made["made"].with_updates(taste=made["plain"])))
    model = keras.Model(taste, {"taste": twice["taste"], "x": twice["x"], "plain": made["plain"]})
    value = RECORDS["taste"]
    for result in (model(value), tf.function(model)(value)):
        np.testing.assert_array_equal(result["taste"], value * 4)
        np.testing.assert_array_equal(result["x"], value * 2)
        np.testing.assert_array_equal(result["plain"], value)
    # Inside another one, which asks it for shapes, and from a tensor in the middle of it.
    again = keras.Model(taste, model(taste)["x"])
    np.testing.assert_array_equal(again(value), value * 2)
    tail = keras.Model(made["plain"], keras.layers.Rescaling(2.0)(made["plain"]))
    np.testing.assert_array_equal(tail(value), value * 2)
    clone = keras.models.clone_model(model)
    np.testing.assert_array_equal(clone(value)["taste"], value * 4)


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
    with pytest.raises(errors.DTypeError, match="the output of the layer when the model was built"):
        model(RECORDS)


def test_a_graph_keeps_no_tensor_of_a_value_that_is_gone():
    recipe = xt.keras.Input(KINDS["records"].spec)
    made = []

    class Watched(xt.keras.Layer):
        def call(self, records):
            result = Twice()(records)
            made.append(weakref.ref(result["taste"]))
            return result

    watched = Watched()(recipe)
    model = xt.keras.Model(recipe, [watched["taste"] + 1.0, watched["title"]])
    made.clear()
    np.testing.assert_array_equal(model(RECORDS)[0], RECORDS["taste"] * 2 + 1)
    gc.collect()
    assert [reference() for reference in made] == [None]
