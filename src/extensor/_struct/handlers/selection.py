"""Operations that select records."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from extensor._dispatch.handlers import implements
from extensor._struct import index
from extensor._struct.handlers.each_field import (
    axis_of,
    expect_one_size,
    expect_same_fields,
    implements_for_records,
    join_fields,
    map_tensors,
)
from extensor._struct.tensor import StructuredTensor
from extensor._typing import FieldValue, TensorLike
from extensor.errors import DTypeError, RowError, StructureError


@implements_for_records(tf.gather)
def gather(
    params: StructuredTensor,
    indices: Any,
    validate_indices: object = None,
    axis: int | None = None,
    batch_dims: int = 0,
    *_: object,
) -> StructuredTensor:
    """Returns the records at the given indices along an axis."""
    if isinstance(indices, StructuredTensor):
        return NotImplemented
    if not isinstance(indices, tf.RaggedTensor):
        indices = tf.convert_to_tensor(indices)
    rank = indices.shape.rank
    if batch_dims < 0:
        batch_dims += rank
    place = batch_dims if axis is None else axis
    place = axis_of(place, params.rank, "tf.gather")
    if place == 0 and not batch_dims:
        return index.gather(params, indices)

    def op(value: FieldValue) -> FieldValue:
        return tf.gather(value, indices, axis=place, batch_dims=batch_dims)

    count = rank - batch_dims
    new = [place] if count == 1 else [None] * count
    axes = [*range(place), *new, *range(place + 1, params.rank)]
    return map_tensors(params, op, axes, isinstance(indices, tf.RaggedTensor))


# It exists in tf.compat.v1 only, whose functions have TensorFlow's own dispatch and no other.
@tf.experimental.dispatch_for_api(tf.compat.v1.batch_gather, {"params": StructuredTensor})
def batch_gather(
    params: StructuredTensor, indices: Any, name: str | None = None
) -> StructuredTensor:
    """Returns the records at the given indices in each batch."""
    return tf.gather(params, indices, batch_dims=-1)


@implements_for_records(tf.gather_nd)
def gather_nd(
    params: StructuredTensor, indices: Any, batch_dims: int = 0, *_: object
) -> StructuredTensor:
    """Returns the records at the given coordinates."""
    if isinstance(indices, StructuredTensor):
        return NotImplemented
    if not isinstance(indices, tf.RaggedTensor):
        indices = tf.convert_to_tensor(indices)
    depth = indices.shape[-1]
    if depth is None or depth + batch_dims > params.rank:
        expected = f"at most {params.rank - batch_dims} coordinates, a static number of them"
        fix = "The dimensions inside a field belong to the field: call it on the field."
        raise StructureError("tf.gather_nd: indices", expected, f"shape {indices.shape}", fix)

    def op(value: FieldValue) -> FieldValue:
        return tf.gather_nd(value, indices, batch_dims)

    new = [None] * (indices.shape.rank - 1 - batch_dims)
    axes = [*range(batch_dims), *new, *range(batch_dims + depth, params.rank)]
    return map_tensors(params, op, axes, isinstance(indices, tf.RaggedTensor))


@implements_for_records(tf.boolean_mask)
def boolean_mask(
    tensor: StructuredTensor, mask: Any, axis: TensorLike | None = None, *_: object
) -> StructuredTensor:
    """Returns the records for which `mask` is True."""
    if isinstance(mask, StructuredTensor):
        return NotImplemented
    if not isinstance(mask, tf.RaggedTensor):
        mask = list(mask) if isinstance(mask, (list, tuple)) else tf.convert_to_tensor(mask)
    place = 0 if axis is None else axis_of(axis, tensor.rank, "tf.boolean_mask")
    return tensor[(slice(None),) * place + (mask,)]


@implements_for_records(tf.ragged.boolean_mask)
def ragged_boolean_mask(data: StructuredTensor, mask: Any, *_: object) -> StructuredTensor:
    """Returns the records for which `mask` is True, in the same rows."""
    if isinstance(mask, StructuredTensor):
        return NotImplemented
    op = functools.partial(tf.ragged.boolean_mask, mask=mask)
    return map_tensors(data, op, range(data.rank), is_ragged=True)


@implements(tf.where, on=StructuredTensor)
def where(
    condition: Any, x: FieldValue | None = None, y: FieldValue | None = None, *_: object
) -> StructuredTensor:
    """Returns the records of `x` where a condition is True, and those of `y` elsewhere."""
    if not (isinstance(x, StructuredTensor) and isinstance(y, StructuredTensor)):
        if isinstance(condition, StructuredTensor):
            return NotImplemented
        wrong = y if isinstance(x, StructuredTensor) else x
        expected = "records for both x and y"
        fix = "Choose between single fields, or give records with the same fields."
        raise DTypeError("tf.where", expected, f"records and a {type(wrong).__name__}", fix)
    if not isinstance(condition, tf.RaggedTensor):
        condition = tf.convert_to_tensor(condition, tf.bool)
    rank = x.rank
    if not rank and not condition.shape.rank and not _have_one_known_size(x, y):
        expect_same_fields([x, y], "tf.where")
        return tf.cond(condition, lambda: x, lambda: y)
    if condition.shape.rank > rank:
        expected = f"rank {rank} or less, because it chooses whole records"
        fix = "Choose inside a field with tf.where on the field."
        raise StructureError("tf.where: condition", expected, f"shape {condition.shape}", fix)

    expect_same_fields([x, y], "tf.where")
    # Otherwise tf.where would repeat a list of one item to the length of the other.
    fix = "Cast the field of both to lists: a RaggedTensor has rows of any length."
    expect_one_size([x, y], "tf.where", fix, rank)

    def choose(parts: list[Any]) -> FieldValue:
        first = parts[0]
        chosen = condition
        if isinstance(first, tf.RaggedTensor):
            return tf.where(chosen, *parts)
        if chosen.shape.rank:
            for _ in range(first.shape.rank - rank):
                chosen = tf.expand_dims(chosen, -1)
        return tf.where(chosen, *parts)

    return join_fields([x, y], choose, range(rank), "tf.where")


def _have_one_known_size(x: FieldValue, y: FieldValue) -> bool:
    """Returns whether all tensors of two records have known sizes, and the same ones.

    Otherwise an operation on them would repeat a list of one item to the length of the other.
    """
    one, other = x.__tf_type_spec__(), y.__tf_type_spec__()
    parts = tf.nest.flatten(one, expand_composites=True)
    return one == other and all(part.shape.is_fully_defined() for part in parts)


@implements_for_records(tf.__operators__.getitem)
def getitem(tensor: StructuredTensor, slice_spec: object, *_: object) -> FieldValue:
    """Returns fields or records; see `StructuredTensor.__getitem__`."""
    return tensor[slice_spec]


@implements_for_records(tf.slice)
def slice_(
    input_: StructuredTensor, begin: TensorLike, size: TensorLike, *_: object
) -> StructuredTensor:
    """Returns the records from `begin`, as many as `size` in each dimension."""
    begins, sizes = _numbers(begin, input_.rank), _numbers(size, input_.rank)
    parts: list[slice] = []
    for axis, (first, count) in enumerate(zip(begins, sizes, strict=True)):
        most: int | None = input_.shape[axis] if axis < input_.rank else None
        last = first + max(count, 0) if isinstance(first, int) and isinstance(count, int) else None
        if last is not None and (first < 0 or (most is not None and last > most)):
            expected = f"a range from 0 to at most {'the size' if most is None else most}"
            fix = "Index the records as a list of Python, records[first:last], which may be longer."
            raise RowError(f"tf.slice: axis {axis}", expected, f"{first} to {last}", fix)
        if isinstance(count, int):
            parts.append(slice(first, None if count == -1 else first + count))
        else:  # -1 means all that follow
            end = tf.where(count < 0, tf.constant(2**31 - 1, count.dtype), first + count)
            parts.append(slice(first, end))
    return input_[tuple(parts)]


def _numbers(vector: Any, rank: int) -> list[Any]:
    if isinstance(vector, tf.Tensor):
        known = tf.get_static_value(vector)
        vector = tf.unstack(vector, rank) if known is None else known
    return [n if isinstance(n, tf.Tensor) else int(n) for n in vector]


@implements_for_records(tf.strided_slice)
def strided_slice(
    input_: StructuredTensor,
    begin: TensorLike,
    end: TensorLike,
    strides: TensorLike | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    *_: object,
) -> StructuredTensor:
    """Returns the records in a range with steps in each dimension."""
    count = tf.TensorShape(tf.convert_to_tensor(begin).shape)[0]
    begins, ends = _numbers(begin, count), _numbers(end, count)
    steps = [1] * count if strides is None else _numbers(strides, count)
    key: list[Any] = []
    for i in range(count):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(...)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(begins[i])
        else:
            first = None if begin_mask & bit else begins[i]
            last = None if end_mask & bit else ends[i]
            key.append(slice(first, last, steps[i]))
    return input_[tuple(key)]
