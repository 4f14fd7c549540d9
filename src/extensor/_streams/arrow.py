"""Arrow IPC files: their record batches are the groups; a stream is one group."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa

from extensor._arrow.batches import common_schema
from extensor._arrow.chosen_columns import leaf_paths
from extensor._arrow.wanted_table import WantedTable
from extensor._files.files import File, FilePath, files_at
from extensor._files.ranges import Range, joined_ranges, pieces_of
from extensor._files.store import CONNECTIONS
from extensor._formats.arrow import (
    SUFFIXES,
    batches_in,
    readable,
    reader_of,
    reader_of_wanted,
    seekable,
)
from extensor._streams.source import Group, Source, with_columns_of

_MAGIC = b"ARROW1"

# Fields of the tables of Arrow's Footer, Message and RecordBatch.
_RECORD_BATCHES, _HEADER, _LENGTH = 3, 2, 0

# Bytes between the beginnings of record batches that are read with them.
_GAP = 1 << 16


class _FileBlocks(NamedTuple):
    """The record batches of an Arrow IPC file.

    Attributes:
        ranges: Where each is.
        rows: The number of records in each.
        rest: Where all else is that pyarrow reads: the schema, dictionaries and the footer.
    """

    ranges: Sequence[Range]
    rows: Sequence[int]
    rest: Sequence[Range]


def _file_blocks(file: File) -> _FileBlocks | None:
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
    return _FileBlocks(ranges, rows, [(0, first), (last, size)])


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


class ArrowSource(Source):
    """The records of Arrow IPC files, IPC streams and Feather files.

    Args:
        paths: The files.
        wanted: The arguments `columns` and `schema`.
        is_counted: Whether to read the shortest column, to know the numbers of records. Otherwise
            each file is one group.
    """

    def __init__(
        self, paths: FilePath | Iterable[FilePath], wanted: WantedTable, is_counted: bool = True
    ) -> None:
        super().__init__(files_at(paths, SUFFIXES))
        self._rest: dict[str, Sequence[Range]] = {}  # of files in stores
        schemas: list[tuple[str, pa.Schema]] = []
        self.groups = []
        for file, (found, groups, stored) in zip(
            self.files, _open_all(self.files, is_counted), strict=True
        ):
            schemas.append(
                (file.path, found if wanted.schema is not None else wanted.pruned(found))
            )
            self.groups += groups
            if stored is not None:
                self._rest[file.path] = stored.rest
        wanted.expect_columns({name: None for _, schema in schemas for name in schema.names})
        given = wanted.schema
        self.schema = given if given is not None else common_schema(schemas)

    def batches(self, groups: Sequence[Group], rows: int) -> Iterator[pa.RecordBatch]:
        """Yields the record batches of a file; see `Source`."""
        file, wanted = groups[0].file, WantedTable(schema=self.schema)
        with (
            readable(file.path),
            seekable(file) as stream,
            reader_of_wanted(file.path, stream, wanted) as reader,
        ):
            numbers = None if groups[0].at is None else [group.at[0] for group in groups]
            for batch in batches_in(file.path, stream, reader, numbers):
                batch.validate(full=True)
                yield with_columns_of(batch, self.schema)

    def ranges(self, groups: Sequence[Group]) -> Iterator[Sequence[Range]]:
        """Yields where record batches are; with the first one, all else that is read.

        See `Source`.
        """
        if groups[0].at is None:
            found = pieces_of(groups[0].file.size)
        else:
            found = joined_ranges(group.at[1] for group in groups)
        first = next(found, None)
        if first is not None:
            rest = self._rest.get(groups[0].file.path, ())
            outside = [each for each in rest if not first[0] <= each[0] <= each[1] <= first[1]]
            yield list(joined_ranges(sorted([first, *outside])))
        yield from ([each] for each in found)


_Opened = tuple[pa.Schema, list[Group], _FileBlocks | None]
"""The schema of a file, its groups, and where they are if it is in a store."""


def _open_all(files: Sequence[File], is_counted: bool) -> Iterator[_Opened]:
    """Yields what is in files; those of stores are opened many at a time."""
    opened = functools.partial(_open, is_counted=is_counted)
    if all(file.store is None for file in files):
        yield from map(opened, files)
        return
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        yield from pool.map(opened, files)


def _open(file: File, is_counted: bool) -> _Opened:
    with readable(file.path), seekable(file) as stream:
        with reader_of(file.path, stream) as reader:
            schema: pa.Schema = reader.schema
        leaf_paths(schema)  # raises for a name that is not UTF-8
        stored = None if file.store is None else _file_blocks(file)
        if not is_counted:
            return schema, [Group(file, "its record batches", None, stream.size())], stored
        if stored is not None:
            return schema, _stored_groups(file, stored), stored
        return schema, _groups(file, stream, schema), None


def _stored_groups(file: File, stored: _FileBlocks) -> list[Group]:
    share = file.size / max(1, sum(stored.rows))
    return [
        Group(file, f"record batch {i}", n, n * share, (i, at))
        for i, (n, at) in enumerate(zip(stored.rows, stored.ranges, strict=True))
    ]


def _groups(file: File, stream: pa.NativeFile, schema: pa.Schema) -> list[Group]:
    """Returns the record batches of a file; a stream is one group.

    Only the shortest column is read, to know the numbers of records.
    """
    stream.seek(0)
    size = stream.size()
    fields = _shortest(schema)
    with reader_of(file.path, stream, fields) as reader:
        rows = [batch.num_rows for batch in batches_in(file.path, stream, reader)]
        is_stream = not isinstance(reader, pa.RecordBatchFileReader)
    share = size / max(1, sum(rows))
    if is_stream:
        return [Group(file, "its record batches", sum(rows), size)]
    return [Group(file, f"record batch {i}", n, n * share, (i,)) for i, n in enumerate(rows)]


def _shortest(schema: pa.Schema) -> list[int] | None:
    widths = [
        field.type.bit_width if pa.types.is_primitive(field.type) else 1 << 10 for field in schema
    ]
    return [widths.index(min(widths))] if widths else None
