"""Takes the part of a value at positions: of records, of tensors, of values of any type."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import tensorflow as tf

from extensor import _tf
from extensor._authoring.rows import uncut_rows
from extensor._declare.decorator import row_at
from extensor._dispatch.handlers import handles
from extensor._dispatch.operators import OperatorsMixin
from extensor._memory import array_over
from extensor._path import Path
from extensor._protocol.box import box, unbox
from extensor._protocol.box_ragged import take as take_box
from extensor._protocol.stackable_spec import any_length
from extensor._struct import reshape
from extensor._struct.dims import move_axes
from extensor._struct.field import row_splits_dtypes
from extensor._struct.index import key
from extensor._struct.index.key import ALL as ALL
from extensor._struct.index.pick import (
    Positions,
    gather_tensor,
    is_full_range,
    is_step_of_one,
    pick,
    row_too_short,
    slice_tensor,
    without_negative,
)
from extensor._struct.masked import is_masked, is_union
from extensor._struct.parts import map_parts, spec_of_parts
from extensor._struct.records import RecordsBase
from extensor._struct.row_splits import cut, first_sizes, outer_sizes
from extensor._tf import BaseResourceVariable, CompositeTensor, ragged_tensor, stacked, unstacked
from extensor._typing import FieldValue

_INTS = (int, np.integer)
_GATHERED = (tf.RaggedTensor, BaseResourceVariable)  # composites that tf.gather itself takes


def take(value: FieldValue, positions: tuple[Any, ...], at: Path) -> FieldValue:
    """Returns the part of a field's value, or of records, at the given positions.

    Args:
        value: Any value of a field.
        positions: Positions along its first dimensions: see `key.to_position`.
        at: The path of the value, for errors.

    Raises:
        RowError: If a position is out of range (also an IndexError).
    """
    is_known = isinstance(positions, Positions)
    is_tensor = isinstance(value, tf.Tensor)
    if not is_tensor and not isinstance(value, RecordsBase):
        # The shape of other values is created again at each call, which is slow.
        if is_known and is_masked(value) and value.mask.shape.rank is not None:
            return _take_masked(value, positions, at)
        if isinstance(value, tf.RaggedTensor) and len(positions) == 1:
            part, count = positions[0], value.row_splits.shape[0]
            if count is not None and part.__class__ is int and 1 - count <= part < count - 1:
                return take_row(value, positions, at)
            if count is not None and is_full_range(part, count - 1):
                return value
            is_range = isinstance(part, slice) and is_step_of_one(part.step)
            if is_range and hasattr(value.row_splits, "numpy"):
                # TensorFlow reads the shape at each level: the cube of the ragged rank.
                return ragged_tensor(*rows_between(value, part, at))
    shape: Any = getattr(value, "shape", None)
    if not isinstance(shape, tf.TensorShape) and isinstance(value, CompositeTensor):
        shape = None  # of a user's class it may be anything
    rank = None if shape is None else shape.rank if hasattr(shape, "rank") else len(shape)
    axes: list[int] = []
    if rank is not None and len(positions) <= rank and (is_known or _are_simple(positions)):
        # Most keys; this runs for every field.
        for axis, part in enumerate(positions):
            if part.__class__ is int:
                size = shape[axis]  # pyright: ignore[reportOptionalSubscript]
                if size is not None and not -size <= part < size:
                    key.expect_in_range(positions, shape, at)
        if not is_known:
            positions = Positions(key.without_trailing(positions))
        if not positions:
            return value
        return slice_tensor(value, positions) if is_tensor else _take_simple(value, positions, at)
    if rank is not None:
        positions, axes = key.without_new_axes(key.without_ellipsis(positions, rank, at))
        key.expect_in_range(positions, shape or (), at)
        if count := key.above_mask(positions):  # a mask of items is compared with their lists
            value, rest = take(value, positions[:count], at), positions[count:]
            positions = (key.ALL,) * sum(map(key.num_result_dims, positions[:count])) + rest
            key.expect_in_range(positions, value.shape, at)
        positions = key.with_compared_masks(value, positions, at)
        positions = key.without_trailing(positions)
    if len(positions) == 1 and key.is_mask(positions[0]) and positions[0].shape.rank == 1:
        taken = gather(value, tf.reshape(tf.where(positions[0]), [-1]))
    else:
        taken = _take_any(value, key.zip_arrays(positions, at), at) if positions else value
    for axis in axes:
        taken = reshape.expand_dims(taken, axis)
    return taken


def _take_any(value: FieldValue, positions: tuple[Any, ...], at: Path) -> FieldValue:
    if not any(map(key.is_array, positions)):
        return _take_simple(value, Positions(positions), at)
    if is_masked(value) and value.mask.shape.rank:
        return _take_masked(value, positions, at)
    if isinstance(value, (tf.Tensor, tf.RaggedTensor, BaseResourceVariable)):
        return pick(value, positions, at)
    return gather_at(value, positions, at)


def _are_simple(positions: tuple[Any, ...]) -> bool:
    return all(part.__class__ is int or part.__class__ is slice for part in positions)


def _take_simple(value: FieldValue, positions: tuple[Any, ...], at: Path) -> FieldValue:
    """Returns a value at ints and slices."""
    if isinstance(value, tf.Tensor):
        return slice_tensor(value, positions)
    if isinstance(value, RecordsBase):
        return value._take(positions, at)
    if is_masked(value) and value.mask.shape.rank is not None:
        return _take_masked(value, positions, at)
    if hasattr(value, "row_splits") and not isinstance(positions[0], slice):
        return take_row(value, positions, at)
    if isinstance(value, tf.RaggedTensor):
        return pick(value, positions, at)
    if _is_without_indexing(value):
        return _take_boxed(value, positions)
    return value[positions]


def _take_masked(value: FieldValue, positions: tuple[Any, ...], at: Path) -> FieldValue:
    """Returns a masked value at ints and slices."""
    own, inner = _split(positions, value.mask.shape.rank)
    masks = positions.masks if isinstance(positions, Positions) else {}
    mask = masks.get(id(value.mask))  # one mask may be that of many fields
    if mask is None:
        mask = masks[id(value.mask)] = take(value.mask, own, at)
    if _have_items(positions, inner, mask):
        return type(value).combined(take(value.values, positions, at), mask)
    # A null list has no item at any position, so its item is null too.
    zipped = key.is_array(inner[0]) and key.is_array(own[-1])
    outer = take(value.values, own, at)
    return type(value).combined(_take_valid(outer, mask, inner, zipped, at), mask)


def _have_items(positions: tuple[Any, ...], inner: tuple[Any, ...], mask: FieldValue) -> bool:
    """Returns whether null lists have an item at positions, or whether none of them is null.

    Args:
        positions: All positions in a masked value.
        inner: Those inside the elements that may be null.
        mask: The mask at the positions of these elements.
    """
    if all(isinstance(part, (slice, tf.RaggedTensor)) for part in inner):
        return True
    if key.is_array(inner[0]) and len(positions) > len(inner) and mask.shape.rank != 1:
        before = positions[len(positions) - len(inner) - 1]
        if key.is_array(before):
            return True  # zipped arrays of more dimensions
    return hasattr(mask, "numpy") and isinstance(mask, tf.Tensor) and bool(mask.numpy().all())


def _split(positions: tuple[Any, ...], rank: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Returns the positions along the first `rank` dimensions, and the others."""
    count = used = 0
    while count < len(positions) and used + key.num_selected_dims(positions[count]) <= rank:
        used += key.num_selected_dims(positions[count])
        count += 1
    if used == rank or count == len(positions):
        return positions[:count], positions[count:]
    return (*positions[:count], *[ALL] * (rank - used)), positions[count:]


