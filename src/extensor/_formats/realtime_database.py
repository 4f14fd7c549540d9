"""Records of a Firebase Realtime Database, as StructuredTensors and back."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from extensor._arrow.arrow_type import inner_fields, is_encoded
from extensor._arrow.batches import expect_batch
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._choice import expect_one_of
from extensor._count_text import count_text
from extensor._dependency import import_extra
from extensor._formats.python.documents import records_of_documents, with_key
from extensor._google import no_access, no_answer, refusal
from extensor._path import Path, PathLike
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError, FieldError, NullError, StructureError, UnsupportedTypeError

if TYPE_CHECKING:
    from firebase_admin import db

_LARGEST = 2**53  # all numbers of the database are floats
# No key of the database has one of these, nor more bytes.
_FORBIDDEN = frozenset([*".$#[]/", *map(chr, range(32)), "\x7f"])
_LONGEST_KEY = 768
_KEYS = f"of 1 to {_LONGEST_KEY} bytes, without . $ # [ ] / and control characters"


@refuse_deep_nesting("read_realtime_database")
def read_realtime_database(
    reference: db.Reference | db.Query,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    conflicts: str = "error",
    row_splits_dtype: DTypeLike | None = None,
    key_field: str | None = None,
) -> StructuredTensor:
    """Returns the children of a node of a Firebase Realtime Database as a StructuredTensor.

    Each child is a record; the node is an object of records by key, or a list of records. The
    database has no nulls, no empty lists and no empty objects: where another record has a value,
    these are nulls.

    Args:
        reference: A reference or query of the package firebase-admin: `db.reference("users")`.
        columns: Paths of the fields to convert. Default: all.
        schema: The spec or pyarrow schema of the records. Default: that of the values.
        nulls: What becomes of nulls and missing fields: `"error"` (the default), `"mask"` for a
            MaskedTensor, `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by
            path. More in `xt.from_arrow`.
        conflicts: What becomes of a field whose values have different types: `"error"` (the
            default), or `"union"` for a UnionTensor.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        key_field: The name of a field for the keys of the records. Default: no such field.

    Returns:
        A StructuredTensor of shape `[number of records]`.

    Raises:
        MissingDependencyError: If firebase-admin is not installed (also an ImportError).
        QueryError: If the database does not accept the query (also a ValueError).
        AccessError: If the rules or the credentials do not permit it (also a PermissionError).
        ServerError: If the server cannot be reached, or does not send all (also a
            ConnectionError).
        StructureError: If a child is not an object (also a ValueError).
        DTypeError, FieldError, NullError: As in `xt.struct.constant`.
    """
    import_extra("firebase_admin.db", "firebase", "read_realtime_database")
    expect_one_of(("error", "union"), conflicts, "read_realtime_database: conflicts")
    if not hasattr(reference, "get") or isinstance(reference, dict):
        expected = "a reference of firebase_admin.db"
        fix = 'Get one by firebase_admin.db.reference("path").'
        raise DTypeError("read_realtime_database", expected, type(reference).__name__, fix)
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    source = str(getattr(reference, "path", "read_realtime_database"))
    with _named_errors(source):
        node = reference.get()
    rows: list[tuple[str, dict[str, Any]]] = []
    for key, child in _children(_as_numbers(node), source):
        path = f"{source.rstrip('/')}/{key}"
        rows.append((path, _row(key, child, key_field, path)))
    return records_of_documents(rows, wanted, conflicts)


def write_realtime_database(
    records: StructuredTensor,
    reference: db.Reference,
    schema: pa.Schema | None = None,
    key_field: str | None = None,
) -> None:
    """Writes records to a node of a Firebase Realtime Database, and replaces what it had.

    The node is replaced as a whole, or not at all. Fields that are null or an empty list are not
    stored, because the database has neither.

    Args:
        records: A StructuredTensor of rank 1.
        reference: A reference of the package firebase-admin: `db.reference("users")`.
        schema: The Arrow schema to convert to first, as in `to_arrow`.
        key_field: The field with the keys of the records, which must be different. Default: the
            node is a list.

    Raises:
        MissingDependencyError: If firebase-admin is not installed (also an ImportError).
        AccessError: If the rules or the credentials do not permit it (also a PermissionError).
        ServerError: If the server cannot be reached (also a ConnectionError).
        QueryError: If the database does not accept the records (also a ValueError).
        FieldError: If the name of a field cannot be a key of the database, or there is no field
            `key_field` (also a KeyError).
        DTypeError: If a number is not finite, or an integer larger than 2 ** 53 (also a TypeError).
        NullError: If a record has no value, or a list has nulls or empty lists: the database would
            drop them (also a ValueError).
        UnsupportedTypeError: If JSON has no values of a type, such as bytes (also a TypeError).
    """
    import_extra("firebase_admin.db", "firebase", "write_realtime_database")
    expect_batch(records, "write_realtime_database")
    source = str(reference.path)
    rows = to_arrow(records, schema)
    for field in rows.schema:
        _expect_json(field.type, Path(field.name))
    values: list[dict[str, Any]] = rows.to_pylist()
    keys = [_key(values, i, key_field) for i in range(len(values))]
    children = [_to_storage(value, f"record {i}") for i, value in enumerate(values)]
    for i, child in enumerate(children):
        if child is None:
            raise _not_stored(f"record {i}", "a record without values")
    node: Any = children if key_field is None else dict(zip(keys, children, strict=True))
    if len(node) < len(children):
        received = f"{count_text(len(node), 'keys')} for {len(children)} records"
        fix = "Correct the field, or leave out key_field=."
        raise StructureError(str(key_field), "a different key for each record", received, fix)
    with _named_errors(source):
        if node:
            reference.set(node)
        else:
            reference.delete()


def _as_numbers(value: Any) -> Any:
    """Returns a value with its large integers as the floats that they are.

    JSON writes a float without a fraction like an integer: 5e16 as 50000000000000000.
    """
    if isinstance(value, dict):
        return {key: _as_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_numbers(each) for each in value]
    return float(value) if type(value) is int and abs(value) > _LARGEST else value


def _children(node: Any, source: str) -> list[tuple[str, Any]]:
    """Returns the children of a node with their keys, in the order of the database."""
    if node is None:
        return []
    if isinstance(node, dict):
        return list(node.items())
    if isinstance(node, list):  # of an object whose keys are numbers; others are null
        return [(str(i), child) for i, child in enumerate(node) if child is not None]
    fix = "Give the reference of its parent, or of a node with children."
    raise StructureError(source, "an object or a list of records", type(node).__name__, fix)


def _row(key: str, child: object, key_field: str | None, path: str) -> dict[str, Any]:
    if not isinstance(child, dict):
        fix = "Give the reference of a node whose children are objects."
        raise StructureError(path, "an object, which is a record", type(child).__name__, fix)
    return with_key(child, key, key_field, "key_field", path)


def _expect_json(arrow: pa.DataType, path: Path) -> None:
    """Raises for a type that JSON does not have, and for names that the database does not."""
    t = pa.types
    if not _is_key(path.names[-1]):
        expected = f"names of fields {_KEYS}"
        raise FieldError(path, expected, repr(path.names[-1])[:100], "Rename the field.")
    if isinstance(arrow, pa.BaseExtensionType):
        return _expect_json(arrow.storage_type, path)
    if is_encoded(arrow):
        return _expect_json(arrow.value_type, path)
    if t.is_nested(arrow) and not t.is_map(arrow):
        for field in inner_fields(arrow):
            _expect_json(field.type, path / field.name if t.is_struct(arrow) else path)
        return None
    known = (t.is_integer, t.is_floating, t.is_boolean, t.is_string, t.is_large_string,
             t.is_string_view, t.is_null)  # fmt: skip
    if not any(is_known(arrow) for is_known in known):
        expected = "a type of which JSON has values"
        fix = "Give schema= with another type, such as pa.string()."
        raise UnsupportedTypeError(path, expected, f"Arrow type {arrow}", fix)
    return None


def _is_key(text: str) -> bool:
    return not _FORBIDDEN & set(text) and 0 < len(text.encode()) <= _LONGEST_KEY


def _key(rows: list[dict[str, Any]], index: int, key_field: str | None) -> str:
    if key_field is None:
        return ""
    if key_field not in rows[index]:
        expected = "a field with the keys of the records"
        received = f"the fields {', '.join(rows[index])}"
        raise FieldError(key_field, expected, received, "Correct key_field=.")
    key = rows[index].pop(key_field)
    if isinstance(key, str) and _is_key(key):
        return key
    fix = "Correct the field, or leave out key_field=."
    raise DTypeError(f"{key_field}, record {index}", f"a string {_KEYS}", repr(key)[:60], fix)


def _to_storage(value: Any, place: str) -> Any:
    """Returns a value as the database stores it: None for what it does not store."""
    if isinstance(value, dict):
        fields = {name: _to_storage(each, f"{name}, {place}") for name, each in value.items()}
        return {name: each for name, each in fields.items() if each is not None} or None
    if isinstance(value, list):
        items = [_to_storage(item, place) for item in value]
        if None in items:
            raise _not_stored(place, "a list with a null or empty item")
        return items or None
    too_large = type(value) is int and abs(value) > _LARGEST
    if too_large or (type(value) is float and not math.isfinite(value)):
        expected = "a finite number, and no integer above 2 ** 53"
        raise DTypeError(place, expected, repr(value), "Write the number as a string.")
    return value


def _not_stored(place: str, what: str) -> NullError:
    expected = "a value, because the database stores no nulls and nothing empty"
    return NullError(place, expected, what, "Fill in a value.")


@contextlib.contextmanager
def _named_errors(source: str) -> Generator[None]:
    """Raises the errors of firebase-admin as those of extensor."""
    import requests
    from firebase_admin import exceptions
    from google.auth import exceptions as auth

    try:
        yield
    except (
        exceptions.PermissionDeniedError,
        exceptions.UnauthenticatedError,
        auth.GoogleAuthError,
    ) as error:
        raise no_access(source, error) from error
    except (
        exceptions.UnavailableError,
        exceptions.DeadlineExceededError,
        exceptions.InternalError,
        exceptions.UnknownError,
        requests.RequestException,
    ) as error:
        raise no_answer(source, error, "Check the address and the server.") from error
    except exceptions.FirebaseError as error:
        raise refusal(source, error) from error
