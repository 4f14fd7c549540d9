"""Indexing: fields by name, records by position."""

# The methods of records that are called here are private to this room.
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
from extensor._struct.records import Records
from extensor._struct.spec import no_such_field, resolve
from extensor._tf import BaseResourceVariable, CompositeTensor, stacked, unstacked
from extensor.errors import DTypeError, RowError, UnsupportedTypeError

ALL = slice(None)
_GATHERED = (tf.RaggedTensor, BaseResourceVariable)  # composites that tf.gather itself takes


def select(records: Records, key: Any) -> Any:
    """Returns what `records[key]` stands for.

    Names and positions are told apart by type and may alternate. Taking a field commutes with
    taking records, so all names are followed first, which runs no op, and the positions are
    applied once, to what they lead to.
    """
    value: Any = records
    at = Path()
    positions: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, (str, Path)):
            if not _are_records(value):
                raise no_such_field(at / str(part), ())
            positions = list(_spelled_out(tuple(positions), value.rank, at))
            names = resolve(part, value.field_names())
            try:
                value = value.field_value(names)
            except UnsupportedTypeError:  # no rows can be cut of values of this type
                if not positions:
                    raise
                row = take(value.with_only(names), tuple(positions), at)
                value, positions = row.field_value(names), []
            at = Path(*at, *names)
        else:
            positions.append(_position(part, at))
    return take(value, tuple(positions), at) if positions else value


def _are_records(value: Any) -> bool:
    return isinstance(value, Records)


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
        received=f"{type(part).__name__}",
        mend="Pick many fields with with_only, and many records with tf.gather or "
        "tf.boolean_mask on the fields.",
    )


def _too_many(at: Path, used: int, rank: int) -> RowError:
    return RowError(
        path=at or "index",
        expected=f"at most {rank} position(s), one for each dimension of the records",
        received=f"{used}",
        mend="Positions that follow a field name may go on into the field's own dimensions.",
    )


def take(value: Any, positions: tuple[Any, ...], at: Path) -> Any:
    """Returns the part of a field's value, or of records, that is at some positions.

    Args:
        value: Any value of a field.
        positions: Ints, slices and `...`, along its first dimensions.
        at: What to call the value in errors.

    Raises:
        RowError: If there is no such position (also an IndexError).
    """
    shape = getattr(value, "shape", None)
    rank = None if shape is None else shape.rank if hasattr(shape, "rank") else len(shape)
    if rank is not None:
        positions = _spelled_out(positions, rank, at)
        if all(isinstance(p, slice) and p == ALL for p in positions):
            return value
        for p, size in zip(positions, shape or (), strict=False):
            if isinstance(p, int) and size is not None and not -size <= p < size:
                raise RowError(
                    path=at or "index",
                    expected=f"a position from {-size} to {size - 1}" if size else "no position",
                    received=str(p),
                    mend=f"There are {size} along this dimension.",
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
    """Indexes the boxes of a value whose type does not say what indexing it means."""
    spec: Any = tf.type_spec_from_value(value)
    boxes = [take_box(b, positions) for b in box(spec, value, len(positions))]
    for _ in positions:
        spec = _tf.unstacked(spec)
    for _ in range(sum(isinstance(p, slice) for p in positions)):
        spec = _tf.stacked(spec, None)
    return unbox(spec, boxes)


def _spelled_out(positions: tuple[Any, ...], rank: int, at: Path) -> tuple[Any, ...]:
    """Returns one position for each of the first dimensions, with `...` written out."""
    dots = [i for i, p in enumerate(positions) if p is Ellipsis]
    used = len(positions) - len(dots)
    if used > rank or len(dots) > 1:
        raise _too_many(at, len(positions), rank)
    if dots:
        filled = (ALL,) * (rank - used)
        positions = positions[: dots[0]] + filled + positions[dots[0] + 1 :]
    return positions


def take_row(ragged: Any, positions: tuple[Any, ...], at: Path) -> Any:
    """Indexes one row of ragged records, or of a ragged tensor.

    Args:
        ragged: Has `values` and `row_splits`.
        positions: The number of the row, and positions within it.
        at: What to call the value in errors.
    """
    first, rest = positions[0], positions[1:]
    splits = ragged.row_splits
    if isinstance(first, int):
        if isinstance(splits, tf.Tensor) and hasattr(splits, "numpy"):
            splits = array_over(splits)  # numbers that are there already take no op
        before = first - 1 if first < 0 else first
        start, end = splits[before], splits[before + 1]
    else:  # a tensor, of either sign
        start, end = splits[:-1][first], splits[1:][first]
    row = take(ragged.values, (slice(start, end),), at)
    return take(row, rest, at) if rest else row


def numbered(records: Any) -> tf.RaggedTensor:
    """Returns the positions of the values of ragged records, cut into the same rows."""
    splits = records.row_splits
    numbers = tf.range(splits[-1], dtype=splits.dtype)
    return tf.RaggedTensor.from_row_splits(numbers, splits, validate=False)


def gather(value: Any, numbers: Any) -> Any:
    """Returns the elements of `value` that stand at the given positions of its first dimension.

    Args:
        value: A tensor, RaggedTensor, StructuredTensor or other value that stacks.
        numbers: An integer tensor, or a RaggedTensor of them, which cuts the result likewise.
    """
    if isinstance(value, Records):
        return value._gathered(numbers)
    if isinstance(value, CompositeTensor) and not isinstance(value, _GATHERED):
        spec: Any = tf.type_spec_from_value(value)
        boxes = [tf.gather(b, numbers) for b in box(spec, value, 1)]
        return unbox(stacked(unstacked(spec), None), boxes)
    return tf.gather(value, numbers)
