"""Where a column of Python values is in the records, for errors."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from extensor._arrow.null_policy import text_of
from extensor._path import quote

Offsets = np.ndarray[Any, Any]
"""Where the items of each list begin in the list of all items, and their number."""

_shown = reprlib.Repr()
_shown.maxstring = _shown.maxother = 40
_shown.maxlevel = 2
_shown.maxdict = _shown.maxlist = _shown.maxtuple = 3


class Place:
    """The path of a column, and the mapping from its values to records.

    Args:
        text: The path as text; `[*]` after a field means the items of its list.
        names: The names of the fields on the path.
        parent: The place of the column that contains this column.
        offsets: For the items of lists, the offsets of the lists.
        is_collection: Whether the values are lists of the collection of records itself.
        indices: For some of the values of a column, their positions in it.
        name_of: Returns the name of a record of a format, such as `line 8`, from its number; None
            for `record 7`.
    """

    __slots__ = ("_indices", "_is_collection", "_name_of", "_offsets", "_parent", "names", "text")

    def __init__(
        self,
        text: str = "",
        names: tuple[str, ...] = (),
        parent: Place | None = None,
        offsets: Offsets | None = None,
        is_collection: bool = False,
        indices: Sequence[int] | Offsets | None = None,
        name_of: Callable[[int], str] | None = None,
    ) -> None:
        self.text = text
        self.names = names
        self._parent = parent
        self._offsets = offsets
        self._is_collection = is_collection
        self._indices = indices
        self._name_of = name_of

    def field(self, name: str) -> Place:
        """Returns the place of a field of records."""
        text = f"{self.text}.{quote(name)}" if self.text else quote(name)
        return Place(text, (*self.names, name), self)

    def items(self, offsets: Offsets | None) -> Place:
        """Returns the place of the items of lists with these offsets."""
        return Place(f"{self.text}[*]", self.names, self, offsets)

    def records(self, offsets: Offsets) -> Place:
        """Returns the place of the items of lists of the collection itself."""
        return Place(self.text, self.names, self, offsets, is_collection=True)

    def chosen(self, indices: Sequence[int] | Offsets) -> Place:
        """Returns the place of the values at these positions."""
        return Place(self.text, self.names, self, indices=indices)

    @property
    def key(self) -> str:
        """The path as the argument `nulls` names it: with `[*]` at its end only."""
        items, place = 0, self
        while place._offsets is not None or place._indices is not None:
            items += place._indices is None and not place._is_collection
            assert place._parent is not None
            place = place._parent
        return text_of((self.names, items)) if self.names else ""

    @property
    def is_single(self) -> bool:
        """Whether the column has one value: that of a single record, outside of all lists."""
        is_whole = self._offsets is None and self._indices is None
        return is_whole and (self._parent is None or self._parent.is_single)

    @property
    def is_root(self) -> bool:
        """Whether it is the place of all records."""
        return self._parent is None and not self.text

    def at(self, index: int) -> str:
        """Returns the path and the name of the record that contains a value, as text."""
        record = self.record(index)
        if not record:
            return self.text or "records"
        return f"{self.text}, {record}" if self.text else record

    def record(self, index: int) -> str:
        """Returns the name of the record that contains a value: `record 7`, `record [0, 7]` or ``.

        A single record has no name.
        """
        place: Place | None = self
        name_of = None
        numbers: list[int] = []
        while place is not None:
            name_of = place._name_of
            if place._indices is not None:
                index = int(place._indices[index])
            if place._offsets is not None:
                outer = int(np.searchsorted(place._offsets, index, side="right")) - 1
                if place._is_collection:
                    numbers.append(index - int(place._offsets[outer]))
                index = outer
            place = place._parent
        if name_of is not None:
            return name_of(numbers[0] if numbers else index)
        numbers.reverse()
        return f"record {numbers[0] if len(numbers) == 1 else numbers}" if numbers else ""


def show(value: object) -> str:
    """Returns a value as short text: its type and, if it is plain Python, its repr."""
    if value is None:
        return "null"
    if isinstance(value, (dict, list, tuple, str, bytes, int, float, complex)):
        return f"{type(value).__name__} {_shown.repr(value)}"
    return type(value).__name__
