"""CSV files: some lines are a group where the file can be read from there; else it is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._files.files import FilePath, fetched_ahead, files_at
from extensor._formats.csv.lines import CsvBlock, blocks_of_file, dialect_of
from extensor._formats.csv.read import SUFFIXES, SchemaOfText, table_with
from extensor._streams.source import BLOCK, Group, Source, joined_group


class CsvSource(Source):
    """The records of CSV files. All are parsed once, to count them and to find out their types.

    Args:
        paths: The files.
        wanted: The arguments `columns` and `schema`.
        delimiter: As in `read_csv`, like the other arguments.
        names: The names of the columns.
        null_values: The texts that are nulls.
        encoding: The encoding.
        block: The approximate size in bytes of the lines that are read at once.
    """

    def __init__(
        self,
        paths: FilePath | Iterable[FilePath],
        wanted: WantedTable,
        delimiter: str | None = None,
        names: Iterable[str] | None = None,
        null_values: Iterable[str] = ("",),
        encoding: str = "utf-8",
        block: int | None = None,
    ) -> None:
        super().__init__(files_at(paths, SUFFIXES))
        self._dialect = dialect_of(delimiter, names, null_values, encoding)
        self._block = block or BLOCK
        text = SchemaOfText(wanted, self._dialect)
        self.groups = []
        with fetched_ahead(self.files) as files:
            for file, opened in zip(self.files, files, strict=True):
                found: list[Group] = []
                for each in blocks_of_file(opened, self._dialect, self._block):
                    at = None if each.start is None else (each.start, each.record, each.names)
                    name = f"records from {each.record} on" if at else "its records"
                    count = text.add(file.path, each)
                    found.append(Group(file, name, count, len(each.data), at))
                self.groups += found if found[0].at else joined_group(found)
        self.schema = text.schema

    def batches(self, groups: Sequence[Group], rows: int) -> Iterator[pa.RecordBatch]:
        """Yields the records of lines of a file; see `Source`."""
        path = groups[0].file.path
        for block in self._blocks(groups):
            yield from table_with(block, path, self._dialect, self.schema).to_batches()

    def _blocks(self, groups: Sequence[Group]) -> Iterator[CsvBlock]:
        file = groups[0].file
        if groups[0].at is None:
            yield from blocks_of_file(file, self._dialect, self._block)
            return
        with file.open() as stream:
            for group in groups:
                start, record, names = group.at
                stream.seek(start)
                yield CsvBlock(stream.read(int(group.nbytes)), start, record, names)
