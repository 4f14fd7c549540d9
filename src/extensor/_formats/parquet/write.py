"""Writing of StructuredTensors to Parquet files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from extensor._arrow.arrow_type import inner_fields
from extensor._arrow.write import to_arrow
from extensor._files.files import FilePath, whole_output
from extensor._formats.parquet.plan import schema_text
from extensor._path import Path
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, StructureError, UnsupportedTypeError

# A row group is written once it has this many records or bytes.
_GROUP_ROWS = 1 << 16
_GROUP_BYTES = 1 << 26


def write_parquet(
    records: StructuredTensor | Iterable[StructuredTensor],
    path: FilePath,
    schema: pa.Schema | None = None,
) -> None:
    """Writes records to a Parquet file.

    The file appears at `path` only when it is complete. Batches are joined into row groups of
    65,536 records or 64 MiB.

    Args:
        records: A StructuredTensor of rank 1, or an iterable of batches of one schema, such as a
            dataset.
        path: The file. An existing file is replaced.
        schema: The Arrow schema to write, as in `to_arrow`.

    Raises:
        DTypeError: If `records` is or yields anything but StructuredTensors of rank 1 (also a
            TypeError).
        StructureError: If there is no batch, or batches have different schemas (also a
            ValueError).
        UnsupportedTypeError: If Parquet does not support a type, such as records without fields
            (also a TypeError).
        MissingFileError, DirectoryError: If the folder of `path` does not exist, or `path` is a
            directory (also a FileNotFoundError, an IsADirectoryError).
        FormatError: If a string that becomes text is not UTF-8, or `path` is a device (also a
            ValueError).

    >>> path = getfixture("tmp_path") / "recipes.parquet"
    >>> xt.write_parquet(xt.DenseStructuredTensor([2], {"est_time": [55.0, 30.0]}), path)
    >>> xt.read_parquet(path).to_py()
    [{'est_time': 55.0}, {'est_time': 30.0}]
    """
    batches = [records] if isinstance(records, StructuredTensor) else records
    if not isinstance(batches, Iterable):
        batches = [batches]  # `_batch` raises, as for any batch of the wrong type
    write((_batch(batch, schema) for batch in batches), path)


def _batch(records: Any, schema: pa.Schema | None) -> pa.RecordBatch:
    if not isinstance(records, StructuredTensor) or records.rank != 1:
        raise DTypeError(
            path="write_parquet",
            expected="StructuredTensors of rank 1",
            received=f"{type(records).__name__} of shape {records.shape}"
            if isinstance(records, StructuredTensor)
            else type(records).__name__,
            mend="Give a batch of records; Parquet stores lists of records.",
        )
    return to_arrow(records, schema)


def write(batches: Iterable[pa.RecordBatch], path: FilePath) -> None:
    """Writes Arrow record batches of one schema to a Parquet file."""
    with whole_output(path) as stream:
        _write_all(iter(batches), stream)


def _write_all(batches: Iterator[pa.RecordBatch], stream: pa.NativeFile) -> None:
    first = next(batches, None)
    if first is None:
        raise StructureError(
            path="write_parquet",
            expected="at least one batch of records",
            received="0 batches",
            mend="To write an empty file, give a batch of 0 records.",
        )
    _check_storable(pa.struct(list(first.schema)), Path())
    with pq.ParquetWriter(stream, first.schema) as writer:
        for group in _row_groups(itertools.chain([first], batches), first.schema):
            writer.write_table(group)


def _row_groups(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yields batches joined into row groups, because each row group costs space and time."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.schema != schema:
            raise StructureError(
                path="write_parquet",
                expected=f"batches of one schema: {schema_text(schema)}",
                received=schema_text(batch.schema),
                mend="Give schema=, or convert the batches to one schema.",
            )
        pending.append(batch)
        rows += batch.num_rows
        size += batch.get_total_buffer_size()
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.Table.from_batches(pending)
            pending, rows, size = [], 0, 0
    if pending:
        yield pa.Table.from_batches(pending)


def _check_storable(arrow: pa.DataType, path: Path) -> None:
    """Raises for a type that Parquet cannot store, or that pyarrow cannot read back."""
    empty = pa.types.is_struct(arrow) and not arrow.num_fields
    if empty or (pa.types.is_fixed_size_list(arrow) and not arrow.list_size):
        raise UnsupportedTypeError(
            path=path if path else "write_parquet",
            expected="records with at least one field, and lists of at least one value",
            received="records without fields" if empty else "lists of the fixed size 0",
            mend="Parquet stores columns of values. Remove the field with without."
            if path
            else "Parquet stores columns of values. Add a field with with_updates.",
        )
    if pa.types.is_union(arrow):
        raise UnsupportedTypeError(
            path=path,
            expected="a type that Parquet stores",
            received="a union",
            mend="Parquet has no unions. Write one field for each variant, with the nulls that "
            "union.match or union.is_variant gives (with_updates), or an Arrow IPC file.",
        )
    if pa.types.is_interval(arrow) or pa.types.is_run_end_encoded(arrow):
        raise UnsupportedTypeError(
            path=path,
            expected="a type that Parquet stores",
            received=f"Arrow type {arrow}",
            mend="Give schema= with another type, such as that of the values, or its parts.",
        )
    for field in inner_fields(arrow):
        _check_storable(field.type, path / field.name if pa.types.is_struct(arrow) else path)
