"""A Parquet file that is open for reading, and its footer."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from extensor._files.files import File, pyarrow_errors
from extensor._files.ranges import FetchAhead, Range, RangesFile, few_ranges
from extensor.errors import FormatError

# Options that keep memory small. By default pyarrow keeps all data that it has read until the file
# is closed (pre_buffer), and reads a whole column of a row group at once (no buffer).
READ_OPTIONS: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 17}

# So many bytes at the end of a file have the footers of most.
_TAIL = 1 << 16

_UNREADABLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError)


@contextlib.contextmanager
def open_parquet(file: File) -> Generator[pq.ParquetFile]:
    """Yields a file that is open for reading.

    Raises:
        MissingFileError, DirectoryError: As `File.open`.
        FormatError: If it is no Parquet file, or truncated.
    """
    with _stream_of_footer(file) as stream, parquet_file(file, stream) as found:
        yield found


def _stream_of_footer(file: File) -> pa.NativeFile:
    """Opens a file; of a store the end is read at once, where the footer is."""
    if file.store is None:
        return file.open()
    tail = file.store.tail(file.inner, _TAIL)
    start = max(0, file.size - len(tail))
    return pa.PythonFile(RangesFile(file.size, file.fetch, [(start, tail)]), mode="r")


@contextlib.contextmanager
def open_row_groups(
    file: File, metadata: pq.FileMetaData, numbers: Sequence[int], columns: Sequence[str] | None
) -> Generator[pq.ParquetFile]:
    """Yields a remote file of which row groups are fetched in order, each by one or two requests.

    Args:
        file: The file.
        metadata: Its footer.
        numbers: The row groups.
        columns: The columns to read, by Parquet's paths; None for all.

    Raises:
        FormatError: If the footer is damaged, or the file was replaced.
    """
    ranges = ranges_of_row_groups(file, metadata, numbers, columns)
    assert file.store is not None
    ahead = file.ahead or FetchAhead(file.blocks(ranges), file.store.read_ahead)
    try:
        with (
            replace(file, ahead=ahead).open() as stream,
            parquet_file(file, stream, metadata) as found,
        ):
            yield found
    finally:
        if file.ahead is None:
            ahead.close()


def ranges_of_row_groups(
    file: File, metadata: pq.FileMetaData, numbers: Sequence[int], columns: Sequence[str] | None
) -> list[list[Range]]:
    """Returns where the columns of each row group are, as one or two ranges.

    Raises:
        FormatError: If the footer is damaged.
    """
    with readable(file.path):
        return [few_ranges(_ranges_of(metadata, each, columns, file.size)) for each in numbers]


def _ranges_of(
    metadata: pq.FileMetaData, number: int, columns: Sequence[str] | None, size: int
) -> list[Range]:
    """Returns where the columns of a row group are."""
    group = checked_row_group(metadata, number, columns, size)
    found: list[Range] = []
    for i in range(group.num_columns):
        chunk = group.column(i)
        if columns is None or chunk.path_in_schema in columns:
            start = chunk.data_page_offset
            if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
                start = min(start, chunk.dictionary_page_offset)
            found.append((start, min(start + chunk.total_compressed_size, size)))
    return found


def checked_row_group(
    metadata: pq.FileMetaData, number: int, columns: Sequence[str] | None, size: int
) -> pq.RowGroupMetaData:
    """Returns the metadata of a row group in which these columns can be accessed safely.

    Accessing the damaged metadata of a column aborts the process (pyarrow 26). A read with
    pre_buffer looks at that of all columns first, and raises an error. So this begins one, and
    reads nothing.

    Args:
        metadata: The footer.
        number: The number of the row group.
        columns: The columns, by Parquet's paths; None for all.
        size: The size of the file in bytes.
    """
    unread = _Unread(size)
    stream = pa.PythonFile(unread, mode="r")
    source = pq.ParquetFile(stream, metadata=metadata, pre_buffer=True)
    try:
        next(source.iter_batches(1, row_groups=[number], columns=columns, use_threads=False), None)
    except (pa.ArrowException, OSError):
        if not unread.is_asked:
            raise
    return metadata.row_group(number)


class _Unread(RangesFile):
    """A file of which only the footer is known.

    Reading it gives nothing. It raises no error of Python: Arrow would write its traceback, and
    keep it, with the records that callers read, in a cycle that Python does not see.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size, self._nothing, ())
        self.is_asked = False

    def _nothing(self, ranges: Sequence[Range]) -> Sequence[memoryview]:
        self.is_asked = True
        return [memoryview(b"")]


@contextlib.contextmanager
def parquet_file(
    file: File,
    stream: pa.NativeFile,
    metadata: pq.FileMetaData | None = None,
    dictionaries: Sequence[str] = (),
) -> Generator[pq.ParquetFile]:
    """Yields the Parquet file in a stream.

    Args:
        file: The file.
        stream: It, open for reading.
        metadata: Its footer, if it is known.
        dictionaries: The columns of strings to read as dictionaries, by Parquet's paths.

    Raises:
        FormatError: As `open_parquet`.
    """
    with readable(file.path):
        options: dict[str, Any] = {"pre_buffer": False, "read_dictionary": dictionaries}
        if file.store is None:  # what is in memory already needs no buffers
            options |= READ_OPTIONS
        found = pq.ParquetFile(stream, metadata=metadata, **options)
        if unit := unit_of_int96(found.metadata):
            found = pq.ParquetFile(
                stream, metadata=found.metadata, coerce_int96_timestamp_unit=unit, **options
            )
    with found:
        yield found


def unit_of_int96(metadata: pq.FileMetaData) -> str | None:
    """Returns the unit of times that are stored as INT96; None for nanoseconds, as Arrow reads.

    Spark writes microseconds, and all years: nanoseconds reach from 1677 to 2262, and Arrow makes
    other times of those beyond.
    """
    return "us" if b"org.apache.spark.version" in (metadata.metadata or {}) else None


def readable(path: str) -> AbstractContextManager[None]:
    """Replaces pyarrow's errors about a Parquet file by errors that name it."""
    fix = "Write the file again; a truncated file has no footer."
    return pyarrow_errors(path, "a complete Parquet file", fix, _UNREADABLE)


def check_count(path: str, expected: int, count: int) -> None:
    """Raises if a file has another number of records than its footer says."""
    if count != expected:
        received, fix = f"{count} records", "Write the file again."
        raise FormatError(path, f"{expected} records, the number in the footer", received, fix)


def dictionary_columns(
    file: File, metadata: pq.FileMetaData, number: int, strings: dict[int, str]
) -> list[str]:
    """Returns the columns of strings that a row group stores as dictionaries.

    Args:
        file: The file.
        metadata: Its footer.
        number: The row group.
        strings: The numbers of the columns of strings, and Parquet's paths of them.
    """
    try:
        group = checked_row_group(metadata, number, list(strings.values()), file.size)
    except (pa.ArrowException, OSError):  # reading tells, with the name of the file
        return []
    # A writer whose dictionary grows too large stores the other strings plainly, each with a length
    # of four bytes. So a column of fewer bytes a value is mostly dictionary.
    return [
        path
        for path, chunk in ((path, group.column(i)) for i, path in strings.items())
        if chunk.has_dictionary_page and chunk.total_uncompressed_size < 4 * chunk.num_values
    ]
