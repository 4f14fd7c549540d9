"""What a layer that returns extension values leaves in a functional graph of Keras.

Such a graph holds KerasTensors, one for each leaf of what a layer returns, and an extension value
is one leaf. So its KerasTensor is a `Whole`, and an operation after it, `Components`, takes the
value apart into those of its tensors. Whoever runs the graph, the layer returns the value.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from extensor._keras.lowering import is_lowered, lower, mapped
from extensor._keras.spec_key import marked_spec
from extensor.errors import DTypeError


class Whole(keras.KerasTensor):
    """Stands for an extension value.

    Args:
        form: The lowered form of the value, of KerasTensors.
    """

    def __init__(self, form: dict[str, Any]) -> None:
        super().__init__(shape=(None,), dtype="float32")
        self.form = form


def as_wholes(structure: Any) -> Any:
    """Returns a nest of KerasTensors with a `Whole` in place of each lowered form."""
    return mapped(Whole, lower(structure))


def taken_apart(structure: Any) -> Any:
    """Returns a nest with each `Whole` replaced by the lowered form that `Components` makes."""
    return tf.nest.map_structure(_taken_apart, structure)


def _taken_apart(leaf: Any) -> Any:
    if not isinstance(leaf, Whole):
        return leaf
    ((key, _),) = leaf.form.items()
    return {key: Components(key)(leaf)}


@keras.saving.register_keras_serializable(package="extensor")
class Components(keras.Operation):
    """Returns the component tensors of an extension value.

    Args:
        key: Spells the spec of the value.
        name: The operation's name.
    """

    def __init__(self, key: str, name: str | None = None) -> None:
        super().__init__(name=name)
        self.key = key

    def call(self, value: Any) -> Any:
        """Takes a value apart."""
        form = lower(value)
        expected = marked_spec(self.key)
        if not is_lowered(form) or not expected.is_compatible_with(marked_spec(next(iter(form)))):
            received = tf.type_spec_from_value(value) if is_lowered(form) else value
            raise DTypeError(
                path=self.name,
                expected=f"{expected}, as the layer returned when the model was built",
                received=repr(received),
                mend="Let the layer return values of one type.",
            )
        # The spec decides on the order of the tensors, so that it is the same at every call.
        ((_, tensors),) = form.items()
        return tensors

    def compute_output_spec(self, value: Any) -> Any:
        """Returns what stands for the tensors."""
        ((_, tensors),) = value.form.items()
        return tensors

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {"key": self.key, "name": self.name}
