"""Results of Spanner queries as StructuredTensors."""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime
import decimal
import itertools
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._dependency import import_extra
from extensor._formats.spanner import types
from extensor._formats.spanner.types import schema_of
from extensor._google import named_errors, retry
from extensor._path import Path, PathLike
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError, QueryError

if TYPE_CHECKING:
    from google.cloud.spanner_v1 import Type
    from google.cloud.spanner_v1.database import BatchSnapshot, Database
    from google.cloud.spanner_v1.snapshot import Snapshot
    from google.cloud.spanner_v1.streamed import StreamedResultSet
    from google.cloud.spanner_v1.transaction import Transaction

# Rows are converted in parts, because a value of the protocol takes ten times the memory of the
# value in Arrow.
_PART = 1 << 14

_THREADS = 8


def read_spanner(
    source: Database | BatchSnapshot | Snapshot | Transaction,
    query: str,
    params: Mapping[str, Any] | None = None,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    param_types: Mapping[str, Any] | None = None,
    timeout: float = 60.0,
) -> StructuredTensor:
    """Returns the rows of a Spanner query as a StructuredTensor.

    Types follow from the metadata of the result: INT64 and ENUM are int64; FLOAT64 and FLOAT32 are
    float64 and float32; TIMESTAMP is int64 in nanoseconds; DATE is int32 in days; NUMERIC is a
    decimal of 38 digits, 9 of them behind the point; STRING, BYTES, JSON and PROTO are strings;
    ARRAY is a list, and STRUCT a record.

    Args:
        source: A Database, a Snapshot or a Transaction of the package google-cloud-spanner. A
            BatchSnapshot (`database.batch_snapshot()`) reads the partitions of the query in
            parallel; Spanner then gives the rows in no order.
        query: The query, in SQL.
        params: The values of the parameters of the query, by name.
        columns: Paths of the fields to convert. Default: all.
        schema: The spec or pyarrow schema of the result; it may choose other units of timestamps
            and other digits of decimals. Default: that of the metadata.
        nulls: What becomes of nulls: `"error"` (the default), `"mask"` for a MaskedTensor,
            `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by path. More in
            `xt.from_arrow`.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        param_types: The types of parameters, by name, as in google-cloud-spanner. They are needed
            for None and for lists that are empty; the others follow from the values.
        timeout: For how many seconds a request is repeated while the server is not available.

    Returns:
        A StructuredTensor of shape `[number of rows]`.

    Raises:
        MissingDependencyError: If google-cloud-spanner is not installed (also an ImportError).
        QueryError: If Spanner does not accept the query (also a ValueError).
        AccessError: If the credentials do not permit it (also a PermissionError).
        ServerError: If the server cannot be reached, or does not give all rows (also a
            ConnectionError).
        StructureError: If columns have no name or the same name (also a ValueError).
        DTypeError: If a value does not fit its type, such as a timestamp after 2262 (also a
            TypeError).
        FieldError, NullError, UnsupportedTypeError: As in `from_arrow`.
    """
    import_extra("google.cloud.spanner", "spanner", "read_spanner")
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    sql = _Query("read_spanner", query, params, param_types, wanted, timeout)
    if hasattr(source, "generate_query_batches"):
        tables = sql.partitions(source)
    elif hasattr(source, "execute_sql") or hasattr(source, "snapshot"):
        tables = sql.tables(source)
    else:
        expected = "a Database, Snapshot or BatchSnapshot of google-cloud-spanner"
        fix = "Get one by spanner.Client().instance(...).database(...)."
        raise DTypeError("read_spanner", expected, type(source).__name__, fix)
    return wanted.records(pa.concat_tables(tables))