def _take_valid(
    values: FieldValue, mask: FieldValue, positions: tuple[Any, ...], zipped: bool, at: Path
) -> FieldValue:
    """Returns `values` at positions inside of each element; a zero where the mask is False.

    Args:
        values: A value whose first dimensions are those of the mask.
        mask: True for each element that has something inside.
        positions: Positions along the other dimensions.
        zipped: Whether arrays in the positions have an item for each element.
        at: The path of the value, for errors.
    """
    rank = mask.shape.rank
    if rank == 0:
        dtype = next(iter(row_splits_dtypes(values)), tf.int64)
        row = cut(values, tf.stack([0, tf.cast(outer_sizes(values, 1)[0], dtype)]), at)
        return take(_take_valid(row, mask[tf.newaxis], positions, False, at), (0,), at)
    if rank > 1:
        rows, masks = uncut_rows(values), uncut_rows(mask)
        if rows is not None and masks is not None:
            return cut(_take_valid(rows[0], masks[0], positions, False, at), rows[1], at)
        sizes: Any = tf.unstack(tf.shape(mask)[:2], 2)
        inner = _take_valid(
            reshape.merge_outer(values, sizes),
            reshape.merge_outer(mask, sizes),
            positions,
            False,
            at,
        )
        return reshape.split_outer(inner, sizes)
    valid = tf.where(mask)[:, 0]
    rows = gather(values, valid)
    _expect_long_enough(rows, positions[0], valid, at)
    first: Any = ALL
    if zipped:
        first = tf.range(tf.size(valid, tf.int64))
        positions = tuple(gather(p, valid) if key.is_array(p) else p for p in positions)
    found = take(rows, (first, *positions), at)
    places = tf.cumsum(tf.cast(mask, tf.int64), exclusive=True)
    return gather(with_zeros(found), tf.where(mask, places, tf.size(valid, tf.int64)))


