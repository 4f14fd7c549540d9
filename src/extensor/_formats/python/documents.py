"""Documents of a database, whose clients return Python data: records that have a key each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from extensor._arrow.struct_fields import batch_of
from extensor._arrow.wanted_table import WantedTable
from extensor._formats.python.constant import arrow_of, of_spec
from extensor._path import Path
from extensor._struct.cast_request import CastRequest
from extensor._struct.tensor import StructuredTensor
from extensor.errors import FieldError


def records_of_documents(
    named: Sequence[tuple[str, dict[str, Any]]],
    wanted: WantedTable,
    conflicts: str = "error",
    typed: Callable[[pa.StructArray], pa.StructArray] | None = None,
) -> StructuredTensor:
    """Returns documents as records.

    Args:
        named: The documents, each with its name for errors.
        wanted: The arguments `columns`, `schema`, `nulls` and `row_splits_dtype`.
        conflicts: As in `constant`, without a schema.
        typed: Returns all documents with more exact types, without a schema.
    """
    documents = [document for _, document in named]

    def name_of(number: int) -> str:
        return named[number][0]

    if wanted.schema is not None:
        parsed, whole = wanted.without_auto(), CastRequest(dropped=None)
        records = of_spec(documents, parsed.spec(), parsed.nulls, name_of=name_of, request=whole)
        return wanted.settle(wanted.cast(records))
    if wanted.columns is not None:
        fields = set(field_names(wanted))
        documents = [{n: each for n, each in row.items() if n in fields} for row in documents]
    array = arrow_of(documents, wanted.nulls, conflicts, name_of)
    return wanted.records(pa.Table.from_batches([batch_of(typed(array) if typed else array)]))


def field_names(wanted: WantedTable) -> list[str]:
    """Returns the names of the top-level fields that are read, if the caller chose some."""
    if wanted.schema is not None:
        return wanted.schema.names
    return list(dict.fromkeys(Path.of(path).names[0] for path in wanted.columns or ()))


def with_key(
    document: dict[str, Any], key: str, field: str | None, argument: str, name: str
) -> dict[str, Any]:
    """Returns a document with its key as its first field.

    Args:
        document: The document.
        key: Its key.
        field: The name of the field; None for the document as it is.
        argument: The name of the argument that chose the field, for errors.
        name: The name of the document, for errors.

    Raises:
        FieldError: If the document has the field (also a KeyError).
    """
    if field is None:
        return document
    if field in document:
        expected = f"a record without the field {field}, which {argument}= names"
        raise FieldError(name, expected, "a record with this field", f"Choose another {argument}=.")
    return {field: key, **document}
