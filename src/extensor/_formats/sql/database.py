"""Reading and writing of SQL databases: DuckDB, and all that have an ADBC driver."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from extensor._arrow.batches import (
    batches_of,
    num_records_of,
    tables_of_size,
    with_one_schema,
    with_progress,
)
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_plain_arrow
from extensor._dependency import import_extra
from extensor._formats.sql.adbc import read_adbc, write_adbc
from extensor._formats.sql.duckdb import is_duckdb, read_duckdb, write_duckdb
from extensor._path import Path, PathLike
from extensor._progress import progress_bar
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DatabaseError, DTypeError, ExtensorError, StructureError

if TYPE_CHECKING:
    import duckdb
    from adbc_driver_manager import dbapi

_EXISTS = ("fail", "append", "replace")


@overload
def read_database(
    query: str,
    connection: str | duckdb.DuckDBPyConnection | dbapi.Connection,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    batch_size: None = None,
) -> StructuredTensor: ...
@overload
def read_database(
    query: str,
    connection: str | duckdb.DuckDBPyConnection | dbapi.Connection,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    batch_size: int,
) -> Iterator[StructuredTensor]: ...
def read_database(
    query: str,
    connection: str | duckdb.DuckDBPyConnection | dbapi.Connection,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    batch_size: int | None = None,
) -> Any:
    """Returns the records of a query.

    The result comes as Arrow data, in batches, without Python values.

    Args:
        query: An SQL query.
        connection: A connection of DuckDB, a DB-API connection of an ADBC driver, such as
            `adbc_driver_postgresql.dbapi.connect(uri)`, or a URI: `postgresql://user@host/name`,
            `duckdb:path/of/file`.
        columns: Paths of the fields to return. Default: all.
        schema: The spec of the records, or an Arrow schema. Default: that of the result.
        nulls: What becomes of nulls: `"error"` (the default), `"mask"` for a MaskedTensor,
            `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by path. More in
            `xt.from_arrow`.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        params: The values of the parameters in the query: a list, or a dict where the driver
            supports names.
        batch_size: If given, the result is an iterator of StructuredTensors of that many records,
            which reads the next batch when it is asked for it.

    Returns:
        A StructuredTensor of shape `[number of records]`, or an iterator.

    Raises:
        DatabaseError: If the database refuses the connection or the query, or fails before the
            last record (also an OSError). The result is complete or there is none; an iterator
            raises the error in place of the next batch.
        UnsupportedTypeError: If PostgreSQL returns an infinite time, of which its ADBC driver makes
            another one, or an array of several dimensions, whose lengths it drops, or DuckDB a
            time with a zone or a UHUGEINT, which it changes (also a TypeError).
        MissingDependencyError: If the library of the URI is not installed (also an ImportError).
        DTypeError, NullError, FieldError, StructureError: As in `from_arrow`.

    >>> import extensor as xt
    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> xt.read_database("select 'Tea' as title, [5, 2] as minutes", connection).to_py()
    [{'title': 'Tea', 'minutes': [5, 2]}]
    """
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    batches = result_of(query, connection, params)
    if batch_size is not None:
        if not isinstance(batch_size, int) or batch_size < 1:
            batches.close()
            expected = "a number of records, at least 1"
            fix = "Leave it out for one StructuredTensor."
            raise StructureError("batch_size", expected, repr(batch_size), fix)
        return _resize(batches, batch_size, wanted)
    found = next(batches)
    return wanted.records(pa.Table.from_batches(batches, found))


def write_database(
    records: StructuredTensor | Iterable[StructuredTensor],
    table: PathLike,
    connection: str | duckdb.DuckDBPyConnection | dbapi.Connection,
    schema: pa.Schema | None = None,
    if_exists: str = "fail",
    *,
    progress: bool | None = None,
) -> None:
    """Writes records to a table of a database: all of them, or none if there is an error.

    Args:
        records: A StructuredTensor of rank 1, or an iterable of batches of one schema.
        table: The name of the table, or `schema.table`.
        connection: A connection of DuckDB, a DB-API connection of an ADBC driver, or a URI, as in
            `read_database`. A transaction that is open in an ADBC connection is committed, or
            rolled back after an error.
        schema: The Arrow schema to write, as in `to_arrow`.
        if_exists: What to do if the table exists: "fail", "append" or "replace".
        progress: Whether to show a progress bar. Default: on a terminal and in a notebook, if tqdm
            is installed, after a second.

    Raises:
        DatabaseError: If the database refuses the records, has no type for a field, or fails (also
            an OSError).
        DTypeError: If `records` is or yields anything but StructuredTensors of rank 1, or a column
            of a table of DuckDB or PostgreSQL does not hold a number, time or text exactly (also a
            TypeError).
        FieldError: If the records in a column of DuckDB lack a field (also a KeyError).
        StructureError: If there is no batch, batches have different schemas, or DuckDB does not
            take the names of the fields (also a ValueError).

    >>> import extensor as xt
    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> xt.write_database(xt.struct.constant([{"steps": [{"tool": "pot"}]}]), "recipe", connection)
    >>> connection.sql("select steps[1].tool from recipe").fetchall()
    [('pot',)]
    """
    if if_exists not in _EXISTS:
        expected = ", ".join(map(repr, _EXISTS))
        raise StructureError("if_exists", expected, repr(if_exists), 'Leave it out for "fail".')
    names = Path.of(table).names
    if len(names) not in (1, 2):
        fix = "Quote a name that contains a dot: '\"a.b\"'."
        raise StructureError("table", "the name of a table, or schema.table", repr(table), fix)
    with (
        progress_bar("write_database", progress, num_records_of(records)) as advance,
        _connection(connection) as opened,
        _name_errors(f"table {Path(*names)}"),
    ):
        raised: list[BaseException] = []  # errors of batches, of which Arrow makes a text
        batches = with_progress(batches_of(records, "write_database"), advance)
        found = (to_plain_arrow(batch, schema) for batch in batches)
        arrow, checked = with_one_schema(found, "write_database", "table")

        def as_reader(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
            return pa.RecordBatchReader.from_batches(schema, _keeping_errors(batches, raised))

        write = write_duckdb if is_duckdb(opened) else write_adbc
        try:
            write(arrow, checked, as_reader, names, opened, if_exists)
        except Exception:
            if raised:
                raise raised[0] from None
            raise


# Reading.


def result_of(
    query: str,
    connection: str | duckdb.DuckDBPyConnection | dbapi.Connection,
    params: Sequence[Any] | Mapping[str, Any] | None,
) -> Generator[Any]:
    """Yields the schema of the result of a query, and then its record batches.

    Raises:
        DatabaseError, UnsupportedTypeError, DTypeError, StructureError: As `read_database`.
    """
    with _connection(connection) as opened, _reads_alone(opened), _name_errors("query"):
        read = read_duckdb if is_duckdb(opened) else read_adbc
        yield from read(query, opened, params)


_reading: set[int] = set()
"""The `id` of each connection that a query reads now."""


@contextlib.contextmanager
def _reads_alone(connection: object) -> Generator[None]:
    """Raises DatabaseError if a connection is read already.

    A driver finds out only while it reads, and then either of the two passes fails.
    """
    own = id(connection)
    if own in _reading:
        received = "a connection with a pass that has not ended"
        fix = "Read that pass to its end, or give the connection as a URI: each pass opens one."
        raise DatabaseError("query", "a connection that no other pass reads", received, fix)
    _reading.add(own)
    try:
        yield
    finally:
        _reading.discard(own)


def _resize(batches: Iterator[Any], size: int, wanted: WantedTable) -> Iterator[StructuredTensor]:
    schema = next(batches)
    is_empty = True
    for table in tables_of_size(batches, size):
        yield wanted.records(table)
        is_empty = False
    if is_empty:
        yield wanted.records(schema.empty_table())


# Writing.


def _keeping_errors(
    batches: Iterable[pa.RecordBatch], raised: list[BaseException]
) -> Iterator[pa.RecordBatch]:
    """Yields batches; an error that they raise is added to a list."""
    try:
        yield from batches
    except GeneratorExit:  # the database failed, and needs no more batches
        raise
    except BaseException as error:
        raised.append(error)
        raise


# Connections and errors.


@contextlib.contextmanager
def _connection(connection: Any) -> Generator[Any]:
    """Yields a connection; one that was made of a URI is closed at the end."""
    if not isinstance(connection, str):
        if not is_duckdb(connection) and not hasattr(connection, "adbc_get_info"):
            expected = "a connection of DuckDB or of an ADBC driver, or a URI"
            fix = "Give adbc_driver_postgresql.dbapi.connect(uri), or duckdb.connect(path)."
            raise DTypeError("connection", expected, type(connection).__qualname__, fix)
        yield connection
        return
    kind, _, rest = connection.partition(":")
    if kind in ("postgresql", "postgres"):
        import_extra("adbc_driver_postgresql", "sql", "read_database")
        driver = import_extra("adbc_driver_postgresql.dbapi", "sql", "read_database")
        text = connection
    elif kind == "duckdb":
        driver, text = import_extra("duckdb", "sql", "read_database"), rest.removeprefix("//")
    else:
        expected = "a URI that begins with postgresql: or duckdb:"
        fix = "Give a connection of the ADBC driver of the database."
        raise StructureError("connection", expected, f"{kind}:...", fix)
    with _name_errors(f"connection to {kind}"):
        opened = driver.connect(text)
    with contextlib.closing(opened):
        yield opened


@contextlib.contextmanager
def _name_errors(path: str) -> Generator[None]:
    """Replaces the errors of drivers by a DatabaseError, with their text."""
    try:
        yield
    except (ExtensorError, ImportError):
        raise
    except Exception as error:
        kind = type(error)
        module = kind.__module__.partition(".")[0]
        is_drivers = module in ("duckdb", "_duckdb", "adbc_driver_manager")
        if not is_drivers and not isinstance(error, (pa.ArrowException, OSError)):
            raise
        expected = "a database that answers without an error"
        received = f"{kind.__name__}: {str(error).strip()}"
        fix = "Correct the query or the table, or connect again."
        raise DatabaseError(path, expected, received, fix) from error
