"""Whether the parts of a CSRSparseTensor fit each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor.authoring import assertions, check_row_splits, row_ids
from extensor.errors import DTypeError, StructureError


def apart(name: str, expected: Any, received: Any) -> StructureError:
    """Returns the error for a part of another shape than the others ask for."""
    return StructureError(
        path=f"CSRSparseTensor.{name}",
        expected=f"shape {expected}",
        received=f"{received}",
        mend="Entry i is values[i] in column columns[i]; the rows are cut by row_splits.",
    )


def sizes(dense_shape: tf.Tensor) -> None:
    """Raises StructureError unless there are sizes, none negative."""
    known = tf.get_static_value(dense_shape)
    if not dense_shape.shape[0] or (known is not None and known.min() < 0):
        raise StructureError(
            path="CSRSparseTensor.dense_shape",
            expected="one size or more, their number known, none negative",
            received=f"shape {dense_shape.shape}" if known is None else f"{known.tolist()}",
            mend="Give the size of each dimension; the columns are the last.",
        )


def shapes(tensor: Any) -> None:
    """Raises an error unless the shapes and dtypes fit, as far as they are known statically."""
    splits, columns, values = tensor.row_splits, tensor.columns, tensor.values
    if splits.dtype != columns.dtype:
        raise DTypeError(
            path="CSRSparseTensor.columns",
            expected=f"{splits.dtype.name}, the dtype of row_splits",
            received=columns.dtype.name,
            mend="Cast one of the two.",
        )
    if not values.shape.is_compatible_with(columns.shape) or values.shape.rank == 0:
        raise apart("values", columns.shape, values.shape)
    count = tensor.shape[:-1].num_elements()
    expected = tf.TensorShape([None if count is None else count + 1])
    if not splits.shape.is_compatible_with(expected):
        raise apart("row_splits", f"{expected}, for {count} rows", splits.shape)


def numbers(splits: Any, columns: Any, shape: tf.TensorShape) -> None:
    """Raises StructureError unless the columns are those of sorted rows."""
    check_row_splits(splits, len(columns), "CSRSparseTensor.row_splits")
    if len(columns) == 0:
        return
    last: Any = shape[-1]
    if columns.min() < 0 or columns.max() >= last:
        wrong = np.flatnonzero((columns < 0) | (columns >= last))[0]
        raise StructureError(
            path="CSRSparseTensor.columns",
            expected=f"columns from 0 to {last - 1}" if last else "no entries, for no columns",
            received=f"{columns[wrong]}, of entry {wrong}",
            mend="dense_shape[-1] is the number of columns.",
        )
    ascends = columns[1:] > columns[:-1]
    begins = splits[1:-1]
    ascends[begins[(begins > 0) & (begins < len(columns))] - 1] = True
    if not ascends.all():
        wrong = int(np.argmin(ascends)) + 1
        raise StructureError(
            path="CSRSparseTensor.columns",
            expected="ascending columns in each row, none twice",
            received=f"{columns[wrong - 1]} before {columns[wrong]} in one row, at entry {wrong}",
            mend="Sort each row by column and add up what stands in one place; SciPy does so with "
            "sum_duplicates().",
        )


def in_graph(tensor: Any) -> list[Any]:
    """Returns what `numbers` checks, as assertions in a graph."""
    splits, columns = tensor.row_splits, tensor.columns
    count, last = tf.size(columns, splits.dtype), tensor.dense_shape[-1]
    lengths = splits[1:] - splits[:-1]
    ids = row_ids(tf.clip_by_value(splits, 0, count), columns)
    ascends = (columns[1:] > columns[:-1]) | (ids[1:] > ids[:-1])
    ends = tf.reduce_prod(tensor.dense_shape[:-1]) + 1
    checks = [
        (tf.equal(tf.size(splits, tf.int64), ends), "row_splits must be one more than rows"),
        (tf.equal(splits[0], 0) & tf.equal(splits[-1], count), "row_splits must end at the ends"),
        (tf.reduce_all(lengths >= 0), "row_splits must not decrease"),
        (
            tf.reduce_all((columns >= 0) & (tf.cast(columns, tf.int64) < last)),
            "columns must be below dense_shape[-1]",
        ),
        (tf.reduce_all(ascends), "columns must ascend in each row, none twice"),
    ]
    return assertions("CSRSparseTensor", checks)
