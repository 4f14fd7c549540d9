"""StructuredTensors to the rows of Spanner tables."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from extensor._arrow.schema import schema_from_spec
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._dependency import needed
from extensor._formats.spanner import types
from extensor._formats.spanner.types import schema_of
from extensor._google import named_errors, retry
from extensor._protocol.spec_of import spec_of
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, FieldError

# Spanner refuses a commit of more than 80,000 mutations or 100 MB. Each value is a mutation, and
# each entry of an index one more.
_MUTATIONS = 20_000
_BYTES = 1 << 24

_MODES = ("insert", "update", "insert_or_update", "replace")


def write_spanner(
    records: StructuredTensor | Iterable[StructuredTensor],
    table: str,
    database: Any,
    schema: pa.Schema | None = None,
    mode: str = "insert",
    timeout: float = 60.0,
) -> None:
    """Writes records to a Spanner table, as mutations.

    Each field is a column of the table, and is converted to its type. A commit has up to 20,000
    values or 16 MiB. A write of more than that is several commits: if one fails, the error tells
    how many records are in the table.

    Args:
        records: A StructuredTensor of rank 1, or an iterable of batches, such as a dataset.
        table: The name of the table, which exists.
        database: A Database of the package google-cloud-spanner.
        schema: The Arrow schema to convert to first, as in `to_arrow`.
        mode: `"insert"`: rows whose keys exist are an error. `"insert_or_update"`: the values of
            these are replaced. `"update"`: the rows exist. `"replace"`: columns that are not
            written become null.
        timeout: For how many seconds a request is repeated while the server is not available.

    Raises:
        MissingDependencyError: If google-cloud-spanner is not installed (also an ImportError).
        QueryError: If Spanner does not accept the rows, for example because of their keys, or has
            no such table or column (also a ValueError).
        AccessError: If the credentials do not permit it (also a PermissionError).
        ServerError: If the server cannot be reached (also a ConnectionError).
        DTypeError: If values do not convert to the type of their column without loss, or `records`
            are not StructuredTensors of rank 1 (also a TypeError).
    """
    needed("google.cloud.spanner", "spanner", "write_spanner")
    if mode not in _MODES:
        raise DTypeError(
            path="write_spanner: mode",
            expected=" or ".join(f'"{each}"' for each in _MODES),
            received=repr(mode)[:60],
            mend="Leave it out for new rows.",
        )
    batches = [records] if isinstance(records, StructuredTensor) else records
    if not isinstance(batches, Iterable):
        batches = [batches]  # `_expect_batch` raises, as for any batch of the wrong type
    fields: dict[tuple[str, ...], Any] = {}
    written = 0
    for batch in batches:
        _expect_batch(batch)
        names = tuple(batch.field_names())
        if names not in fields:
            with named_errors(table):
                fields[names] = _fields(database, table, names, timeout)
        rows = _converted(batch, fields[names], schema)
        values = [_texts(rows.column(field.name), field.type_) for field in fields[names]]
        for start, stop in _commits(rows):
            source = f"{table}, after {written} records" if written else table
            part = list(zip(*(column[start:stop] for column in values), strict=True))
            with named_errors(source), database.batch(timeout_secs=timeout) as mutations:
                getattr(mutations, mode)(table, list(names), part)
            written += stop - start


def _expect_batch(records: Any) -> None:
    if isinstance(records, StructuredTensor) and records.rank == 1:
        return
    raise DTypeError(
        path="write_spanner",
        expected="StructuredTensors of rank 1",
        received=f"{type(records).__name__} of shape {records.shape}"
        if isinstance(records, StructuredTensor)
        else type(records).__name__,
        mend="Give a batch of records; a table has a row for each.",
    )


def _fields(database: Any, table: str, names: tuple[str, ...], timeout: float) -> Any:
    """Returns the metadata of columns of a table."""
    if not names:
        raise FieldError(
            path=table,
            expected="records with at least one field",
            received="records without fields",
            mend="Add a field with with_updates.",
        )
    from google.cloud.spanner_admin_database_v1 import DatabaseDialect

    mark = '"' if database.database_dialect == DatabaseDialect.POSTGRESQL else "`"
    columns = ", ".join(f"{mark}{name}{mark}" for name in names)
    source = ".".join(f"{mark}{part}{mark}" for part in table.split("."))
    with database.snapshot() as snapshot, named_errors(table):
        results = snapshot.execute_sql(
            f"SELECT {columns} FROM {source} LIMIT 0", lazy_decode=True, retry=retry(timeout)
        )
        list(results)
        return list(results.fields)


def _converted(records: StructuredTensor, fields: Any, schema: pa.Schema | None) -> pa.Table:
    """Returns records with the types of the columns."""
    own = schema_from_spec(spec_of(records)) if schema is None else schema
    made = [field.with_type(_plain(field.type)) for field in schema_of(fields, own)]
    if schema is None:
        return pa.Table.from_batches([to_arrow(records, pa.schema(made))])
    table = pa.Table.from_batches([to_arrow(records, schema)])
    return WantedTable(schema=pa.schema(made)).table(table)


def _plain(arrow: pa.DataType) -> pa.DataType:
    """Returns the storage of JSON and UUID, also in lists."""
    if pa.types.is_list(arrow):
        return pa.list_(_plain(arrow.value_type))
    return arrow.storage_type if isinstance(arrow, pa.BaseExtensionType) else arrow


def _commits(rows: pa.Table) -> Iterator[tuple[int, int]]:
    """Yields the first and the last but one row of each commit."""
    count = max(1, _MUTATIONS // rows.num_columns)
    if rows.nbytes:
        count = max(1, min(count, _BYTES * rows.num_rows // rows.nbytes))
    for start in range(0, rows.num_rows, count):
        yield start, min(start + count, rows.num_rows)


def _texts(column: pa.ChunkedArray | pa.Array, kind: Any) -> list[Any]:
    """Returns a column as the client takes it: exact types as the text of Spanner's protocol."""
    code = kind.code
    if code == types.ARRAY:
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        items = _texts(column.flatten(), kind.array_element_type)
        ends: list[int] = pa.compute.cumulative_sum(
            pa.compute.fill_null(pa.compute.list_value_length(column), 0)
        ).to_pylist()
        starts = [0, *ends][:-1]
        valid: list[bool] = column.is_valid().to_pylist()
        return [
            items[start:end] if is_valid else None
            for start, end, is_valid in zip(starts, ends, valid, strict=True)
        ]
    if code == types.TIMESTAMP:
        # An array of text, such as "2024-01-01 00:00:00.5Z".
        return [t and t.replace(" ", "T") for t in column.cast(pa.string()).to_pylist()]
    if code == types.DATE:
        return column.cast(pa.string()).to_pylist()
    values: list[Any] = column.to_pylist()
    if code == types.NUMERIC and pa.types.is_decimal(column.type):
        return [v if v is None else f"{v:f}" for v in values]
    if code in (types.BYTES, types.PROTO):
        return [v if v is None else base64.b64encode(v).decode() for v in values]
    if code == types.UUID:
        return [v if v is None else str(uuid.UUID(bytes=v)) for v in values]
    return values
