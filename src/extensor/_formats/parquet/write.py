"""Writing of StructuredTensors to Parquet files."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Generator, Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from extensor._arrow.arrow_type import inner_fields
from extensor._arrow.batches import (
    batches_of,
    num_records_of,
    schema_text,
    with_one_schema,
    with_progress,
)
from extensor._arrow.nulls import nulls_of
from extensor._arrow.write import to_plain_arrow
from extensor._choice import expect_one_of
from extensor._files.files import FilePath, is_hidden
from extensor._files.output import atomic_folder, atomic_output
from extensor._formats.parquet.partitions import NULL_NAME, partition_of
from extensor._formats.parquet.unions import batch_without_unions, without_unions
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
    expect_one_of(_COMPRESSIONS, compression, "write_parquet: compression")
    batches = batches_of(records, "write_parquet")
    with progress_bar("write_parquet", progress, num_records_of(records)) as advance:
        # pyarrow cuts folders by functions that take no views of strings.
        plain = functools.partial(to_plain_arrow, schema=schema, only_encoded=partition_by is None)
        found = map(plain, with_progress(batches, advance))
        if partition_by is None:
            write(found, path, compression)
        else:
            write_partitions(found, path, partition_by, compression)


def write(
    batches: Iterable[pa.RecordBatch], path: FilePath, compression: str | None = "snappy"
) -> None:
    """Writes Arrow record batches of one schema to a Parquet file."""
    with atomic_output(path) as stream:
        schema, groups = _row_groups(batches)
        with (
            _unsupported_types(schema),
            pq.ParquetWriter(stream, schema, compression=compression or "none") as writer,
        ):
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
        expected, fix = "a list of names of fields", 'Write partition_by=["country"].'
        raise DTypeError("write_parquet: partition_by", expected, repr(keys)[:80], fix)
    import pyarrow.dataset as ds  # here, because it imports pandas

    with atomic_folder(path) as (system, folder):
        schema, groups = _row_groups(batches)
        _check_keys(keys, schema)
        format = ds.ParquetFileFormat()
        folders = ds.partitioning(pa.schema([schema.field(k) for k in keys]), flavor="hive")
        with _unsupported_types(schema):
            ds.write_dataset(
                (_named_by(keys, batch) for group in groups for batch in group.to_batches()),
                folder,
                schema=schema,
                filesystem=system,
                format=format,
                file_options=format.make_write_options(compression=compression or "none"),
                partitioning=folders,
                existing_data_behavior="overwrite_or_ignore",  # `atomic_folder` looked
                max_rows_per_group=_GROUP_ROWS,
                min_rows_per_group=_GROUP_ROWS,
                use_threads=False,  # with threads, records are not in order
            )


@contextlib.contextmanager
def _unsupported_types(schema: pa.Schema) -> Generator[None]:
    """Replaces pyarrow's error for a type that it does not write by one that names the field."""
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        fields = [field for field in schema if not _is_written(field.type)] or list(schema)
        names = ", ".join(field.name for field in fields)
        expected = f"types that pyarrow {pa.__version__} writes to Parquet"
        received = f"{schema_text(pa.schema(fields))} ({error})"
        fix = "Give schema= with other types, or install a newer pyarrow."
        raise UnsupportedTypeError(names, expected, received, fix) from error


def _is_written(arrow: pa.DataType) -> bool:
    try:
        pq.write_table(pa.table({"": nulls_of(arrow, 1)}), pa.BufferOutputStream())
    except pa.ArrowNotImplementedError:
        return False
    return True


def _check_keys(keys: list[str], schema: pa.Schema) -> None:
    for key in keys:
        if key not in schema.names:
            expected = f"one of the fields {', '.join(schema.names[:20])}"
            fix = "Give names of fields of the records."
            raise FieldError("write_parquet: partition_by", expected, repr(key), fix)
        arrow = schema.field(key).type
        if not (
            pa.types.is_integer(arrow)
            or pa.types.is_string(arrow)
            or pa.types.is_large_string(arrow)
        ):
            expected = "integers or text, which the name of a folder can have"
            fix = "Give schema= with one of these types, or partition by another field."
            raise UnsupportedTypeError(Path(key), expected, f"Arrow type {arrow}", fix)
        is_kept = partition_of(f"{key}=x/file") == {key: "x"} and "\0" not in key
        if not is_kept or is_hidden(key):
            expected = "a name that does not begin with . or _, without /, =, % and zero bytes"
            fix = "The name is part of the name of a folder. Rename the field."
            raise StructureError("write_parquet: partition_by", expected, repr(key), fix)
    if not keys or len(set(keys)) < len(keys) or len(keys) == len(schema.names):
        expected, fix = "some of the fields, each once", "The files need at least one other field."
        raise StructureError("write_parquet: partition_by", expected, repr(keys)[:80], fix)


def _named_by(keys: list[str], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns a batch; raises for text in a key that the name of a folder does not keep."""
    for key in keys:
        column = batch.column(key)
        if pa.types.is_integer(column.type):
            continue
        for text in column.unique().drop_null().to_pylist():
            if text == NULL_NAME or "\0" in text:
                expected = f"text without zero bytes, other than {NULL_NAME!r}, which is null"
                fix = "The value names a folder. Replace it, or partition by another field."
                raise StructureError(Path(key), expected, repr(text)[:80], fix)
    return batch


def _row_groups(batches: Iterable[pa.RecordBatch]) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """Returns the schema of the file, and the row groups to write."""
    schema, checked = with_one_schema(batches, "write_parquet")
    of_file = without_unions(schema)
    _check_storable(pa.struct(list(of_file)), Path())
    return of_file, _join(batch_without_unions(batch, of_file) for batch in checked)


def _join(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yields batches joined into row groups, because each row group costs space and time."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
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
    received = None
    if pa.types.is_struct(arrow) and not arrow.num_fields:
        received = "records without fields"
    elif pa.types.is_fixed_size_list(arrow) and not arrow.list_size:
        received = "lists of the fixed size 0"
    elif pa.types.is_fixed_size_binary(arrow) and not arrow.byte_width:
        received = "bytes of the fixed size 0"
    if received is not None:
        expected = "records with at least one field, and lists and bytes of at least one value"
        fix = "Parquet stores columns of values. Add a field with with_updates."
        if path:
            fix = "Parquet stores columns of values. Remove the field with without."
        raise UnsupportedTypeError(path if path else "write_parquet", expected, received, fix)
    for field in inner_fields(arrow):
        _check_storable(field.type, path / field.name if pa.types.is_struct(arrow) else path)
