"""Where a column is in the records, and how it is to be read."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor._path import Path
from extensor.errors import DTypeError


class Location:
    """The path of a column, and how its elements lead back to records.

    Args:
        path: The path of the column.
        splits: The dtype of the row splits that lists are read with.
        parent: Where the column is that this one is a part of.
        offsets: For the values of a list, the offsets of the list, the first one 0.
        size: For the values of a list of one size, the size.
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
        """Returns the location of the values of a list, by its offsets or its one size."""
        return Location(self.path, self.splits, self, offsets, size)

    def record(self, element: int) -> int:
        """Returns the number of the record that an element belongs to."""
        if self.offsets is not None:
            element = int(np.searchsorted(self.offsets, element, side="right")) - 1
        elif self.size:
            element //= self.size
        return element if self.parent is None else self.parent.record(element)


def splits_dtype(dtype: Any) -> tf.DType:
    """Returns the dtype asked for row splits.

    Raises:
        DTypeError: If it is neither int64 nor int32 (also a TypeError).
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
