"""Sequential: a chain of layers that may take and return extension values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from extensor._keras.lowering import contains, is_extension
from extensor._keras.model import Model
from extensor.errors import DTypeError


@keras.saving.register_keras_serializable(package="extensor")
class Sequential(Model):
    """A model that passes its input through a chain of layers, as `keras.Sequential`.

    Args:
        layers: The layers. The first item may be a placeholder of `xt.keras.Input`: it builds the
            model, which then accepts only values of the placeholder's type.
        name: The model's name.

    Raises:
        DTypeError: If another item is not a layer (also a TypeError).

    >>> spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None, 3], tf.float32)})
    >>> model = xt.keras.Sequential([
    ...     xt.keras.Lambda(lambda record: record["x"]), keras.layers.Dense(2)])
    >>> model(xt.DenseStructuredTensor([4], {"x": tf.zeros([4, 3])})).shape
    TensorShape([4, 2])
    """

    def __init__(
        self, layers: Sequence[Any] | None = None, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.stages: list[Any] = []
        placeholder, *rest = [None, *(layers or [])]
        if rest and contains(rest[0], _is_placeholder):
            placeholder, *rest = rest
        for layer in rest:
            self.add(layer)
        if placeholder is not None:
            self(placeholder)
            self._declares_input = True

    def add(self, layer: Any) -> None:
        """Adds a layer at the end."""
        if not isinstance(layer, keras.layers.Layer):
            raise DTypeError(
                path=f"{self.name}.add",
                expected="a Keras layer",
                received=type(layer).__name__,
                mend="Wrap a function in xt.keras.Lambda.",
            )
        self.stages.append(layer)

    def pop(self) -> Any:
        """Removes and returns the last layer."""
        return self.stages.pop()

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Returns the output of the last layer."""
        # Keras itself passes `training` to the layers, and keeps masks on the tensors.
        for layer in self.stages:
            inputs = layer(inputs)
        return inputs

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        stages = [keras.saving.serialize_keras_object(layer) for layer in self.stages]
        return {"name": self.name, "layers": stages, "declares_input": self._declares_input}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Sequential:
        """Returns the model of a configuration from `get_config`."""
        stages = [
            keras.saving.deserialize_keras_object(layer, custom_objects)
            for layer in config["layers"]
        ]
        self = cls(stages, name=config["name"])
        self._declares_input = config.get("declares_input", False)
        return self


def _is_placeholder(value: Any) -> bool:
    return isinstance(value, keras.KerasTensor) or is_extension(value)
