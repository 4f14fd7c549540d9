"""Operations that join, rearrange, repeat or divide records, and that need their shape only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._authoring.rows import common_spec, stacked_boxes
from extensor._dispatch.handlers import implements
from extensor._path import Path
from extensor._protocol.box import as_list
from extensor._struct import index, reshape
from extensor._struct.display import text
from extensor._struct.handlers.each_field import (
    axes_of,
    axis_of,
    concat_records,
    expect_one_size,
    expect_same_fields,
    implements_for_records,
    join_fields,
    map_tensors,
    map_tensors_to_many,
)
from extensor._struct.inside import map_inside
from extensor._struct.masked import is_masked, is_union
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.row_splits import first_sizes, outer_sizes
from extensor._struct.tensor import StructuredTensor
from extensor._tf import BaseResourceVariable, ranks_only
from extensor._typing import FieldValue, TensorLike
from extensor.errors import DTypeError, StructureError


@implements_for_records(tf.expand_dims)
def expand_dims(input: StructuredTensor, axis: TensorLike, *_: object) -> StructuredTensor:
    """Returns records with a new dimension of size 1."""
    return reshape.expand_dims(input, axis_of(axis, input.rank + 1, "tf.expand_dims"))


@implements_for_records(tf.squeeze)
def squeeze(
    input: StructuredTensor, axis: TensorLike | None = None, *_: object
) -> StructuredTensor:
    """Returns records without dimensions of size 1: all of them, or those given."""
    sizes = input.shape.as_list()
    if axis is None:
        axes = [i for i, size in enumerate(sizes) if size == 1]
    else:
        axes = axes_of(axis, input.rank, "tf.squeeze")
    if not axes:
        return input
    kept = [axis for axis in range(input.rank) if axis not in axes]
    return map_tensors(input, lambda value: tf.squeeze(value, axes), kept)


@implements_for_records(tf.tile)
def tile(input: StructuredTensor, multiples: Any, *_: object) -> StructuredTensor:
    """Returns records repeated along each dimension."""
    multiples = tf.convert_to_tensor(multiples)

    def op(value: FieldValue) -> tf.Tensor:
        inner = value.shape.rank - input.rank
        if not inner:
            return tf.tile(value, multiples)
        return tf.tile(value, tf.concat([multiples, tf.ones([inner], multiples.dtype)], 0))

    return map_tensors(input, op, range(input.rank))


@implements_for_records(tf.reverse)
def reverse(tensor: StructuredTensor, axis: TensorLike, *_: object) -> StructuredTensor:
    """Returns records in reverse order along the given axes."""
    axes = axes_of(axis, tensor.rank, "tf.reverse")
    return map_tensors(tensor, lambda value: tf.reverse(value, axes), range(tensor.rank))


@implements_for_records(tf.roll)
def roll(
    input: StructuredTensor, shift: TensorLike, axis: TensorLike, *_: object
) -> StructuredTensor:
    """Returns records shifted along the given axes; what leaves one end enters at the other."""
    _expect_dense(input, "tf.roll")
    axes = axes_of(axis, input.rank, "tf.roll")
    axes = axes if np.ndim(axis) else axes[0]
    return map_tensors(input, lambda value: tf.roll(value, shift, axes), range(input.rank))


@implements_for_records(tf.transpose)
def transpose(a: StructuredTensor, perm: TensorLike | None = None, *_: object) -> StructuredTensor:
    """Returns dense records with their dimensions in another order; by default reversed."""
    _expect_dense(a, "tf.transpose")
    order = axes_of(range(a.rank)[::-1] if perm is None else perm, a.rank, "tf.transpose")
    if sorted(order) != list(range(a.rank)):
        expected = f"each axis from 0 to {a.rank - 1} once"
        fix = "Give a permutation of the records' dimensions only."
        raise StructureError("tf.transpose: perm", expected, str(order), fix)
    return map_tensors(
        a, lambda value: tf.transpose(value, [*order, *range(a.rank, value.shape.rank)]), order
    )


@implements_for_records(tf.reshape)
def reshape_(tensor: StructuredTensor, shape: TensorLike, *_: object) -> StructuredTensor:
    """Returns dense records in another shape."""
    _expect_dense(tensor, "tf.reshape")
    known: Any = tf.get_static_value(shape)
    sizes: Any = tf.convert_to_tensor(shape) if known is None else [int(size) for size in known]
    rank = len(sizes) if known is not None else sizes.shape[0]
    full = tensor.shape.num_elements()
    if full is not None and known is not None and -1 in sizes:
        others = math.prod(size for size in sizes if size != -1)
        if others and full % others == 0:
            sizes = [full // others if size == -1 else size for size in sizes]

    def op(value: FieldValue) -> tf.Tensor:
        inner = value.shape[tensor.rank :]
        if inner.is_fully_defined():
            if isinstance(sizes, tf.Tensor):
                return tf.reshape(value, tf.concat([sizes, inner.as_list()], 0))
            if -1 not in sizes or 0 not in inner:
                return tf.reshape(value, [*sizes, *inner])
        count = tensor.rank
        return tf.reshape(value, tf.concat([sizes, tf.shape(value)[count:]], 0))

    return map_tensors(tensor, op, [None] * rank)


@implements_for_records(tf.broadcast_to)
def broadcast_to(input: StructuredTensor, shape: TensorLike, *_: object) -> StructuredTensor:
    """Returns dense records repeated to a shape."""
    _expect_dense(input, "tf.broadcast_to")
    sizes: Any = tf.convert_to_tensor(shape)
    count = sizes.shape[0]
    records: Any = input
    for _axis in range(count - records.rank):
        records = reshape.expand_dims(records, 0)
    return map_tensors(
        records,
        lambda value: tf.broadcast_to(value, tf.concat([sizes, tf.shape(value)[count:]], 0)),
        range(count),
    )


@implements_for_records(tf.repeat)
def repeat(
    input: StructuredTensor, repeats: TensorLike, axis: TensorLike | None = None, *_: object
) -> StructuredTensor:
    """Returns records, each repeated; without an axis, of all dimensions merged into one."""
    if axis is None:
        input = index.number_items(input, input.rank)[1] if input.rank else input[None]
        axis = 0
    place = axis_of(axis, input.rank, "tf.repeat")
    if place == 0:
        return index.gather(input, tf.repeat(tf.range(_count(input)), repeats))
    if _is_ragged(input):
        return _repeated_in_rows(input, repeats, place)
    return map_tensors(input, lambda value: tf.repeat(value, repeats, place), range(input.rank))


def _repeated_in_rows(
    records: StructuredTensor, repeats: TensorLike, place: int
) -> StructuredTensor:
    """Returns ragged records with each element of an inner dimension repeated."""
    count = tf.convert_to_tensor(repeats)
    if count.shape.rank != 0:
        expected = "one number, because the rows differ in length"
        fix = "Repeat by axis 0, or call it on records.values."
        raise StructureError("tf.repeat: repeats", expected, f"shape {count.shape}", fix)
    splits = records.row_splits
    if place > 1:
        return RaggedStructuredTensor.from_row_splits(
            repeat(records.values, count, place - 1), splits, validate=False
        )
    numbers = tf.repeat(tf.range(_count(records.values)), count)
    inner = index.gather(records.values, numbers)
    return RaggedStructuredTensor.from_row_splits(
        inner, splits * tf.cast(count, splits.dtype), validate=False
    )


@implements_for_records(tf.random.shuffle)
def shuffle(
    value: StructuredTensor, seed: TensorLike | None = None, *_: object
) -> StructuredTensor:
    """Returns the records in random order along the first dimension; fields stay together."""
    axis_of(0, value.rank, "tf.random.shuffle")
    return index.gather(value, tf.random.shuffle(tf.range(_count(value)), seed))


@implements_for_records(tf.random.experimental.stateless_shuffle)
def stateless_shuffle(value: StructuredTensor, seed: TensorLike, *args: object) -> StructuredTensor:
    """Returns the records in an order that depends on the seed only."""
    axis_of(0, value.rank, "tf.random.experimental.stateless_shuffle")
    numbers = tf.range(_count(value))
    return index.gather(value, tf.random.experimental.stateless_shuffle(numbers, seed, *args))


@implements_for_records(tf.split)
def split(
    value: StructuredTensor,
    num_or_size_splits: TensorLike,
    axis: TensorLike = 0,
    num: int | None = None,
    *_: object,
) -> list[StructuredTensor]:
    """Returns the parts of records along an axis."""
    place = axis_of(axis, value.rank, "tf.split")
    return map_tensors_to_many(
        value, lambda part: tf.split(part, num_or_size_splits, place, num), range(value.rank)
    )


@implements_for_records(tf.unstack)
def unstack(
    value: StructuredTensor, num: int | None = None, axis: TensorLike = 0, *_: object
) -> list[StructuredTensor]:
    """Returns the records at each position of an axis."""
    place = axis_of(axis, value.rank, "tf.unstack")
    if not isinstance(value, RaggedStructuredTensor):
        kept = [axis for axis in range(value.rank) if axis != place]
        return map_tensors_to_many(value, lambda part: tf.unstack(part, num, place), kept)
    count = value.shape[0] if num is None else num
    if place or count is None:
        expected = "axis 0 with a static size, because the records are ragged"
        fix = "Give num=, or index the rows one by one."
        raise StructureError("tf.unstack", expected, f"axis {place} of shape {value.shape}", fix)
    return [value[row] for row in tf.unstack(tf.range(_count(value)), count)]


def _count(records: StructuredTensor) -> int | tf.Tensor:
    """Returns the size of the first dimension."""
    return tf.size(records.row_splits) - 1 if _is_ragged(records) else first_sizes(records, 1)[0]


def _is_ragged(records: StructuredTensor) -> bool:
    return isinstance(records, RaggedStructuredTensor)


def _expect_dense(records: StructuredTensor, name: str) -> None:
    if _is_ragged(records):
        fix = "Call it on records.values, or cast rows of one length to a dense spec."
        raise StructureError(name, "dense records", text.kind_text(records), fix)


@implements(tf.concat, on=StructuredTensor)
def concat(
    values: FieldValue | Sequence[FieldValue], axis: TensorLike, *_: object
) -> StructuredTensor:
    """Returns the records of all collections, one after another along an axis.

    Dense and ragged collections may be mixed; the result is ragged where rows differ in length.
    """
    values = _as_list(values)
    place = axis_of(axis, _rank(values), "tf.concat")
    if place == 0:
        return concat_records(values)  # needs no gather
    axes = range(values[0].rank)
    return join_fields(values, lambda parts: tf.concat(parts, place), axes, "tf.concat")


@implements(tf.stack, on=StructuredTensor)
def stack(
    values: FieldValue | Sequence[FieldValue], axis: TensorLike = 0, *_: object
) -> StructuredTensor:
    """Returns collections of one rank, stacked along a new axis."""
    values = _as_list(values)
    rank = _rank(values)
    place = axis_of(axis, rank + 1, "tf.stack")
    fix = "Use tf.ragged.stack for lists that differ in length."
    expect_one_size(values, "tf.stack", fix)
    axes = [*range(place), None, *range(place, rank)]
    return join_fields(values, lambda parts: tf.stack(parts, place), axes, "tf.stack")


@implements(tf.ragged.stack, on=StructuredTensor)
def ragged_stack(
    values: FieldValue | Sequence[FieldValue], axis: TensorLike = 0, *_: object
) -> StructuredTensor:
    """Returns records stacked along a new first axis; lists in them may differ in length.

    All lists of the result are ragged, as those of `tf.ragged.stack` of tensors are.
    """
    values = _as_list(values)
    if axis_of(axis, _rank(values) + 1, "tf.ragged.stack"):
        fix = "Stack along the first axis, or stack the fields."
        raise StructureError("tf.ragged.stack: axis", "axis 0", f"axis {axis}", fix)
    expect_same_fields(values, "tf.ragged.stack")
    specs = [ranks_only(value.__tf_type_spec__()) for value in values]
    common: Any = common_spec(specs, "tf.ragged.stack")
    dtypes = common._row_splits_dtypes()
    row = common._ragged_row(tf.int32 if dtypes == {tf.int32} else tf.int64)
    cast = [row.cast(common.cast(value)) for value in values]
    columns = zip(*(as_list(row.to_boxed_tensor(value)) for value in cast), strict=True)
    return row.stacked(len(values)).from_boxed_tensor(list(map(stacked_boxes, columns)))


def _as_list(values: FieldValue | Sequence[FieldValue]) -> list[Any]:
    return list(values) if isinstance(values, Sequence) else [values]


def _rank(values: list[Any]) -> int:
    first = values[0]
    if isinstance(first, StructuredTensor):
        return first.rank
    fix = "Join records with records, and fields with fields."
    raise StructureError("tf.concat or tf.stack", "records only", f"a {type(first).__name__}", fix)


@implements(tf.shape, on=StructuredTensor)
def shape(input: StructuredTensor, out_type: tf.DType | None = None, *_: object) -> tf.Tensor:
    """Returns the sizes of the dimensions of the records."""
    if isinstance(input, RaggedStructuredTensor):
        expected = "records with one size per dimension"
        fix = "Use records.row_lengths() and records.values, or records.shape for static sizes."
        raise StructureError("tf.shape", expected, text.kind_text(input), fix)
    out_type = out_type or tf.int32
    if input.shape.is_fully_defined():
        return tf.constant(input.shape.as_list(), out_type)
    return tf.cast(outer_sizes(input, input.rank), out_type)


@implements(tf.size, on=StructuredTensor)
def size(input: StructuredTensor, out_type: tf.DType | None = None, *_: object) -> tf.Tensor:
    """Returns the number of records."""
    out_type = out_type or tf.int32
    count = None
    while isinstance(input, RaggedStructuredTensor):
        count, input = input.row_splits[-1], input.values
    if count is not None:
        return tf.cast(count, out_type) * tf.reduce_prod(shape(input, out_type)[1:])
    if input.shape.is_fully_defined():
        return tf.constant(input.shape.num_elements(), out_type)
    return tf.reduce_prod(shape(input, out_type))


@implements(tf.rank, on=StructuredTensor)
def rank(input: StructuredTensor, *_: object) -> tf.Tensor:
    """Returns the number of dimensions of the records."""
    return tf.constant(input.rank)


@implements(tf.zeros_like, tf.ones_like, on=StructuredTensor)
def filled_like(
    op: Callable[..., Any], input: FieldValue, dtype: tf.DType | None = None, *_: object
) -> FieldValue:
    """Returns records of the same shape, with zeros or ones in each field.

    Nulls stay null, and rows of a union keep their variant.
    """
    return _fill(op, input, dtype, Path())


def _fill(
    op: Callable[..., Any], value: FieldValue, dtype: tf.DType | None, at: Path
) -> FieldValue:
    if isinstance(value, StructuredTensor) or is_masked(value) or is_union(value):
        return map_inside(value, lambda part, place: _fill(op, part, dtype, place), at)
    if isinstance(value, (tf.Tensor, BaseResourceVariable, tf.RaggedTensor)) and (
        op is tf.ones_like and value.dtype == tf.string and dtype is None
    ):
        fix = "Leave the field out with records.without, or give a dtype."
        raise DTypeError(f"tf.ones_like: {at}", "a field of numbers or bools", "dtype string", fix)
    return op(value) if dtype is None else op(value, dtype)
