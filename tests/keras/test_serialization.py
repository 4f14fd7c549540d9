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


@keras.saving.register_keras_serializable("tests.keras")
class PlainNearest(keras.layers.Layer):
    """A layer of Keras with a spec and a value among its arguments."""

    def __init__(self, spec, value, **kwargs):
        super().__init__(**kwargs)
        self.spec, self.value = spec, value

    def get_config(self):
        return {**super().get_config(), "spec": self.spec, "value": {"in": [self.value]}}

    @classmethod
    def from_config(cls, config):
        parts = {name: config.pop(name) for name in ("spec", "value")}
        parts = keras.saving.deserialize_keras_object(parts)
        return cls(parts["spec"], parts["value"]["in"][0], **config)


@EACH
def test_keras_writes_specs_and_values_in_the_configuration_of_any_layer(kind):
    layer = PlainNearest(kind.spec, kind.value)
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is PlainNearest
    assert again.spec == kind.spec
    assert kinds.numbers(again.value) == kinds.numbers(kind.value)
    written = json.loads(json.dumps(keras.saving.serialize_keras_object([kind.spec, kind.value])))
    spec, value = keras.saving.deserialize_keras_object(written)
    assert spec == kind.spec
    assert kinds.numbers(value) == kinds.numbers(kind.value)


def test_keras_writes_an_unregistered_spec_as_an_error():
    _, spec = kinds.fresh_masked_type()
    with pytest.raises(errors.RegistrationError, match="MaskedTensorSpec"):
        keras.saving.serialize_keras_object({"spec": spec([None, 3], tf.float32)})


OTHERS = """
import json
import keras
import numpy as np
import tensorflow as tf

others = [
    3, "word", b"bytes", None, [1, (2.0,)], {"a": True}, slice(1, 2), ..., tf.constant([1.0]),
    np.ones([2]), tf.float32, tf.TensorShape([None, 2]), tf.ragged.constant([[1], [2]]),
    tf.TensorSpec([None], tf.string), tf.RaggedTensorSpec([None, None]), keras.ops.relu,
    keras.layers.Dense(1, name="dense"), keras.optimizers.SGD(),
]
print([repr(keras.saving.serialize_keras_object(other)) for other in others])
"""


@pytest.mark.whole("starts a process")
def test_keras_writes_other_objects_itself(run_python):
    plain = run_python(OTHERS).stdout
    assert "__typespec__" in plain
    assert run_python("import extensor.keras" + OTHERS).stdout == plain