def _expect_long_enough(rows: FieldValue, place: object, numbers: tf.Tensor, at: Path) -> None:
    """Raises RowError for the first of some rows that has no item at a position.

    Args:
        rows: Rows, with the given numbers.
        place: A position in each row.
        numbers: The number of each row, for the error.
        at: The path of the rows, for errors.
    """
    splits = uncut_rows(rows)
    if splits is None or not hasattr(splits[1], "numpy") or not isinstance(place, int):
        return
    lengths = np.diff(splits[1].numpy())
    short = np.flatnonzero(lengths < (-place if place < 0 else place + 1))
    if short.size:
        raise row_too_short(place, int(lengths[short[0]]), int(numbers[short[0]]), at)


def gather_at(value: FieldValue, positions: tuple[Any, ...], at: Path) -> FieldValue:
    """Returns a value at positions, some of which are arrays, by one gather for each field."""
    first = positions[0]
    if len(positions) == 1 and isinstance(first, tf.Tensor):
        return gather(value, without_negative(first, first_sizes(value, 1)[0]))
    numbers, flat = number_items(value, sum(map(key.num_selected_dims, positions)))
    taken = gather(flat, pick(numbers, positions, at))
    if isinstance(value, RecordsBase) and value._dims:
        return taken._with_dims(
            move_axes(value._dims, key.axes_of_result(positions, len(value._dims)))
        )
    return taken


def _is_without_indexing(value: FieldValue) -> bool:
    own = getattr(type(value), "__getitem__", row_at)
    if own is OperatorsMixin.__getitem__ and handles(type(value), tf.__operators__.getitem):
        return False
    return own in (row_at, OperatorsMixin.__getitem__) and isinstance(value, CompositeTensor)


def _take_boxed(value: FieldValue, positions: tuple[Any, ...]) -> FieldValue:
    """Returns `value[positions]` by indexing its boxes, for a type without `__getitem__`."""
    spec: Any = tf.type_spec_from_value(value)
    boxes = [take_box(b, positions) for b in box(spec, value, len(positions))]
    for _ in positions:
        spec = _tf.unstacked(spec)
    for _ in range(sum(isinstance(p, slice) for p in positions)):
        spec = _tf.stacked(spec, None)
    return unbox(spec, boxes)


