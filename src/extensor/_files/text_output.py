"""Files that are written completely or not at all, compressed by their suffix; those of text."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from typing import IO, Any

import pyarrow as pa

from extensor._files.compression import compression_of_name
from extensor._files.files import FilePath, atomic_output


@contextlib.contextmanager
def text_output(path: FilePath | IO[Any]) -> Generator[Any]:
    """Yields a stream for text in UTF-8, as bytes.

    Args:
        path: The file, or a binary or text file object.

    Raises:
        The errors of `atomic_output`.
    """
    if not isinstance(path, (str, os.PathLike)):
        yield _Encoded(path) if hasattr(path, "encoding") else path
        return
    with packed_output(path) as stream:
        yield stream


@contextlib.contextmanager
def packed_output(path: FilePath) -> Generator[pa.NativeFile]:
    """Yields a stream as `atomic_output`, which compresses by a suffix of the path, such as .gz."""
    with atomic_output(path) as stream:
        compression = compression_of_name(os.fsdecode(path))
        if compression is None:
            yield stream
            return
        with pa.CompressedOutputStream(stream, compression) as packed:
            yield packed


class _Encoded:
    """A text file object as a binary one."""

    closed = False

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: bytes) -> None:
        """Writes text in UTF-8."""
        self._file.write(bytes(text).decode())
