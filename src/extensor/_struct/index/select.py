"""Keys with names: finds the field first, which runs no op, and then applies the positions."""

# This file calls methods of records that are private to this package.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import operator
from typing import Any

from extensor._path import Path
from extensor._struct import masked
from extensor._struct.index.key import expanded, names_in, position
from extensor._struct.index.take import take
from extensor._struct.records import Records
from extensor._struct.spec import no_such_field, resolve
from extensor.errors import UnsupportedTypeError


def select(records: Records, key: Any) -> Any:
    """Returns `records[key]`.

    A key may mix names (str, Path, a list of these) and positions. Selecting a field and selecting
    records commute. So this resolves all names first, and then applies the positions once.
    """
    value: Any = records
    at = Path()
    positions: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, (str, Path)):
            inner = _records(value, part, at)
            names = resolve(part, inner._names())
            positions = list(expanded(positions, inner.rank, at))
            try:
                field = _field(value, names, at)
            except UnsupportedTypeError:  # values of this type cannot be cut into rows
                if not positions or value is not inner:
                    raise
                row = take(value.with_only(names), tuple(positions), at)
                field, positions = row.field_value(names), []
            value, at = field, Path(*at, *names)
        elif names_in(part):
            fields = _records(value, part, at)._names()
            several = [resolve(name, fields) for name in names_in(part)]
            for names in several:
                _require(value, names, at)
            value = masked.in_masks(value, operator.methodcaller("with_only", *several))
        else:
            positions.append(position(part, at))
    return take(value, tuple(positions), at) if positions else value


def _records(value: Any, part: Any, at: Path) -> Any:
    inner = masked.records_in(value)
    if inner is None:
        raise no_such_field(at / str(part), ())
    return inner


def _field(value: Any, names: tuple[str, ...], at: Path) -> Any:
    for name in names:
        at = at / name
        value = masked.field(value, name, at)
    return value


def _require(value: Any, names: tuple[str, ...], at: Path) -> None:
    """Raises unless there is a field at a path. Cuts no rows, so any type of field works."""
    for name in names:
        at = at / name
        value = masked.uncut_field(value, name, at)
