"""Records as Python data: nested lists of dicts."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Any, cast

from extensor.errors import FieldError, StructureError


def columns_of(value: Any, names: Collection[str], rank: int, path: str) -> dict[str, Any]:
    """Returns the values of all records for each field, in the same nested lists.

    Args:
        value: Nested lists of dicts; or one dict with the values of all records.
        names: The names of the fields.
        rank: The number of nested lists.
        path: The path of the records, for errors.

    Raises:
        FieldError: If a record has other fields (also a KeyError).
        StructureError: If the nesting differs from `rank` (also a ValueError).

    >>> columns_of([{"a": 1}, {"a": 2}], ["a"], 1, "records")
    {'a': [1, 2]}
    """
    if isinstance(value, Mapping):
        rank = 0
    _check(value, names, rank, path)
    return {name: _column(value, name, rank) for name in names}


def sizes_of(value: Any, rank: int) -> list[int]:
    """Returns the lengths of nested lists from the outermost inwards, if they are uniform."""
    return [len(value), *sizes_of(value[0] if value else [], rank - 1)] if rank else []


def rows_of(value: Any, path: str) -> tuple[list[Any], list[int]]:
    """Returns the elements of all rows of a list of lists, and the row splits.

    Raises:
        StructureError: If `value` is not a list of lists (also a ValueError).

    >>> rows_of([["a"], [], ["b", "c"]], "records")
    (['a', 'b', 'c'], [0, 1, 1, 3])
    """
    for row in _items(value, path):
        _items(row, path)
    return list(itertools.chain(*value)), [0, *itertools.accumulate(map(len, value))]


def _items(value: Any, path: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise StructureError(
            path=path,
            expected="a list",
            received=type(value).__name__,
            mend="Nest one list for each dimension of the records.",
        )
    return cast("list[Any]", value)


def _check(value: Any, names: Collection[str], depth: int, path: str) -> None:
    if depth:
        for i, item in enumerate(_items(value, path)):
            _check(item, names, depth - 1, f"{path}[{i}]")
        return
    if not isinstance(value, Mapping):
        raise StructureError(
            path=path,
            expected="a record, as a dict",
            received=type(value).__name__,
            mend="Nest one list for each dimension of the records.",
        )
    received = cast("Mapping[Any, Any]", value)
    if set(received) != set(names):
        raise FieldError(
            path=path,
            expected=f"the fields {', '.join(names)}",
            received=", ".join(map(str, received)) or "an empty dict",
            mend="Give every record exactly these fields.",
        )


def _column(value: Any, name: str, depth: int) -> Any:
    return value[name] if depth == 0 else [_column(item, name, depth - 1) for item in value]
