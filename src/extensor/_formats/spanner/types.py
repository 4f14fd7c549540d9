"""Types of Spanner as Arrow types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from extensor._arrow.arrow_type import is_list
from extensor._path import Path
from extensor.errors import FieldError, StructureError, UnsupportedTypeError

if TYPE_CHECKING:
    from google.cloud.spanner_v1 import StructType, Type

# google.spanner.v1.TypeCode
BOOL, INT64, FLOAT64, TIMESTAMP, DATE, STRING, BYTES, ARRAY, STRUCT, NUMERIC, JSON = range(1, 12)
PROTO, ENUM, FLOAT32, INTERVAL, UUID = range(13, 18)

# google.spanner.v1.TypeAnnotationCode: numbers of PostgreSQL, with any number of digits.
_PG_NUMERIC = 2

_LEAVES: dict[int, pa.DataType] = {
    BOOL: pa.bool_(),
    INT64: pa.int64(),
    FLOAT64: pa.float64(),
    FLOAT32: pa.float32(),
    TIMESTAMP: pa.timestamp("ns", "UTC"),
    DATE: pa.date32(),
    STRING: pa.string(),
    BYTES: pa.binary(),
    NUMERIC: pa.decimal128(38, 9),
    JSON: pa.json_(pa.string()),
    PROTO: pa.binary(),
    ENUM: pa.int64(),
    INTERVAL: pa.month_day_nano_interval(),
    UUID: pa.uuid(),
}


def schema_of(fields: Iterable[StructType.Field], wanted: pa.Schema | None = None) -> pa.Schema:
    """Returns the Arrow schema of the columns of a result.

    Args:
        fields: The fields of its metadata.
        wanted: The schema that the caller wants: it chooses the units of timestamps, the digits
            of numbers, and the fields of records.

    Raises:
        StructureError: If a column has no name, or the name of another one (also a ValueError).
        UnsupportedTypeError: If Spanner gives a type that has no counterpart (also a TypeError).
    """
    return pa.schema(_fields(fields, None if wanted is None else pa.struct(list(wanted)), Path()))


def _fields(
    fields: Iterable[StructType.Field], wanted: pa.StructType | None, path: Path
) -> list[pa.Field]:
    made: list[pa.Field] = []
    names = [field.name for field in fields]
    for field in [] if wanted is None else wanted.fields:
        if field.name not in names:
            expected = "one column of this name, because schema= has it"
            received = f"the columns {', '.join(names[:20])}"
            raise FieldError(path / field.name, expected, received, "Correct schema= or the query.")
    for index, field in enumerate(fields):
        if not field.name or names.count(field.name) > 1:
            expected, received = "columns with different names", f"no name for column {index + 1}"
            if field.name:
                received = f"{names.count(field.name)} columns with the name {field.name!r}"
            fix = "Name each column in the query: SELECT ... AS name."
            raise StructureError(path if path else "read_spanner", expected, received, fix)
        which = -1 if wanted is None else wanted.get_field_index(field.name)
        if wanted is not None and which < 0:
            continue  # nobody wants this column
        inner = None if wanted is None else wanted.field(which).type
        made.append(pa.field(field.name, _type(field.type_, inner, path / field.name)))
    return made


def _type(kind: Type, wanted: pa.DataType | None, path: Path) -> pa.DataType:
    if kind.code == ARRAY:
        items = wanted.value_type if wanted is not None and is_list(wanted) else None
        return pa.list_(_type(kind.array_element_type, items, path))
    if kind.code == STRUCT:
        records = wanted if wanted is not None and pa.types.is_struct(wanted) else None
        return pa.struct(_fields(kind.struct_type.fields, records, path))
    if wanted is not None and _is_exact(kind.code, wanted):
        return pa.timestamp(wanted.unit, "UTC") if pa.types.is_timestamp(wanted) else wanted
    if kind.code == NUMERIC and kind.type_annotation == _PG_NUMERIC:
        return pa.string()
    if kind.code not in _LEAVES:
        expected = "a type of Spanner with a counterpart in Arrow"
        fix = "Cast the column in the query: CAST(... AS STRING)."
        raise UnsupportedTypeError(path, expected, f"the type with code {kind.code}", fix)
    return _LEAVES[kind.code]


def _is_exact(code: int, wanted: pa.DataType) -> bool:
    """Returns whether the text of a value is converted to the wanted type itself."""
    if code == TIMESTAMP:
        return pa.types.is_timestamp(wanted)
    return code == NUMERIC and pa.types.is_decimal(wanted)