def take_row(ragged: FieldValue, positions: tuple[Any, ...], at: Path) -> FieldValue:
    """Returns one row, or part of one row, of ragged records or of a ragged tensor.

    Args:
        ragged: A value with `values` and `row_splits`.
        positions: The index of the row, and positions within the row.
        at: The path of the value, for errors.
    """
    first, rest = positions[0], positions[1:]
    splits = ragged.row_splits
    if isinstance(first, int):
        before = first - 1 if first < 0 else first
        if isinstance(splits, tf.Tensor) and hasattr(splits, "numpy"):
            numbers = array_over(splits)  # indexing in NumPy runs no op
            start, end = int(numbers[before]), int(numbers[before + 1])
        else:
            start, end = splits[before], splits[before + 1]
    else:  # a tensor, which may be negative
        start, end = splits[:-1][first], splits[1:][first]
    row = take(ragged.values, (slice(start, end),), at)
    return take(row, rest, at) if rest else row


def rows_between(ragged: FieldValue, rows: slice, at: Path) -> tuple[Any, tf.Tensor]:
    """Returns the values and the row splits of rows beside each other, without a copy of values.

    Args:
        ragged: Ragged records, or a RaggedTensor.
        rows: A range of the rows, whose step is 1.
        at: The path of the value, for errors.
    """
    splits, count, bounds = ragged.row_splits, ragged.row_splits.shape[0], (rows.start, rows.stop)
    if count is not None and all(bound is None or isinstance(bound, _INTS) for bound in bounds):
        begin, end, _ = rows.indices(count - 1)
        end = max(begin, end)
        part = slice_tensor(splits, (slice(begin, end + 1),))
        if hasattr(part, "numpy"):
            numbers = array_over(splits)  # indexing in NumPy runs no op
            start, limit = int(numbers[begin]), int(numbers[end])
            values = take(ragged.values, (slice(start, limit),), at)
            return values, part - start if start else part
    else:
        starts, limits = (take(ends, (rows,), at) for ends in (splits[:-1], splits[1:]))
        # Without rows, the splits are [0].
        zero = tf.zeros([1], limits.dtype)[tf.size(starts) :]
        part = tf.concat([zero, starts[:1], limits], 0)
    return take(ragged.values, (slice(part[0], part[-1]),), at), part - part[0]


def unstack(value: FieldValue, count: int, at: Path) -> list[Any]:
    """Returns each of the `count` elements of an eager value, as `take` returns it.

    Args:
        value: Any value of a field.
        count: The size of its first dimension.
        at: The path of the value, for errors.
    """
    if isinstance(value, tf.Tensor):
        return tf.unstack(value, count)
    if isinstance(value, RecordsBase):
        return value._unstack(count)
    if is_masked(value) and value.mask.shape.rank:
        values = unstack(value.values, count, at)
        masks = tf.unstack(value.mask, count) if isinstance(value.mask, tf.Tensor) else None
        if masks is not None:
            combined = type(value).combined
            return [combined(part, mask) for part, mask in zip(values, masks, strict=True)]
    if isinstance(value, tf.RaggedTensor):
        return unstack_rows(value, at)
    return [take(value, (i,), at) for i in range(count)]


def unstack_rows(ragged: FieldValue, at: Path) -> list[Any]:
    """Returns each row of eager ragged records, or of a ragged tensor: see `take_row`."""
    splits = array_over(ragged.row_splits).tolist()
    values = ragged.values
    return [take(values, (slice(*pair),), at) for pair in itertools.pairwise(splits)]


def number_items(value: FieldValue, count: int) -> tuple[Any, Any]:
    """Returns the number of each item of a value, and the value with all items in one dimension.

    Args:
        value: Records, or another value.
        count: How many dimensions the items have. All of them are in the shape of the numbers.

    Returns:
        A tensor, or a RaggedTensor, of integers; and the value with these dimensions merged.
    """
    if hasattr(value, "row_splits") and count > 1:
        numbers, flat = number_items(value.values, count - 1)
        return ragged_tensor(numbers, value.row_splits), flat
    sizes = first_sizes(value, count)
    dtype = tf.int64 if not hasattr(value, "row_splits") else value.row_splits.dtype
    return range_of_shape(sizes, dtype), merge_outer_dims(value, sizes)


def range_of_shape(sizes: list[Any], dtype: tf.DType = tf.int64) -> tf.Tensor:
    """Returns the integers from 0, in a tensor of the given sizes."""
    total: Any = 1
    for size in sizes:
        total = total * size
    numbers = tf.range(tf.cast(total, dtype), dtype=dtype)
    return numbers if len(sizes) == 1 else tf.reshape(numbers, sizes)


