"""The common type of values of different types, to which all of them are cast."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._protocol.casting import cast_value, castable_type, difference_of_records
from extensor._protocol.tree import supertype
from extensor._tf import CompositeTensor, describes_extension


def common_spec(specs: Any) -> Any:
    """Returns the common spec to which values of several specs are cast.

    It is None if TensorFlow can merge the specs without a cast, or if no cast exists.
    """
    if not may_cast(specs):
        return None
    common, needs_cast = specs[0], False
    for spec in specs[1:]:
        merged = common.most_specific_common_supertype([spec])
        if merged is None:
            needs_cast = True
            merged = castable_type(common, spec)
            if merged is None:
                return None
        common = merged
    return common if needs_cast else None


def expect_alike(specs: Any, at: str) -> None:
    """Raises if values of several specs hold records that have no common type.

    Raises:
        DTypeError: With the paths at which the records differ (also a TypeError).
    """
    common, *others = specs
    for spec in others:
        merged = supertype(common, spec) or castable_type(common, spec)
        if merged is None:
            wrong = difference_of_records(common, spec, at)
            if wrong is not None:
                raise wrong
            return
        common = merged


def is_value(value: Any) -> bool:
    return isinstance(value, (tf.Tensor, CompositeTensor))


def is_ours(spec: Any) -> bool:
    """Returns whether a spec defines casts. TensorFlow's own specs do not."""
    return hasattr(spec, "castable_type")


def may_cast(specs: Any) -> bool:
    """Returns whether one of the specs defines casts, or is a RaggedTensorSpec."""
    return any(is_ours(spec) or isinstance(spec, tf.RaggedTensorSpec) for spec in specs)


def are_alike(structures: list[Any]) -> bool:
    """Returns whether nests have the same structure, down to the values."""
    try:
        for structure in structures[1:]:
            tf.nest.assert_same_structure(structures[0], structure, check_types=False)
    except (TypeError, ValueError):
        return False
    return True


def are_tensors(values: Any) -> bool:
    return all(isinstance(value, tf.Tensor) for value in values)


def cast_together(datasets: list[Any], at: str) -> list[Any]:
    """Returns datasets with their elements cast to a common type.

    Args:
        datasets: Returned unchanged if TensorFlow can join them, or if no cast exists.
        at: The name of the function, for errors.

    Raises:
        DTypeError: If records in them have no common type (also a TypeError).
    """
    structures = [dataset.element_spec for dataset in datasets]
    if not are_alike(structures):
        return datasets
    parts = list(zip(*map(tf.nest.flatten, structures), strict=True))
    common = list(map(common_spec, parts))
    for spec, specs in zip(common, parts, strict=True):
        if spec is None and may_cast(specs):
            expect_alike(specs, at)
    if not any(spec is not None for spec in common):
        return datasets
    return [_with_elements_cast(dataset, common) for dataset in datasets]


def _with_elements_cast(dataset: Any, specs: list[Any]) -> Any:
    def cast(*element: Any) -> Any:
        # Dataset.map passes the items of a tuple as separate arguments.
        whole = element if type(dataset.element_spec) is tuple else element[0]
        values = zip(specs, tf.nest.flatten(whole), strict=True)
        return tf.nest.pack_sequence_as(
            whole, [value if spec is None else cast_value(spec, value) for spec, value in values]
        )

    return dataset.map(cast)


def as_declared(spec: Any, value: Any) -> Any:
    """Returns a value cast to its declared spec.

    A value that matches the spec is returned unchanged. So is a value that cannot be cast to a spec
    of TensorFlow's own: TensorFlow raises its own error.

    Args:
        spec: Any spec. TensorFlow itself converts values declared as plain tensors.
        value: The result of a user's function.

    Raises:
        DTypeError: If it cannot be cast to an extension type (also a TypeError).
        StructureError: If its shape does not match (also a ValueError).
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
    """Returns whether values that are declared with a spec are cast to it."""
    return isinstance(spec, tf.RaggedTensorSpec) or describes_extension(spec)
