"""Filters of records: the words of pyarrow, with the paths of extensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from extensor._path import Path
from extensor.errors import DTypeError, ExtensorError, FieldError

if TYPE_CHECKING:
    import pyarrow.compute as pc


def filter_expression(filters: Any, schema: pa.Schema) -> pc.Expression:
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
    import pyarrow.compute as pc

    if isinstance(filters, pc.Expression):
        expression: Any = filters
    else:
        try:
            expression = _any_of(filters, schema)
        except (TypeError, ValueError) as error:
            if isinstance(error, ExtensorError):
                raise
            raise _no_filter(filters, error) from error
    try:  # of no records, to find out whether the columns and types fit
        empty = schema.empty_table()
        (empty if schema.names else pa.table({"": []})).filter(expression)
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        if "FieldRef" in str(error):
            raise _no_column(str(error).splitlines()[0], schema) from error
        raise _no_filter(filters, error) from error
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, TypeError) as error:
        raise _no_filter(filters, error) from error
    return expression


def filtered(table: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Returns the records of a table for which a mask is true, not false or null."""
    try:
        return table.filter(mask)
    except pa.ArrowNotImplementedError:  # such as for views of strings (pyarrow 26)
        kept = np.asarray(mask.fill_null(False)).astype(np.int8)
        bounds = np.flatnonzero(np.diff(kept, prepend=0, append=0)).reshape(-1, 2)
        slices = [table.slice(start, stop - start) for start, stop in bounds.tolist()]
        return pa.concat_tables(slices) if slices else table.slice(0, 0)


def _any_of(filters: Any, schema: pa.Schema) -> pc.Expression:
    if isinstance(filters, (str, bytes, dict)) or not filters:
        raise _no_filter(filters, "no list of conditions")
    filters = list(filters)
    if isinstance(filters[0], tuple):
        return _all_of(filters, schema)
    whole = _all_of(filters[0], schema)
    for each in filters[1:]:
        whole = whole | _all_of(each, schema)
    return whole


def _all_of(conditions: Any, schema: pa.Schema) -> pc.Expression:
    if not isinstance(conditions, list) or not conditions:
        raise _no_filter(conditions, "no list of conditions")
    whole: Any = None
    for name, operator, value in conditions:
        one: Any = _comparison(_field(name, schema), operator, value)
        whole = one if whole is None else whole & one
    return whole


def _field(name: Any, schema: pa.Schema) -> pc.Expression:
    import pyarrow.compute as pc

    if isinstance(name, str) and name in schema.names:
        return pc.field(name)
    names = Path.of(name).names
    arrow: Any = pa.struct(list(schema))
    for part in names:
        index = arrow.get_field_index(part) if pa.types.is_struct(arrow) else -1
        if index < 0:
            raise _no_column(str(Path(*names)), schema)
        arrow = arrow.field(index).type
    if not names:
        raise _no_column("an empty path", schema)
    return pc.field(*names)


def _comparison(field: Any, operator: Any, value: Any) -> pc.Expression:
    if operator in ("in", "not in"):
        values = pa.array(list(value))
        return field.isin(values) if operator == "in" else ~field.isin(values)
    if operator in ("=", "=="):
        return field == value
    if operator == "!=":
        return field != value
    if operator == "<":
        return field < value
    if operator == "<=":
        return field <= value
    if operator == ">":
        return field > value
    if operator == ">=":
        return field >= value
    problem = f"the operator {operator!r}; expected one of = == != < <= > >= in, not in"
    raise _no_filter(operator, problem)


def _no_column(received: str, schema: pa.Schema) -> FieldError:
    names = ", ".join(str(Path(name)) for name in schema.names[:20])
    return FieldError(
        "filters",
        f"fields of records, outside of lists; the columns are {names}",
        received,
        "Correct the path. Filter by the values of a list after reading.",
    )


def _no_filter(filters: Any, error: Any) -> DTypeError:
    return DTypeError(
        "filters",
        "a list of conditions (path, operator, value) that fit the columns",
        f"{str(filters)[:100]} ({str(error).splitlines()[0] if str(error) else 'empty'})",
        'Write filters=[("est_time", "<", 30)], or give a pyarrow.compute.Expression.',
    )
