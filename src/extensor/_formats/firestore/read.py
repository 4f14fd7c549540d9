"""Firestore documents as StructuredTensors."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._choice import expect_one_of
from extensor._dependency import import_extra
from extensor._formats.firestore.values import Plain
from extensor._formats.python.documents import field_names, records_of_documents, with_key
from extensor._google import is_unavailable, named_errors
from extensor._path import PathLike
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError

if TYPE_CHECKING:
    from google.api_core.retry import Retry
    from google.cloud.firestore_v1 import CollectionReference, DocumentSnapshot, Query

# The number of documents in a record batch.
_PART = 1 << 10


@refuse_deep_nesting("read_firestore")
def read_firestore(
    source: CollectionReference | Query,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    conflicts: str = "error",
    row_splits_dtype: DTypeLike | None = None,
    id_field: str | None = None,
    timeout: float = 60.0,
) -> StructuredTensor:
    """Returns the documents of a Firestore query as a StructuredTensor.

    Numbers are int64, or float64 in a field that has both; timestamps are int64 in microseconds;
    maps are records, and arrays lists. A reference is the path of its document, and a geopoint a
    record of latitude and longitude; both are written as what they were. A field that a document
    does not have is null.

    All documents are read as they were at one time, also where the connection was interrupted.

    Args:
        source: A collection, a collection group or a query of the package google-cloud-firestore.
        columns: Paths of the fields to read. The server sends only the top-level fields of these
            paths. Default: all.
        schema: The spec or pyarrow schema of the documents. Default: that of the values.
        nulls: What becomes of nulls and missing fields: `"error"` (the default), `"mask"` for a
            MaskedTensor, `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by
            path. More in `xt.from_arrow`.
        conflicts: What becomes of a field whose values have different types: `"error"` (the
            default), or `"union"` for a UnionTensor.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        id_field: The name of a field for the ids of the documents. Default: no such field.
        timeout: For how many seconds a request is repeated while the server is not available.

    Returns:
        A StructuredTensor of shape `[number of documents]`.

    Raises:
        MissingDependencyError: If google-cloud-firestore is not installed (also an ImportError).
        QueryError: If Firestore does not accept the query (also a ValueError).
        AccessError: If the credentials do not permit it (also a PermissionError).
        ServerError: If the server cannot be reached, or does not give all documents (also a
            ConnectionError).
        DTypeError, StructureError: If the values of a field have different types (also a
            TypeError, a ValueError).
        FieldError, NullError, UnsupportedTypeError: As in `from_arrow`.
    """
    expect_one_of(("error", "union"), conflicts, "read_firestore: conflicts")
    expect_query(source, "read_firestore")
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    seen = Plain()
    rows = list(_rows(source, wanted, id_field, timeout, seen))
    return records_of_documents(rows, wanted, conflicts, seen.typed)


def batches_of(
    source: CollectionReference | Query,
    schema: pa.Schema,
    nulls: NullsLike | None,
    id_field: str | None,
    timeout: float,
) -> Iterator[pa.RecordBatch]:
    """Yields the documents of a query as record batches of a schema.

    Args:
        source: As in `read_firestore`.
        schema: The schema.
        nulls: As in `read_firestore`, for this schema.
        id_field: As in `read_firestore`.
        timeout: As in `read_firestore`.

    Raises:
        QueryError, AccessError, ServerError, DTypeError, NullError: As `read_firestore`.
    """
    wanted = WantedTable(None, schema, nulls)
    documents = _rows(source, wanted, id_field, timeout, Plain())
    while part := list(itertools.islice(documents, _PART)):
        yield to_arrow(records_of_documents(part, wanted), schema)


def expect_query(source: object, where: str) -> None:
    """Raises if a source is no query of Firestore.

    Raises:
        DTypeError, MissingDependencyError: As `read_firestore`.
    """
    import_extra("google.cloud.firestore", "firestore", where)
    if not hasattr(source, "stream"):
        expected = "a collection or query of google-cloud-firestore"
        fix = 'Get one by firestore.Client().collection("name").'
        raise DTypeError(where, expected, type(source).__name__, fix)


def _rows(
    source: CollectionReference | Query,
    wanted: WantedTable,
    id_field: str | None,
    timeout: float,
    seen: Plain,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the path and the fields of each document."""
    with named_errors("read_firestore"):
        for document in _documents(_select(source, wanted, id_field), timeout):
            row, reference = seen.plain(document.to_dict()), document.reference
            row = with_key(row, reference.id, id_field, "id_field", reference.path)
            yield reference.path, row


def _select(
    source: CollectionReference | Query, wanted: WantedTable, id_field: str | None
) -> CollectionReference | Query:
    """Returns a query for the wanted fields only.

    Only top-level fields can be selected: Firestore leaves out an array of maps if one of the
    fields of its maps is selected.
    """
    if (wanted.schema is None and wanted.columns is None) or not hasattr(source, "select"):
        return source
    from google.cloud.firestore_v1.field_path import FieldPath

    names = [name for name in field_names(wanted) if name != id_field]
    return source.select([FieldPath(name).to_api_repr() for name in names])


def _documents(
    query: CollectionReference | Query, timeout: float
) -> Iterator[DocumentSnapshot[Any]]:
    """Yields each document of a query once.

    The client continues an interrupted query itself, but then applies limit and offset again. So
    it must not, and the query is continued here.
    """
    from google.api_core import retry

    never = retry.Retry(predicate=lambda error: False)
    last, count = None, 0
    give_up = time.monotonic() + timeout
    wait = 0.1
    while True:
        try:
            for document in _rest(query, last, count, never):
                last, count = document, count + 1
                yield document
                give_up = time.monotonic() + timeout
                wait = 0.1
            return
        except Exception as error:
            if not is_unavailable(error) or time.monotonic() > give_up:
                raise
        time.sleep(wait)
        wait = min(2 * wait, 5.0)


def _rest(
    query: Any, last: DocumentSnapshot[Any] | None, count: int, retry: Retry
) -> Iterable[DocumentSnapshot[Any]]:
    """Returns the documents of a query that were not read yet.

    Args:
        query: The query. The client has no public names for its parts.
        last: The last document that was read.
        count: The number of documents that were read.
        retry: What the client repeats.
    """
    if getattr(query, "_limit_to_last", False):
        query = copy.copy(query)
        query._orders = copy.deepcopy(query._orders)  # `get` reverses them in place
        return query.get(retry=retry)
    if not hasattr(query, "start_after"):  # it cannot be continued
        return list(query.stream(retry=retry))
    if last is None:
        return query.stream(retry=retry)
    # The cursor needs the fields of the order, which may not be selected.
    whole = last.reference.get(retry=retry, read_time=last.read_time)
    rest = query.start_after(whole)
    limit = getattr(query, "_limit", None)
    if limit is not None:
        if limit <= count:
            return []
        rest = rest.limit(limit - count)
    if getattr(query, "_offset", None):
        rest = rest.offset(0)
    return rest.stream(retry=retry, read_time=last.read_time)
