"""Reading and writing of SQL databases: DuckDB, and all that have an ADBC driver."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from extensor._arrow.batches import (
    batches_of,
    num_records_of,
    tables_of_size,
    with_one_schema,
    with_progress,
)
from extensor._arrow.table_columns import as_in_columns, expect_same_bytes, folded
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_plain_arrow
from extensor._dependency import import_extra
from extensor._path import Path, PathLike
from extensor._progress import progress_bar
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import (
    DatabaseError,
    DTypeError,
    ExtensorError,
    StructureError,
    UnsupportedTypeError,
)

if TYPE_CHECKING:
    import duckdb
    from adbc_driver_manager import dbapi

_ROWS = 1 << 16
"""Records in a batch of DuckDB."""

_CHANGED = {
    "TIME WITH TIME ZONE": "whose zone DuckDB drops",
    "UHUGEINT": "of which DuckDB makes other numbers",
}
"""The types that DuckDB changes where it makes Arrow of them."""

_CHANGED_TYPE = re.compile(rf"\b({'|'.join(_CHANGED)})\b")
_COMMENT = r"--.*\n|/\*(?:[^*]|\*(?!/))*\*/"
_SELECTS = re.compile(rf"(\s|\(|{_COMMENT})*(select|with|values|table)\b", re.IGNORECASE)
"""The begin of a query that may be a part of another one, after comments."""

_EXISTS = ("fail", "append", "replace")
_FIRST_DAY = -2_440_588
"""The first day of PostgreSQL, 4714-11-24 BC, counted from 1970."""
_VIEW = "extensor_batches_to_write"
_AsReader = Callable[[pa.Schema, Iterable[pa.RecordBatch]], pa.RecordBatchReader]
_DIMENSIONS = "extensor_dimensions_"


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
            of a table of DuckDB or PostgreSQL does not hold a number or a time exactly (also a
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

        write = _write_duckdb if _is_duckdb(opened) else _write_adbc
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
        read = _read_duckdb if _is_duckdb(opened) else _read_adbc
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


def _read_duckdb(
    query: str,
    connection: duckdb.DuckDBPyConnection,
    params: Sequence[Any] | Mapping[str, Any] | None,
) -> Iterator[Any]:
    relation: Any = connection.sql(query, params=params)  # None for a statement without a result
    if relation is None:
        raise _no_rows()
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if changed := _CHANGED_TYPE.search(str(kind)):
            received, fix = f"{kind}, {_CHANGED[changed[1]]}", "Select it as text: column::text."
            raise UnsupportedTypeError(Path(name), "a type that Arrow has", received, fix)
    reader = relation.to_arrow_reader(_ROWS)
    yield reader.schema
    yield from reader


def _read_adbc(
    query: str, connection: dbapi.Connection, params: Sequence[Any] | Mapping[str, Any] | None
) -> Iterator[Any]:
    with connection.cursor() as cursor:
        is_postgres = connection.adbc_get_info().get("vendor_name") == "PostgreSQL"
        arrays = _arrays(cursor, query, params) if is_postgres else []
        if arrays:
            query = _with_dimensions(query, arrays)
        cursor.execute(query, params)
        if not cursor.description:
            raise _no_rows()
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
        f"array_ndims(extensor_q.{_quote(name)}) as {_DIMENSIONS}{i}"
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


def _write_duckdb(
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    as_reader: _AsReader,
    names: tuple[str, ...],
    connection: duckdb.DuckDBPyConnection,
    if_exists: str,
) -> None:
    table = _table(names)
    _expect_names(schema)
    # An error of `append` must not leave the table that it made.
    with _transaction(connection):
        own: dict[bytes, pa.DataType] = {}
        if if_exists == "append":
            with _register_view(schema.empty_table(), connection):
                connection.execute(f"create table if not exists {table} as from {_VIEW}")
            there = connection.sql(f"from {table} limit 0").to_arrow_reader(1).schema
            own = {folded(field.name): field.type for field in there}
        columns = {name: own.get(folded(name)) for name in schema.names}
        start = {
            "fail": f"create table {table} as",
            "replace": f"create or replace table {table} as",
            "append": f"insert into {table} by name",
        }[if_exists]
        with _register_view(as_reader(*as_in_columns(columns, schema, batches)), connection):
            connection.execute(f"{start} select * from {_VIEW}")


def _write_adbc(
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    as_reader: _AsReader,
    names: tuple[str, ...],
    connection: dbapi.Connection,
    if_exists: str,
) -> None:
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


# Connections and errors.


def _is_duckdb(connection: object) -> bool:
    kind = type(connection)
    is_known = kind.__module__.partition(".")[0] in ("duckdb", "_duckdb")
    return is_known and kind.__name__ != "DuckDBPyRelation"


@contextlib.contextmanager
def _connection(connection: Any) -> Generator[Any]:
    """Yields a connection; one that was made of a URI is closed at the end."""
    if not isinstance(connection, str):
        if not _is_duckdb(connection) and not hasattr(connection, "adbc_get_info"):
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


def _no_rows() -> StructureError:
    fix = "Run it with the connection itself."
    return StructureError("query", "a query that returns rows", "a statement without a result", fix)


def _table(names: tuple[str, ...]) -> str:
    return ".".join(map(_quote, names))


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
