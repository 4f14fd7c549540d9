"""A Parquet file that is open for reading, and its footer."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from extensor._files.files import File, pyarrow_errors
from extensor.errors import FormatError

# Options that keep memory small. By default pyarrow keeps all data that it has read until the file
# is closed (pre_buffer), and reads a whole column of a row group at once (no buffer).
READ_OPTIONS: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 17}

_UNREADABLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError)


@contextlib.contextmanager
def open_parquet(file: File) -> Generator[pq.ParquetFile]:
    """Yields a file that is open for reading.

    Raises:
        MissingFileError, DirectoryError: As `File.open`.
        FormatError: If it is no Parquet file, or truncated.
    """
    with file.open() as stream, parquet_file(file, stream) as found:
        yield found


@contextlib.contextmanager
def parquet_file(
    file: File, stream: pa.NativeFile, metadata: pq.FileMetaData | None = None
) -> Generator[pq.ParquetFile]:
    """Yields the Parquet file in a stream, whose footer may be known; see `open_parquet`."""
    with readable(file.path):
        found = pq.ParquetFile(stream, metadata=metadata, **READ_OPTIONS)
    with found:
        yield found


def readable(path: str) -> AbstractContextManager[None]:
    """Replaces pyarrow's errors about a Parquet file by errors that name it."""
    fix = "Write the file again; a truncated file has no footer."
    return pyarrow_errors(path, "a complete Parquet file", fix, _UNREADABLE)


def check_count(path: str, expected: int, count: int) -> None:
    """Raises if a file has another number of records than its footer says."""
    if count != expected:
        received = f"{count} records"
        fix = "Write the file again."
        raise FormatError(path, f"{expected} records, the number in the footer", received, fix)


def checked_row_group(file: pq.ParquetFile, number: int, columns: list[str]) -> pq.RowGroupMetaData:
    """Returns the metadata of a row group in which these columns can be accessed safely.

    Accessing the damaged metadata of a column aborts the process (pyarrow 26). Reading from the
    column raises an error instead, so this reads one record first.
    """
    next(file.iter_batches(1, row_groups=[number], columns=columns, use_threads=False), None)
    return file.metadata.row_group(number)
