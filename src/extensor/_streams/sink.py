"""A stream of record batches as a file of any format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from extensor._arrow.arrow_type import without_dictionaries
from extensor._arrow.read import from_arrow
from extensor._files.files import FilePath
from extensor._formats import arrow, parquet
from extensor._formats.json import write as json
from extensor._formats.tfrecord.files import write_tfrecord
from extensor._formats.tfrecord.stream import message_for
from extensor._struct.tensor import StructuredTensor


def write_stream(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: FilePath, format: str
) -> None:
    """Writes record batches to a file, which appears only when it is complete.

    Args:
        batches: The batches.
        schema: Their schema. An empty stream becomes a file of no records.
        path: The file.
        format: The format, one of `SUFFIXES`.

    Raises:
        The errors of `write_parquet`, `write_arrow`, `write_json` or `write_tfrecord`.
    """
    batches = _at_least_one(batches, schema)
    if format == "parquet":
        parquet.write(batches, path)
    elif format == "arrow":
        arrow.write(batches if str(path).endswith(".arrows") else _decoded(batches, schema), path)
    elif format == "json":
        json.write(batches, path)
    else:
        nulls = _nulls(schema)
        records: Iterator[StructuredTensor] = (from_arrow(each, nulls=nulls) for each in batches)
        write_tfrecord(records, path, message=message_for(schema))


def _at_least_one(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    is_empty = True
    for batch in batches:
        is_empty = False
        yield batch
    if is_empty:
        yield from pa.Table.from_batches([], schema).to_batches() or [
            pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
        ]


def _decoded(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields batches without dictionaries: in an IPC file, that of a column may not change."""
    fields = [field.with_type(without_dictionaries(field.type)) for field in schema]
    plain = pa.schema(fields, schema.metadata)
    for batch in batches:
        yield batch if plain.equals(schema) else batch.cast(plain)


def _nulls(schema: pa.Schema) -> Any:
    """Returns the policies for nulls: a feature may be missing, but not an item of a list."""
    return {"*": "error", **{path: "mask" for path in _flat(schema, ())}}


def _flat(fields: Any, outer: tuple[str, ...]) -> Iterator[Any]:
    for field in fields:
        path = (*outer, field.name)
        if pa.types.is_struct(field.type):
            yield from _flat(field.type.fields, path)
        elif not pa.types.is_nested(field.type):
            yield path
