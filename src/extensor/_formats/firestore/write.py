"""StructuredTensors to Firestore documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from extensor._arrow.arrow_type import inner_fields, is_encoded, is_string
from extensor._arrow.batches import batches_of, num_records_of
from extensor._arrow.encoded_types import decode, storage_of
from extensor._arrow.write import to_arrow
from extensor._choice import expect_one_of
from extensor._dependency import import_extra
from extensor._formats.firestore import types
from extensor._google import commits, named_errors, retry
from extensor._path import Path
from extensor._progress import progress_bar
from extensor._raised import first_line
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, FieldError, StructureError, UnsupportedTypeError

if TYPE_CHECKING:
    from google.cloud.firestore_v1 import Client, CollectionReference, DocumentReference
    from google.cloud.firestore_v1.types import Write

# A commit has at most 500 writes and 10 MiB, and a server may take messages of 4 MiB at most.
_WRITES = 500
_BYTES = 4_000_000


def write_firestore(
    records: StructuredTensor | Iterable[StructuredTensor],
    collection: CollectionReference,
    schema: pa.Schema | None = None,
    id_field: str | None = None,
    mode: str = "set",
    timeout: float = 60.0,
    *,
    progress: bool | None = None,
) -> None:
    """Writes records to a Firestore collection, a document for each.

    Records become maps, and lists arrays. Invalid values of masked fields are written as nulls.
    References, geopoints and vectors that `read_firestore` read are written as such. A commit has
    up to 500 documents. A write of more is several commits: if one fails, the error tells how many
    documents are in the collection.

    Args:
        records: A StructuredTensor of rank 1, or an iterable of batches, such as a dataset.
        collection: A collection of the package google-cloud-firestore.
        schema: The Arrow schema to write, as in `to_arrow`.
        id_field: The field with the ids of the documents. Default: Firestore chooses ids.
        mode: `"set"`: a document that exists is replaced. `"create"`: it is an error.
        timeout: For how many seconds a request is repeated while the server is not available.
        progress: Whether to show a progress bar. Default: on a terminal and in a notebook, if tqdm
            is installed, after a second.

    Raises:
        MissingDependencyError: If google-cloud-firestore is not installed (also an ImportError).
        QueryError: If Firestore does not accept the documents, such as lists of lists (also a
            ValueError).
        AccessError: If the credentials do not permit it (also a PermissionError).
        ServerError: If the server cannot be reached (also a ConnectionError).
        FieldError: If there is no field `id_field` (also a KeyError).
        StructureError: If two records have one id (also a ValueError).
        DTypeError: If a number does not fit into int64, a timestamp has fractions of a
            microsecond, or `records` are not StructuredTensors of rank 1 (also a TypeError).
        UnsupportedTypeError: If Firestore has no values of a type, such as decimals (also a
            TypeError).
    """
    import_extra("google.cloud.firestore", "firestore", "write_firestore")
    expect_one_of(("set", "create"), mode, "write_firestore: mode")
    if not hasattr(collection, "document") or not hasattr(collection, "add"):
        received = type(collection).__name__
        fix = 'Get one by firestore.Client().collection("name").'
        raise DTypeError("write_firestore", "a collection of google-cloud-firestore", received, fix)
    client = collection._client  # it has no public name
    name = collection.id
    written = 0
    seen: set[str] = set()
    with progress_bar("write_firestore", progress, num_records_of(records)) as advance:
        for batch in batches_of(records, "write_firestore"):
            rows = to_arrow(batch, schema)
            if id_field is not None and rows.schema.get_field_index(id_field) < 0:
                expected = f"records with the field {id_field}"
                received = f"the fields {', '.join(rows.schema.names)}"
                raise FieldError(name, expected, received, "Correct id_field=.")
            columns = {
                field.name: _values(rows.column(i), client, Path(field.name))
                for i, field in enumerate(rows.schema)
            }
            ids = columns.pop(id_field) if id_field is not None else None
            own = [None] * rows.num_rows if ids is None else _ids(ids, str(id_field), seen)
            documents = (
                (collection.document(own[i]), {n: column[i] for n, column in columns.items()})
                for i in range(rows.num_rows)
            )
            for writes in commits(_writes(documents, client, mode), _WRITES, _BYTES):
                commit = client.batch()
                commit._write_pbs = writes
                with named_errors(f"{name}, after {written} documents" if written else name):
                    commit.commit(retry=retry(timeout))
                written += len(writes)
                advance(len(writes))


def _writes(
    documents: Iterable[tuple[DocumentReference, dict[str, Any]]], client: Client, mode: str
) -> Iterator[tuple[Write, int]]:
    """Yields the message that writes each document, and its number of bytes."""
    for document, values in documents:
        one = client.batch()
        getattr(one, mode)(document, values)
        (message,) = one._write_pbs  # it has no public name
        yield message, message._pb.ByteSize()


def _ids(values: list[object], id_field: str, seen: set[str]) -> list[str]:
    """Returns the ids of the documents of a batch, and adds them to those of earlier ones."""
    found: list[str] = []
    for index, value in enumerate(values):
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        if not isinstance(text, str) or not text or not {"/", "\ufffd"}.isdisjoint(text):
            expected = "an id of a document: a string in UTF-8 without a slash"
            fix = "Correct the field, or leave out id_field=."
            raise DTypeError(f"{id_field}, record {index}", expected, repr(value)[:60], fix)
        if text in seen:
            expected = "another id than those of the records before"
            fix = "Leave one of the records out: each would replace the one before it."
            raise StructureError(f"{id_field}, record {index}", expected, repr(text)[:60], fix)
        seen.add(text)
        found.append(text)
    return found


def _values(array: pa.Array, client: Client, path: Path) -> list[Any]:
    """Returns an array as the values that the client takes."""
    arrow = array.type
    kind = types.kind_of(arrow)
    if kind is not None:
        return _with_class(kind, array.storage.to_pylist(), client)
    if isinstance(arrow, pa.BaseExtensionType):
        return _values(storage_of(array), client, path)
    if not path.names[-1]:
        expected = "names of fields that are not empty, as Firestore needs"
        raise FieldError(path, expected, "an empty name", "Rename the field.")
    t = pa.types
    if t.is_struct(arrow):
        columns = [_values(array.field(i), client, path / f.name) for i, f in enumerate(arrow)]
        names = [field.name for field in arrow]
        rows = zip(*columns, strict=True) if columns else [()] * len(array)
        return [
            dict(zip(names, row, strict=True)) if valid else None
            for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)
        ]
    if t.is_map(arrow) or t.is_fixed_size_list(arrow):
        item = pa.struct(inner_fields(arrow)) if t.is_map(arrow) else arrow.value_type
        return _values(array.cast(pa.list_(item)), client, path)
    if t.is_list(arrow) or t.is_large_list(arrow):
        items = _values(array.values, client, path)
        offsets: list[int] = array.offsets.to_pylist()
        valid: list[bool] = array.is_valid().to_pylist()
        return [items[a:b] if v else None for a, b, v in zip(offsets, offsets[1:], valid)]  # noqa: B905
    if t.is_union(arrow):
        children = [_values(array.field(i), client, path / f.name) for i, f in enumerate(arrow)]
        numbers = {code: i for i, code in enumerate(arrow.type_codes)}
        codes: list[int] = array.type_codes.to_pylist()
        at = array.offsets.to_pylist() if arrow.mode == "dense" else range(len(array))
        return [children[numbers[code]][i] for code, i in zip(codes, at, strict=True)]
    return _leaves(array, path)


def _with_class(kind: str, values: list[Any], client: Client) -> list[Any]:
    """Returns values as the objects of the client for a kind of `types`."""
    from google.cloud.firestore_v1 import GeoPoint
    from google.cloud.firestore_v1.vector import Vector

    make: Any = {
        "reference": client.document,
        "geopoint": lambda value: GeoPoint(value["latitude"], value["longitude"]),
        "vector": Vector,
    }[kind]
    return [value if value is None else make(value) for value in values]


def _leaves(array: pa.Array, path: Path) -> list[Any]:
    arrow, t = array.type, pa.types
    if is_encoded(arrow):
        array = decode(array)
        arrow = array.type
    is_time = t.is_timestamp(arrow) or t.is_date(arrow)
    if is_time or t.is_unsigned_integer(arrow):
        wide = pa.timestamp("us", "UTC") if is_time else pa.int64()
        try:
            array = array.cast(pa.timestamp("us")) if t.is_date(arrow) else array
            return array.cast(wide).to_pylist()
        except (pa.ArrowInvalid, OverflowError) as error:
            expected = "timestamps in microseconds of the years 1 to 9999, and numbers of int64"
            received = f"Arrow type {arrow} ({first_line(error)})"
            raise DTypeError(path, expected, received, "Round the values first.") from error
    plain = (t.is_integer, t.is_floating, t.is_boolean, t.is_fixed_size_binary, t.is_null)
    if not is_string(arrow) and not any(is_plain(arrow) for is_plain in plain):
        expected = "a type of which Firestore has values"
        fix = "Give schema= with another type, such as pa.string()."
        raise UnsupportedTypeError(path, expected, f"Arrow type {arrow}", fix)
    return array.to_pylist()
