"""The nodes for extension values in a functional graph of Keras.

A functional graph has one KerasTensor for each leaf that a layer returns. An extension value is one
leaf: its KerasTensor is a `WholeValue`. After it, the operation `Components` returns the
KerasTensors of its component tensors. When the graph runs, the layer returns the value itself.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from extensor._keras.lowering import (
    is_lowered,
    lowered,
    map_lowered,
    spec_of_lowered,
    tensors_of_lowered,
)
from extensor._keras.spec_key import spec_of_key
from extensor.errors import DTypeError


class WholeValue(keras.KerasTensor):
    """The KerasTensor of an extension value.

    Args:
        form: The lowered form of the value, of KerasTensors.
    """

    def __init__(self, form: dict[str, Any]) -> None:
        super().__init__(shape=(None,), dtype="float32")
        self.form = form


def as_whole_values(structure: Any) -> Any:
    """Returns a nest with each extension value replaced by a `WholeValue`."""
    return map_lowered(WholeValue, lowered(structure))


def as_components(structure: Any) -> Any:
    """Returns a nest with each `WholeValue` replaced by its lowered form, from `Components`."""
    return tf.nest.map_structure(_components, structure)


def _components(leaf: Any) -> Any:
    if not isinstance(leaf, WholeValue):
        return leaf
    (key,) = leaf.form
    return {key: Components(key)(leaf)}


@keras.saving.register_keras_serializable(package="extensor")
class Components(keras.Operation):
    """Returns the component tensors of an extension value.

    Args:
        key: The key of the value's spec.
        name: The operation's name.
    """

    def __init__(self, key: str, name: str | None = None) -> None:
        super().__init__(name=name)
        self.key = key

    def call(self, value: Any) -> Any:
        """Returns the component tensors of a value."""
        form = lowered(value)
        expected = spec_of_key(self.key)
        if not is_lowered(form) or not expected.is_compatible_with(spec_of_lowered(form)):
            received: Any = tf.type_spec_from_value(value) if is_lowered(form) else type(value)
            raise DTypeError(
                path=self.name,
                expected=f"{expected}, the output of the layer when the model was built",
                received=repr(received),
                mend="Return values of the same type from every call of the layer.",
            )
        # The spec determines the order of the tensors, so it is the same at every call.
        return tensors_of_lowered(form)

    def compute_output_spec(self, value: Any) -> Any:
        """Returns the KerasTensors of the component tensors."""
        return tensors_of_lowered(value.form)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {"key": self.key, "name": self.name}
