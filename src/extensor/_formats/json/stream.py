"""The text of JSON files, some lines at a time."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator

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
from extensor.errors import DTypeError

_BETWEEN_RECORDS = re.compile(rb"\}[ \t\r]*\n(?=\s*\{)")


def blocks(file: File, size: int) -> Iterator[Text]:
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
            yield from texts_of(file.path)
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
                at = start if compression is None else None
                yield Text(file.path, pa.py_buffer(lines), line, at)
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


def with_types_of(record: pa.DataType, schema: pa.Schema, text: Text) -> pa.DataType:
    """Returns the type of records that holds those of a type and those of a text.

    Args:
        record: The type of earlier records.
        schema: The schema of the records of a text.
        text: The text, for errors.

    Raises:
        DTypeError: If values of one field have no common type (also a TypeError).
    """
    try:
        return join_types(record, pa.struct(list(schema)))
    except InexactError as error:
        path, known, found = error.args
        expected = f"values of one type, such as {known} in earlier records"
        received = f"{found} after line {text.line} of {text.name}"
        fix = "Correct the values, or read the file with read_json(conflicts='union')."
        raise DTypeError(path, expected, received, fix) from None


def table_of(text: Text, schema: pa.Schema | None = None) -> pa.Table:
    """Returns the records of a text.

    Args:
        text: The text.
        schema: The schema that is wanted; None for that of the text.

    Raises:
        FormatError, StructureError: If it is not JSON, or has values that are no records.
    """
    try:
        return fast_table([text], schema, None)
    except InexactError:
        # As by the parser above, nulls stay: the caller has the policies for them.
        parsed = WantedTable(None, schema, "mask")
        keyed = map_paths((), parsed.schema)
        records = exact_records([text], parsed, "error", None, keyed)
        if isinstance(records, pa.Table):
            return records
        return pa.Table.from_batches([to_arrow(records, parsed.schema)])
