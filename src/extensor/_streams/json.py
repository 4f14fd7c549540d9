"""JSON files: some lines are a group where each line is a record; else the file is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._files.files import FilePath, fetched_ahead, files_at
from extensor._formats.json.source import SUFFIXES, Text
from extensor._formats.json.stream import blocks, table_of, with_types_of
from extensor._streams.source import BLOCK, Group, Source, joined_group, with_columns_of


class JsonSource(Source):
    """The records of JSON files. All are parsed once, to count them and to find out their types.

    Args:
        paths: The files.
        wanted: The arguments `columns` and `schema`.
        block: The approximate size in bytes of the lines that are read at once.
    """

    def __init__(
        self, paths: FilePath | Iterable[FilePath], wanted: WantedTable, block: int | None = None
    ) -> None:
        super().__init__(files_at(paths, SUFFIXES))
        self._block = block or BLOCK
        record: pa.DataType = pa.struct([])
        self.groups = []
        with fetched_ahead(self.files) as files:
            for file, opened in zip(self.files, files, strict=True):
                found: list[Group] = []
                for text in blocks(opened, self._block):
                    table = table_of(text, None if wanted.schema is None else _NO_FIELDS)
                    if wanted.schema is None:
                        record = with_types_of(record, table.schema, text)
                    at = None if text.start is None else (text.start, text.line)
                    name = f"lines from {text.line + 1} on" if at else "its records"
                    found.append(Group(file, name, table.num_rows, text.buffer.size, at))
                self.groups += found if found and found[0].at else joined_group(found)
        given = wanted.schema
        self.schema = given if given is not None else wanted.pruned(pa.schema(record.fields))

    def batches(self, groups: Sequence[Group], rows: int) -> Iterator[pa.RecordBatch]:
        """Yields the records of lines of a file; see `Source`."""
        for text in self._texts(groups):
            for batch in table_of(text, self.schema).to_batches():
                yield with_columns_of(batch, self.schema)

    def _texts(self, groups: Sequence[Group]) -> Iterator[Text]:
        """Yields the texts of groups."""
        file = groups[0].file
        if groups[0].at is None:
            yield from blocks(file, self._block)
            return
        with file.open() as stream:
            for group in groups:
                start, line = group.at
                stream.seek(start)
                yield Text(file.path, stream.read_buffer(int(group.nbytes)), line)


_NO_FIELDS = pa.schema([])
