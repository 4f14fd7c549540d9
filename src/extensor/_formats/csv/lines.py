"""The text of CSV files, some records at a time."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from extensor._files.compression import compression_of, decompression_errors
from extensor._files.files import File
from extensor._formats.csv.dialect import Dialect, expect_different
from extensor.errors import FormatError

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
    is_seekable = dialect.is_utf8 and not is_packed
    if not dialect.is_utf8:
        stream = pa.transcoding_input_stream(stream, dialect.encoding, "utf8")
    first = _read(stream, path, dialect, size)
    block = first.removeprefix(codecs.BOM_UTF8)
    start, record, names = len(first) - len(block), 0, dialect.names
    is_last = not first
    delimiter = dialect.delimiter_of(path)
    while names is None:
        if end := _first_record(_quoted(block, delimiter), is_last):
            names = _names_of(block[:end], path, dialect)
            block, start = block[end:], start + end
            break
        if is_last:
            raise _unfinished_error(path, 0) if block.strip() else _no_header(path)
        more = _read(stream, path, dialect, max(size, len(block)))
        block, is_last = block + more, not more
    is_first = True
    while block or is_first:
        text = _quoted(block, delimiter)
        end = end_of_records(text)
        # Of a long record as much again, so that it is not copied again and again.
        more = b"" if is_last else _read(stream, path, dialect, max(size, len(block) - end))
        if not more:
            if text.count(b'"') % 2:
                raise _unfinished_error(path, record + _num_lines(text[:end]))
            end = len(block)
        if end or (is_first and not more):
            yield CsvBlock(block[:end], start if is_seekable else None, record, names)
            is_first = False
            start, record = start + end, record + _num_lines(text[:end])
        block, is_last = block[end:] + more, not more


def _quoted(block: bytes, delimiter: str) -> bytes:
    """Returns a text that begins with a record, in which each quote begins or ends a quoted value.

    A quote after the beginning of a value, as in `12" disc`, is a character as others. An x is in
    its place.
    """
    data = np.frombuffer(block, np.uint8)
    opening = np.flatnonzero(data == ord('"'))[::2]
    before = data[opening[opening > 0] - 1]
    if np.isin(before, list(f'{delimiter}\r\n"'.encode())).all():
        return block
    value = rb'((?:\A|(?<=[\r\n%s]))"[^"]*(?:""[^"]*)*(?:"|\Z))|"' % re.escape(delimiter.encode())
    return re.sub(value, lambda found: found[1] or b"x", block)


def end_of_records(block: bytes) -> int:
    """Returns the end of the last complete record of a text that begins with one.

    A line break that is not in quotes ends a record. A quote in quotes is two.
    """
    quotes, end = block.count(b'"'), len(block)
    while (at := block.rfind(b"\n", 0, end)) >= 0:
        quotes -= block.count(b'"', at, end)
        if quotes % 2 == 0:
            return at + 1
        end = at
    return 0


def _first_record(block: bytes, is_last: bool) -> int:
    """Returns the end of the first record, with the empty lines before it; 0 if it is not there."""
    at = len(block) - len(block.lstrip(b"\r\n"))
    for found in _BREAK.finditer(block, at):
        is_sure = is_last or found.end() < len(block)  # a line feed may follow
        if is_sure and block.count(b'"', 0, found.start()) % 2 == 0:
            return found.end()
    is_whole = is_last and block.strip(b"\r\n") and block.count(b'"') % 2 == 0
    return len(block) if is_whole else 0


def _names_of(line: bytes, path: str, dialect: Dialect) -> tuple[str, ...]:
    try:
        text = line.decode().strip("\r\n")
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    [names] = csv.reader(io.StringIO(text, newline=""), delimiter=dialect.delimiter_of(path))
    expect_different(path, names)
    return tuple(names)


def _num_lines(block: bytes) -> int:
    """Returns the number of the records and empty lines of a text of complete ones."""
    if b'"' not in block:
        return block.count(b"\n")
    data = np.frombuffer(block, np.uint8)
    is_quoted = np.cumsum(data == ord('"'), dtype=np.int64) & 1
    return int(np.count_nonzero((data == ord("\n")) & (is_quoted == 0)))


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
