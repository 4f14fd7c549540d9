"""A Parquet file that is open for reading, and its footer."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from extensor._files.files import File
from extensor.errors import FormatError

# Options that keep memory small. By default pyarrow keeps all data that it has read until the file
# is closed (pre_buffer), and reads a whole column of a row group at once (no buffer).
READ_OPTIONS: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 17}


@contextlib.contextmanager
def opened(file: File) -> Generator[pq.ParquetFile]:
    """Yields a file that is open for reading.

    Raises:
        MissingFileError, DirectoryError: As `File.open`.
        FormatError: If it is no Parquet file, or truncated.
    """
    with file.open() as stream, parsed(file, stream) as found:
        yield found


@contextlib.contextmanager
def parsed(file: File, stream: pa.NativeFile, metadata: Any = None) -> Generator[pq.ParquetFile]:
    """Yields a file that is open as a stream, of which the footer may be known; see `opened`."""
    with readable(file.path):
        found = pq.ParquetFile(stream, metadata=metadata, **READ_OPTIONS)
    with found:
        yield found


class readable:  # noqa: N801 - used like a function
    """Replaces pyarrow's errors about a file by errors that name the file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        # An OSError with an errno comes from the system (no permission, too many open files).
        # A footer with two names for one column raises a KeyError; a name that is not UTF-8 raises
        # a UnicodeDecodeError.
        unreadable = (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError, UnicodeDecodeError)
        if isinstance(error, unreadable) or (isinstance(error, OSError) and not error.errno):
            reason = (str(error).splitlines() or ["no reason given"])[0]
            raise FormatError(
                self.path,
                "a complete Parquet file",
                f"a file that cannot be read as Parquet ({reason})",
                "Write the file again; a truncated file has no footer.",
            ) from error


def check_count(path: str, expected: int, count: int) -> None:
    """Raises if a file has another number of records than its footer says."""
    if count != expected:
        raise FormatError(
            path,
            f"{expected} records, the number in the footer",
            f"{count} records",
            "Write the file again.",
        )


def checked_row_group(file: pq.ParquetFile, number: int, columns: list[str]) -> Any:
    """Returns the metadata of a row group in which these columns can be accessed safely.

    Accessing the damaged metadata of a column aborts the process (pyarrow 26). Reading from the
    column raises an error instead, so this reads one record first.
    """
    next(file.iter_batches(1, row_groups=[number], columns=columns, use_threads=False), None)
    return file.metadata.row_group(number)
