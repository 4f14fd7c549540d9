"""Files of any format as a stream of record batches, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._files.compression import with_compressed
from extensor._files.files import FilePath, files_at
from extensor._path import PathLike
from extensor._streams.arrow import ArrowSource
from extensor._streams.csv import CsvSource
from extensor._streams.formats import SUFFIXES, format_of_files
from extensor._streams.json import JsonSource
from extensor._streams.parquet import ParquetSource
from extensor._streams.proto import ProtoSource
from extensor._streams.source import Source
from extensor._streams.tfrecord import TFRecordSource

SOURCES: dict[str, Callable[..., Source]] = {
    "arrow": ArrowSource,
    "csv": CsvSource,
    "json": JsonSource,
    "parquet": ParquetSource,
    "proto": ProtoSource,
    "tfrecord": TFRecordSource,
}
"""The formats of files. Each is called with paths, a `WantedTable` and its own arguments."""

# The approximate maximal size of a batch, in records and in bytes of the source.
_ROWS, _BYTES = 1 << 15, 1 << 22

# What is different where the files are read once, from their beginning.
_OPTIONS: dict[str, dict[str, Any]] = {
    "arrow": {"is_counted": False},
    "csv": {"block": _BYTES},
    "json": {"block": _BYTES},
    "tfrecord": {"find_text": True, "block": _BYTES},
}


class Stream:
    """Files as a stream of record batches.

    Args:
        format: The format of the files.
        source: Their records.
    """

    def __init__(self, format: str, source: Source) -> None:
        self.format = format
        self.schema = source.schema
        """The Arrow schema of each batch."""
        self.num_records = source.num_records
        """The number of records, or None if the files do not tell."""
        self._source = source

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Begins a pass: yields batches of the schema."""
        source, rows = self._source, _ROWS
        if self.num_records:
            rows = min(rows, int(_BYTES * self.num_records / max(1.0, source.nbytes.sum())))
        return source.read(range(len(source.groups)), max(1, rows))


def open_stream(
    paths: FilePath | Iterable[FilePath],
    columns: Iterable[PathLike] | None = None,
    format: str | None = None,
) -> Stream:
    """Returns files as a stream of record batches.

    Of a CSV, JSON or TFRecord file, this reads all records once, to find out their types. JSON
    that is not one object a line is read as a whole.

    Args:
        paths: Paths, folders, patterns or URLs of files of one format.
        columns: Paths of the fields to read; None for all.
        format: The format; None to go by the suffixes.

    Raises:
        MissingFileError, DirectoryError, StructureError, FormatError, FieldError, DTypeError: As in
            the functions that read the format.
    """
    suffixes = with_compressed(end for ends in SUFFIXES.values() for end in ends)
    files = files_at(paths, () if format is not None else suffixes)
    kind = format_of_files(files, format)
    wanted = WantedTable(columns, nulls="auto")
    source = SOURCES[kind]([file.path for file in files], wanted, **_OPTIONS.get(kind, {}))
    return Stream(kind, source)
