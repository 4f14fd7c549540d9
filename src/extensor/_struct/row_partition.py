"""Row splits from other descriptions of rows: lengths, row ids, one length."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor._authoring.comparison import with_checks
from extensor._authoring.component_check import integers
from extensor._authoring.rows import row_splits_of
from extensor._count_text import count_text
from extensor._protocol.run_time_check import assert_op
from extensor._typing import TensorLike
from extensor.errors import StructureError


def splits_of_lengths(row_lengths: Any) -> np.ndarray[Any, Any] | tf.Tensor:
    """Returns the row splits of rows with the given lengths."""
    lengths = integers(row_lengths, "row_lengths", rank=1)
    known = tf.get_static_value(lengths)
    if known is None:
        return row_splits_of(lengths)
    if (known < 0).any():
        raise _wrong("row_lengths", "lengths that are not negative", str(known.min()))
    return np.concatenate([[0], np.cumsum(known)]).astype(known.dtype)


def splits_of_rowids(
    value_rowids: Any, nrows: int | tf.Tensor | None, validate: bool
) -> np.ndarray[Any, Any] | tf.Tensor:
    """Returns the row splits of values with the given row numbers, which do not decrease.

    Args:
        value_rowids: The number of the row of each value.
        nrows: The number of rows. Default: up to the row of the last value.
        validate: Whether a graph validates the row numbers.
    """
    wrong = _wrong("value_rowids", "row numbers that do not decrease, from 0", "others")
    rowids = integers(value_rowids, "value_rowids", rank=1)
    known, count = tf.get_static_value(rowids), tf.get_static_value(nrows)
    if known is None or (count is None and nrows is not None):
        if validate:
            before = tf.concat([tf.zeros([1], rowids.dtype), rowids[:-1]], 0)[: tf.size(rowids)]
            rowids = with_checks(assert_op(tf.reduce_all(rowids >= before), wrong), rowids)
        if nrows is None:
            nrows = tf.reduce_max(tf.concat([[-1], tf.cast(rowids, tf.int32)], 0)) + 1
        lengths = tf.math.bincount(
            tf.cast(rowids, tf.int32),
            minlength=tf.cast(nrows, tf.int32),
            maxlength=tf.cast(nrows, tf.int32),
            dtype=rowids.dtype,
        )
        return splits_of_lengths(lengths)
    if (np.diff(known) < 0).any() or (known < 0).any():
        raise wrong
    rows = int(known[-1]) + 1 if known.size else 0
    if count is None:
        count = rows
    if count < rows:
        raise _wrong(
            "value_rowids", f"row numbers below {count}, the number of rows", str(rows - 1)
        )
    return splits_of_lengths(np.bincount(known, minlength=count).astype(known.dtype))


def splits_of_length(
    length: TensorLike, nvals: int | tf.Tensor, nrows: int | tf.Tensor | None
) -> np.ndarray[Any, Any] | tf.Tensor:
    """Returns the row splits of rows with one length.

    Args:
        length: The length of each row.
        nvals: The number of values, an int or a tensor.
        nrows: The number of rows. It is needed if the length is 0.
    """
    if isinstance(length, int):
        if length < 0 or (length == 0 and nrows is None):
            raise _wrong(
                "uniform_row_length",
                "a length that is not negative; with length 0, nrows",
                f"length {length}",
            )
        if isinstance(nvals, int):
            count = nvals // length if nrows is None else int(nrows)
            if count * length != nvals:
                raise _wrong(
                    "uniform_row_length",
                    f"rows that hold all {nvals} values",
                    count_text(count, f"rows of length {length}"),
                )
            return np.arange(count + 1, dtype=np.int64) * length
    if nrows is None:
        nrows = tf.cast(nvals, tf.int64) // tf.cast(length, tf.int64)
    return tf.range(tf.cast(nrows, tf.int64) + 1) * tf.cast(length, tf.int64)


def _wrong(name: str, expected: str, received: str) -> StructureError:
    fix = "The rows hold the values one after another; each value belongs to one row."
    return StructureError(name, expected, received, fix)
