"""Copies and variations of a spec, and comparison of serializations."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from extensor import _tf
from extensor._declare.derived_spec import DerivedSpec, parts_of
from extensor._protocol import tree


def twin(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns a copy of a spec, made by serializing and deserializing it."""
    return _tf.deserialize(type(spec), _tf.serialize(spec))


def generalise(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns a spec without static sizes, or the same spec if its type does not allow this."""
    return with_shapes(spec, lambda shape: tf.TensorShape([None] * shape.rank))


def with_shapes(
    spec: tf.TypeSpec,
    change: Callable[[tf.TensorShape], tf.TensorShape],
    kept: tuple[type, ...] = (),
) -> tf.TypeSpec:
    """Returns a spec with other shapes in its serialization, or itself if its class rejects them.

    Args:
        spec: Any TypeSpec.
        change: Returns the new shape for each shape of known rank.
        kept: Classes of specs in the serialization that are not changed.
    """

    def of_shape(shape: tf.TensorShape) -> tf.TensorShape:
        return shape if shape.rank is None else change(shape)

    def of_spec(part: Any) -> tf.TypeSpec:
        if isinstance(part, kept):
            return part
        if isinstance(part, tf.TensorSpec):
            return tf.TensorSpec(of_shape(part.shape), part.dtype, part.name)
        return with_shapes(part, change, kept)

    def of_part(part: Any) -> Any:
        if isinstance(part, tree.Static):
            return tree.Static(of_spec(part.spec))
        return tree.map_shapes(part, of_shape, of_spec)

    try:
        if isinstance(spec, DerivedSpec):  # its serialization has the keys of dicts as values
            parts = parts_of(spec).items()
            return spec.from_parts({name: tree.map_leaves(of_part, part) for name, part in parts})
        return _tf.deserialize(type(spec), tree.map_shapes(_tf.serialize(spec), of_shape, of_spec))
    except (TypeError, ValueError):
        return spec


def open_axes(spec: tf.TypeSpec, axes: Collection[int]) -> tf.TypeSpec:
    """Returns a spec without the static sizes of some axes."""

    def without(shape: tf.TensorShape) -> tf.TensorShape:
        return tf.TensorShape([None if i in axes else size for i, size in enumerate(shape)])

    return with_shapes(spec, without)


def variations(spec: tf.TypeSpec) -> list[Any]:
    """Returns specs of the same class whose serialization differs in one part.

    A part that the class does not allow to change is left out.
    """
    found: list[Any] = []
    for serialization in _changes(_tf.serialize(spec)):
        try:
            other = _tf.deserialize(type(spec), serialization)
            _tf.component_specs(other)
            is_kept = alike(_tf.serialize(other), serialization)
        except Exception:  # the class may reject such a part
            continue
        if is_kept:
            found.append(other)
    return found


def _changes(part: Any) -> Iterator[Any]:
    """Yields copies of a part of a serialization, each with one leaf changed."""
    if isinstance(part, tf.TensorSpec):
        for shape in _changes(part.shape):
            yield tf.TensorSpec(shape, part.dtype, part.name)
        for dtype in _changes(part.dtype):
            yield tf.TensorSpec(part.shape, dtype, part.name)
    elif isinstance(part, tf.TypeSpec):
        yield from variations(part)
    elif isinstance(part, dict):
        for key, value in part.items():
            for changed in _changes(value):
                yield tree.with_items(part, [changed if k == key else v for k, v in part.items()])
    elif isinstance(part, (list, tuple)):
        for i, item in enumerate(part):
            for changed in _changes(item):
                yield tree.with_items(part, [*part[:i], changed, *part[i + 1 :]])
    elif isinstance(part, tf.TensorShape):
        for axis, size in enumerate(part if part.rank else ()):
            for other in [2] if size is None else [size + 1, None]:
                yield tf.TensorShape([*part[:axis], other, *part[axis + 1 :]])
    elif isinstance(part, tf.DType):
        yield from [dtype for dtype in (tf.float64, tf.int32, tf.string) if dtype != part]
    elif isinstance(part, np.ndarray):
        if part.size and part.dtype.kind in "biufc":
            changed = part.copy()
            changed.flat[0] = not changed.flat[0] if part.dtype.kind == "b" else changed.flat[0] + 1
            yield changed
    elif isinstance(part, bool):
        yield not part
    elif isinstance(part, (int, float)):
        yield part + 1
    elif isinstance(part, str):
        yield part + "?"


def alike(a: Any, b: Any) -> bool:
    """Returns whether two serializations are equal, without calling `__eq__` of specs."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tf.TensorSpec):
        return bool(a == b)
    if isinstance(a, tf.TypeSpec):
        return alike(_tf.serialize(a), _tf.serialize(b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and same_numbers(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(a[k], b[k]) for k in a)
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)


def same_numbers(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    """Returns whether two arrays are equal; NaN is equal to NaN."""
    return np.array_equal(x, y, equal_nan=np.asarray(x).dtype.kind in "fc")
