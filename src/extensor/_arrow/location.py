"""The location of a column in the records, and the dtype of its row splits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.masks import Masks
from extensor._arrow.strings_by_batch import StringsByBatch
from extensor._path import Path, quote


class Location:
    """The path of a column, and the mapping from its elements to record numbers.

    Args:
        path: The path of the column; None if it is that of its parent, or a field of it.
        splits: The dtype of the row splits for lists.
        parent: The location of the column that contains this column.
        offsets: For the values of a list, the offsets of the list, beginning with 0.
        size: For the values of a fixed-size list, the size of the list.
        hidden: Which elements are below a null, as booleans, so that their own nulls do not
            count; None if no element is.
        name: For a field of records, its name.
        owner: For records of a table, the table.
        by_batch: For records that will be cut into batches, what cuts their strings.
    """

    __slots__ = (
        *("_name", "_path", "by_batch", "hidden", "masks", "offsets"),
        *("owner", "parent", "size", "splits"),
    )

    def __init__(
        self,
        path: Path | None,
        splits: tf.DType,
        parent: Location | None = None,
        offsets: np.ndarray[Any, Any] | None = None,
        size: int | None = None,
        hidden: np.ndarray[Any, Any] | None = None,
        name: str | None = None,
        owner: pa.Table | pa.RecordBatch | None = None,
        by_batch: StringsByBatch | None = None,
    ) -> None:
        self.hidden = hidden
        self._path = path
        self._name = name
        self.splits = splits
        self.parent = parent
        self.offsets = offsets
        self.size = size
        self.masks: Masks = Masks() if parent is None else parent.masks
        self.owner: pa.Table | pa.RecordBatch | None = owner if parent is None else parent.owner
        self.by_batch: StringsByBatch | None = by_batch if parent is None else parent.by_batch

    @property
    def is_in_list(self) -> bool:
        """Whether the elements are in lists of any length."""
        return self.offsets is not None or (self.parent is not None and self.parent.is_in_list)

    @property
    def path(self) -> Path:
        """The path of the column. It is made when it is needed, which is mostly for errors.

        So functions that need a path for errors alone get the location itself.
        """
        if self._path is None:
            assert self.parent is not None
            outer = self.parent.path
            self._path = outer if self._name is None else outer / self._name
        return self._path

    def __str__(self) -> str:
        return str(self.path)

    def field(self, name: str) -> Location:
        """Returns the location of a field of records."""
        return Location(None, self.splits, self, hidden=self.hidden, name=name)

    def hiding(self, nulls: np.ndarray[Any, Any]) -> Location:
        """Returns this location with more hidden elements."""
        hidden = nulls if self.hidden is None else nulls | self.hidden
        return Location(None, self.splits, self, hidden=hidden)

    def alone(self) -> Location:
        """Returns this location for one other element, which is not hidden."""
        return Location(None, self.splits, self)

    def text(self) -> str:
        """Returns the path as text, with `[*]` for the items of a list."""
        if self.parent is None:
            return str(self.path)
        outer = self.parent.text()
        if self._name is not None:
            name = quote(self._name)
            return f"{outer}.{name}" if outer else name
        return outer + "[*]" if self.offsets is not None or self.size is not None else outer

    @property
    def place(self) -> tuple[tuple[str, ...], int]:
        """The names of the path, and the number of lists around a value of the last one."""
        if self.parent is None:
            return self.path.names, 0
        names, items = self.parent.place
        if self._name is not None:
            return (*names, self._name), 0
        return names, items + (self.offsets is not None or self.size is not None)

    def below(
        self, offsets: np.ndarray[Any, Any] | None = None, size: int | None = None
    ) -> Location:
        """Returns the location of the values of a list, given its offsets or its fixed size."""
        # Hidden lists of any length are empty (`nulls.empty_hidden_lists`), so they hide nothing.
        hidden = None if size is None or self.hidden is None else np.repeat(self.hidden, size)
        return Location(None, self.splits, self, offsets, size, hidden)

    def record(self, element: int) -> int:
        """Returns the number of the record that contains an element."""
        if self.offsets is not None:
            element = int(np.searchsorted(self.offsets, element, side="right")) - 1
        elif self.size:
            element //= self.size
        return element if self.parent is None else self.parent.record(element)
