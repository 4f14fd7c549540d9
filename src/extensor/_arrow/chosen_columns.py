"""Selection of columns of a nested schema by their paths."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from extensor._arrow.arrow_type import map_types, names_of
from extensor._path import Path, PathLike
from extensor.errors import DTypeError, FieldError, StructureError


def listed_paths(columns: Iterable[PathLike]) -> list[PathLike]:
    """Returns the paths in the argument `columns`.

    Raises:
        DTypeError: If it is not a list of paths (also a TypeError).
        StructureError: If it is empty (also a ValueError).
    """
    if isinstance(columns, (str, bytes, Path)) or not isinstance(columns, Iterable):
        fix = 'Write columns=["title", "ingredients.amount"].'
        raise DTypeError("columns", "a list of paths", repr(columns), fix)
    paths = list(columns)
    if not paths:
        fix = "Leave columns out to read all."
        raise StructureError("columns", "at least one path", "an empty list", fix)
    return paths


def chosen_columns(columns: Iterable[PathLike], schema: pa.Schema) -> list[tuple[str, ...]]:
    """Returns the names of each path in `columns`.

    Raises:
        DTypeError, StructureError: As `listed_paths`.
        FieldError: If a column does not exist (also a KeyError).
    """
    known: dict[str, set[tuple[str, ...]]] = {}
    """All paths that begin with a name."""
    chosen: list[tuple[str, ...]] = []
    for column in listed_paths(columns):
        # A string equal to a column's name means that column, even if it contains a dot.
        named = isinstance(column, str) and bool(schema.get_all_field_indices(str(column)))
        wanted = (str(column),) if named else Path.of(column).names
        if wanted and wanted[0] not in known:
            numbers = schema.get_all_field_indices(wanted[0])
            known[wanted[0]] = prefixes(leaf_paths([schema.field(i) for i in numbers]))
        if not wanted or wanted not in known[wanted[0]]:
            raise _no_column(wanted, leaf_paths(schema))
        chosen.append(wanted)
    return chosen


def pruned_schema(schema: pa.Schema, chosen: list[tuple[str, ...]]) -> pa.Schema:
    """Returns the schema of the chosen columns, in the order of `chosen`."""
    numbers = {name: i for i, name in enumerate(names_of(schema, Path()))}
    names = dict.fromkeys(path[0] for path in chosen)
    columns = pa.schema([schema.field(numbers[name]) for name in names])
    return pa.schema(_pruned_fields(columns, chosen), metadata=schema.metadata)


def _pruned_fields(fields: Iterable[pa.Field], chosen: list[tuple[str, ...]]) -> list[pa.Field]:
    by_name: dict[str, list[tuple[str, ...]]] = {}
    for path in chosen:
        by_name.setdefault(path[0], []).append(path[1:])
    kept: list[pa.Field] = []
    for field in fields:
        below = by_name.get(field.name)
        if below:
            kept.append(field if () in below else field.with_type(_pruned_type(field.type, below)))
    return kept


def _pruned_type(arrow: pa.DataType, chosen: list[tuple[str, ...]]) -> pa.DataType:
    def of_struct(inner: pa.DataType) -> pa.DataType | None:
        is_struct = pa.types.is_struct(inner)
        return pa.struct(_pruned_fields(inner.fields, chosen)) if is_struct else None

    return map_types(arrow, of_struct)


def leaf_paths(fields: Iterable[pa.Field], outer: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Returns the path of each leaf column as names; a file stores leaf columns one by one."""
    return [leaf for field in fields for leaf in _leaves_of(field.type, (*outer, field.name))]


def prefixes(paths: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Returns paths, and the paths of all fields that contain them.

    >>> from extensor._arrow.chosen_columns import prefixes
    >>> sorted(prefixes([("steps", "minutes"), ("title",)]))
    [('steps',), ('steps', 'minutes'), ('title',)]
    """
    return {path[:n] for path in paths for n in range(1, len(path) + 1)}


def _leaves_of(arrow: pa.DataType, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    if isinstance(arrow, pa.BaseExtensionType):
        return _leaves_of(arrow.storage_type, path)
    if not pa.types.is_nested(arrow):
        return [path]
    if pa.types.is_struct(arrow):
        return leaf_paths(arrow.fields, path)
    if pa.types.is_map(arrow):
        key, value = (*path, "key"), (*path, "value")
        return [*_leaves_of(arrow.key_type, key), *_leaves_of(arrow.item_type, value)]
    if pa.types.is_union(arrow):
        return [path]  # a union is read as a whole
    return _leaves_of(arrow.value_type, path)


def _no_column(wanted: tuple[str, ...], leaves: list[tuple[str, ...]]) -> FieldError:
    listed = ", ".join(str(Path(*leaf)) for leaf in leaves[:20])
    expected = f"one of the columns {listed}" + (", ..." if len(leaves) > 20 else "")
    received = f"{Path(*wanted)}" if wanted else "the path of the records themselves"
    fix = "Leave columns= out for all fields; the field named '' is '\"\"'."
    if wanted:
        fix = "Check the spelling; quote a name that contains a dot."
    return FieldError(Path(*wanted) if wanted else "columns", expected, received, fix)
