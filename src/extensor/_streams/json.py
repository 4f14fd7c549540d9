"""JSON files: some lines are a group where each line is a record; else the file is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._files.files import File, FilePath, fetched_ahead, files_at
from extensor._formats.json.source import SUFFIXES, Text
from extensor._formats.json.stream import JsonBlock, blocks, num_records, table_of, with_types_of
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
                for each in blocks(opened, self._block):
                    text = _text(file, each)
                    if wanted.schema is None:
                        table = table_of(text, each.line)
                        record = with_types_of(record, table.schema, text, each.line)
                        rows = table.num_rows
                    else:
                        rows = num_records(text, each.line)
                    at = None if each.start is None else (each.start, each.line)
                    name = f"lines from {each.line + 1} on" if at else "its records"
                    found.append(Group(file, name, rows, len(each.data), at))
                self.groups += found if found and found[0].at else joined_group(found)
        given = wanted.schema
        self.schema = given if given is not None else wanted.pruned(pa.schema(record.fields))

    def batches(self, groups: Sequence[Group], rows: int) -> Iterator[pa.RecordBatch]:
        """Yields the records of lines of a file; see `Source`."""
        wanted = WantedTable(schema=self.schema)
        for text, line in self._texts(groups):
            for batch in table_of(text, line, wanted).to_batches():
                yield with_columns_of(batch, self.schema)

    def _texts(self, groups: Sequence[Group]) -> Iterator[tuple[Text, int]]:
        """Yields the texts of groups, each with the number of lines before it."""
        file = groups[0].file
        if groups[0].at is None:
            for block in blocks(file, self._block):
                yield _text(file, block), block.line
            return
        with file.open() as stream:
            for group in groups:
                start, line = group.at
                stream.seek(start)
                yield Text(file.path, stream.read_buffer(int(group.nbytes))), line


def _text(file: File, block: JsonBlock) -> Text:
    return Text(file.path, pa.py_buffer(block.data))
