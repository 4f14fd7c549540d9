"""StructuredTensors to the rows of Spanner tables."""

from __future__ import annotations

import base64
import itertools
import math
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from extensor._arrow.batches import batches_of, num_records_of, with_progress
from extensor._arrow.schema import schema_from_spec
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._choice import expect_one_of
from extensor._dependency import import_extra
from extensor._formats.spanner import types
from extensor._formats.spanner.types import schema_of
from extensor._google import commits, named_errors, retry
from extensor._progress import progress_bar
from extensor._protocol.spec_of import spec_of
from extensor._struct.tensor import StructuredTensor
from extensor.errors import FieldError, ServerError

if TYPE_CHECKING:
    from google.cloud.spanner_v1 import StructType, Type
    from google.cloud.spanner_v1.database import Database
    from google.cloud.spanner_v1.session import Session
    from google.protobuf.struct_pb2 import ListValue

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time

# Spanner refuses a commit of more than 80,000 mutations or 100 MB. Each value is a mutation, and
# each entry of an index one more.
_MUTATIONS = 20_000
_BYTES = 1 << 24

_TEXTS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

_MODES = ("insert", "update", "insert_or_update", "replace")


def write_spanner(
    records: StructuredTensor | Iterable[StructuredTensor],
    table: str,
    database: Database,
    schema: pa.Schema | None = None,
    mode: str = "insert",
    timeout: float = 60.0,
    *,
    progress: bool | None = None,
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
        progress: Whether to show a progress bar. Default: on a terminal and in a notebook, if tqdm
            is installed, after a second.

    Raises:
        MissingDependencyError: If google-cloud-spanner is not installed (also an ImportError).
        QueryError: If Spanner does not accept the rows, for example because of their keys, or has
            no such table or column (also a ValueError).
        AccessError: If the credentials do not permit it (also a PermissionError).
        ServerError: If the server cannot be reached (also a ConnectionError).
        DTypeError: If values do not convert to the type of their column without loss, or `records`
            are not StructuredTensors of rank 1 (also a TypeError).
    """
    import_extra("google.cloud.spanner", "spanner", "write_spanner")
    expect_one_of(_MODES, mode, "write_spanner: mode", "Leave it out for new rows.")
    with (
        progress_bar("write_spanner", progress, num_records_of(records)) as advance,
        _Table(table, database, mode, timeout) as target,
    ):
        for batch in with_progress(batches_of(records, "write_spanner"), advance):
            target.write(batch, schema)


class _Table:
    """A table to write to."""

    def __init__(self, name: str, database: Database, mode: str, timeout: float) -> None:
        self._name = name
        self._database = database
        self._mode = mode
        self._timeout = timeout
        self._fields: dict[tuple[str, ...], list[StructType.Field]] = {}
        self._written = 0
        self._session: Session | None = None

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # A session of a server that cannot be reached ends there after an hour.
        is_there = kind is None or not issubclass(kind, ServerError)
        if self._session is not None and is_there:
            with named_errors(self._name):
                self._session.delete()

    def write(self, records: StructuredTensor, schema: pa.Schema | None) -> None:
        names = tuple(records.field_names())
        if names not in self._fields:
            self._fields[names] = self._fields_of(names)
        rows = _convert(records, self._fields[names], schema)
        columns = [_texts(rows.column(f.name), f.type_) for f in self._fields[names]]
        most = max(1, _MUTATIONS // len(names))
        for values in commits(_messages(columns), most, _BYTES):
            self._commit(names, values)
            self._written += len(values)

    def _fields_of(self, names: tuple[str, ...]) -> list[StructType.Field]:
        """Returns the metadata of columns."""
        from google.cloud.spanner_v1 import KeySet

        if not names:
            expected, fix = "records with at least one field", "Add a field with with_updates."
            raise FieldError(self._name, expected, "records without fields", fix)
        with named_errors(self._name), self._database.snapshot() as snapshot:
            no_rows = KeySet(keys=[])
            results = snapshot.read(
                self._name, list(names), no_rows, lazy_decode=True, retry=retry(self._timeout)
            )
            list(results)
            return list(results.fields)

    def _session_name(self) -> str:
        """Returns the name of the session, which the first commit creates."""
        if self._session is None:
            session = self._database.session()
            with named_errors(self._name):
                session.create()
            self._session = session
        return self._session.name

    def _commit(self, names: tuple[str, ...], rows: list[ListValue]) -> None:
        """Inserts rows. The `commit` of the client tries for an hour to reach a server."""
        from google.cloud.spanner_v1 import CommitRequest, Mutation, TransactionOptions

        write = Mutation.Write(table=self._name, columns=list(names), values=rows)
        request = CommitRequest(
            session=self._session_name(),
            mutations=[Mutation({self._mode: write})],
            single_use_transaction=TransactionOptions(read_write=TransactionOptions.ReadWrite()),
        )
        done = f"{self._name}, after {self._written} records" if self._written else self._name
        with named_errors(done):
            self._database.spanner_api.commit(
                request=request,
                metadata=[("google-cloud-resource-prefix", self._database.name)],
                retry=retry(self._timeout),
            )


def _convert(
    records: StructuredTensor, fields: list[StructType.Field], schema: pa.Schema | None
) -> pa.Table:
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


def _messages(columns: list[list[Any]]) -> Iterator[tuple[ListValue, int]]:
    """Yields the message of each row, and its number of bytes."""
    from google.protobuf.struct_pb2 import ListValue

    for row in zip(*columns, strict=True):
        values = ListValue()
        values.extend(row)
        yield values, values.ByteSize()


def _texts(column: pa.ChunkedArray | pa.Array, kind: Type) -> list[Any]:
    """Returns a column as Spanner's protocol has it: exact types, NaN and infinities as text."""
    code = kind.code
    if code == types.ARRAY:
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        items = iter(_texts(column.flatten(), kind.array_element_type))
        lengths: list[int | None] = pc.list_value_length(column).to_pylist()
        return [None if n is None else list(itertools.islice(items, n)) for n in lengths]
    if code == types.TIMESTAMP:
        # An array of text, such as "2024-01-01 00:00:00.5Z".
        return [t and t.replace(" ", "T") for t in column.cast(pa.string()).to_pylist()]
    if code in (types.DATE, types.INT64, types.ENUM):
        return column.cast(pa.string()).to_pylist()
    values: list[Any] = column.to_pylist()
    if code in (types.FLOAT64, types.FLOAT32):
        return [v if v is None or math.isfinite(v) else _TEXTS[str(v)] for v in values]
    if code == types.NUMERIC and pa.types.is_decimal(column.type):
        return [v if v is None else f"{v:f}" for v in values]
    if code in (types.BYTES, types.PROTO):
        return [v if v is None else base64.b64encode(v).decode() for v in values]
    if code == types.UUID:
        return [v if v is None else str(uuid.UUID(bytes=v)) for v in values]
    return values
