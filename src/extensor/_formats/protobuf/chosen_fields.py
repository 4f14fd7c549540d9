"""The fields and keys of maps that a caller or a schema chooses from messages."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa

from extensor._arrow.chosen_columns import listed_paths
from extensor._path import Path, PathLike
from extensor.errors import FieldError

Chosen: TypeAlias = "dict[str, Chosen | None]"
"""The names of the chosen fields, each with those inside it, or with None for all. Inside of a map,
the names may be keys of the map."""


class MapKey(str):
    """A key of a map, in brackets.

    Attributes:
        text: The key alone, as text.
    """

    text: str

    def __new__(cls, text: str) -> MapKey:
        made = super().__new__(cls, f'["{text}"]')
        made.text = text
        return made


def chosen_fields(columns: Iterable[PathLike], known: Mapping[str, object]) -> Chosen:
    """Returns the fields that `columns` chooses.

    Args:
        columns: Paths of fields.
        known: The names of the fields of a message, which may contain dots.

    Raises:
        DTypeError, StructureError: As `listed_paths`.
        FieldError: If a path is empty (also a KeyError).
    """
    chosen: Chosen = {}
    for column in listed_paths(columns):
        # A string equal to a name means that field, even if it contains a dot.
        is_name = isinstance(column, str) and column in known
        names = (str(column),) if is_name else _steps(column)
        if not names:
            raise no_field(Path(), list(known))
        _choose(chosen, names)
    return chosen


_KEY = re.compile(
    r"""
      (?P<name> "(?:\\.|[^"\\])*" | \[\*\] )  # a name in quotes, or the items of a list
    | \[ (?: "(?P<double>(?:\\.|[^"\\])*)" | '(?P<single>[^']*)' | (?P<bare>[^\]\["'*]+) ) \]
    """,
    re.VERBOSE,
)


def _steps(column: PathLike) -> tuple[str, ...]:
    """Returns the names of a path. A key of a map is in brackets after the name of the map."""
    if not isinstance(column, str):
        return Path.of(column).names
    steps: list[str] = []
    start = 0
    for found in _KEY.finditer(column):
        key = next(
            (found[kind] for kind in ("double", "single", "bare") if found[kind] is not None), None
        )
        if key is not None:
            steps += _names_in(column, start, found.start())
            steps.append(MapKey(re.sub(r"\\(.)", r"\1", key) if found["double"] else key))
            start = found.end()
    return (*steps, *_names_in(column, start, len(column)))


def _names_in(column: str, start: int, end: int) -> tuple[str, ...]:
    """Returns the names of a part of a path, before or after a key."""
    has_dot = start > 0 and column.startswith(".", start)
    return Path.parse(column[start + has_dot : end]).names if end > start else ()


def _choose(chosen: Chosen, names: tuple[str, ...]) -> None:
    first, *rest = names
    if not rest:
        chosen[first] = None
        return
    inner = chosen.setdefault(first, {})
    if inner is not None:
        _choose(inner, tuple(rest))


def chosen_by(fields: Iterable[pa.Field]) -> Chosen:
    """Returns the fields that a schema has."""
    return {field.name: chosen_inside(field.type) for field in fields}


def chosen_inside(arrow: pa.DataType) -> Chosen | None:
    if pa.types.is_struct(arrow):
        return chosen_by(arrow.fields)
    return chosen_inside(item_of(arrow)) if is_list(arrow) else None


def no_field(path: Path, known: list[str]) -> FieldError:
    name = path.names[-1] if path.names else ""
    near = difflib.get_close_matches(name, known, 3)
    expected = f"one of the fields {', '.join(known[:20])}" if known else "no field inside"
    fix = f"Did you mean {' or '.join(near)}?" if near else "Check the spelling."
    return FieldError(path, expected, str(path) or "an empty path", fix)


def is_list(arrow: pa.DataType) -> bool:
    is_record = pa.types.is_struct(arrow) or pa.types.is_union(arrow)
    return pa.types.is_nested(arrow) and not is_record


def item_of(arrow: pa.DataType) -> pa.DataType:
    """Returns the type of the items of a list, or the type itself."""
    if pa.types.is_map(arrow):
        return pa.struct([("key", arrow.key_type), ("value", arrow.item_type)])
    return arrow.value_type if is_list(arrow) else arrow
