"""Writing of StructuredTensors to Parquet files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from extensor._arrow.arrow_type import inner_fields
from extensor._arrow.batches import count_of, counted
from extensor._arrow.write import to_arrow
from extensor._files.files import FilePath, is_hidden, whole_folder, whole_output
from extensor._formats.parquet.partitions import NULL_NAME, partition_of
from extensor._formats.parquet.plan import schema_text
from extensor._formats.parquet.unions import stored, without_unions
from extensor._path import Path
from extensor._progress import progress_bar
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, FieldError, StructureError, UnsupportedTypeError

# A row group is written once it has this many records or bytes.
_GROUP_ROWS = 1 << 16
_GROUP_BYTES = 1 << 26

_COMPRESSIONS = ("snappy", "gzip", "zstd", "brotli", "lz4", None)


def write_parquet(
    records: StructuredTensor | Iterable[StructuredTensor],
    path: FilePath,
    schema: pa.Schema | None = None,
    compression: str | None = "snappy",
    partition_by: Iterable[str] | None = None,
    *,
    progress: bool | None = None,
) -> None:
    """Writes records to a Parquet file, or to a folder of files.

    The file or folder appears at `path` only when it is complete. Batches are joined into row
    groups of 65,536 records or 64 MiB.

    Args:
        records: A StructuredTensor of rank 1, or an iterable of batches of one schema, such as a
            dataset.
        path: The file. An existing file is replaced.
        schema: The Arrow schema to write, as in `to_arrow`.
        compression: `"snappy"`, `"gzip"`, `"zstd"`, `"brotli"`, `"lz4"`, or None.
        partition_by: Names of fields, such as `["country"]`. Then `path` becomes a new folder, with
            a folder `country=de` for each value, and the files in these do not have the fields.
            Records are in order in each file only. Default: one file.
        progress: Whether to show a progress bar. Default: on a terminal and in a notebook, if tqdm
            is installed, after a second.

    Raises:
        DTypeError: If `records` is or yields anything but StructuredTensors of rank 1, or the
            compression is none of these (also a TypeError).
        StructureError: If there is no batch, or batches have different schemas, or `path` is to
            become a folder and exists, or the name of a folder cannot have the name or a value of
            a field of `partition_by` (also a ValueError).
        FieldError: If there is no field of a name in `partition_by` (also a KeyError).
        UnsupportedTypeError: If Parquet does not support a type, such as records without fields
            (also a TypeError).
        MissingFileError, DirectoryError: If the folder of `path` does not exist, or `path` is a
            directory (also a FileNotFoundError, an IsADirectoryError).
        FormatError: If a string that becomes text is not UTF-8, or `path` is a device (also a
            ValueError).

    >>> import extensor as xt
    >>> path = "recipes.parquet"
    >>> xt.write_parquet(xt.DenseStructuredTensor([2], {"est_time": [55.0, 30.0]}), path)
    >>> xt.read_parquet(path).to_py()
    [{'est_time': 55.0}, {'est_time': 30.0}]
    """
    if compression not in _COMPRESSIONS:
        raise DTypeError(
            "write_parquet: compression",
            ", ".join(map(repr, _COMPRESSIONS)),
            repr(compression)[:60],
            'Leave it out for "snappy".',
        )
    batches = [records] if isinstance(records, StructuredTensor) else records
    if not isinstance(batches, Iterable):
        batches = [batches]  # `_batch` raises, as for any batch of the wrong type
    with progress_bar("write_parquet", progress, count_of(records)) as advance:
        found = counted((_batch(batch, schema) for batch in batches), advance, _num_rows)
        if partition_by is None:
            write(found, path, compression)
        else:
            write_partitions(found, path, partition_by, compression)


def _num_rows(batch: pa.RecordBatch) -> int:
    return batch.num_rows


def _batch(records: Any, schema: pa.Schema | None) -> pa.RecordBatch:
    if not isinstance(records, StructuredTensor) or records.rank != 1:
        raise DTypeError(
            "write_parquet",
            "StructuredTensors of rank 1",
            f"{type(records).__name__} of shape {records.shape}"
            if isinstance(records, StructuredTensor)
            else type(records).__name__,
            "Give a batch of records; Parquet stores lists of records.",
        )
    return to_arrow(records, schema)


def write(
    batches: Iterable[pa.RecordBatch], path: FilePath, compression: str | None = "snappy"
) -> None:
    """Writes Arrow record batches of one schema to a Parquet file."""
    with whole_output(path) as stream:
        schema, groups = _storable(iter(batches))
        with pq.ParquetWriter(stream, schema, compression=compression or "none") as writer:
            for group in groups:
                writer.write_table(group)


def write_partitions(
    batches: Iterable[pa.RecordBatch],
    path: FilePath,
    keys: Iterable[str],
    compression: str | None = "snappy",
) -> None:
    """Writes Arrow record batches to a new folder, with a folder for each value of the keys."""
    keys = keys if isinstance(keys, str) or not isinstance(keys, Iterable) else list(keys)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise DTypeError(
            "write_parquet: partition_by",
            "a list of names of fields",
            repr(keys)[:80],
            'Write partition_by=["country"].',
        )
    import pyarrow.dataset as ds  # here, because it imports pandas

    with whole_folder(path) as (system, folder):
        schema, groups = _storable(iter(batches))
        _check_keys(keys, schema)
        format = ds.ParquetFileFormat()
        ds.write_dataset(
            (_named_by(keys, batch) for group in groups for batch in group.to_batches()),
            folder,
            schema=schema,
            filesystem=system,
            format=format,
            file_options=format.make_write_options(compression=compression or "none"),
            partitioning=ds.partitioning(pa.schema([schema.field(k) for k in keys]), flavor="hive"),
            existing_data_behavior="overwrite_or_ignore",  # `whole_folder` looked
            max_rows_per_group=_GROUP_ROWS,
            min_rows_per_group=_GROUP_ROWS,
            use_threads=False,  # with threads, records are not in order
        )


def _check_keys(keys: list[str], schema: pa.Schema) -> None:
    for key in keys:
        if key not in schema.names:
            raise FieldError(
                "write_parquet: partition_by",
                f"one of the fields {', '.join(schema.names[:20])}",
                repr(key),
                "Give names of fields of the records.",
            )
        arrow: Any = schema.field(key).type
        if not (
            pa.types.is_integer(arrow)
            or pa.types.is_string(arrow)
            or pa.types.is_large_string(arrow)
        ):
            raise UnsupportedTypeError(
                Path(key),
                "integers or text, which the name of a folder can have",
                f"Arrow type {arrow}",
                "Give schema= with one of these types, or partition by another field.",
            )
        is_kept = partition_of(f"{key}=x/file") == {key: "x"} and "\0" not in key
        if not is_kept or is_hidden(key):
            raise StructureError(
                "write_parquet: partition_by",
                "a name that does not begin with . or _, without /, =, % and zero bytes",
                repr(key),
                "The name is part of the name of a folder. Rename the field.",
            )
    if not keys or len(set(keys)) < len(keys) or len(keys) == len(schema.names):
        raise StructureError(
            "write_parquet: partition_by",
            "some of the fields, each once",
            repr(keys)[:80],
            "The files need at least one other field.",
        )


def _named_by(keys: list[str], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns a batch; raises for text in a key that the name of a folder does not keep."""
    for key in keys:
        column = batch.column(key)
        if pa.types.is_integer(column.type):
            continue
        for text in column.unique().drop_null().to_pylist():
            if text == NULL_NAME or "\0" in text:
                raise StructureError(
                    Path(key),
                    f"text without zero bytes, other than {NULL_NAME!r}, which is null",
                    repr(text)[:80],
                    "The value becomes the name of a folder. Replace it, or partition by "
                    "another field.",
                )
    return batch


