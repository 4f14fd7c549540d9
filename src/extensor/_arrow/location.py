"""The location of a column in the records, and the dtype of its row splits."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor._path import Path
from extensor.errors import DTypeError


class Location:
    """The path of a column, and the mapping from its elements to record numbers.

    Args:
        path: The path of the column.
        splits: The dtype of the row splits for lists.
        parent: The location of the column that contains this column.
        offsets: For the values of a list, the offsets of the list, beginning with 0.
        size: For the values of a fixed-size list, the size of the list.
    """

    __slots__ = ("offsets", "parent", "path", "size", "splits")

    def __init__(
        self,
        path: Path,
        splits: tf.DType,
        parent: Location | None = None,
        offsets: Any = None,
        size: int = 0,
    ) -> None:
        self.path = path
        self.splits = splits
        self.parent = parent
        self.offsets = offsets
        self.size = size

    def field(self, name: str) -> Location:
        """Returns the location of a field of records."""
        return Location(self.path / name, self.splits, self)

    def below(self, offsets: Any = None, size: int = 0) -> Location:
        """Returns the location of the values of a list, given its offsets or its fixed size."""
        return Location(self.path, self.splits, self, offsets, size)

    def record(self, element: int) -> int:
        """Returns the number of the record that contains an element."""
        if self.offsets is not None:
            element = int(np.searchsorted(self.offsets, element, side="right")) - 1
        elif self.size:
            element //= self.size
        return element if self.parent is None else self.parent.record(element)


def splits_dtype(dtype: Any) -> tf.DType:
    """Returns the argument `row_splits_dtype` as a DType.

    Raises:
        DTypeError: If the dtype is neither int64 nor int32 (also a TypeError).
    """
    dtype = tf.dtypes.as_dtype(dtype)
    if dtype not in (tf.int64, tf.int32):
        raise DTypeError(
            path="row_splits_dtype",
            expected="tf.int64 or tf.int32",
            received=dtype.name,
            mend="Leave it out for int64.",
        )
    return dtype
