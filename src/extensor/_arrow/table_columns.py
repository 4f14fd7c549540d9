"""Arrow data as the columns of a table of a database have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from extensor._arrow.arrow_type import (
    decoded_type,
    inner_fields,
    is_list,
    is_string,
    is_text,
    map_types,
    with_inner_fields,
)
from extensor._arrow.cast import cast_column
from extensor._path import Path
from extensor.errors import DTypeError, FieldError

_FIX = "Give schema= with types that the table holds, or change the table."


def folded(name: str) -> bytes:
    """Returns a name for comparison as DuckDB compares names: without the case of ASCII."""
    return name.encode().lower()


def as_in_columns(
    columns: Mapping[str, pa.DataType | None],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Returns a schema and its batches with the types of a table for numbers, times and text.

    A database itself rounds what a column does not hold, or takes its bytes for another value.

    Args:
        columns: The types of the columns of the table, by the names of the schema.
        schema: The schema of the batches.
        batches: The batches.

    Raises:
        FieldError: If the records of a column lack a field, which DuckDB would leave out.
        DTypeError: Now or later, if a value does not convert without loss (also a TypeError).
    """
    fields = [f.with_type(_type_in(columns.get(f.name), f.type, Path(f.name))) for f in schema]
    made = pa.schema(fields)

    def converted(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            array if array.type == field.type
            else cast_column(array, field.type, Path(field.name), _FIX)
            for array, field in zip(batch.columns, fields, strict=True)
        ]  # fmt: skip
        return pa.RecordBatch.from_arrays(arrays, schema=made)

    return made, (batch if made == schema else converted(batch) for batch in batches)


def expect_same_bytes(want: pa.DataType | None, have: pa.DataType, path: Path) -> None:
    """Raises DTypeError unless a column of PostgreSQL has the values of a type.

    Its driver sends the bytes of values, which the server takes for those of the column.

    Args:
        want: The type of the column; None if there is none, which is the server's error.
        have: The type of the values.
        path: The path of the values.
    """
    if want is None or _has_same_bytes(want, have):
        return
    raise DTypeError(path, f"values of a column of {want}", f"Arrow type {have}", _FIX)


def _has_same_bytes(want: pa.DataType, have: pa.DataType) -> bool:
    t = pa.types
    if want == have or t.is_null(have):
        return True
    if isinstance(want, pa.OpaqueType):  # of some only the server knows the bytes
        return want.type_name != "numeric" or _is_number(have)
    if is_list(want) and is_list(have):
        return _has_same_bytes(want.value_type, have.value_type)
    if t.is_interval(want):
        return t.is_duration(have)
    stored = decoded_type(have)
    if isinstance(have, pa.Bool8Type):
        return t.is_int16(want)
    is_text = is_string(stored) or t.is_fixed_size_binary(stored)
    return stored == want or (is_text and is_string(decoded_type(want)))


def _type_in(want: pa.DataType | None, have: pa.DataType, path: Path) -> pa.DataType:
    """Returns the type of a column for what converts to it, also in lists; else the type itself."""
    if want is None:
        return map_types(have, _kept_duration)
    if any(is_kind(want) and is_kind(have) for is_kind in (_is_number, _is_time)):
        return want
    is_bytes = is_string(have) or pa.types.is_fixed_size_binary(have)
    if is_string(want) and is_bytes and is_text(want) != is_text(have):
        return want  # DuckDB reads bytes in text as \xFF, and writes them so
    if pa.types.is_boolean(want) and _is_number(have):  # DuckDB writes true for 0.5
        raise DTypeError(path, f"values of a column of {want}", f"Arrow type {have}", _FIX)
    if pa.types.is_struct(want) and pa.types.is_struct(have):
        wanted = {folded(field.name): field.type for field in want}
        fields: list[pa.Field] = []
        for field in have:
            inner, name = path / field.name, folded(field.name)
            if name not in wanted:
                expected = f"one of the fields of the column: {', '.join(f.name for f in want)}"
                fix = "Add the field to the table, or leave it out."
                raise FieldError(inner, expected, field.name, fix)
            fields.append(field.with_type(_type_in(wanted[name], field.type, inner)))
        return pa.struct(fields)
    if any(is_kind(want) and is_kind(have) for is_kind in (is_list, pa.types.is_map)):
        pairs = zip(inner_fields(want), inner_fields(have), strict=True)
        inside = [field.with_type(_type_in(each.type, field.type, path)) for each, field in pairs]
        return with_inner_fields(have, inside)
    return map_types(have, _kept_duration)


def _kept_duration(arrow: pa.DataType) -> pa.DataType | None:
    """Returns the type of durations that databases keep: their intervals count microseconds."""
    return pa.duration("us") if arrow == pa.duration("ns") else None


def _is_number(arrow: pa.DataType) -> bool:
    t = pa.types
    return t.is_integer(arrow) or t.is_floating(arrow) or t.is_decimal(arrow)


def _is_time(arrow: pa.DataType) -> bool:
    return pa.types.is_timestamp(arrow) or pa.types.is_date(arrow) or pa.types.is_time(arrow)
