"""Reading and writing of Arrow's own formats: IPC files, IPC streams and Feather."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO

import pyarrow as pa

from extensor._arrow.batches import (
    batches_of,
    common_schema,
    num_records_of,
    schema_text,
    with_one_schema,
    with_progress,
)
from extensor._arrow.chosen_columns import leaf_paths
from extensor._arrow.read import has_capsules, table_of
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._choice import expect_one_of
from extensor._files.compression import compression_of_name, decompressed
from extensor._files.files import (
    File,
    FilePath,
    fetched_ahead,
    files_at,
    pyarrow_errors,
)
from extensor._files.output import packed_output
from extensor._files.part_cache import Cache
from extensor._files.ranges import Range, pieces_of
from extensor._files.store import READ_AHEAD, reading_as, reading_of
from extensor._path import PathLike
from extensor._progress import progress_bar
from extensor._raised import first_line
from extensor._struct.tensor import StructuredTensor
from extensor._typing import ArrowData, DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError, FormatError, StructureError

SUFFIXES = (".arrow", ".arrows", ".feather", ".ipc")
# A file that one request reads, whatever is read of it.
_SMALL = 1 << 20

_FILE, _FEATHER_1 = b"ARROW1", b"FEA1"


def read_arrow(
    source: FilePath | bytes | BinaryIO | ArrowData | Iterable[FilePath] | Iterable[ArrowData],
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    *,
    read_ahead: int = READ_AHEAD,
    cache: FilePath | Cache | None = None,
) -> StructuredTensor:
    """Returns the records of Arrow IPC files, streams and Feather files as a StructuredTensor.

    Args:
        source: One of these:

            - a path, folder, glob pattern or URL, or several: IPC files, IPC streams or Feather
              files (of version 2). The content decides which.
            - the content of a file: bytes, a buffer, or an object with a method `read`.
            - a RecordBatchReader, or another object with the Arrow PyCapsule interface.
            - an iterable of record batches, of tables, or of such objects.
        columns: Paths of the fields to read, such as `["title", "steps.minutes"]`. Of files, other
            columns are not read. Default: all.
        schema: The spec of a StructuredTensor, or a pyarrow Schema, to which the columns are cast
            without loss. A nullable column that one of several parts does not have is null there.
            Default: the schema of the parts, which must agree; their columns have any order.
        nulls: What becomes of nulls: `"error"` (the default), `"mask"` for a MaskedTensor,
            `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by path. More in
            `xt.from_arrow`.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        read_ahead: How many bytes of files that are not local are fetched before they are read, or
            the next row group or 8 MB if these are larger; 0 for none. Default: 12 MB.
        cache: A folder of the disk in which the parts of files that are not local are kept that
            were read, or an `xt.data.Cache` with its size. Default: none.

    Returns:
        A StructuredTensor of shape `[number of records]`.

    Raises:
        MissingFileError, DirectoryError: If a file does not exist, or is a directory (also a
            FileNotFoundError, an IsADirectoryError).
        FormatError: If the content is not Arrow's, is damaged or truncated (also a ValueError).
        FieldError: If a column does not exist (also a KeyError).
        StructureError: If there is no file or batch, or parts have different schemas (also a
            ValueError).
        DTypeError: If `source` is nothing of the above, or a column does not fit the schema (also
            a TypeError).
        NullError, UnsupportedTypeError: As in `from_arrow`.

    >>> import extensor as xt
    >>> path = "recipes.arrow"
    >>> xt.write_arrow(xt.struct.constant([{"title": "tea", "minutes": [5, 2]}]), path)
    >>> xt.read_arrow(path, columns=["minutes"])
    <StructuredTensor shape=(1,) {minutes: int32[*]} [{minutes: [5, 2]}]>
    """
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    parts: list[tuple[str, pa.Table]] = []
    names: dict[str, None] = {}  # of the columns of all parts, in order
    with reading_as(reading_of(read_ahead, cache)):
        for name, table in _tables(source, wanted):
            with readable(name):
                leaf_paths(table.schema)  # raises for a name that is not UTF-8
                names.update(dict.fromkeys(table.schema.names))
                parts.append((name, wanted.table(wanted.with_missing(table), validate=True)))
    if not parts:
        fix = "Without a batch, there is no schema."
        raise StructureError("read_arrow", "at least one batch of records", "0 batches", fix)
    wanted.expect_columns(names)
    return wanted.records(_join(parts))


def _join(parts: list[tuple[str, pa.Table]]) -> pa.Table:
    (_, whole), *others = parts
    if not others:
        return whole
    # By the flags of all parts: a field is nullable if it is in one of them.
    common_schema([(name, table.schema) for name, table in parts])
    return pa.concat_tables([table for _, table in parts], promote_options="default")


def _tables(source: Any, wanted: WantedTable) -> Iterator[tuple[str, pa.Table]]:
    """Yields the tables of a source, each with a name for errors."""
    if isinstance(source, (bytes, bytearray, memoryview, pa.Buffer)):
        yield "bytes", _table_in("bytes", pa.BufferReader(source), wanted)
    elif isinstance(source, (str, os.PathLike)):
        yield from _of_files(source, wanted)
    elif has_capsules(source):
        name = type(source).__name__
        yield name, _table_of(source, name)
    elif hasattr(source, "read"):
        data = source.read()
        if not isinstance(data, (bytes, pa.Buffer)):
            raise _no_source(f"a file whose read() returns {type(data).__name__}")
        yield "file", _table_in("file", pa.BufferReader(data), wanted)
    elif isinstance(source, Iterable):
        items = iter(source)
        first = next(items, None)
        if first is None:
            return
        items = itertools.chain([first], items)
        if isinstance(first, (str, os.PathLike)):
            yield from _of_files(items, wanted)
            return
        for i, item in enumerate(items):
            if not has_capsules(item):
                raise _no_source(f"an iterable with {type(item).__name__}")
            yield f"batch {i}", _table_of(item, f"batch {i}")
    else:
        raise _no_source(type(source).__name__)


def _no_source(received: str) -> DTypeError:
    expected = "paths, the content of a file, a reader, or an iterable of record batches"
    fix = "Give records that are in memory to xt.from_arrow."
    return DTypeError("read_arrow", expected, received, fix)


def _table_of(data: Any, name: str) -> pa.Table:
    """Returns the records of a reader, a table, a batch, or an object with PyCapsules."""
    with readable(name):
        return data.read_all() if isinstance(data, pa.RecordBatchReader) else table_of(data, name)


def _of_files(
    paths: FilePath | Iterable[FilePath], wanted: WantedTable
) -> Iterator[tuple[str, pa.Table]]:
    files = files_at(paths, SUFFIXES)
    is_whole = wanted.columns is None and wanted.schema is None
    with fetched_ahead(files, (_ranges(file, is_whole) for file in files)) as opened:
        for file in opened:
            with readable(file.path), seekable(file) as stream:
                table = _table_in(file.path, stream, wanted)
            yield file.path, table


def _ranges(file: File, is_whole: bool) -> Iterator[Sequence[Range]]:
    """Yields what is fetched of a file; nothing if only some columns of a large one are read."""
    if is_whole or file.size <= _SMALL:
        yield from ([each] for each in pieces_of(file.size))


def seekable(file: File) -> pa.NativeFile:
    """Opens a file for reading at any position; one that is compressed is read at once."""
    stream = file.open()
    if compression_of_name(file.path) is None:
        return stream
    with stream:
        return pa.BufferReader(decompressed(file.path, stream.read_buffer()))


def _table_in(name: str, stream: pa.NativeFile, wanted: WantedTable) -> pa.Table:
    """Returns the table of a file, with at least the columns that are wanted.

    Raises:
        FormatError: If the file is in none of the formats, damaged, or truncated.
    """
    with readable(name), reader_of_wanted(name, stream, wanted) as reader:
        if isinstance(reader, pa.RecordBatchFileReader):
            return reader.read_all()
        return pa.Table.from_batches(list(_of_stream(name, stream, reader)), reader.schema)


def _of_stream(
    name: str, stream: pa.NativeFile, reader: pa.RecordBatchStreamReader
) -> Iterator[pa.RecordBatch]:
    """Yields the batches of an IPC stream.

    Raises:
        FormatError: If the stream has no end mark: pyarrow takes one that was cut between two
            batches for whole.
    """
    count = 0
    while True:
        at = stream.tell()
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            break
        yield batch
        count += 1
    if stream.tell() == at:
        received = f"a stream that ends after {count} of its batches"
        fix = "It was truncated, or its writer was not closed. Write it again."
        raise FormatError(name, "an IPC stream with an end mark", received, fix)


def reader_of(
    name: str, stream: pa.NativeFile, fields: list[int] | None = None
) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    """Returns the reader of a file or stream.

    Args:
        name: The name of the file, for errors.
        stream: The file.
        fields: The numbers of the columns to read; None for all.

    Raises:
        FormatError: If it is a Feather file of version 1, or its footer is damaged.
    """
    start = stream.read(6)
    stream.seek(0)
    if start.startswith(_FEATHER_1):
        expected = "an Arrow IPC file, an IPC stream or a Feather file of version 2"
        received = "a Feather file of version 1, whose support pyarrow ends"
        fix = "Give xt.from_arrow what pyarrow.feather.read_table returns."
        raise FormatError(name, expected, received, fix)
    options = pa.ipc.IpcReadOptions(included_fields=fields)
    if start != _FILE:
        return pa.ipc.open_stream(stream, options=options)
    reader = pa.ipc.open_file(stream, options=options)
    if fields is None:  # else the schema lacks the other columns
        stream.seek(8)  # the first bytes are those of the format
        first = pa.ipc.read_schema(stream)
        if not first.equals(reader.schema):
            expected = f"a footer with the columns of the beginning: {schema_text(first)}"
            fix = "The file is damaged. Write it again."
            raise FormatError(name, expected, schema_text(reader.schema), fix)
    return reader


@contextlib.contextmanager
def reader_of_wanted(
    name: str, stream: pa.NativeFile, wanted: WantedTable
) -> Generator[pa.RecordBatchFileReader | pa.RecordBatchStreamReader]:
    """Yields the reader of a file or stream that has at least the columns that are wanted.

    Raises:
        FormatError: As `reader_of`.
        FieldError, StructureError, DTypeError: As `WantedTable.pruned`.
    """
    with reader_of(name, stream) as reader:
        schema = reader.schema
        leaf_paths(schema)  # raises for a name that is not UTF-8
        names = wanted.pruned(schema).names if wanted.schema is None else wanted.schema.names
        fields = [i for i, field in enumerate(schema.names) if field in names]
        if not fields or len(fields) == len(schema):
            yield reader
            return
    stream.seek(0)
    with reader_of(name, stream, fields) as reader:
        yield reader


def batches_in(
    name: str,
    stream: pa.NativeFile,
    reader: pa.RecordBatchFileReader | pa.RecordBatchStreamReader,
    numbers: Iterable[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a reader; of a file with a footer, those of some numbers.

    Args:
        name: The name of the file, for errors.
        stream: The file.
        reader: The reader.
        numbers: The numbers of the batches, as far as there are such; None for all.
    """
    if isinstance(reader, pa.RecordBatchFileReader):
        count = reader.num_record_batches
        chosen = range(count) if numbers is None else numbers
        yield from (reader.get_batch(i) for i in chosen if i < count)
    else:
        yield from _of_stream(name, stream, reader)


def readable(name: str) -> AbstractContextManager[None]:
    """Replaces pyarrow's errors about a source by errors that name it."""
    expected = "a complete Arrow IPC file, IPC stream or Feather file"
    fix = "Write it again; a truncated file has no footer."
    return pyarrow_errors(name, expected, fix, (pa.ArrowException, MemoryError))


def write_arrow(
    records: StructuredTensor | Iterable[StructuredTensor],
    path: FilePath,
    schema: pa.Schema | None = None,
    compression: str | None = None,
    *,
    progress: bool | None = None,
) -> None:
    """Writes records to an Arrow IPC file, or to a stream if `path` ends in `.arrows`.

    A file of this format is also a Feather file. It appears at `path` only when it is complete. A
    suffix such as `.gz` or `.zst` behind compresses it as a whole.

    Args:
        records: A StructuredTensor of rank 1, or an iterable of batches of one schema, such as a
            dataset. Each becomes one record batch.
        path: The file. An existing file is replaced.
        schema: The Arrow schema to write, as in `to_arrow`.
        compression: `"lz4"`, `"zstd"`, or None.
        progress: Whether to show a progress bar. Default: on a terminal and in a notebook, if tqdm
            is installed, after a second.

    Raises:
        DTypeError: If `records` is or yields anything but StructuredTensors of rank 1, or the
            compression is none of these (also a TypeError).
        StructureError: If there is no batch, or batches have different schemas, or dictionaries
            that a file cannot have (also a ValueError).
        MissingFileError, DirectoryError: If the folder of `path` does not exist, or `path` is a
            directory (also a FileNotFoundError, an IsADirectoryError).
        FormatError, FieldError: As in `to_arrow`.

    >>> import extensor as xt
    >>> path = "recipes.arrow"
    >>> xt.write_arrow(xt.struct.constant([{"title": "bread"}, {"title": "tea"}]), path)
    >>> xt.read_arrow(path).to_py()
    [{'title': 'bread'}, {'title': 'tea'}]
    """
    expect_one_of((None, "lz4", "zstd"), compression, "write_arrow: compression")
    batches = batches_of(records, "write_arrow")
    with progress_bar("write_arrow", progress, num_records_of(records)) as advance:
        found = (to_arrow(batch, schema) for batch in with_progress(batches, advance))
        write(found, path, compression)


def write(
    batches: Iterable[pa.RecordBatch], path: FilePath, compression: str | None = None
) -> None:
    """Writes Arrow record batches of one schema to an Arrow IPC file, or to a stream."""
    schema, checked = with_one_schema(batches, "write_arrow")
    is_stream = os.fspath(path).endswith(".arrows")
    make: Any = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=compression, emit_dictionary_deltas=True)
    with packed_output(path) as stream, make(stream, schema, options=options) as writer:
        for batch in checked:
            try:
                writer.write_batch(batch)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                expected = "batches that an Arrow IPC file can hold"
                received = first_line(error)
                fix = "A file has one dictionary a column: write a stream, .arrows, or give schema="
                raise StructureError("write_arrow", expected, received, fix) from error
