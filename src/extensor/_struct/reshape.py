"""Merges the outer two dimensions of a field's value, and splits the outermost dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor._dispatch.handlers import handles
from extensor._protocol.box import box, unbox
from extensor._struct.masked import is_masked
from extensor._struct.parts import map_parts
from extensor._struct.records import RecordsBase
from extensor._tf import BaseResourceVariable, stacked, unstacked
from extensor._typing import FieldValue

Sizes = list[Any]
"""Sizes of dimensions: ints, or scalar tensors where the static size is unknown."""


def merge_outer(value: FieldValue, sizes: Sizes) -> FieldValue:
    """Returns a value with its outer two dimensions merged; `sizes` are their sizes."""
    if isinstance(value, (tf.Tensor, BaseResourceVariable)):
        return _reshape_outer(value, [sizes[0] * sizes[1]], 2)
    if isinstance(value, tf.RaggedTensor):
        return value.merge_dims(0, 1)
    if isinstance(value, RecordsBase):
        return value._merge_outer(sizes)
    result = stacked(unstacked(unstacked(tf.type_spec_from_value(value))), None)
    return map_parts(value, lambda part: merge_outer(part, sizes), result, 2)


def merge_dims(value: FieldValue, outer: int, inner: int) -> FieldValue:
    """Returns a value with its dimensions from `outer` to `inner` merged into one.

    Args:
        value: Any value of a field.
        outer: The first dimension to merge, not negative.
        inner: The last dimension to merge; at most the last one of the records.
    """
    if isinstance(value, RecordsBase):
        return value._merge_dims(outer, inner)
    if isinstance(value, tf.RaggedTensor):
        return value.merge_dims(outer, inner)
    if isinstance(value, (tf.Tensor, BaseResourceVariable)):
        return _merge_tensor_dims(tf.convert_to_tensor(value), outer, inner)
    spec: Any = tf.type_spec_from_value(value)
    boxes = [_merge_tensor_dims(part, outer, inner) for part in box(spec, value, inner + 1)]
    for _ in range(inner + 1):
        spec = unstacked(spec)
    for _ in range(outer + 1):
        spec = stacked(spec, None)
    return unbox(spec, boxes)


def _merge_tensor_dims(tensor: tf.Tensor, outer: int, inner: int) -> tf.Tensor:
    shape = tensor.shape
    merged = shape[outer : inner + 1].num_elements()
    static = tf.TensorShape([*shape[:outer], merged, *shape[inner + 1 :]])
    if static.is_fully_defined():
        return tf.reshape(tensor, static)
    sizes = tf.shape(tensor)
    total = tf.reduce_prod(sizes[outer : inner + 1], keepdims=True)
    result = tf.reshape(tensor, tf.concat([sizes[:outer], total, sizes[inner + 1 :]], 0))
    result.set_shape(static)
    return result


def split_outer(value: FieldValue, sizes: Sizes) -> FieldValue:
    """Returns a value with its outermost dimension split into two dimensions of these sizes."""
    if isinstance(value, (tf.Tensor, BaseResourceVariable)):
        return _reshape_outer(value, sizes, 1)
    if isinstance(value, tf.RaggedTensor):
        nrows, length = (tf.cast(size, value.row_splits.dtype) for size in sizes)
        return tf.RaggedTensor.from_uniform_row_length(value, length, nrows, validate=False)
    if isinstance(value, RecordsBase):
        return value._split_outer(sizes)
    nrows, length = (size if isinstance(size, int) else None for size in sizes)
    result = stacked(stacked(unstacked(tf.type_spec_from_value(value)), length), nrows)
    return map_parts(value, lambda part: split_outer(part, sizes), result, 1)


def expand_dims(value: FieldValue, axis: int) -> FieldValue:
    """Returns a value with a new dimension of size 1 before the dimension `axis`.

    Args:
        value: Any value of a field.
        axis: At most the rank of the records that have the value.
    """
    if isinstance(value, RecordsBase):
        return value._expand_dims(axis)
    if isinstance(value, (tf.Tensor, BaseResourceVariable, tf.RaggedTensor)):
        return tf.expand_dims(value, axis)
    if is_masked(value):
        return type(value)._of_parts(expand_dims(value.values, axis), expand_dims(value.mask, axis))
    if handles(type(value), tf.expand_dims):
        return tf.expand_dims(value, axis)
    spec = tf.type_spec_from_value(value)
    boxes = [_expanded(tensor, axis) for tensor in box(spec, value, axis)]
    sizes: list[Any] = []
    for _ in range(axis):
        shape: Any = getattr(spec, "shape", None)
        sizes.append(shape[0] if isinstance(shape, tf.TensorShape) and shape.rank else None)
        spec = unstacked(spec)
    for size in reversed([*sizes, 1]):
        spec = stacked(spec, size)
    return unbox(spec, boxes)


def _expanded(boxes: tf.Tensor, axis: int) -> tf.Tensor:
    if boxes.dtype != tf.variant:
        return tf.expand_dims(boxes, axis)
    sizes = tf.shape(boxes)  # no kernel expands variants
    return tf.reshape(boxes, tf.concat([sizes[:axis], [1], sizes[axis:]], 0))


def uniform_row_splits(sizes: Sizes, dtype: tf.DType) -> tf.Tensor:
    """Returns the row splits of rows of one length.

    Args:
        sizes: The number of rows and the length of a row.
        dtype: The dtype of the row splits.
    """
    nrows, length = (tf.cast(size, dtype) for size in sizes)
    return tf.range(nrows + 1) * length


def _reshape_outer(tensor: tf.Tensor, outer: Sizes, count: int) -> tf.Tensor:
    """Returns a tensor with its first `count` dimensions reshaped to the sizes `outer`."""
    tensor = tf.convert_to_tensor(tensor)
    inner: Any = tensor.shape.as_list()[count:]
    if None not in inner and all(isinstance(size, int) for size in outer):
        return reshape(tensor, [*outer, *inner])
    if None in inner:
        inner = tf.shape(tensor)[count:]
    shape = tf.concat([tf.stack([tf.cast(s, tf.int32) for s in outer]), inner], axis=0)
    result = tf.reshape(tensor, shape)
    known = [size if isinstance(size, int) else None for size in outer]
    result.set_shape(tf.TensorShape(known).concatenate(tensor.shape[count:]))
    return result


def reshape(tensor: tf.Tensor, shape: list[int]) -> tf.Tensor:
    """Returns `tf.reshape(tensor, shape)`, in a third of the time."""
    if max(shape) > np.iinfo(np.int32).max:
        return tf.reshape(tensor, shape)
    # An array, because an eager op takes a list of Python by a slower way.
    return tf.raw_ops.Reshape(tensor=tensor, shape=np.array(shape, np.int32))
