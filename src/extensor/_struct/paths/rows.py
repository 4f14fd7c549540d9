"""Dimensions of a value as rows: taken off, put back, and merged.

A value is a tensor, a RaggedTensor, records, or another value that stacks. Its first dimensions are
those of the records that hold it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from extensor._authoring.rows import row_splits_of
from extensor._path import Path
from extensor._struct import index, reshape
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.field import row_splits_dtypes, shape_of
from extensor._struct.masked import combined, is_masked, is_union
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.row_splits import cut, first_sizes
from extensor._struct.tensor import StructuredTensor
from extensor._typing import FieldValue

_WITHOUT_MASK = (tf.Tensor, tf.RaggedTensor, StructuredTensor)


@dataclass(frozen=True)
class Level:
    """One dimension of a value: the row splits, or the sizes of rows of one length."""

    splits: Any
    sizes: list[Any] | None = None
    name: str | None = None
    valid: Any = None
    """A vector of bools, False for each row that is null; None if no row may be null."""
    exists: Any = None
    """A bool, False if all rows are one list of a single record, which is null; or None."""

    def around(self, values: FieldValue) -> FieldValue:
        """Returns values cut into the rows of this dimension."""
        if self.sizes is not None:
            return self.masked(reshape.split_outer(values, self.sizes))
        return self.masked(with_rows(values, self.splits, self.name))

    def masked(self, rows: FieldValue) -> FieldValue:
        """Returns a value for each row, null for the rows that are null."""
        rows = rows if self.valid is None else combined(rows, self.valid)
        return rows if self.exists is None else combined(rows, self.exists)

    def row_splits(self, dtype: tf.DType) -> tf.Tensor:
        """Returns the row splits; those of rows of one length have the given dtype."""
        if self.sizes is None:
            return self.splits
        return reshape.uniform_row_splits(self.sizes, dtype)


def with_rows(values: FieldValue, splits: tf.Tensor, name: str | None = None) -> FieldValue:
    """Returns values cut into rows; `name` is that of the dimension of the rows. Runs no op."""
    if isinstance(values, StructuredTensor):
        return RaggedStructuredTensor._of_parts(values, splits, name)
    return cut(values, splits, Path())


def split_mask(value: FieldValue, rank: int) -> tuple[Any, Any]:
    """Returns a value without the masks of the given rank, and the mask, or None."""
    valid = None
    if isinstance(value, _WITHOUT_MASK):  # most values; this runs for every dimension
        return value, valid
    while is_masked(value) and value.mask.shape.rank == rank:
        valid = value.mask if valid is None else tf.logical_and(valid, value.mask)
        value = value.values
    return value, valid


def take_off_dimension(value: FieldValue) -> tuple[Any, Level]:
    """Returns a value with its first two dimensions merged, and the second of them."""
    value, exists = split_mask(value, 0)
    value, valid = split_mask(value, 1)
    values, level = _take_off_dimension(value)
    has_mask = exists is not None or valid is not None
    return values, replace(level, valid=valid, exists=exists) if has_mask else level


def _take_off_dimension(value: FieldValue) -> tuple[Any, Level]:
    if isinstance(value, RaggedStructuredTensor):
        return value.values, Level(value.row_splits, name=value._name)
    if isinstance(value, tf.RaggedTensor):
        return value.values, Level(value.row_splits)
    shape = shape_of(value)
    if not isinstance(value, (tf.Tensor, StructuredTensor)) and hasattr(
        value, "__tf_uncut_rows__"
    ) and shape.rank is not None and shape[1] is None:  # fmt: skip
        uncut = value.__tf_uncut_rows__()
        if uncut is not None:  # else, rows of one size that is not known yet
            return uncut[0], Level(uncut[1])
    sizes = first_sizes(value, 2)
    return reshape.merge_outer(value, sizes), Level(None, sizes)


def splits_dtype(value: FieldValue) -> tf.DType:
    """Returns the dtype of the row splits in a value; int64 if there are none."""
    return tf.int32 if row_splits_dtypes(value) == {tf.int32} else tf.int64


def size_of(value: FieldValue) -> int | tf.Tensor:
    """Returns the size of the first dimension: an int if it is known, else a scalar tensor."""
    return first_sizes(value, 1)[0]


@dataclass(frozen=True)
class Lists:
    """The lists at one path, without the dimensions outside them.

    Attributes:
        items: The items of all lists, one after another.
        splits: Where each list begins and ends in `items`.
        outside: Puts the outer dimensions around a value for each list.
        same: Puts all dimensions around as many items as there are.
        is_only: Whether there is one list, without outer dimensions: then a new list is its items.
    """

    items: Any
    splits: Any
    outside: Callable[[Any], Any]
    same: Callable[[Any], Any]
    is_only: bool = False

    @property
    def lengths(self) -> tf.Tensor:
        """The number of items of each list."""
        return self.splits[1:] - self.splits[:-1]

    @property
    def numbers(self) -> tf.Tensor:
        """The number of the list that each item is in."""
        return row_numbers(self.splits)

    @property
    def starts(self) -> tf.Tensor:
        """Where the list of each item begins."""
        return tf.repeat(self.splits[:-1], self.lengths)

    def positions(self) -> tf.Tensor:
        """Returns the position of each item in its list."""
        return tf.range(self.splits[-1], dtype=self.splits.dtype) - self.starts

    def lists(self, items: FieldValue, splits: tf.Tensor) -> FieldValue:
        """Returns other lists, as many as these, in the same outer dimensions."""
        return items if self.is_only else self.outside(with_rows(items, splits))


def row_numbers(splits: tf.Tensor) -> tf.Tensor:
    """Returns the number of the row of each value."""
    return tf.repeat(tf.range(tf.size(splits, splits.dtype) - 1), splits[1:] - splits[:-1])


def lists_of(value: FieldValue, depth: int) -> Lists:
    """Returns the lists of a value that has `depth` dimensions outside the lists."""
    dtype = splits_dtype(value)
    if depth == 0:
        value, valid = split_mask(value, 0)
        only = Level(None, valid=valid)
        splits = tf.stack([tf.zeros([], dtype), tf.cast(size_of(value), dtype)])
        return Lists(
            value, splits, lambda rows: only.masked(only_row(rows)), only.masked, valid is None
        )
    value, levels = take_off_dimensions(value, depth)
    return Lists(
        value,
        levels[-1].row_splits(dtype),
        lambda rows: _around(levels[-1].masked(rows), levels[:-1]),
        lambda items: _around(items, levels),
    )


def only_row(rows: FieldValue) -> FieldValue:
    """Returns the first row of a value that has one row."""
    if isinstance(rows, (tf.RaggedTensor, RaggedStructuredTensor)):
        return rows.values
    return index.take(rows, (0,), Path())


def list_rank(value: FieldValue, rank: int) -> int:
    """Returns how many dimensions of a value are records or ragged lists.

    Args:
        value: The value of a field.
        rank: The rank of the records that hold it.
    """
    if isinstance(value, StructuredTensor):
        return value.rank
    if isinstance(value, tf.RaggedTensor):
        return max(rank, value.ragged_rank + 1)
    if is_union(value):
        return list_rank(value.codes, rank)
    inner = getattr(value, "values", None)  # of a MaskedTensor
    return rank if inner is None else list_rank(inner, rank)


def flat_lists(value: FieldValue, depth: int, count: int) -> FieldValue:
    """Returns a value with `count` dimensions after the first `depth` merged into one.

    Composes row splits by one gather a dimension; the values are not copied.
    """
    if count <= 1:
        return value
    if depth > 1:
        inner, level = take_off_dimension(value)
        return level.around(flat_lists(inner, depth - 1, count))
    if depth == 0:
        value, valid = split_mask(value, 0)
        return Level(None, valid=valid).masked(
            flat_lists(take_off_dimension(null_lists_to_empty(value))[0], 0, count - 1)
        )
    values, first = take_off_dimension(value)
    dtype = splits_dtype(value)
    levels: list[Level] = []
    for _ in range(count - 1):
        values, level = take_off_dimension(null_lists_to_empty(values))
        levels.append(level)
    levels = [first, *levels]
    length = _length_of_rows(levels)
    if length is not None:
        assert first.sizes is not None
        return first.masked(reshape.split_outer(values, [first.sizes[0], length]))
    return first.masked(with_rows(values, compose_row_splits(levels, dtype)))


def null_lists_to_empty(value: FieldValue, depth: int = 1) -> FieldValue:
    """Returns lists with empty ones in place of those that are null, whatever is hidden in these.

    Args:
        value: Lists, or any other value, which is returned as it is.
        depth: The number of dimensions outside the lists.
    """
    if isinstance(value, _WITHOUT_MASK):
        return value
    if depth > 1:
        inner, level = take_off_dimension(value)
        return level.around(null_lists_to_empty(inner, depth - 1))
    value, valid = split_mask(value, depth)
    if valid is None:
        return value
    if depth == 0:
        count = tf.where(valid, tf.cast(size_of(value), tf.int64), 0)
        return index.take(value, (slice(0, count),), Path())
    rows = lists_of(value, 1)
    is_shown = tf.repeat(valid, rows.lengths)
    if hasattr(is_shown, "numpy") and is_shown.numpy().all():
        return value
    kept = tf.cast(tf.where(is_shown)[:, 0], rows.splits.dtype)
    lengths = tf.where(valid, rows.lengths, tf.zeros_like(rows.lengths))
    return with_rows(index.gather(rows.items, kept), row_splits_of(lengths))


def outer_null_lists_to_empty(value: FieldValue, start: int, depth: int) -> FieldValue:
    """Returns a value with empty lists in place of null ones, in some of its outer dimensions.

    Args:
        value: A value, null where a list that it is in is null.
        start: The first dimension whose lists are replaced. Outside of it, null lists stay null.
        depth: The number of dimensions of the lists around each value.
    """
    if isinstance(value, _WITHOUT_MASK) or depth == 0:
        return value
    if start == 0:
        value, valid = null_lists_to_empty(value, 0), None
    else:
        value, valid = split_mask(value, 0)
    for each in range(max(start, 1), depth):
        value = null_lists_to_empty(value, each)
    return Level(None, valid=valid).masked(value)


def take_off_dimensions(value: FieldValue, count: int) -> tuple[Any, list[Level]]:
    """Returns a value with its first `count + 1` dimensions merged, and the dimensions."""
    levels: list[Level] = []
    for _ in range(count):
        value, level = take_off_dimension(value)
        levels.append(level)
    return value, levels


def compose_row_splits(levels: list[Level], dtype: tf.DType) -> tf.Tensor:
    """Returns the row splits of dimensions merged into one."""
    splits = levels[0].row_splits(dtype)
    for level in levels[1:]:
        if level.sizes is not None:
            splits = splits * tf.cast(level.sizes[1], splits.dtype)
        else:
            inner = level.splits
            if inner.dtype != splits.dtype:
                inner = tf.cast(inner, splits.dtype)
            splits = index.gather_tensor(inner, splits)
    return splits


def repeat_like(value: FieldValue, like: StructuredTensor, depth: int, count: int) -> FieldValue:
    """Returns a value with `count` more dimensions: each row is repeated for all items below it.

    Args:
        value: A value with `depth` outer dimensions.
        like: Records whose first `depth` dimensions are the same.
        depth: The number of dimensions that both have.
        count: The number of dimensions that only the records have.
    """
    if count == 0:
        return value
    if depth > 1:
        inner, level = take_off_dimension(like)
        return level.around(repeat_like(take_off_dimension(value)[0], inner, depth - 1, count))
    dtype = splits_dtype(like)
    if depth == 0:
        first = Level(None, [1, size_of(like)])
        _, levels = take_off_dimensions(like, count - 1)
        return _around(
            _repeat_for_items(reshape.expand_dims(value, 0), [first, *levels], dtype), levels
        )
    _, levels = take_off_dimensions(like, count)
    return _around(_repeat_for_items(value, levels, dtype), levels)


def _around(values: FieldValue, levels: list[Level]) -> FieldValue:
    for level in reversed(levels):
        values = level.around(values)
    return values


def _repeat_for_items(value: FieldValue, levels: list[Level], dtype: tf.DType) -> FieldValue:
    """Returns each row of a value repeated for all items below it."""
    times = _length_of_rows(levels)
    if times is None:
        splits = compose_row_splits(levels, dtype)
        times = splits[1:] - splits[:-1]
    return repeat_rows(value, times)


def _length_of_rows(levels: list[Level]) -> Any:
    """Returns the number of items of each row if all rows have one number, else None."""
    sizes = [level.sizes for level in levels if level.sizes is not None]
    return math.prod(size for _, size in sizes) if len(sizes) == len(levels) else None


def repeat_rows(value: FieldValue, times: Any) -> FieldValue:
    """Returns a value with each row repeated: a number of times for all rows, or one for each.

    tf.repeat makes as many copies of each row as the longest list has items, and drops what is too
    much. So only numbers and strings are repeated themselves. For larger rows, and for several
    fields, the numbers of the rows are repeated once, and the rows gathered.
    """
    is_one = not isinstance(times, tf.Tensor) or times.shape.rank == 0
    if isinstance(value, tf.Tensor) and (is_one or value.shape.rank == 1):
        return tf.repeat(value, times, axis=0)
    if isinstance(value, DenseStructuredTensor) and len(value.field_names()) == 1:
        return value._map_parts(lambda part, _: repeat_rows(part, times))
    count = size_of(value) if is_one else tf.size(times, times.dtype)
    return index.gather(value, tf.repeat(tf.range(count), times))
