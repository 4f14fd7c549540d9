"""Where the record batches of an Arrow IPC file are, which pyarrow does not tell."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from extensor._files.files import File
from extensor._files.ranges import Range

_MAGIC = b"ARROW1"

# Fields of the tables of Arrow's Footer, Message and RecordBatch.
_RECORD_BATCHES, _HEADER, _LENGTH = 3, 2, 0

# Bytes between the beginnings of record batches that are read with them.
_GAP = 1 << 16


class FileBlocks(NamedTuple):
    """The record batches of an Arrow IPC file.

    Attributes:
        ranges: Where each is.
        rows: The number of records in each.
        rest: Where all else is that pyarrow reads: the schema, dictionaries and the footer.
    """

    ranges: Sequence[Range]
    rows: Sequence[int]
    rest: Sequence[Range]


def file_blocks(file: File) -> FileBlocks | None:
    """Returns the record batches of a file, by reading its footer and their beginnings.

    Returns None for an IPC stream, and for a damaged file.
    """
    size = file.size
    if size < 2 * len(_MAGIC) + 4:
        return None
    with file.open() as stream:
        end: bytes = stream.read_at(len(_MAGIC) + 4, size - len(_MAGIC) - 4)
        footer_size = int.from_bytes(end[:4], "little")
        begin = size - len(end) - footer_size
        if not end.endswith(_MAGIC) or begin < len(_MAGIC):
            return None
        footer: bytes = stream.read_at(footer_size, begin)
    try:
        found = _record_batches(footer)
        ranges = [(start, start + metadata + body) for start, metadata, body in found]
        edges = [len(_MAGIC), *(edge for each in ranges for edge in each), begin]
        if edges != sorted(edges):
            return None
        rows = _rows(file, [(start, start + metadata) for start, metadata, _ in found])
    except struct.error:
        return None
    if rows is None:
        return None
    first, last = (ranges[0][0], ranges[-1][1]) if ranges else (begin, begin)
    return FileBlocks(ranges, rows, [(0, first), (last, size)])


def _rows(file: File, ranges: Sequence[Range]) -> list[int] | None:
    """Returns the numbers of records, of the messages at some ranges; None if one is damaged."""
    near: list[list[Range]] = []
    for each in ranges:
        if near and each[0] - near[-1][-1][1] <= _GAP:
            near[-1].append(each)
        else:
            near.append([each])
    rows: list[int] = []
    fetched = file.fetch([(some[0][0], some[-1][1]) for some in near])
    for some, data in zip(near, fetched, strict=True):
        for start, end in some:
            count = _num_rows(bytes(data[start - some[0][0] : end - some[0][0]]))
            if count is None:
                return None
            rows.append(count)
    return rows


def _record_batches(footer: bytes) -> list[tuple[int, int, int]]:
    """Returns the first byte, the size of the metadata and of the body of each record batch."""
    field = _field(footer, _root(footer, 0), _RECORD_BATCHES)
    if field is None:
        return []
    at = field + _uint32(footer, field)
    count = _uint32(footer, at)
    places = (struct.unpack_from("<qi4xq", footer, at + 4 + 24 * i) for i in range(count))
    return [(start, metadata, body) for start, metadata, body in places]


def _num_rows(message: bytes) -> int | None:
    # Before version 0.15, a message began with its size. Now four bytes are before that.
    root = _root(message, 8 if message.startswith(b"\xff\xff\xff\xff") else 4)
    header = _field(message, root, _HEADER)
    if header is None:
        return None
    length = _field(message, header + _uint32(message, header), _LENGTH)
    return 0 if length is None else struct.unpack_from("<q", message, length)[0]


def _root(data: bytes, at: int) -> int:
    """Returns the place of the root table of a flatbuffer."""
    return at + _uint32(data, at)


def _field(data: bytes, table: int, number: int) -> int | None:
    """Returns the place of a field of a table; None if it has its default value."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    slot = 4 + 2 * number
    if slot >= struct.unpack_from("<H", data, fields)[0]:
        return None
    offset = struct.unpack_from("<H", data, fields + slot)[0]
    return table + offset if offset else None


def _uint32(data: bytes, at: int) -> int:
    return struct.unpack_from("<I", data, at)[0]
