"""Conversion of extension values to tensors that Keras can concatenate, and back.

`predict` of Keras concatenates the outputs of all batches and replicas, tensor by tensor, along the
first dimension. This works for row lengths, but not for row splits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._authoring.rows import row_splits_of
from extensor._path import Path
from extensor._protocol.box import box, boxed_specs, unbox
from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._typing import Value
from extensor.errors import StructureError


def to_tensors(spec: tf.TypeSpec, value: Value) -> list[Any]:
    """Returns tensors of a value that concatenate with those of other values.

    Args:
        spec: The spec of the value, with all sizes unknown.
        value: The value, a batch.
    """
    return list(_split(spec, value))


def to_value(spec: tf.TypeSpec, arrays: Iterable[Any]) -> Value:
    """Returns the value of concatenated tensors. Keras returns these as arrays.

    Raises:
        StructureError: If a field has different sizes in different batches (also a ValueError).
    """
    return _join(spec, iter(arrays), Path())


def _has_parts(spec: tf.TypeSpec) -> bool:
    """Returns whether values are concatenated by concatenating their components."""
    if isinstance(spec, DenseStructuredTensorSpec):
        return True
    by_default = getattr(type(spec), "to_boxed_tensor", None) is StackableTypeSpec.to_boxed_tensor
    return isinstance(spec, StackableTypeSpec) and by_default


def _split(spec: tf.TypeSpec, value: Value) -> Iterator[Any]:
    if isinstance(value, tf.RaggedTensor):
        yield value.flat_values
        yield from value.nested_row_lengths()
    elif isinstance(value, tf.Tensor):
        yield value
    elif isinstance(spec, RaggedStructuredTensorSpec):
        yield from _split(spec.values_spec, value.values)
        yield value.row_lengths()
    elif _has_parts(spec):
        parts = spec.to_components(value)
        tf.nest.assert_same_structure(spec.component_specs, parts)
        flat = zip(tf.nest.flatten(spec.component_specs), tf.nest.flatten(parts), strict=True)
        for inner, part in flat:
            yield from _split(inner, part)
    else:
        for tensor in box(spec, value, 1):
            # Keras converts tensors to NumPy arrays, which fails for variants.
            is_variant = tensor.dtype == tf.variant
            yield tf.io.serialize_tensor(tensor)[tf.newaxis] if is_variant else tensor


def _join(spec: tf.TypeSpec, tensors: Iterator[Any], path: Path) -> Value:
    if isinstance(spec, tf.TensorSpec):
        return _tensor(next(tensors), path)
    if isinstance(spec, tf.RaggedTensorSpec):
        flat_values = _tensor(next(tensors), path)
        lengths = [_tensor(next(tensors), path) for _ in range(spec.ragged_rank)]
        if not lengths:
            return flat_values
        return tf.RaggedTensor.from_nested_row_lengths(flat_values, lengths, validate=False)
    if isinstance(spec, RaggedStructuredTensorSpec):
        values = _join(spec.values_spec, tensors, path)
        row_splits = row_splits_of(_tensor(next(tensors), path))
        return spec.from_components((values, row_splits))
    if _has_parts(spec):
        is_record = isinstance(spec, DenseStructuredTensorSpec)
        names = sorted(spec.field_names()) if is_record else []
        inner = tf.nest.flatten(spec.component_specs)
        paths = [path / name for name in names] or [path] * len(inner)
        parts = [_join(s, tensors, at) for s, at in zip(inner, paths, strict=True)]
        return spec.from_components(tf.nest.pack_sequence_as(spec.component_specs, parts))
    boxes = [
        _variants(next(tensors)) if box.dtype == tf.variant else _tensor(next(tensors), path)
        for box in boxed_specs(spec, 1)
    ]
    return unbox(spec, boxes)


def _variants(batches: Iterable[tf.Tensor]) -> tf.Tensor:
    """Returns the concatenated variants of serialized batches."""
    tensors = [tf.io.parse_tensor(batch, tf.variant) for batch in batches]
    # tf.concat does not support variants; TensorFlow itself uses dynamic_stitch for them.
    ends = np.cumsum([0, *(len(tensor) for tensor in tensors)])
    rows = [tf.range(a, b) for a, b in itertools.pairwise(ends.tolist())]
    return tf.dynamic_stitch(rows, tensors)


def _tensor(array: np.ndarray[Any, Any] | Value, path: Path) -> tf.Tensor:
    if isinstance(array, tf.RaggedTensor):
        expected, received = "one size in all batches", "batches of different sizes"
        fix = "Return a ragged field, or call the model on each batch."
        raise StructureError(
            f"predict: {path}" if path.names else "predict", expected, received, fix
        )
    return tf.convert_to_tensor(array)
