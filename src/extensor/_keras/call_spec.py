"""What a model was called with, as specs that a file can hold."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from extensor._keras.lowering import is_lowered, lower, uncounted
from extensor._keras.spec_key import marked_spec


@dataclass(frozen=True)
class Inputs:
    """What a model was called with: TensorSpecs in lowered form, by the names of the arguments.

    In a box, because Keras tracks the dicts and lists that a model holds.
    """

    lowered: dict[str, Any]

    @classmethod
    def of(cls, model: Any, args: Any, kwargs: Any) -> Inputs:
        """Returns the inputs of a call of a model."""
        given = inspect.signature(model.call).bind_partial(*args, **kwargs).arguments
        return cls.of_values(
            {name: value for name, value in given.items() if name not in ("training", "mask")}
        )

    @classmethod
    def of_values(cls, values: dict[str, Any]) -> Inputs:
        """Returns what stands in nests that hold nothing but tensors; others are left out."""
        return cls(
            {
                name: tf.nest.map_structure(_spec_of_tensor, uncounted(lower(value)))
                for name, value in values.items()
                if _holds_tensors_only(value)
            }
        )

    @property
    def raised(self) -> dict[str, Any]:
        """The specs of the extension values themselves."""
        return {name: _raised_specs(form) for name, form in self.lowered.items()}


def specs_apart(lowered: dict[str, Any]) -> dict[str, Any]:
    """Returns a nest of TensorSpecs in a form that JSON can hold."""
    empty = tf.nest.map_structure(lambda _: None, lowered)
    specs = [[spec.shape.as_list(), spec.dtype.name] for spec in tf.nest.flatten(lowered)]
    return {"structure": keras.saving.serialize_keras_object(empty), "specs": specs}


def specs_together(config: dict[str, Any]) -> dict[str, Any]:
    """Returns the nest of TensorSpecs that `specs_apart` described."""
    empty = keras.saving.deserialize_keras_object(config["structure"])
    specs = [tf.TensorSpec(shape, dtype) for shape, dtype in config["specs"]]
    return tf.nest.pack_sequence_as(empty, specs)


def _spec_of_tensor(tensor: Any) -> tf.TensorSpec:
    shape = tf.TensorShape(tensor.shape)
    if shape.rank:
        shape = tf.TensorShape([None]).concatenate(shape[1:])
    return tf.TensorSpec(shape, tensor.dtype)


def _raised_specs(structure: Any) -> Any:
    """Returns a nest of specs: of extension values where their lowered form stands."""
    if is_lowered(structure):
        return marked_spec(next(iter(structure)))
    if isinstance(structure, dict):
        return {k: _raised_specs(v) for k, v in structure.items()}
    if isinstance(structure, (list, tuple)):
        return type(structure)(_raised_specs(item) for item in structure)
    return structure


def _holds_tensors_only(value: Any) -> bool:
    leaves = tf.nest.flatten(lower(value))
    return bool(leaves) and all(
        hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves
    )
