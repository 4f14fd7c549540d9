"""Serialization of specs and extension values in the configurations of layers and models."""

from __future__ import annotations

import base64
from typing import Any

import keras
import tensorflow as tf

from extensor._keras.lowering import from_lowered, is_extension, to_lowered
from extensor._keras.spec_key import check_savable, key_of_spec, spec_of_key
from extensor._keras.value_tensor import ValueDtype
from extensor._protocol.spec import TypeSpec
from extensor._tf import CompositeTensor
from extensor._typing import Nest, Value
from extensor.errors import DTypeError


def serialize(value: object) -> dict[str, Any]:
    """Returns a spec or an extension value in a form that JSON can store.

    `keras.saving.serialize_keras_object` does the same for specs and values of extension types, but
    not for the specs and values of TensorFlow, such as ragged tensors.

    `keras.saving.deserialize_keras_object` reads it, also in another process that imports extensor
    and the module that registers the type.

    Args:
        value: A TypeSpec, or an extension value that is not a placeholder.

    Raises:
        DTypeError: If `value` is not a TypeSpec or an extension value (also a TypeError).
        RegistrationError: If the TypeSpec is not registered (also a ValueError).

    >>> import keras
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec = tf.RaggedTensorSpec([None, None], tf.string)
    >>> keras.saving.deserialize_keras_object(xt.keras.serialize(spec)) == spec
    True
    """
    return check_savable(keras.saving.serialize_keras_object(_Holder(value)))


def with_serialized_values(config: Nest) -> Nest:
    """Returns a configuration with specs and extension values in a form that JSON can store."""
    if isinstance(config, dict):
        return {name: with_serialized_values(item) for name, item in config.items()}
    if isinstance(config, (list, tuple)) and not hasattr(config, "_fields"):
        return type(config)(with_serialized_values(item) for item in config)
    if isinstance(config, ValueDtype):
        # `get_config` of the model raises for a spec that cannot be saved, and names the model.
        held: Any = keras.saving.serialize_keras_object(_Holder(config.spec))
        return {**held, "is_dtype": True}
    return serialize(config) if isinstance(config, tf.TypeSpec) or is_extension(config) else config


def with_deserialized_values(config: Nest) -> Nest:
    """Returns a configuration with specs and values, the inverse of `with_serialized_values`."""
    if isinstance(config, dict):
        if config.get("registered_name") == _NAME:
            value = keras.saving.deserialize_keras_object(config)
            return ValueDtype(value) if config.get("is_dtype") else value
        return {name: with_deserialized_values(item) for name, item in config.items()}
    if isinstance(config, (list, tuple)) and not hasattr(config, "_fields"):
        return type(config)(with_deserialized_values(item) for item in config)
    return config


@keras.saving.register_keras_serializable(package="extensor", name="Kept")
class _Holder:
    """A wrapper with which Keras serializes a spec or an extension value."""

    def __init__(self, value: object) -> None:
        if not (isinstance(value, tf.TypeSpec) or is_extension(value)):
            expected = "a TypeSpec or an extension value"
            fix = "Serialize other objects with keras.saving.serialize_keras_object."
            raise DTypeError("xt.keras.serialize", expected, type(value).__name__, fix)
        self.value = value

    def get_config(self) -> dict[str, Any]:
        if isinstance(self.value, tf.TypeSpec):
            return {"spec": key_of_spec(self.value)}
        form = to_lowered(self.value)
        ((key, tensors),) = form.items()
        packed = [base64.b64encode(tf.io.serialize_tensor(t).numpy()).decode() for t in tensors]
        return {"spec": key, "tensors": packed, "dtypes": [t.dtype.name for t in tensors]}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> tf.TypeSpec | Value:
        """Returns the spec or value itself, without the wrapper."""
        if "tensors" not in config:
            return spec_of_key(config["spec"])
        tensors = [
            tf.io.parse_tensor(base64.b64decode(packed), dtype)
            for packed, dtype in zip(config["tensors"], config["dtypes"], strict=True)
        ]
        return from_lowered({config["spec"]: tuple(tensors)})


_NAME = "extensor>Kept"


def own_config(obj: object) -> dict[str, Any] | None:
    """Returns the configuration of a spec or value of an extension type, or None."""
    if isinstance(obj, TypeSpec):
        return serialize(obj)
    if not isinstance(obj, CompositeTensor) or hasattr(obj, "get_config"):
        return None
    return serialize(obj) if isinstance(tf.type_spec_from_value(obj), TypeSpec) else None