def result_of(
    source: Any,
    query: str,
    params: Mapping[str, Any] | None,
    param_types: Mapping[str, Any] | None,
    wanted: WantedTable,
    timeout: float,
) -> Generator[Any]:
    """Yields the schema of the result of a query, and then its record batches.

    Args:
        source: A Database, or a Snapshot for several reads.
        query: As in `read_spanner`, like the rest.
        params: See there.
        param_types: See there.
        wanted: The arguments `columns` and `schema`.
        timeout: See there.

    Raises:
        QueryError, AccessError, ServerError, DTypeError, StructureError: As `read_spanner`.
    """
    import_extra("google.cloud.spanner", "spanner", "xt.data.spanner")
    is_database = hasattr(source, "snapshot")
    is_for_one = not is_database and not getattr(source, "_multi_use", False)
    if is_for_one or hasattr(source, "generate_query_batches"):
        expected = "a Database, or a Snapshot for several reads, of google-cloud-spanner"
        fix = "Give the Database, or database.snapshot(multi_use=True) in a with statement."
        raise DTypeError("xt.data.spanner", expected, type(source).__name__, fix)
    sql = _Query("xt.data.spanner", query, params, param_types, wanted, timeout)
    for number, table in enumerate(sql.tables(source)):
        if not number:
            yield table.schema
        yield from table.to_batches()


class _Query:
    """A query with its parameters, what is wanted of its result, and who reads it, for errors."""

    def __init__(
        self,
        function: str,
        text: str,
        params: Mapping[str, Any] | None,
        param_types: Mapping[str, Any] | None,
        wanted: WantedTable,
        timeout: float,
    ) -> None:
        params = {name: _plain(value) for name, value in (params or {}).items()}
        found = {name: _type_of(value) for name, value in params.items()}
        given = {name: kind for name, kind in found.items() if kind is not None}
        self._function = function
        self._wanted = wanted
        self._retry = {"retry": retry(timeout)}
        self._arguments: dict[str, Any] = {
            "sql": text,
            "params": {name: _encode(value) for name, value in params.items()} or None,
            "param_types": {**given, **(param_types or {})} or None,
            **self._retry,
        }

    def tables(self, source: Any) -> Iterator[pa.Table]:
        """Yields the rows of the query in parts, at least one.

        Args:
            source: A snapshot; or a database, of which a new snapshot is read.
        """
        with named_errors(self._function), contextlib.ExitStack() as opened:
            if not hasattr(source, "execute_sql"):
                source = opened.enter_context(source.snapshot())
            # The errors are converted before the snapshot ends, which asks the server after some.
            opened.enter_context(named_errors(self._function))
            yield from self._tables(self._begun(source.execute_sql, lazy_decode=True))

    def partitions(self, snapshot: Any) -> list[pa.Table]:
        """Returns the rows of each partition of the query in a BatchSnapshot."""

        def read(batch: Mapping[str, Any]) -> pa.Table:
            results = snapshot.process_query_batch(batch, lazy_decode=True, **self._retry)
            return pa.concat_tables(self._tables(results))

        with named_errors(self._function), ThreadPoolExecutor(_THREADS) as threads:
            batches = self._begun(lambda **k: list(snapshot.generate_query_batches(**k)))
            reads = [threads.submit(read, batch) for batch in batches]
            try:
                return [each.result() for each in reads]
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _begun(self, execute: Callable[..., Any], **options: Any) -> Any:
        """Returns what a method of the client returns for the query."""
        try:
            return execute(**self._arguments, **options)
        except ValueError as error:  # of a parameter, or of a snapshot that was read already
            expected = "a source, and values in params=, that the client of Spanner takes"
            fix = "Give Python values; a Snapshot for one read is read once."
            raise QueryError(self._function, expected, str(error)[:200], fix) from error

    def _tables(self, results: StreamedResultSet) -> Iterator[pa.Table]:
        """Yields the rows of a result in parts, at least one."""
        for rows in _parts(iter(results)):
            fields = [] if results.metadata is None else results.fields
            if not fields:
                received = "a statement that returns no rows"
                fix = "Write a SELECT, or add THEN RETURN to the statement."
                raise QueryError("read_spanner", "a query with columns", received, fix)
            schema = schema_of(fields, self._wanted.schema)
            if self._wanted.schema is None:
                schema = self._wanted.pruned(schema)
            yield table_of(rows, fields, schema)


def _parts(rows: Iterator[Any]) -> Iterator[list[Any]]:
    """Yields rows in parts, at least one."""
    yield list(itertools.islice(rows, _PART))
    while part := list(itertools.islice(rows, _PART)):
        yield part


