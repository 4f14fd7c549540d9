"""Specs and values in the configurations of layers."""

import json

import keras
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras import kinds
from tests.keras.kinds import KINDS

EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


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
    with pytest.raises(errors.DTypeError, match="Serialize other objects"):
        xt.keras.serialize(3)
    _, spec = kinds.fresh_masked_type()
    with pytest.raises(errors.RegistrationError):
        xt.keras.serialize(spec([None, 3], tf.float32))
