"""Reading and writing of the databases that have an ADBC driver."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from extensor._arrow.table_columns import as_in_columns, expect_same_bytes
from extensor._formats.sql.statement import AsReader, no_rows, quoted
from extensor._path import Path
from extensor.errors import UnsupportedTypeError

if TYPE_CHECKING:
    from adbc_driver_manager import dbapi

_COMMENT = r"--.*\n|/\*(?:[^*]|\*(?!/))*\*/"
_SELECTS = re.compile(rf"(\s|\(|{_COMMENT})*(select|with|values|table)\b", re.IGNORECASE)
"""The begin of a query that may be a part of another one, after comments."""

_FIRST_DAY = -2_440_588
"""The first day of PostgreSQL, 4714-11-24 BC, counted from 1970."""

_DIMENSIONS = "extensor_dimensions_"


def read_adbc(
    query: str, connection: dbapi.Connection, params: Sequence[Any] | Mapping[str, Any] | None
) -> Iterator[Any]:
    """Yields the schema of the result of a query, and then its record batches."""
    with connection.cursor() as cursor:
        is_postgres = connection.adbc_get_info().get("vendor_name") == "PostgreSQL"
        arrays = _arrays(cursor, query, params) if is_postgres else []
        if arrays:
            query = _with_dimensions(query, arrays)
        cursor.execute(query, params)
        if not cursor.description:
            raise no_rows()
        reader = cursor.fetch_record_batch()
        count = len(reader.schema) - len(arrays)
        yield pa.schema(list(reader.schema)[:count], reader.schema.metadata)
        first = 0
        for batch in reader:
            for i, name in enumerate(arrays):
                _expect_one_dimension(batch.column(count + i), name, first)
            if is_postgres:
                _expect_no_infinity(batch, first)
            first += batch.num_rows
            yield batch.select(range(count))


def _arrays(
    cursor: dbapi.Cursor, query: str, params: Sequence[Any] | Mapping[str, Any] | None
) -> list[str]:
    """Returns the columns of a result of PostgreSQL that are arrays."""
    if not _SELECTS.match(query):
        return []
    schema = cursor.adbc_execute_schema(query, params)
    return [field.name for field in schema if pa.types.is_list(field.type)]


def _with_dimensions(query: str, arrays: list[str]) -> str:
    """Returns a query that also counts the dimensions of arrays.

    PostgreSQL's type of an array does not say how many dimensions a value has, and the driver
    returns the items of all of them as one list.
    """
    query = query.rstrip().removesuffix(";")
    counts = [
        f"array_ndims(extensor_q.{quoted(name)}) as {_DIMENSIONS}{i}"
        for i, name in enumerate(arrays)
    ]
    return f"select extensor_q.*, {', '.join(counts)} from (\n{query}\n) as extensor_q"


def _expect_one_dimension(counts: pa.Array, name: str, first: int) -> None:
    found = counts.fill_null(0).to_numpy(zero_copy_only=False)
    if not (found > 1).any():
        return
    record = int((found > 1).argmax())
    expected = "arrays of one dimension, which are all that the driver of PostgreSQL returns"
    received = f"{found[record]} dimensions in record {first + record}"
    fix = "Select to_json(column)::text, or one list for each row."
    raise UnsupportedTypeError(Path(name), expected, received, fix)


def _expect_no_infinity(batch: pa.RecordBatch, first: int) -> None:
    """Raises for infinite times, of which the driver makes times before the first of PostgreSQL."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        records = None
        if pa.types.is_list(field.type):
            records, column = column.value_parent_indices(), column.flatten()
        if pa.types.is_date32(column.type):
            numbers, days = column.cast(pa.int32()), 1
        elif pa.types.is_timestamp(column.type):  # in microseconds
            numbers, days = column.cast(pa.int64()), 86_400_000_000
        else:
            continue
        is_infinite = numbers.fill_null(0).to_numpy() < _FIRST_DAY * days
        if is_infinite.any():
            record = int(is_infinite.argmax())
            record = record if records is None else records[record].as_py()
            received = f"infinity in record {first + record}"
            fix = "Select another time for it: nullif(column, 'infinity')."
            raise UnsupportedTypeError(Path(field.name), "times that Arrow has", received, fix)


def write_adbc(
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    as_reader: AsReader,
    names: tuple[str, ...],
    connection: dbapi.Connection,
    if_exists: str,
) -> None:
    """Writes batches to a table."""
    modes: dict[str, Any] = {"fail": "create", "replace": "replace", "append": "create_append"}
    mode = modes[if_exists]
    place: dict[str, Any] = {"db_schema_name": names[0] if len(names) == 2 else None}
    portable = pa.schema([_portable_field(field) for field in schema])
    try:
        with connection.cursor() as cursor:
            if connection.adbc_get_info().get("vendor_name") == "PostgreSQL":
                cursor.adbc_ingest(names[-1], portable.empty_table(), mode, **place)
                there = connection.adbc_get_table_schema(
                    names[-1], db_schema_filter=place["db_schema_name"]
                )
                columns = {field.name: field.type for field in there}
                schema, batches = as_in_columns(columns, schema, batches)
                portable = pa.schema([_portable_field(field) for field in schema])
                for field in portable:
                    expect_same_bytes(columns.get(field.name), field.type, Path(field.name))
                mode = "append"
            reader = as_reader(schema, batches).cast(portable)
            cursor.adbc_ingest(names[-1], reader, mode, **place)
        connection.commit()
    except Exception:
        with contextlib.suppress(Exception):  # the first error says more
            connection.rollback()
        raise


def _portable_field(field: pa.Field) -> pa.Field:
    """Returns a field of a type that more drivers support: lists of 32-bit offsets."""
    if pa.types.is_large_list(field.type):
        return field.with_type(pa.list_(_portable_field(field.type.value_field)))
    return field
