"""A stream of record batches as a file of any format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from extensor._arrow.arrow_type import map_schema, map_types, without_dictionaries
from extensor._arrow.cast import cast_column
from extensor._arrow.nulls import empty_batch
from extensor._arrow.read import read_records
from extensor._files.files import FilePath
from extensor._formats import arrow
from extensor._formats.csv import write as csv
from extensor._formats.json import write as json
from extensor._formats.parquet import write as parquet
from extensor._formats.tfrecord.files import write_tfrecord
from extensor._formats.tfrecord.layout import message_for
from extensor._formats.tfrecord.parsed import outside_lists
from extensor._path import Path
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError


def write_stream(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    path: FilePath,
    format: str,
    float32: bool = False,
    allow_nan: bool = False,
    nulls: Mapping[Any, Any] | None = None,
) -> None:
    """Writes record batches to a file, which appears only when it is complete.

    Args:
        batches: The batches.
        schema: Their schema. An empty stream becomes a file of no records.
        path: The file.
        format: The format, one of `SUFFIXES`.
        float32: Whether to write float64 as float32.
        allow_nan: Whether to write NaN and infinities to JSON, which has none.
        nulls: The policies for nulls of TFRecord files, by path. Default: as features can be.

    Raises:
        The errors of `write_parquet`, `write_arrow`, `write_csv`, `write_json` or `write_tfrecord`.
    """
    batches = _at_least_one(batches, schema)
    if float32:
        schema = map_schema(schema, _with_float32)
        batches = _cast(batches, schema)
    if format == "parquet":
        parquet.write(batches, path)
    elif format == "arrow":
        if not str(path).endswith(".arrows"):
            # In an IPC file, the dictionary of a column may not change.
            batches = _cast(batches, map_schema(schema, without_dictionaries))
        arrow.write(batches, path)
    elif format == "csv":
        csv.write(batches, path)
    elif format == "json":
        json.write(batches, path, allow_nan)
    else:
        # A feature may be missing, but not an item of a list.
        masks = dict.fromkeys(outside_lists(schema), "mask")
        policies = {"*": "error", **masks, **(nulls or {})}
        records: Iterator[StructuredTensor] = (
            read_records(each, nulls=policies) for each in batches
        )
        write_tfrecord(records, path, message=message_for(schema))


def _at_least_one(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    is_empty = True
    for batch in batches:
        is_empty = False
        yield batch
    if is_empty:
        yield empty_batch(schema)


def _with_float32(arrow: pa.DataType) -> pa.DataType:
    return map_types(arrow, lambda t: pa.float32() if pa.types.is_float64(t) else None)


def _cast(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.schema.equals(schema):
            yield batch
            continue
        # Only columns that change: Arrow's cast of runs to their own type ignores slices.
        pairs = zip(batch.columns, schema, strict=True)
        columns = [
            each if each.type == field.type else _cast_to(field, each) for each, field in pairs
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast_to(field: pa.Field, column: pa.Array) -> pa.Array:
    fix = "Write float64: leave --float32 out."
    try:
        return cast_column(column, field.type, Path(field.name), fix)
    except DTypeError as error:
        expected = f"values that {field.type} holds"
        raise DTypeError(error.path, expected, error.received, error.fix) from error