_PARAMETERS: tuple[tuple[type, int], ...] = (
    (bool, types.BOOL),
    (int, types.INT64),
    (float, types.FLOAT64),
    (str, types.STRING),
    (bytes, types.BYTES),
    (datetime.datetime, types.TIMESTAMP),
    (datetime.date, types.DATE),
    (decimal.Decimal, types.NUMERIC),
    (uuid.UUID, types.UUID),
)


def _type_of(value: object) -> Type | None:
    """Returns the Spanner type of a parameter, or None if its value does not show it."""
    from google.cloud.spanner_v1 import Type

    if isinstance(value, (list, tuple)):
        items = next((each for each in map(_type_of, value) if each is not None), None)
        return None if items is None else Type(code=types.ARRAY, array_element_type=items)
    code = next((code for cls, code in _PARAMETERS if isinstance(value, cls)), None)
    return None if code is None else Type(code=code)


def _plain(value: Any) -> Any:
    """Returns the value of a parameter without types of NumPy and pandas.

    The client does not take those of NumPy, and drops the nanoseconds of a pandas.Timestamp.
    """
    from google.api_core.datetime_helpers import DatetimeWithNanoseconds

    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, datetime.datetime) and hasattr(value, "to_datetime64"):
        value = value.to_datetime64()  # pyright: ignore - of a pandas.Timestamp, in UTC
    if not isinstance(value, (np.generic, np.ndarray)):
        return value
    # NumPy's own conversion makes ints of nanoseconds.
    dtype: np.dtype[Any] = value.dtype
    if isinstance(value, np.ndarray) and value.ndim and dtype.kind in "mM":
        return [_plain(item) for item in value]
    if dtype == np.dtype("M8[ns]") and not np.isnat(value):
        return DatetimeWithNanoseconds.from_rfc3339(f"{value}Z")
    return (value.astype("m8[us]") if dtype.kind == "m" else value).tolist()


def _encode(value: Any) -> Any:
    """Returns the value of a parameter as the client takes it: it wants bytes in base64."""
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    return base64.b64encode(value) if isinstance(value, bytes) else value


_INT32 = 2**31 - 1


def table_of(rows: Sequence[Any], fields: Sequence[Any], schema: pa.Schema) -> pa.Table:
    """Returns rows of a result as a table.

    Args:
        rows: A list of `google.protobuf.Value` for each row.
        fields: The fields of the metadata of the result.
        schema: The columns to convert, with their types.

    Raises:
        DTypeError: If a value is out of the range of a type (also a TypeError).
    """
    indices = {field.name: index for index, field in enumerate(fields)}
    columns: list[pa.Array] = []
    for field in schema:
        index = indices[field.name]
        values = [row[index] for row in rows]
        columns.append(_array(values, fields[index].type_, field.type, Path(field.name)))
    return pa.Table.from_arrays(columns, schema=schema)


def _array(values: list[Any], kind: Any, arrow: pa.DataType, path: Path) -> pa.Array:
    if kind.code == types.ARRAY:
        return _lists(values, kind, arrow, path)
    if kind.code == types.STRUCT:
        return _records(values, kind, arrow, path)
    if kind.code == types.BOOL:
        return pa.array([v.bool_value or _or_null(v, False) for v in values], arrow)
    if kind.code in (types.FLOAT64, types.FLOAT32):
        return pa.array([v.number_value or _float(v) for v in values], arrow)
    texts = [v.string_value or _or_null(v, "") for v in values]
    convert = _CONVERSIONS.get(kind.code, _cast)
    try:
        return convert(texts, arrow)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise _out_of_range(texts, arrow, convert, path) from error


def _lists(values: list[Any], kind: Any, arrow: pa.DataType, path: Path) -> pa.Array:
    lists = [v.list_value.values for v in values]
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(each) for each in lists], out=offsets[1:])
    items = list(itertools.chain.from_iterable(lists))
    inner = _array(items, kind.array_element_type, arrow.value_type, path)
    if offsets[-1] > _INT32:
        expected = f"at most {_INT32:,} items in the lists of a part of the result"
        raise DTypeError(path, expected, f"{offsets[-1]:,} items", "Read the result in parts.")
    buffers = [_validity(values), pa.py_buffer(offsets.astype(np.int32))]
    return pa.Array.from_buffers(arrow, len(values), buffers, children=[inner])