def merge_outer_dims(value: FieldValue, sizes: list[Any]) -> FieldValue:
    """Returns a value with its outer dimensions, of the given sizes, merged into one."""
    sizes = list(sizes)
    while len(sizes) > 1:
        value = reshape.merge_outer(value, sizes[:2])
        sizes[:2] = [sizes[0] * sizes[1]]
    return value


def gather(value: FieldValue, numbers: tf.Tensor) -> FieldValue:
    """Returns the elements of `value` at the given indices of its first dimension.

    Args:
        value: A tensor, RaggedTensor, StructuredTensor or other value that stacks.
        numbers: An integer tensor, or a RaggedTensor of integers; the result is cut into the same
            rows.
    """
    if isinstance(value, RecordsBase):
        return value._gather(numbers)
    if is_masked(value) and value.mask.shape.rank:
        return type(value)._of_parts(gather(value.values, numbers), gather(value.mask, numbers))
    if (
        isinstance(value, CompositeTensor)
        and not isinstance(value, _GATHERED)
        and not handles(type(value), tf.gather)
    ):
        if isinstance(numbers, tf.RaggedTensor):
            return cut(gather(value, numbers.values), numbers.row_splits, Path())
        result = unstacked(tf.type_spec_from_value(value))
        for size in reversed(numbers.shape.as_list()):
            result = stacked(result, size)
        return map_parts(value, lambda part: gather(part, numbers), result, 1)
    taken = gather_tensor(value, numbers)
    if isinstance(value, tf.RaggedTensor) and numbers.shape.rank == 1:
        nrows = numbers.shape[0]
        if nrows is not None and isinstance(taken, tf.RaggedTensor):
            taken.row_splits.set_shape([nrows + 1])  # which TensorFlow loses
    return taken


_ROOT = Path()


def with_zeros(
    items: FieldValue, count: int | tf.Tensor = 1, size: int | None = None, at: Path = _ROOT
) -> FieldValue:
    """Returns items and after them zeros, empty strings or empty lists.

    Args:
        items: A tensor, RaggedTensor, records, masked values, a union or another value whose
            components have its rows, of rank 1 or more.
        count: The number of zeros.
        size: The number of items and zeros, if it is static.
        at: The path of the items, for errors.

    Raises:
        UnsupportedTypeError: If the components of a value do not have its rows (also a TypeError).
    """
    if isinstance(items, (tf.Tensor, BaseResourceVariable)):
        items = tf.convert_to_tensor(items)
        shape: Any = [count, *items.shape[1:]]
        if None in shape or not isinstance(count, int):
            shape = tf.concat([[tf.cast(count, tf.int32)], tf.shape(items)[1:]], 0)
        # No `tf.pad`: a GPU has no kernel for int64, and would copy them to the host and back.
        result = tf.concat([items, tf.zeros(shape, items.dtype)], 0)
        result.set_shape([size, *items.shape[1:]])
        return result

    def more(part: FieldValue, name: str = "") -> FieldValue:
        return with_zeros(part, count, size, at / name if name else at)

    splits: Any = getattr(items, "row_splits", None)
    if splits is not None:
        splits = tf.concat([splits, tf.fill([count], splits[-1])], 0)
        splits.set_shape([None if size is None else size + 1])
        lists = cut(items.values, splits, at)
        return lists._with_dims(items._dims) if isinstance(items, RecordsBase) else lists
    if isinstance(items, RecordsBase):
        records: Any = items
        return records._map_parts(more)
    if is_union(items):
        first, *_ = items.names
        codes, variants = more(items.codes), dict(items.variants)
        if not isinstance(codes, tf.RaggedTensor):  # else, empty lists are after the others
            variants[first] = with_zeros(variants[first], count)
        return items._of_parts(codes, variants, items.names)
    spec = spec_of_parts(items, at)
    result: Any = any_length(spec) if size is None else stacked(unstacked(spec), size)
    return result.from_components(tf.nest.map_structure(more, spec.to_components(items)))
