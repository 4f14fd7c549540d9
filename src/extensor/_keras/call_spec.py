"""The specs of a model's arguments or outputs, in a form that a file can store."""

from __future__ import annotations

import functools
import inspect
import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from extensor._keras.lowering import map_lowered, spec_of_lowered, to_lowered
from extensor._typing import Nest


@dataclass(frozen=True)
class CallSpec:
    """The specs of the arguments or outputs of a call.

    This is a class, because Keras would track a plain dict of a model.

    Args:
        lowered: Nests of TensorSpecs in the lowered form of the values, by argument name.
    """

    lowered: dict[str, Any]

    @classmethod
    def of_call(cls, model: keras.Model, args: Sequence[Any], kwargs: dict[str, Any]) -> CallSpec:
        """Returns the specs of the arguments of a call of a model."""
        signature = inspect.signature(model.call)
        parameters = signature.parameters
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            # Keras takes arguments for the layers in a model, which `call` does not know.
            kwargs = {name: value for name, value in kwargs.items() if name in parameters}
        given = signature.bind_partial(*args, **kwargs).arguments
        return cls.of_values(
            {name: value for name, value in given.items() if name not in ("training", "mask")}
        )

    @classmethod
    def of_values(cls, values: dict[str, Any]) -> CallSpec:
        """Returns the specs of nests of tensors. Leaves out nests with other leaves."""
        nests = {name: to_lowered(value) for name, value in values.items()}
        return cls(
            {
                name: tf.nest.map_structure(_spec_of_tensor, nest)
                for name, nest in nests.items()
                if _holds_tensors_only(nest)
            }
        )

    @functools.cached_property
    def specs(self) -> dict[str, Any]:
        """The specs of the values, not lowered."""
        return map_lowered(spec_of_lowered, self.lowered)

    def to_config(self) -> dict[str, Any]:
        """Returns the specs in a form that JSON can store."""
        empty = tf.nest.map_structure(lambda _: None, self.lowered)
        specs = [[spec.shape.as_list(), spec.dtype.name] for spec in tf.nest.flatten(self.lowered)]
        return {"structure": keras.saving.serialize_keras_object(empty), "specs": specs}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> CallSpec:
        """Returns the CallSpec of a configuration from `to_config`."""
        empty = keras.saving.deserialize_keras_object(config["structure"])
        specs = [tf.TensorSpec(shape, dtype) for shape, dtype in config["specs"]]
        return cls(tf.nest.pack_sequence_as(empty, specs))


def named_signature(name: str) -> inspect.Signature | None:
    """Returns the signature of a call whose first parameter has the name of the input.

    `tf.function` passes the defaults of a signature by position, so there are none.

    Args:
        name: The name of the input.

    Returns:
        The signature, or None if Keras chose the name, or Python does not accept it as the name of
        a parameter.
    """
    is_chosen = re.fullmatch(r"input_layer(_\d+)?|args|kwargs", name) is None
    if not is_chosen or not name.isidentifier() or keyword.iskeyword(name):
        return None
    kinds = inspect.Parameter
    return inspect.Signature(
        [
            kinds(name, kinds.POSITIONAL_OR_KEYWORD),
            kinds("args", kinds.VAR_POSITIONAL),
            kinds("kwargs", kinds.VAR_KEYWORD),
        ]
    )


def _spec_of_tensor(tensor: tf.Tensor | keras.KerasTensor) -> tf.TensorSpec:
    shape = tf.TensorShape(tensor.shape)
    if shape.rank:
        shape = tf.TensorShape([None]).concatenate(shape[1:])
    return tf.TensorSpec(shape, tensor.dtype)


def _holds_tensors_only(nest: Nest) -> bool:
    leaves = tf.nest.flatten(nest)
    return bool(leaves) and all(
        hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves
    )
