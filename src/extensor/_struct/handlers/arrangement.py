"""Operations that rearrange, repeat or divide records along their dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._dispatch.handlers import implements
from extensor._struct import index, reshape
from extensor._struct.display import text
from extensor._struct.handlers.each_field import axis_of, moved, moved_apart, sizes_of
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.tensor import StructuredTensor
from extensor.errors import StructureError


@implements(tf.expand_dims, on=StructuredTensor)
def expand_dims(input: Any, axis: Any, *_: Any) -> Any:
    """Returns records with a new dimension of size 1."""
    return reshape.expanded(input, axis_of(axis, input.rank + 1, "tf.expand_dims"))


@implements(tf.squeeze, on=StructuredTensor)
def squeeze(input: Any, axis: Any = None, *_: Any) -> Any:
    """Returns records without dimensions of size 1: all of them, or those given."""
    sizes = input.shape.as_list()
    if axis is None:
        axes = [i for i, size in enumerate(sizes) if size == 1]
    else:
        axes = [axis_of(one, input.rank, "tf.squeeze") for one in np.reshape(axis, [-1]).tolist()]
    if not axes:
        return input
    kept = [axis for axis in range(input.rank) if axis not in axes]
    return moved(input, lambda value: tf.squeeze(value, axes), kept)


@implements(tf.tile, on=StructuredTensor)
def tile(input: Any, multiples: Any, *_: Any) -> Any:
    """Returns records repeated along each dimension."""
    if not isinstance(input, StructuredTensor):
        return NotImplemented
    multiples = tf.convert_to_tensor(multiples)

    def op(value: Any) -> Any:
        inner = value.shape.rank - input.rank
        if not inner:
            return tf.tile(value, multiples)
        return tf.tile(value, tf.concat([multiples, tf.ones([inner], multiples.dtype)], 0))

    return moved(input, op, range(input.rank))


@implements(tf.reverse, on=StructuredTensor)
def reverse(tensor: Any, axis: Any, *_: Any) -> Any:
    """Returns records in reverse order along the given axes."""
    if not isinstance(tensor, StructuredTensor):
        return NotImplemented
    known = np.reshape(axis, [-1]).tolist()
    axes = [axis_of(one, tensor.rank, "tf.reverse") for one in known]
    return moved(tensor, lambda value: tf.reverse(value, axes), range(tensor.rank))


@implements(tf.roll, on=StructuredTensor)
def roll(input: Any, shift: Any, axis: Any, *_: Any) -> Any:
    """Returns records shifted along the given axes; what leaves one end enters at the other."""
    if not isinstance(input, StructuredTensor):
        return NotImplemented
    _expect_dense(input, "tf.roll")
    known = np.reshape(axis, [-1]).tolist()
    axes = [axis_of(one, input.rank, "tf.roll") for one in known]
    axes = axes if np.ndim(axis) else axes[0]
    return moved(input, lambda value: tf.roll(value, shift, axes), range(input.rank))


@implements(tf.transpose, on=StructuredTensor)
def transpose(a: Any, perm: Any = None, *_: Any) -> Any:
    """Returns dense records with their dimensions in another order; by default reversed."""
    if not isinstance(a, StructuredTensor):
        return NotImplemented
    _expect_dense(a, "tf.transpose")
    order = list(range(a.rank))[::-1] if perm is None else np.reshape(perm, [-1]).tolist()
    order = [axis_of(axis, a.rank, "tf.transpose") for axis in order]
    if sorted(order) != list(range(a.rank)):
        raise StructureError(
            "tf.transpose: perm",
            f"each axis from 0 to {a.rank - 1} once",
            str(order),
            "Give a permutation of the records' dimensions only.",
        )
    return moved(
        a, lambda value: tf.transpose(value, [*order, *range(a.rank, value.shape.rank)]), order
    )


@implements(tf.reshape, on=StructuredTensor)
def reshape_(tensor: Any, shape: Any, *_: Any) -> Any:
    """Returns dense records in another shape."""
    if not isinstance(tensor, StructuredTensor):
        return NotImplemented
    _expect_dense(tensor, "tf.reshape")
    known: Any = tf.get_static_value(shape)
    sizes: Any = tf.convert_to_tensor(shape) if known is None else [int(size) for size in known]
    rank = len(sizes) if known is not None else sizes.shape[0]
    full = tensor.shape.num_elements()
    if full is not None and known is not None and -1 in sizes:
        others = math.prod(size for size in sizes if size != -1)
        if others and full % others == 0:
            sizes = [full // others if size == -1 else size for size in sizes]

    def op(value: Any) -> Any:
        inner = value.shape[tensor.rank :]
        if inner.is_fully_defined():
            if isinstance(sizes, tf.Tensor):
                return tf.reshape(value, tf.concat([sizes, inner.as_list()], 0))
            if -1 not in sizes or 0 not in inner:
                return tf.reshape(value, [*sizes, *inner])
        count = tensor.rank
        return tf.reshape(value, tf.concat([sizes, tf.shape(value)[count:]], 0))

    return moved(tensor, op, [None] * rank)


@implements(tf.broadcast_to, on=StructuredTensor)
def broadcast_to(input: Any, shape: Any, *_: Any) -> Any:
    """Returns dense records repeated to a shape."""
    if not isinstance(input, StructuredTensor):
        return NotImplemented
    _expect_dense(input, "tf.broadcast_to")
    sizes: Any = tf.convert_to_tensor(shape)
    count = sizes.shape[0]
    records: Any = input
    for _axis in range(count - records.rank):
        records = reshape.expanded(records, 0)
    return moved(
        records,
        lambda value: tf.broadcast_to(value, tf.concat([sizes, tf.shape(value)[count:]], 0)),
        range(count),
    )


@implements(tf.repeat, on=StructuredTensor)
def repeat(input: Any, repeats: Any, axis: Any = None, *_: Any) -> Any:
    """Returns records, each repeated; without an axis, of all dimensions merged into one."""
    if not isinstance(input, StructuredTensor):
        return NotImplemented
    if axis is None:
        input = index.numbered(input, input.rank)[1] if input.rank else input[None]
        axis = 0
    place = axis_of(axis, input.rank, "tf.repeat")
    if place == 0:
        return index.gather(input, tf.repeat(tf.range(_count(input)), repeats))
    if _is_ragged(input):
        return _repeated_in_rows(input, repeats, place)
    return moved(input, lambda value: tf.repeat(value, repeats, place), range(input.rank))


def _repeated_in_rows(records: Any, repeats: Any, place: int) -> Any:
    """Returns ragged records with each element of an inner dimension repeated."""
    count = tf.convert_to_tensor(repeats)
    if count.shape.rank != 0:
        raise StructureError(
            "tf.repeat: repeats",
            "one number, because the rows differ in length",
            f"shape {count.shape}",
            "Repeat by axis 0, or call it on records.values.",
        )
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


@implements(tf.random.shuffle, on=StructuredTensor)
def shuffle(value: Any, seed: Any = None, *_: Any) -> Any:
    """Returns the records in random order along the first dimension; fields stay together."""
    axis_of(0, value.rank, "tf.random.shuffle")
    return index.gather(value, tf.random.shuffle(tf.range(_count(value)), seed))


@implements(tf.random.experimental.stateless_shuffle, on=StructuredTensor)
def stateless_shuffle(value: Any, seed: Any, *args: Any) -> Any:
    """Returns the records in an order that depends on the seed only."""
    if not isinstance(value, StructuredTensor):
        return NotImplemented
    axis_of(0, value.rank, "tf.random.experimental.stateless_shuffle")
    numbers = tf.range(_count(value))
    return index.gather(value, tf.random.experimental.stateless_shuffle(numbers, seed, *args))


@implements(tf.split, on=StructuredTensor)
def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None, *_: Any) -> Any:
    """Returns the parts of records along an axis."""
    if not isinstance(value, StructuredTensor):
        return NotImplemented
    place = axis_of(axis, value.rank, "tf.split")
    return moved_apart(
        value, lambda part: tf.split(part, num_or_size_splits, place, num), range(value.rank)
    )


@implements(tf.unstack, on=StructuredTensor)
def unstack(value: Any, num: Any = None, axis: Any = 0, *_: Any) -> Any:
    """Returns the records at each position of an axis."""
    place = axis_of(axis, value.rank, "tf.unstack")
    if not isinstance(value, RaggedStructuredTensor):
        kept = [axis for axis in range(value.rank) if axis != place]
        return moved_apart(value, lambda part: tf.unstack(part, num, place), kept)
    count = value.shape[0] if num is None else num
    if place or count is None:
        raise StructureError(
            "tf.unstack",
            "axis 0 with a static size, because the records are ragged",
            f"axis {place} of shape {value.shape}",
            "Give num=, or index the rows one by one.",
        )
    return [value[i] for i in range(count)]


def _count(records: Any) -> Any:
    """Returns the size of the first dimension."""
    if _is_ragged(records):
        return tf.size(records.row_splits) - 1
    return sizes_of(records)[0]


def _is_ragged(records: Any) -> bool:
    return isinstance(records, RaggedStructuredTensor)


def _expect_dense(records: Any, name: str) -> None:
    if _is_ragged(records):
        raise StructureError(
            name,
            "dense records",
            text.kind(records),
            "Call it on records.values, or cast rows of one length to a dense spec.",
        )
