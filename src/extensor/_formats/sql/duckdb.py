"""Reading and writing of DuckDB."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from extensor._arrow.table_columns import as_in_columns, folded
from extensor._formats.sql.statement import AsReader, no_rows, quoted
from extensor._path import Path
from extensor.errors import StructureError, UnsupportedTypeError

if TYPE_CHECKING:
    import duckdb

_ROWS = 1 << 16
"""Records in a batch of DuckDB."""

_CHANGED = {
    "TIME WITH TIME ZONE": "whose zone DuckDB drops",
    "UHUGEINT": "of which DuckDB makes other numbers",
}
"""The types that DuckDB changes where it makes Arrow of them."""

_CHANGED_TYPE = re.compile(rf"\b({'|'.join(_CHANGED)})\b")
_VIEW = "extensor_batches_to_write"


def read_duckdb(
    query: str,
    connection: duckdb.DuckDBPyConnection,
    params: Sequence[Any] | Mapping[str, Any] | None,
) -> Iterator[Any]:
    """Yields the schema of the result of a query, and then its record batches."""
    relation: Any = connection.sql(query, params=params)  # None for a statement without a result
    if relation is None:
        raise no_rows()
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if changed := _CHANGED_TYPE.search(str(kind)):
            received, fix = f"{kind}, {_CHANGED[changed[1]]}", "Select it as text: column::text."
            raise UnsupportedTypeError(Path(name), "a type that Arrow has", received, fix)
    reader = relation.to_arrow_reader(_ROWS)
    yield reader.schema
    yield from reader


def _expect_names(schema: pa.Schema) -> None:
    """Raises StructureError if DuckDB would give a column another name."""
    seen: dict[bytes, str] = {}
    for name in schema.names:
        other = seen.setdefault(folded(name), name)
        if not name or other != name:
            expected = "names of fields that are not empty, and differ in more than their case"
            received = f"{other} and {name}" if name else "an empty name"
            raise StructureError(Path(name), expected, received, "Rename the field.")


@contextlib.contextmanager
def _register_view(
    source: pa.RecordBatchReader | pa.Table, connection: duckdb.DuckDBPyConnection
) -> Generator[None]:
    """Gives Arrow data the name `_VIEW` in a connection."""
    connection.register(_VIEW, source)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # in a transaction that an error ended
            connection.unregister(_VIEW)


@contextlib.contextmanager
def _transaction(connection: duckdb.DuckDBPyConnection) -> Generator[None]:
    """Runs several statements, or none if there is an error; in a transaction that is open."""
    numbers = [connection.sql("select txid_current()").fetchall() for _ in range(2)]
    if numbers[0] == numbers[1]:  # one is open: it has one number
        yield
        return
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        with contextlib.suppress(Exception):  # the first error says more
            connection.rollback()
        raise


_OWN_TEXT = re.compile(r"^UUID$|\bBIT\b|\bGEOMETRY\b")
"""Types of DuckDB that Arrow has as text or bytes, and that are read from other text or bytes."""


def write_duckdb(
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    as_reader: AsReader,
    names: tuple[str, ...],
    connection: duckdb.DuckDBPyConnection,
    if_exists: str,
) -> None:
    """Writes batches to a table."""
    table = _table(names)
    _expect_names(schema)
    # An error of `append` must not leave the table that it made.
    with _transaction(connection):
        own: dict[bytes, pa.DataType] = {}
        if if_exists == "append":
            with _register_view(schema.empty_table(), connection):
                connection.execute(f"create table if not exists {table} as from {_VIEW}")
            there = connection.sql(f"from {table} limit 0")
            own = {
                folded(field.name): field.type
                for field, kind in zip(there.to_arrow_reader(1).schema, there.types, strict=True)
                if not _OWN_TEXT.search(str(kind))
            }
        columns = {name: own.get(folded(name)) for name in schema.names}
        start = {
            "fail": f"create table {table} as",
            "replace": f"create or replace table {table} as",
            "append": f"insert into {table} by name",
        }[if_exists]
        with _register_view(as_reader(*as_in_columns(columns, schema, batches)), connection):
            connection.execute(f"{start} select * from {_VIEW}")


def is_duckdb(connection: object) -> bool:
    """Returns whether a connection is one of DuckDB."""
    kind = type(connection)
    is_known = kind.__module__.partition(".")[0] in ("duckdb", "_duckdb")
    return is_known and kind.__name__ != "DuckDBPyRelation"


def _table(names: tuple[str, ...]) -> str:
    return ".".join(map(quoted, names))
