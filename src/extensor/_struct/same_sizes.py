"""Fields of a graph whose sizes are compared with those of the records when the graph runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from extensor._authoring.comparison import SizeComparison, equal_splits, with_checks
from extensor._authoring.extents import extents, known_sizes, learn, size_at
from extensor._authoring.graph_sizes import Size
from extensor._path import Path
from extensor._protocol.run_time_check import LATER, assert_op
from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._protocol.symbolic import is_symbolic
from extensor._struct.common_shape import (
    length_text,
    other_rows,
    other_sizes,
    row_splits_at,
    rows_of_many_lengths,
)
from extensor._struct.field import shape_of
from extensor._struct.parts import row_parts
from extensor._struct.records import RecordsBase
from extensor._struct.row_splits import row_lengths_or_zero
from extensor._tf import BatchableTypeSpec
from extensor._typing import FieldValue
from extensor.errors import StructureError


class _Reference(NamedTuple):
    """The size of a dimension of records: the field that it comes from, or a number."""

    sizes: set[Size]
    name: str | None
    value: Any
    axis: int

    def now(self) -> int | tf.Tensor:
        """Returns the size in a run of the graph."""
        return self.value if isinstance(self.value, int) else _size(self.value, self.axis)


def with_size_checks(
    shape: tf.TensorShape,
    kept: Mapping[str, Any],
    added: Mapping[str, Any],
    at: Path,
    comparison: SizeComparison,
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
    if any(others for _, _, others, _ in _differing(shape, old, news, comparison)):
        comparison.use_records()
    references: dict[int, _Reference] = {}
    for name, value, others, references in _differing(shape, old, news, comparison):
        if others:
            key = tuple((axis, *sorted(map(str, sizes))) for axis, sizes in others.items())
            if not all(others.values()):
                key = (*key, name)  # nothing is known of a size
            checks[name] += comparison.ops(
                (at.names, key),
                lambda name=name, value=value, axes=list(others), before=references: _check_sizes(
                    at / name, value, axes, shape, before, bool(kept)
                ),
            )
    for axis in range(max(comparison.known, 1), rank):
        _compare_rows(axis, shape, old, news, references, at, comparison, checks)
    return {name: with_checks(checks[name], value) for name, value in added.items()}


def with_count_check(
    value: FieldValue, like: FieldValue, error: StructureError, comparison: SizeComparison
) -> FieldValue:
    """Returns a value, which fails in a run where it has other than the rows of another value.

    Args:
        value: The value.
        like: The other value.
        error: The error, with a `LATER` for each number of rows: those of `like`, and its own.
        comparison: What is known.
    """
    for each in range(2):
        if _sizes(value, 0, comparison) & _sizes(like, 0, comparison):
            return value
        if each == 0:
            comparison.use_records()
    sizes = _size(like, 0), _size(value, 0)
    return with_checks(assert_op(tf.equal(*sizes), error, sizes), value)


def _differing(
    shape: tf.TensorShape,
    old: list[tuple[str, Any]],
    news: Mapping[str, Any],
    comparison: SizeComparison,
) -> Iterator[tuple[str, Any, dict[int, set[Size]], dict[int, _Reference]]]:
    """Yields each new field, its sizes that may differ by axis, and those of the fields before."""
    references: dict[int, _Reference] = {}
    for axis in range(comparison.known, shape.rank):
        found = _reference(axis, shape, old, comparison)
        if found is not None:
            references[axis] = found
    for name, value in news.items():
        others: dict[int, set[Size]] = {}
        for axis in range(comparison.known, shape.rank):
            if row_splits_at(value, axis) is not None:
                continue
            sizes, reference = _sizes(value, axis, comparison), references.get(axis)
            if reference is None:
                references[axis] = _Reference(sizes, name, value, axis)
            elif not sizes & reference.sizes:
                others[axis] = sizes
        yield name, value, others, references


def _is_comparable(value: FieldValue) -> bool:
    if isinstance(value, (tf.Tensor, tf.RaggedTensor, RecordsBase)):
        return True
    if is_symbolic(value):
        return False
    kinds: Any = (BatchableTypeSpec, tf.SparseTensorSpec)
    if shape_of(value).rank is None:
        kinds = StackableTypeSpec
    return bool(row_parts(value)) or isinstance(tf.type_spec_from_value(value), kinds)


def _reference(
    axis: int, shape: tf.TensorShape, old: list[tuple[str, Any]], comparison: SizeComparison
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
            learn(value, axis, min(found.sizes, key=str), comparison.sizes)
    return found or rows


def _sizes(value: FieldValue, axis: int, comparison: SizeComparison) -> set[Size]:
    """Returns the size of an axis of a value, as each of its tensors says it."""
    shape = shape_of(value)
    if shape.rank is not None and shape.rank > axis and shape[axis] is not None:
        return {shape[axis]}
    return known_sizes(value, axis, comparison.sizes)


def _size(value: FieldValue, axis: int) -> tf.Tensor:
    """Returns the size of an axis of a value, when the graph runs."""
    splits = row_splits_at(value, axis)
    if splits is not None:  # rows of one length, or none
        return tf.cast(tf.reduce_max(row_lengths_or_zero(splits)), tf.int32)
    if isinstance(value, tf.SparseTensor):
        return tf.cast(value.dense_shape[axis], tf.int32)
    return size_at(value, axis)


def _check_sizes(
    path: Path,
    value: FieldValue,
    axes: list[int],
    shape: tf.TensorShape,
    references: dict[int, _Reference],
    is_update: bool,
) -> list[Any]:
    """Returns the op that compares the sizes of a field with those of the records."""
    pairs = {axis: (_size(value, axis), references[axis].now()) for axis in axes}
    same = [_same(*pair, references[axis].value, axis) for axis, pair in pairs.items()]
    first = references[axes[0]]
    expected = _now(shape, references)
    own = shape_of(value)
    received: list[Any] = [None] * shape.rank if own.rank is None else list(own)
    for axis, size in enumerate(received):
        if size is None and row_splits_at(value, axis) is None:
            received[axis] = pairs[axis][0] if axis in pairs else _size_or_none(value, axis)
    error = other_sizes(
        path,
        _text(expected)
        + (
            ", the shape of the records"
            if is_update or first.name is None
            else f", as that of {Path(first.name)}"
        ),
        _text(received),
    )
    numbers = [size for size in (*expected, *received) if isinstance(size, tf.Tensor)]
    return assert_op(same[0] if len(same) == 1 else tf.reduce_all(same), error, numbers)


def _now(shape: tf.TensorShape, references: dict[int, _Reference]) -> list[Any]:
    """Returns the sizes of records in a run of the graph; None where rows may differ in length."""
    return [references[a].now() if a in references else size for a, size in enumerate(shape)]


def _same(
    size: int | tf.Tensor, expected: int | tf.Tensor, of: int | FieldValue, axis: int
) -> tf.Tensor:
    """Returns whether a size is that of a dimension of another value; no rows have any length."""
    splits = None if isinstance(of, int) else row_splits_at(of, axis)
    same = tf.equal(size, expected)
    return same if splits is None else tf.logical_or(same, tf.size(splits) < 2)


def _size_or_none(value: FieldValue, axis: int) -> tf.Tensor | None:
    return _size(value, axis) if extents(value, axis) else None


def _text(sizes: list[Any]) -> str:
    """Returns the text of a shape, with a place for each size that is a tensor."""
    texts = [LATER if isinstance(size, tf.Tensor) else str(size) for size in sizes]
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"


def _compare_rows(
    axis: int,
    shape: tf.TensorShape,
    old: list[tuple[str, Any]],
    news: Mapping[str, Any],
    references: dict[int, _Reference],
    at: Path,
    comparison: SizeComparison,
    checks: dict[str, list[Any]],
) -> None:
    """Compares the lengths of rows of ragged fields along an axis of dense records.

    Args:
        axis: The axis.
        shape: The shape of the records.
        old: Fields that are not compared.
        news: Fields to compare.
        references: The sizes of axes that the shape or a field that is not ragged has.
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
        first = None if axis in references else next(iter(seen.items()), None)
        checks[name] += comparison.ops(
            (at.names, axis, like),
            lambda path=at / name, splits=splits, first=first: _check_rows(
                path, splits, axis, shape, references, first
            ),
        )
        seen.setdefault(like, splits)


