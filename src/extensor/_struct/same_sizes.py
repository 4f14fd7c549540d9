"""Fields of a graph whose sizes are compared with those of the records when the graph runs."""

# This file calls methods of records that are private to this package.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from extensor._authoring.graph_sizes import Size, plus
from extensor._authoring.rows import uncut_rows
from extensor._path import Path
from extensor._protocol.run_time_check import LATER, asserted
from extensor._protocol.symbolic import is_symbolic
from extensor._struct.common_shape import (
    length_of,
    other_rows,
    other_sizes,
    row_splits_at,
    rows_of_many_lengths,
)
from extensor._struct.comparison import Comparison, after, equal_splits
from extensor._struct.field import shape_of
from extensor._struct.parts import row_parts
from extensor._struct.records import Records
from extensor._struct.row_splits import outer_sizes, row_lengths_or_zero
from extensor._tf import BatchableTypeSpec


class _Reference(NamedTuple):
    """The size of a dimension of records: the field that it comes from, or a number."""

    sizes: set[Size]
    name: str | None
    value: Any
    axis: int

    def now(self) -> Any:
        """Returns the size in a run of the graph."""
        return self.value if isinstance(self.value, int) else _size(self.value, self.axis)


def compared(
    shape: tf.TensorShape,
    kept: Mapping[str, Any],
    added: Mapping[str, Any],
    at: Path,
    comparison: Comparison,
) -> dict[str, Any]:
    """Returns the added fields of records, which fail in a run where their sizes differ.

    Args:
        shape: The shape of the records, without what the added fields say of it.
        kept: Fields that the records have already.
        added: The other fields.
        at: The path of the records.
        comparison: What is known, and which fields to compare.
    """
    rank = shape.rank
    checks: dict[str, list[Any]] = {name: [] for name in added}
    news = {
        name: value
        for name, value in added.items()
        if comparison.has(name) and _is_comparable(value)
    }
    trusted = [(name, value) for name, value in added.items() if name not in news]
    old = [(n, v) for n, v in (*kept.items(), *trusted) if _is_comparable(v)]
    references = [
        _reference(axis, shape, old, comparison) if axis >= comparison.known else None
        for axis in range(rank)
    ]
    for name, value in news.items():
        others: dict[int, set[Size]] = {}  # the axes whose sizes may differ
        for axis in range(comparison.known, rank):
            if row_splits_at(value, axis) is not None:
                continue
            sizes, reference = _sizes(value, axis, comparison), references[axis]
            if reference is None:
                references[axis] = _Reference(sizes, name, value, axis)
            elif not sizes & reference.sizes:
                others[axis] = sizes
        if others:
            key = tuple((axis, *sorted(map(str, sizes))) for axis, sizes in others.items())
            if not all(others.values()):
                key = (*key, name)  # nothing is known of a size
            checks[name] += comparison.once(
                (at.names, key),
                lambda name=name, value=value, axes=list(others): _check_sizes(
                    at / name, value, axes, shape, references, bool(kept)
                ),
            )
    for axis in range(max(comparison.known, 1), rank):
        _compare_rows(axis, shape, old, news, references[axis], at, comparison, checks)
    return {name: after(checks[name], value) for name, value in added.items()}


def _is_comparable(value: Any) -> bool:
    if isinstance(value, (tf.Tensor, tf.RaggedTensor, Records)):
        return True
    if is_symbolic(value) or shape_of(value).rank is None:
        return False
    return bool(row_parts(value)) or isinstance(
        tf.type_spec_from_value(value), (BatchableTypeSpec, tf.SparseTensorSpec)
    )


def _reference(
    axis: int, shape: tf.TensorShape, old: list[tuple[str, Any]], comparison: Comparison
) -> _Reference | None:
    found = rows = None
    if shape[axis] is not None:
        found = _Reference({shape[axis]}, None, shape[axis], axis)
    for name, value in old:
        if row_splits_at(value, axis) is not None:
            rows = rows or _Reference(set(), name, value, axis)
        elif found is None:
            found = _Reference(_sizes(value, axis, comparison), name, value, axis)
        elif found.sizes:
            size = min(found.sizes, key=str)
            for tensor, own, number in _extents(value, axis):
                comparison.sizes.learn(tensor, own, plus(size, -number))
    return found or rows


def _sizes(value: Any, axis: int, comparison: Comparison) -> set[Size]:
    """Returns the size of an axis of a value, as each of its tensors says it."""
    shape = shape_of(value)
    if shape.rank is not None and shape.rank > axis and shape[axis] is not None:
        return {shape[axis]}
    return {
        plus(comparison.sizes.of(tensor, own), number)
        for tensor, own, number in _extents(value, axis)
    }


def _extents(value: Any, axis: int) -> list[tuple[tf.Tensor, int, int]]:
    """Returns the tensors that have an axis of a value, their axis, and the difference in size."""
    if isinstance(value, tf.Tensor):
        is_less = value.shape.rank is not None and value.shape.rank <= axis  # a mask of rows
        return [] if is_less else [(value, axis, 0)]
    rows = uncut_rows(value)
    if rows is not None:
        return [(rows[1], 0, -1)] if axis == 0 else _extents(rows[0], axis - 1)
    parts = _fields(value) if isinstance(value, Records) else _composite_parts(value)
    return [each for part in parts for each in _extents(part, axis)]


def _fields(records: Any) -> list[Any]:
    return [*records._columns.values()] if records._rows is None else [records._rows]