def _storable(batches: Iterator[pa.RecordBatch]) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """Returns the schema of batches, and the row groups to write."""
    first = next(batches, None)
    if first is None:
        raise StructureError(
            "write_parquet",
            "at least one batch of records",
            "0 batches",
            "To write an empty file, give a batch of 0 records.",
        )
    schema = without_unions(first.schema)
    _check_storable(pa.struct(list(schema)), Path())
    return schema, _row_groups(itertools.chain([first], batches), first.schema, schema)


def _row_groups(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, of_file: pa.Schema
) -> Iterator[pa.Table]:
    """Yields batches joined into row groups, because each row group costs space and time."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.schema != schema:
            raise StructureError(
                "write_parquet",
                f"batches of one schema: {schema_text(schema)}",
                schema_text(batch.schema),
                "Give schema=, or convert the batches to one schema.",
            )
        batch = stored(batch, of_file)
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
            path if path else "write_parquet",
            "records with at least one field, and lists of at least one value",
            "records without fields" if empty else "lists of the fixed size 0",
            "Parquet stores columns of values. Remove the field with without."
            if path
            else "Parquet stores columns of values. Add a field with with_updates.",
        )
    if pa.types.is_interval(arrow) or pa.types.is_run_end_encoded(arrow):
        raise UnsupportedTypeError(
            path,
            "a type that Parquet stores",
            f"Arrow type {arrow}",
            "Give schema= with another type, such as that of the values, or its parts.",
        )
    for field in inner_fields(arrow):
        _check_storable(field.type, path / field.name if pa.types.is_struct(arrow) else path)
