"""The formats of files, and a stream of record batches of any of them, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._files.compression import COMPRESSED, with_compressed
from extensor._files.files import File, FilePath, files_at
from extensor._path import PathLike
from extensor._streams.arrow import ArrowSource
from extensor._streams.csv import CsvSource
from extensor._streams.json import JsonSource
from extensor._streams.parquet import ParquetSource
from extensor._streams.proto import ProtoSource
from extensor._streams.source import Source
from extensor._streams.tfrecord import TFRecordSource
from extensor.errors import FormatError

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


SUFFIXES = {
    "parquet": (".parquet", ".parq", ".pq"),
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
    "csv": (".csv", ".tsv"),
    "json": (".json", ".jsonl", ".ndjson", ".geojson"),
    "tfrecord": (".tfrecord", ".tfrecords"),
}
"""The suffixes of the files of each format."""


def format_of(path: str) -> str | None:
    """Returns the format of a path by its suffix, or None.

    >>> from extensor._streams.read import format_of
    >>> format_of("gs://bucket/recipes.jsonl.gz")
    'json'
    """
    name = os.path.basename(path).lower()
    for end in COMPRESSED:
        name = name.removesuffix(end)
    return next((known for known, ends in SUFFIXES.items() if name.endswith(ends)), None)


def format_of_files(files: Sequence[File], given: str | None) -> str:
    """Returns the format of files.

    Args:
        files: At least one file.
        given: The format that the caller names; None to go by the suffixes.

    Raises:
        FormatError: If a suffix is not known, or the files have several formats.
    """
    first = known_format(files[0].path, given)
    for file in files[1:]:
        if known_format(file.path, given) != first:
            expected = f"a file of format {first}, as {files[0].path}"
            fix = "Give files of one format, or name the format."
            raise FormatError(file.path, expected, f"format {format_of(file.path)}", fix)
    return first


def known_format(path: str, given: str | None = None) -> str:
    """Returns the format of a path.

    Args:
        path: The path.
        given: The format that the caller names; None to go by the suffix.

    Raises:
        FormatError: If the suffix is not known, or `given` is no format (also a ValueError).
    """
    if given is not None and given not in SUFFIXES:
        fix = "Leave it out to go by the suffix of the file."
        raise FormatError("format", f"one of {', '.join(SUFFIXES)}", repr(given)[:60], fix)
    found = given or format_of(path)
    if found is None:
        known = ", ".join(ends[0] for ends in SUFFIXES.values())
        expected = f"a suffix of a known format, such as {known}"
        received = f"the suffix {os.path.splitext(path)[1]!r}"
        raise FormatError(path, expected, received, f"Name the format: {', '.join(SUFFIXES)}.")
    return found
