"""The text of CSV files, some records at a time."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from extensor._files.compression import compression_of, decompression_errors
from extensor._files.files import File, FilePath
from extensor.errors import DTypeError, FormatError, StructureError


class Dialect(NamedTuple):
    """The arguments that only functions of CSV have.

    Attributes:
        delimiter: What separates values; None for a tab in `.tsv` files and a comma in others.
        names: The names of the columns of files without a header; None if they have one.
        null_values: The texts without quotes that are nulls.
        encoding: The encoding of the text, as Python names it.
    """

    delimiter: str | None = None
    names: tuple[str, ...] | None = None
    null_values: tuple[str, ...] = ("",)
    encoding: str = "utf-8"

    @property
    def is_utf8(self) -> bool:
        """Whether the text is UTF-8 as it is stored."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig", "ascii")

    def delimiter_of(self, path: object) -> str:
        """Returns what separates the values of a file."""
        if self.delimiter is not None:
            return self.delimiter
        return "\t" if ".tsv" in str(path)[-9:] else ","


def dialect_of(
    delimiter: str | None, names: Iterable[str] | None, null_values: Iterable[str], encoding: str
) -> Dialect:
    """Returns the checked arguments of a function that reads CSV.

    Raises:
        DTypeError: If an argument has another type (also a TypeError).
        StructureError: If a delimiter is not one character, a name comes twice, or Python does not
            know the encoding (also a ValueError).
    """
    if delimiter is not None:
        check_delimiter(delimiter)
    found = None if names is None else _texts("names", names)
    if found is not None:
        expect_different("names", found)
    dialect = Dialect(delimiter, found, _texts("null_values", null_values), encoding)
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError) as error:
        fix = 'Write it as Python does, such as "latin-1" or "utf-16".'
        raise StructureError("encoding", "an encoding", repr(encoding)[:60], fix) from error
    return dialect


def check_delimiter(delimiter: Any) -> None:
    """Raises StructureError unless a delimiter is one character of ASCII that can separate."""
    is_one = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    if not is_one or delimiter in '"\r\n':
        fix = r'Give one, such as delimiter=";" or delimiter="\t".'
        raise StructureError("delimiter", "one character of ASCII", repr(delimiter)[:60], fix)


