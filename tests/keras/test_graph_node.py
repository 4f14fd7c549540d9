"""Layers that return values, in functional graphs of Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor._keras.lowering import lowered
from tests.keras.kinds import KINDS

RECORDS = KINDS["records"].value


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
    with pytest.raises(errors.DTypeError, match="the output of the layer when the model was built"):
        model(RECORDS)
