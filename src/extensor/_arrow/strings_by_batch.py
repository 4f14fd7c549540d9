"""Strings in lists that are copied when their batches are cut, and not before for all batches.

TensorFlow has no op that cuts strings without a copy, and each string of more than 22 bytes has
memory of its own. So two copies of them take a tenth of the time of a stream.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import tensorflow as tf

# Strings in a batch: for fewer, the ops for each batch take longer than the copy.
_MANY = 1 << 12

INSIDE = 22
"""Bytes: a tensor has longer strings outside of itself, each in memory of its own."""


class StringsByBatch:
    """The strings of records that will be cut into batches.

    Args:
        batches: The number of batches.
    """

    def __init__(self, batches: int) -> None:
        self._least = _MANY * batches
        self._kept: dict[int, tuple[tf.Tensor, tf.Tensor, Any, Any]] = {}

    def __len__(self) -> int:
        """Returns the number of columns that were kept, and not boxed."""
        return len(self._kept)

    def keep(
        self, blob: tf.Tensor, starts: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any]
    ) -> tf.Tensor | None:
        """Returns a tensor in place of the strings of a column; None if they are few or short.

        Args:
            blob: The bytes of all strings, as a vector of one.
            starts: Where each string begins.
            sizes: The number of its bytes.
        """
        count = len(sizes)
        if count < self._least or sizes.sum() <= INSIDE * count:
            return None
        found = tf.raw_ops.Empty(shape=[count], dtype=tf.string)
        self._kept[id(found)] = found, blob, starts, sizes
        return found

    def box(self, column: Any) -> list[tf.Tensor] | None:
        """Returns the box of a ragged tensor whose flat values `keep` returned; None for others.

        Args:
            column: A value whose rows are batches.
        """
        is_ragged = isinstance(column, tf.RaggedTensor)
        kept = self._kept.pop(id(column.flat_values), None) if is_ragged else None
        if kept is None:
            return None
        _, blob, starts, sizes = kept
        ends, *inner = (splits.numpy() for splits in column.nested_row_splits)
        boxes: list[tf.Tensor] = []
        with tf.device("CPU:0"):
            for begin, end in itertools.pairwise(ends):
                rows: list[tf.Tensor] = []  # the op would take arrays as int64
                for splits in inner:
                    rows.append(tf.constant(splits[begin : end + 1] - splits[begin]))
                    begin, end = splits[begin], splits[end]
                own = slice(begin, end)
                strings = tf.raw_ops.Substr(input=blob, pos=starts[own], len=sizes[own])
                boxes.append(
                    tf.raw_ops.RaggedTensorToVariant(
                        rt_nested_splits=rows, rt_dense_values=strings, batched_input=False
                    )
                )
            return [tf.stack(boxes)]
