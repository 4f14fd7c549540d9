"""Checks that the parts of a CSRSparseTensor match each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from extensor.authoring import assertions, check_row_splits, row_ids
from extensor.errors import DTypeError, StructureError

if TYPE_CHECKING:
    from extensor._types.csr.value import CSRSparseTensor

Array = np.ndarray[Any, Any]


def shape_error(name: str, expected: object, received: object) -> StructureError:
    """Returns the error for a part whose shape does not match the other parts."""
    return StructureError(
        f"CSRSparseTensor.{name}",
        f"shape {expected}",
        f"{received}",
        "Entry i has values[i] and columns[i]; row_splits contains the limits of the rows.",
    )


def sizes(dense_shape: tf.Tensor) -> None:
    """Raises StructureError if there are no sizes, or a size is negative."""
    known = tf.get_static_value(dense_shape)
    if not dense_shape.shape[0] or (known is not None and known.min() < 0):
        raise StructureError(
            "CSRSparseTensor.dense_shape",
            "a known number of sizes, at least 1, all >= 0",
            f"shape {dense_shape.shape}" if known is None else f"{known.tolist()}",
            "Give the size of each dimension; the last one is the number of columns.",
        )


def shapes(tensor: CSRSparseTensor) -> None:
    """Raises an error if static shapes or dtypes do not match."""
    splits, columns, values = tensor.row_splits, tensor.columns, tensor.values
    if splits.dtype != columns.dtype:
        raise DTypeError(
            "CSRSparseTensor.columns",
            f"{splits.dtype.name}, the dtype of row_splits",
            columns.dtype.name,
            "Cast one of the two tensors.",
        )
    if not values.shape.is_compatible_with(columns.shape) or values.shape.rank == 0:
        raise shape_error("values", columns.shape, values.shape)
    count = tensor.shape[:-1].num_elements()
    expected = tf.TensorShape([None if count is None else count + 1])
    if not splits.shape.is_compatible_with(expected):
        raise shape_error("row_splits", f"{expected}, for {count} rows", splits.shape)


def numbers(splits: Array, columns: Array, shape: tf.TensorShape) -> None:
    """Raises StructureError unless the columns of each row are valid and ascending."""
    check_row_splits(splits, len(columns), "CSRSparseTensor.row_splits")
    if len(columns) == 0:
        return
    last: Any = shape[-1]
    if columns.min() < 0 or columns.max() >= last:
        wrong = np.flatnonzero((columns < 0) | (columns >= last))[0]
        raise StructureError(
            "CSRSparseTensor.columns",
            f"columns from 0 to {last - 1}" if last else "0 entries, for 0 columns",
            f"column {columns[wrong]} in entry {wrong}",
            "dense_shape[-1] is the number of columns.",
        )
    ascends = columns[1:] > columns[:-1]
    begins = splits[1:-1]
    ascends[begins[(begins > 0) & (begins < len(columns))] - 1] = True
    if not ascends.all():
        wrong = int(np.argmin(ascends)) + 1
        raise StructureError(
            "CSRSparseTensor.columns",
            "ascending columns without duplicates in each row",
            f"{columns[wrong - 1]} before {columns[wrong]} in one row, at entry {wrong}",
            "Sort each row by column and add up duplicates, as SciPy's sum_duplicates() does.",
        )


def in_graph(tensor: CSRSparseTensor) -> list[Any]:
    """Returns the checks of `numbers` as assertions for a graph."""
    splits, columns = tensor.row_splits, tensor.columns
    count, last = tf.size(columns, splits.dtype), tensor.dense_shape[-1]
    ids = row_ids(tf.clip_by_value(splits, 0, count), columns)
    ascends = (columns[1:] > columns[:-1]) | (ids[1:] > ids[:-1])
    ends = tf.reduce_prod(tensor.dense_shape[:-1]) + 1
    checks = [
        (
            tf.equal(tf.size(splits, tf.int64), ends),
            "row_splits must have one element more than rows",
        ),
        (
            tf.reduce_all((columns >= 0) & (tf.cast(columns, tf.int64) < last)),
            "columns must be below dense_shape[-1]",
        ),
        (tf.reduce_all(ascends), "columns must ascend in each row, without duplicates"),
    ]
    own = check_row_splits(splits, count, "CSRSparseTensor.row_splits")
    return own + assertions("CSRSparseTensor", checks)
