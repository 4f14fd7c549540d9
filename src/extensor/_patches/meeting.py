"""Where values of different types meet: the type to which all of them are cast."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._protocol.casting import cast_value, castable_type
from extensor._tf import CompositeTensor, describes_extension


def meeting(specs: Any) -> Any:
    """Returns the spec to which to cast values of some specs.

    It is None where they are of one type as TensorFlow has it, and where no cast helps.
    """
    if not may_meet(specs):
        return None
    met, needs_cast = specs[0], False
    for spec in specs[1:]:
        merged = met.most_specific_common_supertype([spec])
        if merged is None:
            needs_cast = True
            merged = castable_type(met, spec)
            if merged is None:
                return None
        met = merged
    return met if needs_cast else None


def is_value(value: Any) -> bool:
    return isinstance(value, (tf.Tensor, CompositeTensor))


def is_ours(spec: Any) -> bool:
    """Whether a type says itself what it is cast from. TensorFlow's own types do not."""
    return hasattr(spec, "castable_type")


def may_meet(specs: Any) -> bool:
    """Whether one of some types may be cast. Of TensorFlow's own, RaggedTensor alone is."""
    return any(is_ours(spec) or isinstance(spec, tf.RaggedTensorSpec) for spec in specs)


def are_alike(structures: list[Any]) -> bool:
    """Whether nests are of one structure, down to the values."""
    try:
        for structure in structures[1:]:
            tf.nest.assert_same_structure(structures[0], structure, check_types=False)
    except (TypeError, ValueError):
        return False
    return True


def are_tensors(values: Any) -> bool:
    return all(isinstance(value, tf.Tensor) for value in values)


def cast_together(datasets: list[Any]) -> list[Any]:
    """Returns datasets with their elements cast to the type where those of all meet.

    Args:
        datasets: They come back as they are where TensorFlow can join them, and where no cast
            helps.
    """
    structures = [dataset.element_spec for dataset in datasets]
    if not are_alike(structures):
        return datasets
    met = list(map(meeting, zip(*map(tf.nest.flatten, structures), strict=True)))
    if not any(spec is not None for spec in met):
        return datasets
    return [_with_elements_cast(dataset, met) for dataset in datasets]


def _with_elements_cast(dataset: Any, specs: list[Any]) -> Any:
    def cast(*element: Any) -> Any:
        # Dataset.map hands a tuple over item by item.
        whole = element if type(dataset.element_spec) is tuple else element[0]
        values = zip(specs, tf.nest.flatten(whole), strict=True)
        return tf.nest.pack_sequence_as(
            whole, [value if spec is None else cast_value(spec, value) for spec, value in values]
        )

    return dataset.map(cast)


def as_declared(spec: Any, value: Any) -> Any:
    """Returns a value cast to the spec that it was declared by.

    What belongs to the spec comes back as it is, and so does what cannot be cast to a spec of
    TensorFlow's own, of which TensorFlow says itself what is wrong.

    Args:
        spec: Of any type. What is declared to be a plain tensor TensorFlow converts itself.
        value: What somebody's function returned.

    Raises:
        DTypeError: If it cannot be cast to an extension type (also a TypeError).
        StructureError: If its shape does not fit (also a ValueError).
    """
    if not casts(spec):
        return value
    is_value = isinstance(value, (tf.Tensor, CompositeTensor))
    if is_value and spec.is_compatible_with(value):
        return value
    try:
        return cast_value(spec, value)
    except (TypeError, ValueError):
        if describes_extension(spec):
            raise
        return value


def casts(spec: Any) -> bool:
    """Whether values are cast to a spec where they are declared by it."""
    return isinstance(spec, tf.RaggedTensorSpec) or describes_extension(spec)
