"""Layer: the base class of layers whose `call` takes and returns extension values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import keras

from extensor._keras.layer_call import TakesValues

if TYPE_CHECKING:
    from typing_extensions import Self


class Layer(TakesValues, keras.layers.Layer):
    """A Keras layer whose `call` takes and returns extension values and plain tensors.

    Subclass it like `keras.layers.Layer`. Call it with values, or with the placeholders of
    `xt.keras.Input` and `keras.Input`; `call` always gets values.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> class TotalTime(xt.keras.Layer):
    ...     def call(self, recipes):
    ...         return tf.reduce_sum(recipes["minutes"], axis=1)
    >>> recipes = xt.DenseStructuredTensor([2], {"minutes": tf.ragged.constant([[5., 20.], [8.]])})
    >>> TotalTime()(recipes).numpy()
    array([25.,  8.], dtype=float32)
    """


class LayerWithConfig(Layer):
    """A layer of extensor, whose configuration is made of some of its attributes."""

    _config_values: ClassVar[tuple[str, ...]] = ()
    """The arguments of the constructor that are attributes, and that JSON can store."""

    _config_objects: ClassVar[tuple[str, ...]] = ()
    """The arguments that are attributes, and that Keras serializes: layers and functions."""

    _config_policies: ClassVar[tuple[str, ...]] = ()
    """The attributes that are layers of the constructor, whose policy `quantize` changes."""

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        serialize = keras.saving.serialize_keras_object
        inner = {name: getattr(self, name) for name in self._config_policies}
        quantized = {
            name: keras.dtype_policies.serialize(layer.dtype_policy)
            for name, layer in inner.items()
            if layer is not None and layer.quantization_mode is not None
        }
        return {
            **super().get_config(),
            **({"quantized": quantized} if quantized else {}),
            **{name: serialize(getattr(self, name)) for name in self._config_objects},
            **{name: getattr(self, name) for name in self._config_values},
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Returns the layer of a configuration from `get_config`."""
        deserialize = keras.saving.deserialize_keras_object
        objects = {name: deserialize(config[name]) for name in cls._config_objects}
        config = {**config, **objects}
        quantized = config.pop("quantized", {}) if cls._config_policies else {}
        layer = super().from_config(config)
        for name, policy in quantized.items():
            getattr(layer, name).dtype_policy = keras.dtype_policies.get(policy)
        return layer
