"""Row splits: validates them, cuts a field's values into rows, and undoes the cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from extensor._authoring.comparison import SizeComparison, equal_splits, with_checks
from extensor._authoring.component_check import integers
from extensor._authoring.extents import known_sizes, learn_from_records
from extensor._authoring.graph_sizes import GraphSizes
from extensor._authoring.rows import uncut_rows
from extensor._path import Path
from extensor._protocol.box import box
from extensor._protocol.row_splits import check_row_splits, first_difference
from extensor._protocol.run_time_check import LATER, assert_op
from extensor._protocol.symbolic import symbolic_rows
from extensor._struct.field import row_splits_dtypes, shape_of
from extensor._struct.parts import row_parts
from extensor._struct.records import RecordsBase
from extensor._tf import BaseResourceVariable, ragged_tensor
from extensor._typing import FieldValue
from extensor.errors import DTypeError, StructureError, UnsupportedTypeError

if TYPE_CHECKING:
    from extensor._struct.tensor import StructuredTensor


def checked_row_splits(row_splits: Any, values: StructuredTensor, validate: bool) -> tf.Tensor:
    """Returns row splits as a tensor. Validates them against `values` unless in a graph.

    Args:
        row_splits: A vector of integers.
        values: The StructuredTensor to cut.
        validate: Whether to add assertions when the tensors are part of a graph.

    Raises:
        StructureError: If the splits do not fit the values.
        DTypeError: If the splits are not int64 or int32, or if row splits inside the values have
            another dtype.
    """
    row_splits = integers(row_splits, "row_splits", rank=1)
    inner = row_splits_dtypes(values)
    if inner - {row_splits.dtype}:
        expected = (
            f"{next(iter(inner - {row_splits.dtype})).name}, the dtype of the row splits "
            "inside the values"
        )
        fix = "TensorFlow does not mix them: cast one, or read with row_splits_dtype=..."
        raise DTypeError("row_splits", expected, row_splits.dtype.name, fix)
    if row_splits.shape.rank is None:
        row_splits = tf.ensure_shape(row_splits, [None])
    known = tf.get_static_value(row_splits)
    if known is not None:
        check_row_splits(known, values.shape[0], "row_splits")
    elif validate and not _is_known_cut(values, row_splits):
        count = tf.cast(outer_sizes(values, 1)[0], row_splits.dtype)
        with tf.control_dependencies(check_row_splits(row_splits, count, "row_splits")):
            row_splits = tf.identity(row_splits)
    return row_splits


def _is_known_cut(values: StructuredTensor, row_splits: tf.Tensor) -> bool:
    """Returns whether row splits of a graph are those of other records with as many values."""
    sizes = GraphSizes()
    learn_from_records(sizes)
    return sizes.cuts(row_splits, known_sizes(values, 0, sizes))


def outer_sizes(value: FieldValue, rank: int) -> tf.Tensor:
    """Returns the first `rank` sizes of a value, uniform in them, as an int32 tensor."""
    if isinstance(value, RecordsBase):
        return value._outer_sizes(rank)
    if isinstance(value, (tf.Tensor, BaseResourceVariable)):
        return tf.shape(value)[:rank]
    if hasattr(value, "row_splits"):
        return ragged_sizes(value, rank)
    parts = [part for part in row_parts(value) or () if (shape_of(part).rank or 0) >= rank]
    if parts:
        return outer_sizes(parts[0], rank)
    return tf.shape(box(tf.type_spec_from_value(value), value, rank)[0])[:rank]


def first_sizes(value: FieldValue, rank: int) -> list[Any]:
    """Returns the first `rank` sizes of a value: ints, or scalar tensors where they are unknown."""
    sizes = list(shape_of(value)[:rank])
    if None not in sizes:
        return sizes
    found = tf.unstack(outer_sizes(value, rank), rank)
    return [found[i] if size is None else size for i, size in enumerate(sizes)]


def ragged_sizes(value: FieldValue, rank: int) -> tf.Tensor:
    """Returns the first `rank` sizes of a value that has `values` and `row_splits`."""
    splits = value.row_splits
    nrows = tf.shape(splits)[:1] - 1
    if rank == 1:
        return nrows
    longest = tf.reduce_max(row_lengths_or_zero(splits))
    inner = outer_sizes(value.values, rank - 1)[1:]
    return tf.concat([nrows, [tf.cast(longest, tf.int32)], inner], axis=0)


def row_lengths_or_zero(row_splits: tf.Tensor) -> tf.Tensor:
    """Returns a 0 followed by the lengths of the rows, so the maximum exists without rows too."""
    return tf.concat([row_splits[:1], row_splits[1:] - row_splits[:-1]], axis=0)


def cut(values: FieldValue, row_splits: tf.Tensor, at: object) -> FieldValue:
    """Returns a field's values cut into rows. Runs no op.

    Raises:
        UnsupportedTypeError: If values of this type cannot be cut (also a TypeError).
    """
    if isinstance(values, (tf.Tensor, tf.RaggedTensor, BaseResourceVariable)):
        return ragged_tensor(values, row_splits)
    rows = symbolic_rows(values, row_splits)
    if rows is not None:
        return rows
    if hasattr(type(values), "__tf_cut_rows__"):
        return values.__tf_cut_rows__(row_splits)
    expected = "a field of tensors, records or a type with __tf_cut_rows__, which is cut into rows"
    fix = "Read it before the cut: records.values.field_value(...), or define __tf_cut_rows__."
    raise UnsupportedTypeError(at, expected, type(values).__name__, fix)


def uncut(
    value: FieldValue, row_splits: tf.Tensor, at: Path, comparison: SizeComparison | None = None
) -> FieldValue:
    """Returns the `values` of a ragged value whose rows are those of a collection of records.

    Args:
        value: The ragged value.
        row_splits: The row splits of the records.
        at: The path of the value, for errors.
        comparison: What is known of the rows in a graph; None compares no rows there.

    Raises:
        StructureError: If the rows differ (also a ValueError). In a graph, running it raises an
            InvalidArgumentError instead.
    """
    rows = uncut_rows(value)
    if rows is None:
        received = type(value).__name__
        fix = "Cut it with tf.RaggedTensor.from_row_splits(values, records.row_splits)."
        raise StructureError(at, "a ragged value with the same rows as the records", received, fix)
    values, own = rows
    if own is row_splits:
        return values
    if own.dtype != row_splits.dtype or not tf.TensorShape(own.shape).is_compatible_with(
        row_splits.shape
    ):
        raise _other_splits(at, own, row_splits)
    if not (hasattr(own, "numpy") and hasattr(row_splits, "numpy")):
        if comparison is None or comparison.same_rows(own, row_splits):
            return values
        key = id(own), id(row_splits)
        return with_checks(comparison.ops(key, lambda: _compare_op(own, row_splits, at)), values)
    lengths, expected = np.diff(own.numpy()), np.diff(row_splits.numpy())
    row = first_difference(lengths, expected)
    if row is None:
        return values
    raise _other_splits(at, own, row_splits, _other_row(row, lengths[row], expected[row]))


def _compare_op(own: tf.Tensor, row_splits: tf.Tensor, at: Path) -> list[Any]:
    """Returns the op of a graph that compares the row splits of a value with those of records."""

    def count(splits: tf.Tensor) -> list[Any]:
        return [tf.size(splits) - 1] if splits.shape[0] is None else []

    other_row = _other_splits(at, own, row_splits, _other_row(LATER, LATER, LATER), LATER)
    return equal_splits(
        own,
        row_splits,
        lambda: assert_op(
            tf.equal(tf.size(own), tf.size(row_splits)),
            _other_splits(at, own, row_splits, None, LATER),
            [*count(row_splits), *count(own)],
        ),
        (other_row, lambda *numbers: [*count(row_splits), *numbers]),
    )


def _other_row(row: int | str, length: int | str, expected: int | str) -> str:
    return f"row {row} of length {length} instead of {expected}"


def _other_splits(
    at: Path,
    own: tf.Tensor,
    row_splits: tf.Tensor,
    received: str | None = None,
    count: str = "unknown number of",
) -> StructureError:
    """Returns the error for other row splits than those of the records.

    Args:
        at: The path of the value.
        own: The row splits of the value.
        row_splits: Those of the records.
        received: What was received. Default: other row splits.
        count: What to write for a number of rows that is not known while a function is traced.
    """
    rows, own_rows = (
        f"{count if splits.shape[0] is None else splits.shape[0] - 1} rows"
        for splits in (row_splits, own)
    )
    return StructureError(
        at,
        f"the row splits of the records ({rows}, {row_splits.dtype.name})",
        received or f"other row splits ({own_rows}, {own.dtype.name})",
        "Compute the value from a field of the same records, such as by tf.ragged.map_flat_values.",
    )