def _check_rows(
    path: Path,
    splits: tf.Tensor,
    axis: int,
    shape: tf.TensorShape,
    references: dict[int, _Reference],
    other: tuple[str, Any] | None,
) -> list[Any]:
    """Returns the op that compares the lengths of the rows of a field.

    They are compared with a size, or else with the rows of another field, or else with each other.
    """
    if other is not None:
        wrong = other_rows(path, f"those of {Path(other[0])}", LATER, LATER)
        # Another number of rows is an error of the dimension outside.
        return equal_splits(splits, other[1], list, (wrong, lambda row, length, _: [row, length]))
    lengths, reference = splits[1:] - splits[:-1], references.get(axis)
    if reference is not None:
        size = tf.cast(reference.now(), splits.dtype)
        known = reference.value if isinstance(reference.value, int) else LATER
        wrong = other_rows(path, length_text(reference.name, shape, known), LATER, LATER)
        numbers = [size] * (known == LATER)
    else:
        size, sizes = lengths[:1], _now(shape, references)
        wrong = rows_of_many_lengths(path, _text(sizes), LATER, LATER, LATER)
        numbers = [size for size in sizes if isinstance(size, tf.Tensor)]
    differs = lengths != size

    def received() -> list[Any]:
        row = tf.argmax(tf.cast(differs, tf.int32))
        first = [] if reference is not None else [lengths[0]]
        return [*numbers, *first, row, lengths[row]]

    return assert_op(tf.reduce_all(tf.logical_not(differs)), wrong, received)
