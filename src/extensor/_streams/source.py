"""Files of any format as a stream of record batches, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._files.files import File, FilePath, files_at
from extensor._formats.arrow import ArrowFiles
from extensor._formats.json.stream import JsonFiles
from extensor._formats.parquet.read import ParquetFiles
from extensor._formats.tfrecord.stream import TFRecordFiles
from extensor._path import PathLike
from extensor._streams.formats import SUFFIXES, format_of_files

# The approximate maximal size of a batch, in records and in bytes of a Parquet file.
_ROWS, _BYTES = 1 << 15, 1 << 22


@dataclass(frozen=True)
class Source:
    """Files as a stream of record batches.

    Attributes:
        format: The format of the files.
        schema: The Arrow schema of each batch.
        num_records: The number of records, or None if the files do not tell.
        batches: Begins a pass: returns an iterator over batches of the schema.
    """

    format: str
    schema: pa.Schema
    num_records: int | None
    batches: Callable[[], Iterator[pa.RecordBatch]]


def opened(
    paths: FilePath | Iterable[FilePath],
    columns: Iterable[PathLike] | None = None,
    format: str | None = None,
) -> Source:
    """Returns files as a stream of record batches.

    Of a JSON or TFRecord file, this reads all records once, to find out their types. JSON that is
    not one object a line is read as a whole.

    Args:
        paths: Paths, folders, patterns or URLs of files of one format.
        columns: Paths of the fields to read; None for all.
        format: The format; None to go by the suffixes.

    Raises:
        MissingFileError, DirectoryError, StructureError, FormatError, FieldError, DTypeError: As in
            the functions that read the format.
    """
    suffixes = tuple(end for ends in SUFFIXES.values() for end in ends)
    packed = tuple(f"{end}{zip}" for end in suffixes for zip in (".gz", ".zst", ".bz2", ".lz4"))
    files = files_at(paths, () if format is not None else suffixes + packed)
    kind = format_of_files(files, format)
    if kind == "parquet":
        parquet = ParquetFiles([file.path for file in files], columns)
        return Source(
            kind, parquet.schema, parquet.num_rows, lambda: parquet.batches(1, _ROWS, _BYTES)
        )
    found = _FORMATS[kind](files)
    wanted = WantedTable(columns)
    schema = wanted.pruned(found.schema)
    return Source(kind, schema, found.num_records, lambda: _chosen(found.batches(), schema))


_FORMATS: dict[str, Callable[[list[File]], Any]] = {
    "arrow": ArrowFiles,
    "json": JsonFiles,
    "tfrecord": TFRecordFiles,
}


def _chosen(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    wanted = WantedTable(schema=schema)
    for batch in batches:
        if batch.schema.equals(schema):
            yield batch
        else:
            yield from wanted.table(pa.Table.from_batches([batch])).to_batches()
