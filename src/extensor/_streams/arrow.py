"""Arrow IPC files: their record batches are the groups; a stream is one group."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

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
from extensor._streams.arrow_blocks import FileBlocks, file_blocks
from extensor._streams.source import Group, Source, with_columns_of


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


_Opened = tuple[pa.Schema, list[Group], FileBlocks | None]
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
        stored = None if file.store is None else file_blocks(file)
        if not is_counted:
            return schema, [Group(file, "its record batches", None, stream.size())], stored
        if stored is not None:
            return schema, _stored_groups(file, stored), stored
        return schema, _groups(file, stream, schema), None


def _stored_groups(file: File, stored: FileBlocks) -> list[Group]:
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
