"""The text of JSON files, file objects and bytes."""

from __future__ import annotations

import codecs
import itertools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

from extensor._files.compression import compression_of, decompressed, with_compressed
from extensor._files.file_path import FilePath
from extensor._files.files import File, fetched_ahead, files_at
from extensor._files.store import replaced_error
from extensor.errors import DTypeError, FormatError

SUFFIXES = with_compressed((".json", ".jsonl", ".ndjson", ".geojson"))
"""The files of a folder that are read."""

_LARGE = 1 << 22  # bytes

_UTF16 = (b"\xff\xfe", b"\xfe\xff", b"{\x00", b"[\x00", b"\x00{", b"\x00[", b"\x00\x00")


Source = FilePath | bytes | bytearray | memoryview | pa.Buffer | IO[Any]
"""A path, the bytes of JSON text, or a file object."""


class OpenFile:
    """The bytes of a large local file, which are read where they are parsed, by several threads.

    Args:
        path: Its path, for errors.
        stream: The file.
        size: Its size.
    """

    def __init__(self, path: str, stream: pa.NativeFile, size: int) -> None:
        self.size = size
        self._path, self._stream = path, stream

    def slice(self, start: int, size: int) -> pa.Buffer:
        """Returns some of the bytes, as a buffer does.

        Raises:
            FormatError: If the file is shorter than it was (also a ValueError).
        """
        part = self._stream.read_at(size, start)
        if len(part) < size:
            raise replaced_error(self._path)
        return pa.py_buffer(part)


@dataclass(frozen=True)
class Text:
    """The text of one source, or some lines of it.

    Attributes:
        name: The path, or "JSON" with a number, for errors.
        buffer: The bytes, without compression and byte order mark.
        line: The number of lines before it in the source.
        start: Where it begins in its file; None if it is all of it or the file is compressed.
    """

    name: str
    buffer: pa.Buffer | OpenFile
    line: int = 0
    start: int | None = None


def texts_of(source: Source | Iterable[Source]) -> list[Text]:
    """Returns the text of each source.

    Args:
        source: A path, file object or bytes, or a list of them.

    Raises:
        DTypeError: If it is nothing of these (also a TypeError).
        MissingFileError, DirectoryError, StructureError: As `files_at`.
        FormatError: If a file is not complete, or its text is UTF-16 (also a ValueError).
    """
    is_one = _is_one(source)
    parts = list(source) if isinstance(source, Iterable) and not is_one else [source]
    for part in parts:
        if not _is_one(part):
            expected = "a path, a file object, bytes, or a list of them"
            fix = "Give text as bytes, and records that are Python objects to xt.struct.constant."
            raise DTypeError("read_json", expected, type(part).__name__, fix)
    return _texts([("JSON" if is_one else f"JSON {i}", part) for i, part in enumerate(parts)])


def _is_one(source: object) -> bool:
    kinds = (str, os.PathLike, bytes, bytearray, memoryview, pa.Buffer)
    return isinstance(source, kinds) or hasattr(source, "read")


def _texts(sources: list[tuple[str, Any]]) -> list[Text]:
    """Returns the texts of named sources, of which those that are paths have names of their own."""
    found: list[Text] = []
    for is_path, run in itertools.groupby(sources, lambda named: _is_path(named[1])):
        if is_path:
            found += _texts_of_files([path for _, path in run])
        else:
            found += [_text_in_memory(name, source) for name, source in run]
    return found


def _is_path(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike)) and not hasattr(source, "read")


def _texts_of_files(paths: list[Any]) -> list[Text]:
    for path in paths:
        if isinstance(path, str) and path.lstrip()[:1] == "{":
            fix = "Give the text as bytes: text.encode()."
            raise FormatError("read_json", "a path", f"JSON text ({path[:20]!r}...)", fix)
    with fetched_ahead(files_at(paths, SUFFIXES)) as opened:
        return [_text(file.path, _content(file, len(opened) == 1)) for file in opened]


def _content(file: File, is_only: bool) -> pa.Buffer | OpenFile:
    """Returns the bytes of a file, which is not kept open if there are others."""
    stream = file.open()
    if is_only and file.is_local and (size := stream.size()) > _LARGE:
        return OpenFile(file.path, stream, size)
    with stream:
        return stream.read_buffer()


def _text_in_memory(name: str, source: Any) -> Text:
    if not hasattr(source, "read"):
        return _text(name, pa.py_buffer(source))
    given = getattr(source, "name", None)
    content = source.read()
    if isinstance(content, str):
        # Lone surrogates are not UTF-8: the reader refuses them, and names the line.
        content = content.encode("utf-8", "surrogatepass")
    return _text(given if isinstance(given, str) else name, pa.py_buffer(content))


def _text(name: str, buffer: pa.Buffer | OpenFile) -> Text:
    if compression_of(_start_of(buffer)) is not None:
        buffer = decompressed(name, buffer.slice(0, buffer.size))
    start, mark = _start_of(buffer), len(codecs.BOM_UTF8)
    if start.startswith(codecs.BOM_UTF8):
        buffer = buffer.slice(mark, buffer.size - mark)
    elif start.startswith(_UTF16):
        received = f"bytes that begin with {start!r}, such as UTF-16 has"
        raise FormatError(name, "UTF-8 text", received, "Write the text as UTF-8.")
    return Text(name, buffer)


def _start_of(buffer: pa.Buffer | OpenFile) -> bytes:
    return bytes(buffer.slice(0, min(4, buffer.size)))
