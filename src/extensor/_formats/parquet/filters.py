"""Filters of records: the words of pyarrow, with the paths of extensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from extensor._path import Path, PathLike
from extensor._raised import first_line
from extensor.errors import DTypeError, ExtensorError, FieldError

if TYPE_CHECKING:
    import pyarrow.compute as pc


def filter_expression(
    filters: pc.Expression | Sequence[object], schema: pa.Schema
) -> pc.Expression:
    """Returns the condition that records must fulfil.

    Args:
        filters: An Expression of pyarrow, a list of tuples `(path, operator, value)` that must all
            hold, or a list of such lists of which one must hold.
        schema: The schema of all columns.

    Raises:
        DTypeError: If it is none of these, or a value does not compare with its column (also a
            TypeError).
        FieldError: If there is no such column outside of lists (also a KeyError).
    """
    try:
        expression = pq.filters_to_expression(_of_columns(filters, schema))
        # Of no records, to find out whether the columns and types fit.
        empty = schema.empty_table()
        (empty if schema.names else pa.table({"": []})).filter(expression)
    except ExtensorError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        text = first_line(error)
        if "FieldRef" in text:
            raise _no_column(text, schema) from error
        raise wrong_filters(filters, error) from error
    return expression


def wrong_filters(filters: object, error: Exception) -> DTypeError:
    """Returns the error of conditions that pyarrow cannot evaluate.

    Args:
        filters: The conditions.
        error: The error of pyarrow.
    """
    text = first_line(error)
    expected = "a list of conditions (path, operator, value) that fit the columns"
    fix = (
        'Write filters=[("est_time", "<", 30)], with one of = == != < <= > >= in, not in; or give '
        "a pyarrow.compute.Expression whose values have the types of the columns."
    )
    return DTypeError("filters", expected, f"{str(filters)[:100]} ({text})", fix)


def _of_columns(filters: Any, schema: pa.Schema) -> Any:
    """Returns filters with the columns as pyarrow names them; an Expression stays."""
    import pyarrow.compute as pc

    if isinstance(filters, pc.Expression):
        return filters
    given = list(filters)
    conjunctions = [given] if given and _is_condition(given[0]) else given
    return [
        [_condition(name, operator, value, schema) for name, operator, value in conditions]
        for conditions in conjunctions
    ]


def _is_condition(found: Any) -> bool:
    """Returns whether this is one condition: a tuple, or the list that JSON makes of it."""
    is_list = isinstance(found, list) and len(found) == 3
    return isinstance(found, tuple) or (is_list and all(isinstance(n, str) for n in found[:2]))


def _condition(
    name: PathLike, operator: str, value: Any, schema: pa.Schema
) -> tuple[str | tuple[str, ...], str, Any]:
    """Returns a condition with the column as pyarrow names it, and a value of its type."""
    column, arrow = _column(name, schema)
    # pyarrow takes ints for int64, and then the numbers of the column too.
    if pa.types.is_uint64(arrow):
        several = isinstance(value, (list, tuple, set, frozenset))
        own: list[Any] = list(value) if several else [value]  # pyright: ignore[reportUnknownArgumentType]
        if own and all(isinstance(n, (int, np.integer)) and 0 <= n < 1 << 64 for n in own):
            typed = pa.array([int(n) for n in own], arrow)
            return column, operator, typed if several else typed[0]
    return column, operator, value


def _column(name: PathLike, schema: pa.Schema) -> tuple[str | tuple[str, ...], pa.DataType]:
    """Returns the name of a column, or the names of a field inside of a column, and its type."""
    if isinstance(name, str) and name in schema.names:
        return name, schema.field(schema.names.index(name)).type
    names = Path.of(name).names
    arrow: pa.DataType = pa.struct(list(schema))
    for part in names:
        index = arrow.get_field_index(part) if pa.types.is_struct(arrow) else -1
        if index < 0:
            raise _no_column(str(Path(*names)), schema)
        arrow = arrow.field(index).type
    if not names:
        raise _no_column("an empty path", schema)
    return names, arrow


def filter_table(table: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Returns the records of a table for which a mask is true, not false or null."""
    try:
        return table.filter(mask)
    except pa.ArrowNotImplementedError:  # such as for views of strings (pyarrow 26)
        kept = np.asarray(mask.fill_null(False)).astype(np.int8)
        bounds = np.flatnonzero(np.diff(kept, prepend=0, append=0)).reshape(-1, 2)
        slices = [table.slice(start, stop - start) for start, stop in bounds.tolist()]
        return pa.concat_tables(slices) if slices else table.slice(0, 0)


def _no_column(received: str, schema: pa.Schema) -> FieldError:
    names = ", ".join(str(Path(name)) for name in schema.names[:20])
    expected = f"fields of records, outside of lists; the columns are {names}"
    fix = "Correct the path. Filter by the values of a list after reading."
    return FieldError("filters", expected, received, fix)