def _composite_parts(value: Any) -> list[Any]:
    if is_symbolic(value) or not isinstance(tf.type_spec_from_value(value), BatchableTypeSpec):
        return []
    return row_parts(value) or []


def _size(value: Any, axis: int) -> tf.Tensor:
    """Returns the size of an axis of a value, when the graph runs."""
    splits = row_splits_at(value, axis)
    if splits is not None:  # rows of one length, or none
        return tf.cast(tf.reduce_max(row_lengths_or_zero(splits)), tf.int32)
    if isinstance(value, tf.SparseTensor):
        return tf.cast(value.dense_shape[axis], tf.int32)
    extents = _extents(value, axis)
    if not extents:
        return outer_sizes(value, axis + 1)[axis]
    tensor, own, number = extents[0]
    return tf.shape(tensor)[own] + number if number else tf.shape(tensor)[own]


def _check_sizes(
    path: Path,
    value: Any,
    axes: list[int],
    shape: tf.TensorShape,
    references: list[_Reference | None],
    is_update: bool,
) -> list[Any]:
    """Returns the op that compares the sizes of a field with those of the records."""
    pairs = {axis: (_size(value, axis), references[axis].now()) for axis in axes}
    same = [_same(*pair, references[axis].value, axis) for axis, pair in pairs.items()]
    first = references[axes[0]]
    of_records = is_update or first.name is None
    expected = [shape[a] if r is None else r.now() for a, r in enumerate(references)]
    received: list[Any] = list(shape_of(value)) if shape_of(value).rank is not None else []
    for axis, size in enumerate(received):
        if size is None and row_splits_at(value, axis) is None:
            received[axis] = pairs[axis][0] if axis in pairs else _size_or_none(value, axis)
    error = other_sizes(
        path,
        _text(expected)
        + (", the shape of the records" if of_records else f", as that of {Path(first.name)}"),
        _text(received) if received else "<unknown>",
    )
    numbers = [size for size in (*expected, *received) if isinstance(size, tf.Tensor)]
    return asserted(same[0] if len(same) == 1 else tf.reduce_all(same), error, numbers)


def _same(size: Any, expected: Any, of: Any, axis: int) -> Any:
    """Returns whether a size is that of a dimension of another value; no rows have any length."""
    splits = None if isinstance(of, int) else row_splits_at(of, axis)
    same = tf.equal(size, expected)
    return same if splits is None else tf.logical_or(same, tf.size(splits) < 2)


def _size_or_none(value: Any, axis: int) -> tf.Tensor | None:
    return _size(value, axis) if _extents(value, axis) else None


def _text(sizes: list[Any]) -> str:
    """Returns the text of a shape, with a place for each size that is a tensor."""
    texts = [LATER if isinstance(size, tf.Tensor) else str(size) for size in sizes]
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"


def _compare_rows(
    axis: int,
    shape: tf.TensorShape,
    old: list[tuple[str, Any]],
    news: Mapping[str, Any],
    reference: _Reference | None,
    at: Path,
    comparison: Comparison,
    checks: dict[str, list[Any]],
) -> None:
    """Compares the lengths of rows of ragged fields along an axis of dense records.

    Args:
        axis: The axis.
        shape: The shape of the records.
        old: Fields that are not compared.
        news: Fields to compare.
        reference: The size of the axis, if the shape or a field that is not ragged has one.
        at: The path of the records.
        comparison: What is known.
        checks: The ops that compare each field; those of this function are added.
    """
    known = [splits for _, v in old if (splits := row_splits_at(v, axis)) is not None]
    seen: dict[str, Any] = {}  # row splits by field
    for name, value in news.items():
        splits = row_splits_at(value, axis)
        if splits is None or any(comparison.same_rows(splits, other) for other in known):
            continue
        like = next((n for n, other in seen.items() if comparison.same_rows(splits, other)), name)
        first = None if reference else next(iter(seen.items()), None)
        checks[name] += comparison.once(
            (at.names, axis, like),
            lambda path=at / name, splits=splits, first=first: _check_rows(
                path, splits, axis, shape, reference, first
            ),
        )
        seen.setdefault(like, splits)


def _check_rows(
    path: Path,
    splits: Any,
    axis: int,
    shape: tf.TensorShape,
    reference: _Reference | None,
    other: tuple[str, Any] | None,
) -> list[Any]:
    """Returns the op that compares the lengths of the rows of a field.

    They are compared with a size, or else with the rows of another field, or else with each other.
    """
    if other is not None:
        wrong = other_rows(path, f"those of {Path(other[0])}", LATER, LATER)
        # Another number of rows is an error of the dimension outside.
        return equal_splits(splits, other[1], list, (wrong, lambda row, length, _: [row, length]))
    lengths = splits[1:] - splits[:-1]
    if reference is not None:
        size = tf.cast(reference.now(), splits.dtype)
        known = reference.value if isinstance(reference.value, int) else LATER
        wrong = other_rows(path, length_of(reference.name, shape, known), LATER, LATER)
        numbers = [size] * (known == LATER)
    else:
        size, numbers = lengths[:1], []
        wrong = rows_of_many_lengths(path, shape, LATER, LATER, LATER)
    differs = lengths != size

    def received() -> list[Any]:
        row = tf.argmax(tf.cast(differs, tf.int32))
        first = [] if reference is not None else [lengths[0]]
        return [*numbers, *first, row, lengths[row]]

    return asserted(tf.reduce_all(tf.logical_not(differs)), wrong, received)