def _records(values: list[Any], kind: Any, arrow: pa.DataType, path: Path) -> pa.Array:
    records = [v.list_value.values for v in values]
    validity = _validity(values)
    if validity is not None:
        nothing = _null(len(kind.struct_type.fields))
        records = [record if len(record) else nothing for record in records]
    indices = {field.name: index for index, field in enumerate(kind.struct_type.fields)}
    children: list[pa.Array] = []
    for field in arrow:
        index = indices[field.name]
        column = [record[index] for record in records]
        inner = kind.struct_type.fields[index].type_
        children.append(_array(column, inner, field.type, path / field.name))
    return pa.Array.from_buffers(arrow, len(values), [validity], children=children)


def _null(count: int) -> list[Any]:
    """Returns the values of the fields of a null record."""
    from google.protobuf import struct_pb2

    return [struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)] * count


def _validity(values: list[Any]) -> pa.Buffer | None:
    """Returns which lists or records are not null; None if all are."""
    # The value of a null has no lists, so only empty ones can be null.
    valid = [len(v.list_value.values) > 0 or not v.HasField("null_value") for v in values]
    return None if all(valid) else pa.array(valid, pa.bool_()).buffers()[1]


def _or_null(value: Any, default: Any) -> Any:
    """Returns the default of protocol buffers, or None if the value is null."""
    return None if value.HasField("null_value") else default


def _float(value: Any) -> float | None:
    """Returns a float that may be 0, null, or one that JSON does not have, such as NaN."""
    if value.HasField("string_value"):
        return float(value.string_value)
    return _or_null(value, value.number_value)


def _cast(texts: list[Any], arrow: pa.DataType) -> pa.Array:
    return pa.array(texts, pa.string()).cast(arrow)


def _bytes(texts: list[Any], arrow: pa.DataType) -> pa.Array:
    return pa.array([t if t is None else binascii.a2b_base64(t) for t in texts], arrow)


def _json(texts: list[Any], arrow: pa.DataType) -> pa.Array:
    return pa.ExtensionArray.from_storage(arrow, pa.array(texts, arrow.storage_type))


def _uuids(texts: list[Any], arrow: pa.DataType) -> pa.Array:
    storage = [t if t is None else uuid.UUID(t).bytes for t in texts]
    return pa.ExtensionArray.from_storage(arrow, pa.array(storage, arrow.storage_type))


def _intervals(texts: list[Any], arrow: pa.DataType) -> pa.Array:
    from google.cloud.spanner_v1.data_types import Interval

    parsed: list[Any] = [t if t is None else Interval.from_str(t) for t in texts]
    rows = [each if each is None else (each.months, each.days, each.nanos) for each in parsed]
    return pa.array(rows, arrow)


_CONVERSIONS: dict[int, Callable[[list[Any], pa.DataType], pa.Array]] = {
    types.BYTES: _bytes,
    types.PROTO: _bytes,
    types.JSON: _json,
    types.UUID: _uuids,
    types.INTERVAL: _intervals,
}


def _out_of_range(
    texts: list[Any], arrow: pa.DataType, convert: Callable[..., Any], path: Path
) -> DTypeError:
    """Returns the error for the first value that does not convert."""
    wrong = texts[0] if texts else ""
    for wrong in texts:
        try:
            convert([wrong], arrow)
        except (pa.ArrowException, ValueError, OverflowError):
            break
    fix = "Give schema= with a type that holds all values."
    if pa.types.is_timestamp(arrow):
        fix = (
            'Nanoseconds reach from 1677 to 2262. Give schema= with pa.timestamp("us", "UTC") for '
            'other years, and with pa.timestamp("ns", "UTC") for more digits.'
        )
    return DTypeError(path, f"values that Arrow type {arrow} holds", str(wrong)[:60], fix)
