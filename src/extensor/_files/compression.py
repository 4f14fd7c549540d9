"""The compression of files, by their first bytes or their suffix."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable

import pyarrow as pa

from extensor._raised import first_line
from extensor.errors import ExtensorError, FormatError

# Text never begins with these bytes.
_MARKS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\x04\x22\x4d\x18": "lz4",
}


COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
"""The suffixes of compressed files, each with the compression."""


def with_compressed(suffixes: Iterable[str]) -> tuple[str, ...]:
    """Returns suffixes, each also with those of compressed files after it.

    >>> from extensor._files.compression import with_compressed
    >>> with_compressed([".csv"])
    ('.csv', '.csv.gz', '.csv.zst', '.csv.bz2', '.csv.lz4')
    """
    return tuple(f"{end}{packed}" for end in suffixes for packed in ("", *COMPRESSED))


def compression_of_name(path: str) -> str | None:
    """Returns the compression of a file by its suffix; None if it has none of those."""
    return next((kind for end, kind in COMPRESSED.items() if path.endswith(end)), None)


def compression_of(start: bytes) -> str | None:
    """Returns the compression of a file by its first four bytes; None for text."""
    return next((kind for mark, kind in _MARKS.items() if start.startswith(mark)), None)


@contextlib.contextmanager
def decompression_errors(path: str, compression: str | None) -> Generator[None]:
    """Replaces pyarrow's errors about compressed data by errors that name the file.

    Raises:
        FormatError: If it does not decompress (also a ValueError).
    """
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        is_other = isinstance(error, ExtensorError) or getattr(error, "errno", None)
        if compression is None or is_other:
            raise
        expected = f"a complete {compression} file"
        received = f"a file that does not decompress ({first_line(error)})"
        raise FormatError(path, expected, received, "Write or copy the file again.") from error


def decompressed(name: str, buffer: pa.Buffer) -> pa.Buffer:
    """Returns the content of a buffer, without compression if it has one.

    Args:
        name: The name of what is in the buffer, for errors.
        buffer: The buffer.

    Raises:
        FormatError: If it does not decompress (also a ValueError).
    """
    compression = compression_of(bytes(memoryview(buffer)[:4]))
    if compression is None:
        return buffer
    with decompression_errors(name, compression), pa.BufferReader(buffer) as packed:
        return pa.CompressedInputStream(packed, compression).read_buffer()
