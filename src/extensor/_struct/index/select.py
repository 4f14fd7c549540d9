"""Keys with names: finds the field first, which runs no op, and then applies the positions."""

from __future__ import annotations

import functools
import operator
from typing import Any

from extensor._path import Path
from extensor._struct import masked
from extensor._struct.index.key import names_in, to_position, without_ellipsis
from extensor._struct.index.take import take
from extensor._struct.records import RecordsBase
from extensor._struct.spec import no_such_field, resolve
from extensor._typing import FieldValue
from extensor.errors import UnsupportedTypeError


def select(records: RecordsBase, key: Any) -> FieldValue:
    """Returns `records[key]`.

    A key may mix names (str, Path, a list of these) and positions. Selecting a field and selecting
    records commute. So this resolves all names first, and then applies the positions once.
    """
    value: Any = records
    at = Path()
    positions: list[Any] = []
    parts = key if isinstance(key, tuple) else (key,)
    done = 0
    while done < len(parts):
        part = parts[done]
        done += 1
        if isinstance(part, (str, Path)):
            inner = _records(value, part, at)
            names = resolve(part, inner._names())
            if done < len(parts):
                names, done = _with_next_names(value, names, parts, done, at)
            positions = list(without_ellipsis(positions, inner.rank, at))
            above, at = at, Path(*at, *names)
            if not names:
                continue
            try:
                value = masked.field_at(value, names, at)
            except UnsupportedTypeError:  # values of this type cannot be cut into rows
                if not positions or value is not inner:
                    raise
                row = take(value.with_only(names), tuple(positions), above)
                value, positions = row.field_value(names), []
        elif names_in(part):
            fields = _records(value, part, at)._names()
            several = [resolve(name, fields) for name in names_in(part)]
            for names in several:
                masked.uncut_field(value, names, at)
            value = masked.map_records(value, operator.methodcaller("with_only", *several))
        else:
            positions.append(to_position(part, at))
    return take(value, tuple(positions), at) if positions else value


def _records(value: FieldValue, part: object, at: Path) -> Any:
    inner = masked.records_in(value)
    if inner is None:
        raise no_such_field(at / str(part), ())
    return inner


def _with_next_names(
    value: FieldValue, names: tuple[str, ...], parts: tuple[Any, ...], done: int, at: Path
) -> tuple[tuple[str, ...], int]:
    """Returns names with those of the next parts of a key, and the number of parts used.

    A field is selected once for all names that follow each other: each name alone would cut the
    values into the rows of all lists above it again.
    """
    added = names
    while done < len(parts) and isinstance(part := parts[done], (str, Path)):
        value = masked.uncut_field(value, added, at)
        at = functools.reduce(operator.truediv, added, at)
        added = resolve(part, _records(value, part, at)._names())
        names = (*names, *added)
        done += 1
    return names, done
