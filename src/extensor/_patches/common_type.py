"""The common type of values of different types, to which all of them are cast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tensorflow as tf

from extensor._protocol.casting import cast_value, castable_type, difference_of_records
from extensor._protocol.lossless import is_tensor_like
from extensor._tf import describes_extension, map_elements
from extensor._typing import Nest, Value


def common_spec(specs: Sequence[tf.TypeSpec], at: str | None = None) -> tf.TypeSpec | None:
    """Returns the common spec to which values of several specs are cast.

    It is None if TensorFlow can merge the specs without a cast, or if no cast exists.

    Args:
        specs: The specs.
        at: What joins the values, for the error. Without it, no error is raised.

    Raises:
        DTypeError: If the values hold records that have no common type, with the paths at which
            they differ (also a TypeError).
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
                wrong = None if at is None else difference_of_records(common, spec, at)
                if wrong is not None:
                    raise wrong
                return None
        common = merged
    return common if needs_cast else None


def has_casts(spec: object) -> bool:
    """Returns whether a spec defines casts. TensorFlow's own specs do not."""
    return hasattr(spec, "castable_type")


def may_cast(specs: Iterable[tf.TypeSpec]) -> bool:
    """Returns whether one of the specs defines casts, or is a RaggedTensorSpec."""
    return any(has_casts(spec) or isinstance(spec, tf.RaggedTensorSpec) for spec in specs)


def have_one_structure(structures: Sequence[Nest]) -> bool:
    """Returns whether nests have the same structure, down to the values."""
    try:
        for structure in structures[1:]:
            tf.nest.assert_same_structure(structures[0], structure, check_types=False)
    except (TypeError, ValueError):
        return False
    return True


def are_tensors(values: Iterable[object]) -> bool:
    """Returns whether all values are tensors."""
    return all(isinstance(value, tf.Tensor) for value in values)


def cast_to_common_type(datasets: list[tf.data.Dataset], at: str) -> list[tf.data.Dataset]:
    """Returns datasets with their elements cast to a common type.

    Args:
        datasets: Returned unchanged if TensorFlow can join them, or if no cast exists.
        at: The name of the function, for errors.

    Raises:
        DTypeError: If records in them have no common type (also a TypeError).
    """
    structures = [dataset.element_spec for dataset in datasets]
    if not have_one_structure(structures):
        return datasets
    parts = list(zip(*map(tf.nest.flatten, structures), strict=True))
    common = [common_spec(specs, at) for specs in parts]
    if all(spec is None for spec in common):
        return datasets

    def cast(element: Nest) -> Nest:
        values = zip(common, tf.nest.flatten(element), strict=True)
        return tf.nest.pack_sequence_as(
            element, [value if spec is None else cast_value(spec, value) for spec, value in values]
        )

    return [map_elements(dataset, cast) for dataset in datasets]


def cast_to_declared(spec: tf.TypeSpec, value: Value) -> Value:
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
    if not takes_casts(spec) or (is_tensor_like(value) and spec.is_compatible_with(value)):
        return value
    try:
        return cast_value(spec, value)
    except (TypeError, ValueError):
        if describes_extension(spec):
            raise
        return value


def takes_casts(spec: object) -> bool:
    """Returns whether values that are declared with a spec are cast to it."""
    return isinstance(spec, tf.RaggedTensorSpec) or describes_extension(spec)
