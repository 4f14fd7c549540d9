"""Row splits from other descriptions of rows: lengths, row ids, one length."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor._authoring.comparison import with_checks
from extensor._authoring.rows import row_splits_of
from extensor._count_text import count_text
from extensor._protocol.run_time_check import assert_op
from extensor._typing import TensorLike
from extensor.errors import DTypeError, StructureError


def splits_of_lengths(row_lengths: Any) -> np.ndarray[Any, Any] | tf.Tensor:
    """Returns the row splits of rows with the given lengths."""
    if not isinstance(row_lengths, tf.Tensor):
        lengths = _integers(row_lengths, "row_lengths")
        if (lengths < 0).any():
            raise _wrong("row_lengths", "lengths that are not negative", str(lengths.min()))
        return np.concatenate([np.zeros([1], lengths.dtype), np.cumsum(lengths)]).astype(
            lengths.dtype
        )
    lengths = _expect_integers(row_lengths, "row_lengths")
    return row_splits_of(lengths)


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
    if hasattr(value_rowids, "numpy"):
        value_rowids = value_rowids.numpy()
    if isinstance(value_rowids, tf.Tensor):
        rowids = _expect_integers(value_rowids, "value_rowids")
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
    rowids = _integers(value_rowids, "value_rowids")
    if (np.diff(rowids) < 0).any() or (rowids < 0).any():
        raise wrong
    rows = int(rowids[-1]) + 1 if rowids.size else 0
    count = rows if nrows is None else int(nrows)
    if count < rows:
        raise _wrong(
            "value_rowids", f"row numbers below {count}, the number of rows", str(rows - 1)
        )
    lengths = np.bincount(rowids, minlength=count).astype(rowids.dtype)
    return splits_of_lengths(lengths)


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


def _integers(numbers: TensorLike, name: str) -> np.ndarray[Any, Any]:
    array = np.asarray(numbers)
    if not array.size and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise _not_integers(name, str(array.dtype))
    return array.astype(np.int32 if array.dtype == np.int32 else np.int64)


def _expect_integers(tensor: tf.Tensor, name: str) -> tf.Tensor:
    if tensor.dtype not in (tf.int32, tf.int64):
        raise _not_integers(name, tensor.dtype.name)
    return tensor


def _not_integers(name: str, received: str) -> DTypeError:
    return DTypeError(name, "int64 or int32", received, "Cast them with tf.cast.")


def _wrong(name: str, expected: str, received: str) -> StructureError:
    fix = "The rows hold the values one after another; each value belongs to one row."
    return StructureError(name, expected, received, fix)
