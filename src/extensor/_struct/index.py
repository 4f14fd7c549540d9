"""Indexing: fields by name, records by position."""

# This file calls methods of records that are private to this package.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor import _tf
from extensor._memory import array_over
from extensor._path import Path
from extensor._protocol.box import box, unbox
from extensor._protocol.box_ragged import take as take_box
from extensor._struct import masked
from extensor._struct.parts import map_parts
from extensor._struct.records import Records
from extensor._struct.row_splits import cut
from extensor._struct.spec import no_such_field, resolve
from extensor._tf import BaseResourceVariable, CompositeTensor, stacked, unstacked
from extensor.errors import DTypeError, RowError, UnsupportedTypeError

ALL = slice(None)
_GATHERED = (tf.RaggedTensor, BaseResourceVariable)  # composites that tf.gather itself takes


def select(records: Records, key: Any) -> Any:
    """Returns `records[key]`.

    A key may mix names (str, Path) and positions (int, slice). Selecting a field and selecting
    records commute. So this resolves all names first, which runs no op, and then applies the
    positions once.
    """
    value: Any = records
    at = Path()
    positions: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, (str, Path)):
            inner = masked.records_in(value)
            if inner is None:
                raise no_such_field(at / str(part), ())
            positions = list(_expanded(tuple(positions), inner.rank, at))
            names = resolve(part, inner.field_names())
            try:
                value = _at(value, names, at)
            except UnsupportedTypeError:  # values of this type cannot be cut into rows
                if not positions or value is not inner:
                    raise
                row = take(value.with_only(names), tuple(positions), at)
                value, positions = row.field_value(names), []
            at = Path(*at, *names)
        else:
            positions.append(_position(part, at))
    return take(value, tuple(positions), at) if positions else value


def _at(value: Any, names: tuple[str, ...], at: Path) -> Any:
    for name in names:
        at = at / name
        value = masked.field(value, name, at)
    return value


def _position(part: Any, at: Path) -> Any:
    if part is Ellipsis or isinstance(part, slice):
        return part
    if isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_)):
        return int(part)
    tensor: Any = part
    if isinstance(tensor, tf.Tensor) and tensor.shape.rank == 0 and tensor.dtype.is_integer:
        return tensor
    raise DTypeError(
        path=at or "index",
        expected="a field name, an int, a slice or ...",
        received=type(part).__name__,
        mend="Select several fields with with_only, and several records with tf.gather or "
        "tf.boolean_mask on the fields.",
    )


def _too_many(at: Path, used: int, rank: int) -> RowError:
    return RowError(
        path=at or "index",
        expected=f"at most {rank} position(s), one for each dimension of the records",
        received=f"{used} positions",
        mend="Only positions after a field name index the field's own dimensions.",
    )


def take(value: Any, positions: tuple[Any, ...], at: Path) -> Any:
    """Returns the part of a field's value, or of records, at the given positions.

    Args:
        value: Any value of a field.
        positions: Ints, slices and `...`, along its first dimensions.
        at: The path of the value, for errors.

    Raises:
        RowError: If a position is out of range (also an IndexError).
    """
    shape = getattr(value, "shape", None)
    rank = None if shape is None else shape.rank if hasattr(shape, "rank") else len(shape)
    if rank is not None:
        positions = _expanded(positions, rank, at)
        if all(isinstance(p, slice) and p == ALL for p in positions):
            return value
        for p, size in zip(positions, shape or (), strict=False):
            if isinstance(p, int) and size is not None and not -size <= p < size:
                raise RowError(
                    path=at or "index",
                    expected=f"a position from {-size} to {size - 1}"
                    if size
                    else "a dimension with at least one element",
                    received=f"position {p}",
                    mend=f"This dimension has size {size}.",
                )
    if isinstance(value, Records):
        return value._taken(positions, at)
    if hasattr(value, "row_splits") and not isinstance(positions[0], slice):
        return take_row(value, positions, at)
    if _is_without_indexing(value):
        return _take_boxed(value, positions)
    return value[positions]


def _is_without_indexing(value: Any) -> bool:
    return isinstance(value, CompositeTensor) and not hasattr(type(value), "__getitem__")


def _take_boxed(value: Any, positions: tuple[Any, ...]) -> Any:
    """Returns `value[positions]` by indexing its boxes, for a type without `__getitem__`."""
    spec: Any = tf.type_spec_from_value(value)
    boxes = [take_box(b, positions) for b in box(spec, value, len(positions))]
    for _ in positions:
        spec = _tf.unstacked(spec)
    for _ in range(sum(isinstance(p, slice) for p in positions)):
        spec = _tf.stacked(spec, None)
    return unbox(spec, boxes)


def _expanded(positions: tuple[Any, ...], rank: int, at: Path) -> tuple[Any, ...]:
    """Returns the positions with `...` replaced by full slices."""
    dots = [i for i, p in enumerate(positions) if p is Ellipsis]
    used = len(positions) - len(dots)
    if used > rank or len(dots) > 1:
        raise _too_many(at, len(positions), rank)
    if dots:
        filled = (ALL,) * (rank - used)
        positions = positions[: dots[0]] + filled + positions[dots[0] + 1 :]
    return positions


def take_row(ragged: Any, positions: tuple[Any, ...], at: Path) -> Any:
    """Returns one row, or part of one row, of ragged records or of a ragged tensor.

    Args:
        ragged: A value with `values` and `row_splits`.
        positions: The index of the row, and positions within the row.
        at: The path of the value, for errors.
    """
    first, rest = positions[0], positions[1:]
    splits = ragged.row_splits
    if isinstance(first, int):
        if isinstance(splits, tf.Tensor) and hasattr(splits, "numpy"):
            splits = array_over(splits)  # indexing in NumPy runs no op
        before = first - 1 if first < 0 else first
        start, end = splits[before], splits[before + 1]
    else:  # a tensor, which may be negative
        start, end = splits[:-1][first], splits[1:][first]
    row = take(ragged.values, (slice(start, end),), at)
    return take(row, rest, at) if rest else row


def numbered(records: Any) -> tf.RaggedTensor:
    """Returns the index of each value of ragged records, cut into the same rows."""
    splits = records.row_splits
    numbers = tf.range(splits[-1], dtype=splits.dtype)
    return tf.RaggedTensor.from_row_splits(numbers, splits, validate=False)


def gather(value: Any, numbers: Any) -> Any:
    """Returns the elements of `value` at the given indices of its first dimension.

    Args:
        value: A tensor, RaggedTensor, StructuredTensor or other value that stacks.
        numbers: An integer tensor, or a RaggedTensor of integers; the result is cut into the same
            rows.
    """
    if isinstance(value, Records):
        return value._gathered(numbers)
    if isinstance(value, CompositeTensor) and not isinstance(value, _GATHERED):
        if isinstance(numbers, tf.RaggedTensor):
            return cut(gather(value, numbers.values), numbers.row_splits, Path())
        spec: Any = tf.type_spec_from_value(value)
        result = unstacked(spec)
        for size in reversed(numbers.shape.as_list()):
            result = stacked(result, size)
        by_part = map_parts(value, lambda part: gather(part, numbers), result)
        if by_part is not None:
            return by_part
        return unbox(result, [tf.gather(b, numbers) for b in box(spec, value, 1)])
    return tf.gather(value, numbers)
