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
    fix = "Entry i has values[i] and columns[i]; row_splits contains the limits of the rows."
    return StructureError(f"CSRSparseTensor.{name}", f"shape {expected}", f"{received}", fix)


def sizes(dense_shape: tf.Tensor) -> None:
    """Raises StructureError if there are no sizes, or a size is negative."""
    known = tf.get_static_value(dense_shape)
    if not dense_shape.shape[0] or (known is not None and known.min() < 0):
        expected = "a known number of sizes, at least 1, all >= 0"
        received = f"shape {dense_shape.shape}" if known is None else f"{known.tolist()}"
        fix = "Give the size of each dimension; the last one is the number of columns."
        raise StructureError("CSRSparseTensor.dense_shape", expected, received, fix)


def shapes(tensor: CSRSparseTensor) -> None:
    """Raises an error if static shapes or dtypes do not match."""
    splits, columns, values = tensor.row_splits, tensor.columns, tensor.values
    if splits.dtype != columns.dtype:
        expected = f"{splits.dtype.name}, the dtype of row_splits"
        fix = "Cast one of the two tensors."
        raise DTypeError("CSRSparseTensor.columns", expected, columns.dtype.name, fix)
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
        expected = f"columns from 0 to {last - 1}" if last else "0 entries, for 0 columns"
        received = f"column {columns[wrong]} in entry {wrong}"
        fix = "dense_shape[-1] is the number of columns."
        raise StructureError("CSRSparseTensor.columns", expected, received, fix)
    ascends = columns[1:] > columns[:-1]
    begins = splits[1:-1]
    ascends[begins[(begins > 0) & (begins < len(columns))] - 1] = True
    if not ascends.all():
        wrong = int(np.argmin(ascends)) + 1
        expected = "ascending columns without duplicates in each row"
        received = f"{columns[wrong - 1]} before {columns[wrong]} in one row, at entry {wrong}"
        fix = "Sort each row by column and add up duplicates, as SciPy's sum_duplicates() does."
        raise StructureError("CSRSparseTensor.columns", expected, received, fix)


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
