"""The text of JSON files, some lines at a time."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._files.compression import compression_of, decompression_errors
from extensor._files.files import File
from extensor._formats.json.exact import exact_records
from extensor._formats.json.fast import fast_table
from extensor._formats.json.maps import map_paths
from extensor._formats.json.source import Text, texts_of
from extensor._formats.json.types import InexactError, join_types
from extensor.errors import DTypeError, ExtensorError

_BETWEEN_RECORDS = re.compile(rb"\}[ \t\r]*\n(?=\s*\{)")


class JsonBlock(NamedTuple):
    """Some lines of a file, or all of a file that is not one object a line.

    Attributes:
        data: The text.
        start: Where it begins in the file; None if it is all of it or the file is compressed.
        line: The number of lines before it.
    """

    data: bytes
    start: int | None
    line: int


def blocks(file: File, size: int) -> Iterator[JsonBlock]:
    """Yields the text of a file, of about `size` bytes at a time where each line is a record.

    Raises:
        FormatError: If the file does not decompress, or is not UTF-8 (also a ValueError).
    """
    with file.open() as stream:
        compression = compression_of(stream.read(4))
    with file.stream(compression) as stream, decompression_errors(file.path, compression):
        first = stream.read(size)
        block = first.removeprefix(codecs.BOM_UTF8)
        if not _is_lines(block):
            [text] = texts_of(file.path)
            yield JsonBlock(bytes(text.buffer), None, 0)
            return
        start, line = len(first) - len(block), 0
        while block:
            end = _end_of_lines(block)
            # Of a long record as much again, so that it is not copied again and again.
            more = stream.read(size if end else max(size, len(block)))
            if not more:
                end = len(block)
            if end:
                lines = block[:end]
                yield JsonBlock(lines, start if compression is None else None, line)
                start, line = start + end, line + lines.count(b"\n")
            block = block[end:] + more


def _end_of_lines(block: bytes) -> int:
    """Returns the end of the last line after which another record begins; 0 if there is none.

    A record may span lines. Inside it, no value follows a brace that ends an object.
    """
    at = len(block)
    while (at := block.rfind(b"}", 0, at)) >= 0:
        if end := _BETWEEN_RECORDS.match(block, at):
            return end.end()
    return 0


def _is_lines(block: bytes) -> bool:
    """Returns whether the first line of a text is a whole record, and other lines follow."""
    first, _, rest = block.lstrip().partition(b"\n")
    if not first.startswith(b"{") or not rest.strip():
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True


def with_types_of(record: pa.DataType, schema: pa.Schema, text: Text, line: int) -> pa.DataType:
    """Returns the type of records that holds those of a type and those of a text.

    Args:
        record: The type of earlier records.
        schema: The schema of the records of a text.
        text: The text, for errors.
        line: The number of lines before it in the file.

    Raises:
        DTypeError: If values of one field have no common type (also a TypeError).
    """
    found = pa.struct(list(schema))
    try:
        return join_types(record, found)
    except InexactError:
        raise _conflict(text, line, record, found) from None


def num_records(text: Text, line: int) -> int:
    """Returns the number of the records of a text, as `table_of` reads them.

    Raises:
        FormatError, StructureError: If it is not JSON, or has values that are no records.
    """
    return table_of(text, line, _NO_FIELDS).num_rows


_NO_FIELDS = WantedTable(schema=pa.schema([]))


def table_of(text: Text, line: int, wanted: WantedTable | None = None) -> pa.Table:
    """Returns the records of a text, and raises errors with the lines of the file.

    Args:
        text: The text.
        line: The number of lines before it in the file.
        wanted: The schema that is wanted; None for that of the text.
    """
    try:
        try:
            return fast_table([text], wanted and wanted.schema, None)
        except InexactError:
            # As by the parser above, nulls stay: the caller has the policies for them.
            parsed = WantedTable(None, wanted and wanted.schema, "mask")
            keyed = map_paths((), parsed.schema)
            records = exact_records([text], parsed, "error", None, keyed)
            if isinstance(records, pa.Table):
                return records
            return pa.Table.from_batches([to_arrow(records, parsed.schema)])
    except ExtensorError as error:
        if not line:
            raise
        texts = (error.path, error.expected, error.received)
        path, expected, received = (_shift(each, text.name, line) for each in texts)
        raise type(error)(path, expected, received, error.fix) from error


def _shift(text: str | None, name: str, line: int) -> str | None:
    if text is None:
        return None
    pattern = rf"(?:(?<={re.escape(name)}, )line (\d+)|line (\d+)(?= of {re.escape(name)}))"
    return re.sub(pattern, lambda found: f"line {int(found[1] or found[2]) + line}", text)


def _conflict(text: Text, line: int, one: pa.DataType, other: pa.DataType) -> DTypeError:
    path, ours, theirs = _different(one, other, "")
    expected = f"values of one type, such as {ours} in earlier records"
    fix = "Correct the values, or read the file with read_json(conflicts='union')."
    return DTypeError(path, expected, f"{theirs} after line {line} of {text.name}", fix)


def _different(one: pa.DataType, other: pa.DataType, path: str) -> tuple[str, str, str]:
    """Returns the path of the first values without a common type, and their types."""
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        names = {field.name: field.type for field in one.fields}
        for field in other.fields:
            try:
                join_types(names.get(field.name, pa.null()), field.type)
            except InexactError:
                inner = f"{path}.{field.name}" if path else field.name
                return _different(names[field.name], field.type, inner)
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _different(one.value_type, other.value_type, f"{path}[*]")
    return path, str(one), str(other)