def expect_different(path: FilePath, names: Iterable[str]) -> None:
    """Raises StructureError if a name comes twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            fix = "Give the columns other names: names= is for files without a header."
            raise StructureError(str(path), "columns with different names", f"{name!r} twice", fix)
        seen.add(name)


def _texts(argument: str, given: Iterable[str]) -> tuple[str, ...]:
    texts = () if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not texts or not all(isinstance(text, str) for text in texts):
        fix = f'Write {argument}=["a", "b"].'
        raise DTypeError(argument, "a list of str", repr(given)[:60], fix)
    return texts


_Places = np.ndarray[Any, Any]

_BREAK = re.compile(rb"\r\n?|\n")


class CsvBlock(NamedTuple):
    """Some records of a file.

    Attributes:
        data: Their text.
        start: Where it begins in the file; None if the file is compressed or not UTF-8.
        record: The number of records and empty lines before it.
        names: The names of the columns.
    """

    data: bytes
    start: int | None
    record: int
    names: tuple[str, ...]


def blocks_of_file(file: File, dialect: Dialect, size: int) -> Iterator[CsvBlock]:
    """Yields the records of a file, of about `size` bytes at a time; at least one block.

    Raises:
        FormatError: If the file has no header, does not decompress, is not in its encoding, or ends
            inside quotes (also a ValueError).
        StructureError: If two columns have one name (also a ValueError).
    """
    with file.open() as opened:
        compression = compression_of(opened.read(4))
    with file.stream(compression) as stream, decompression_errors(file.path, compression):
        yield from blocks(stream, file.path, dialect, size, compression is not None)


def blocks(
    stream: Any, path: str, dialect: Dialect, size: int, is_packed: bool = False
) -> Iterator[CsvBlock]:
    """Yields the records of a stream of bytes; see `blocks_of_file`."""
    is_seekable, delimiter = dialect.is_utf8 and not is_packed, dialect.delimiter_of(path)
    if not dialect.is_utf8:
        stream = pa.transcoding_input_stream(stream, dialect.encoding, "utf8")
    first = _read(stream, path, dialect, size)
    block = first.removeprefix(codecs.BOM_UTF8)
    start, record, names = len(first) - len(block), 0, dialect.names
    is_last = not first
    while names is None:
        if end := _first_record(block, delimiter, is_last):
            names = _names_of(block[:end], path, dialect)
            block, start = block[end:], start + end
            break
        if is_last:
            raise _unfinished_error(path, 0) if block.strip() else _no_header(path)
        more = _read(stream, path, dialect, max(size, len(block)))
        block, is_last = block + more, not more
    is_first = True
    while block or is_first:
        end, count, is_in_quotes = _whole_records(block, delimiter)
        # Of a long record as much again, so that it is not copied again and again.
        more = b"" if is_last else _read(stream, path, dialect, max(size, len(block) - end))
        if not more:
            if is_in_quotes:
                raise _unfinished_error(path, record + count)
            end = len(block)
        if end or (is_first and not more):
            yield CsvBlock(block[:end], start if is_seekable else None, record, names)
            is_first = False
            start, record = start + end, record + count
        block, is_last = block[end:] + more, not more


def _whole_records(block: bytes, delimiter: str) -> tuple[int, int, bool]:
    """Returns where the last whole record ends of a text that begins with one.

    Also how many records and empty lines there are up to it, and whether the text ends in quotes.
    """
    if b'"' not in block:
        return block.rfind(b"\n") + 1, block.count(b"\n"), False
    quotes = _quotes(block, delimiter)
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return int(ends[-1]) if len(ends) else 0, len(ends), len(quotes) % 2 == 1


def _quotes(block: bytes, delimiter: str) -> _Places:
    """Returns where quoted texts begin and end; a quote in quotes, which is two, ends and begins.

    A quote within a value that does not begin with one is a character as others.
    """
    data = np.frombuffer(block, np.uint8)
    found = np.flatnonzero(data == ord('"'))
    before = data[np.maximum(found[::2] - 1, 0)]  # where quoted texts begin
    if np.isin(before, np.frombuffer(b'"\r\n' + delimiter.encode(), np.uint8)).all():
        return found
    quoted = re.compile(b'(?<![^\r\n%b])"[^"]*(?:""[^"]*)*("?)' % re.escape(delimiter.encode()))
    edges = ([m.start(), m.end() - 1] if m[1] else [m.start()] for m in quoted.finditer(block))
    return np.array([at for pair in edges for at in pair], np.int64)


def _first_record(block: bytes, delimiter: str, is_last: bool) -> int:
    """Returns the end of the first record, with the empty lines before it; 0 if it is not there."""
    at = len(block) - len(block.lstrip(b"\r\n"))
    quotes = _quotes(block, delimiter)
    for found in _BREAK.finditer(block, at):
        is_sure = is_last or found.end() < len(block)  # a line feed may follow
        if is_sure and np.searchsorted(quotes, found.start()) % 2 == 0:
            return found.end()
    is_whole = is_last and block.strip(b"\r\n") and len(quotes) % 2 == 0
    return len(block) if is_whole else 0


def _names_of(line: bytes, path: str, dialect: Dialect) -> tuple[str, ...]:
    try:
        text = line.decode().strip("\r\n")
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    [names] = csv.reader(io.StringIO(text, newline=""), delimiter=dialect.delimiter_of(path))
    expect_different(path, names)
    return tuple(names)


def _read(stream: Any, path: str, dialect: Dialect, size: int) -> bytes:
    try:
        return stream.read(size)
    except UnicodeError as error:
        expected = f"text in the encoding {dialect.encoding}"
        raise FormatError(path, expected, str(error), "Correct encoding=.") from error


def _not_utf8(path: str) -> FormatError:
    fix = 'Give the encoding, such as encoding="latin-1".'
    return FormatError(path, "text in UTF-8", "other bytes in the header", fix)


def _no_header(path: str) -> FormatError:
    fix = "Give names= for files without a header."
    return FormatError(path, "a line with the names of the columns", "an empty file", fix)


def _unfinished_error(path: str, record: int) -> FormatError:
    received = f"a quote without its end, in record {record}"
    fix = "Write the file again; in quotes, a quote is written twice."
    return FormatError(path, "a quote after each quoted value", received, fix)
