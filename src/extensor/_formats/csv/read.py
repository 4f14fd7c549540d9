"""read_csv: CSV files, or text in memory, as StructuredTensors."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import IO, Any

import pyarrow as pa

from extensor._arrow.wanted_table import WantedTable
from extensor._files.compression import decompressed, with_compressed
from extensor._files.files import FilePath, fetched_ahead, files_at
from extensor._files.part_cache import Cache
from extensor._files.store import READ_AHEAD, reading_as, reading_of
from extensor._formats.csv.lines import CsvBlock, Dialect, blocks, blocks_of_file, dialect_of
from extensor._formats.csv.table import final_type, joined_types, parsed_type, table_of, types_of
from extensor._path import Path, PathLike
from extensor._progress import progress_bar
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError, FieldError, StructureError

SUFFIXES = with_compressed((".csv", ".tsv"))
"""The files of a folder that are read."""

_BLOCK = 1 << 26  # bytes that are parsed at once


def read_csv(
    source: FilePath | bytes | IO[Any] | Iterable[FilePath],
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    *,
    delimiter: str | None = None,
    names: Iterable[str] | None = None,
    null_values: Iterable[str] = ("",),
    encoding: str = "utf-8",
    read_ahead: int = READ_AHEAD,
    cache: FilePath | Cache | None = None,
    progress: bool | None = None,
) -> StructuredTensor:
    r"""Returns the records of CSV files, or of CSV text in memory, as a StructuredTensor.

    The first line has the names of the fields. Values are int64, float64, bool or text, as all
    records allow. Text stays text, also if it looks like a date: `schema=` makes it a time. A value
    in quotes has the same type as without, and may have line breaks. Empty lines are no records,
    unless there is only one field. Compressed text (gzip, zstd, bz2, lz4) is decompressed.

    Args:
        source: A path, a URL, a folder, a glob pattern; bytes of CSV text; a file object; or a
            list of paths of files of the same columns, whose records are concatenated.
        columns: Paths of the fields to read, such as `["title", "minutes"]`. Fields come in this
            order. Default: all.
        schema: A spec, such as `xt.spec_of(records)`, or a pyarrow Schema. Other fields are not
            read. A nullable field without a column is null.
        nulls: What becomes of nulls: `"error"` (the default), `"mask"` for a MaskedTensor,
            `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by path. More in
            `xt.from_arrow`.
        row_splits_dtype: The dtype of row splits in a spec. Default: tf.int64, or that of a spec.
        delimiter: The character between values. Default: a comma, and a tab in `.tsv` files.
        names: The names of the fields, if the files have no line with them.
        null_values: The texts without quotes that are nulls, such as `["", "NA"]`. Default: only
            the empty one; `nan` is a number.
        encoding: The encoding of the text, as Python names it, such as "latin-1".
        read_ahead: How many bytes of files that are not local are fetched before they are read, or
            the next row group or 8 MB if these are larger; 0 for none. Default: 12 MB.
        cache: A folder of the disk in which the parts of files that are not local are kept that
            were read, or an `xt.data.Cache` with its size. Default: none.
        progress: Whether to show a progress bar. Default: on a terminal and in a notebook, if tqdm
            is installed, after a second.

    Returns:
        A StructuredTensor of shape `[number of records]`.

    Raises:
        MissingFileError: If a file does not exist (also a FileNotFoundError).
        FormatError: If a record has too few or too many values, a quote has no end, the text is
            not in its encoding, or there is no header (also a ValueError).
        StructureError: If two columns have one name, or files have other columns (also a
            ValueError).
        DTypeError: If a value is not of the type in `schema`, or an integer fits neither int64 nor
            float64 exactly (also a TypeError).
        FieldError: If a path of `columns`, or a field of `schema`, does not exist (also a
            KeyError).
        UnsupportedTypeError: If `schema` has lists or records, which CSV has not (also a
            TypeError).
        NullError: If a value is null, and `nulls` does not say what to do (also a ValueError).

    >>> import extensor as xt
    >>> xt.read_csv(b"title,minutes\nTea,5\nBread,90\n")
    <StructuredTensor shape=(2,) {title: string, minutes: int64}
     [{title: 'Tea', minutes: 5}, {title: 'Bread', minutes: 90}]>
    """
    dialect = dialect_of(delimiter, names, null_values, encoding)
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    with reading_as(reading_of(read_ahead, cache)):
        parts = _parts(source, dialect)
    size = sum(len(block.data) for _, block in parts)
    with progress_bar("read_csv", progress, size, "B") as advance:
        found = SchemaOfText(wanted, dialect)
        for path, block in parts if wanted.schema is None else ():
            found.add(path, block)
        tables: list[pa.Table] = []
        for path, block in parts:
            tables.append(table_with(block, path, dialect, found.schema))
            advance(len(block.data))
    return wanted.records_of_parts(tables)


class SchemaOfText:
    """Finds out the schema of records: the one that is wanted, or that of their values.

    Args:
        wanted: The arguments `columns` and `schema`.
        dialect: How the files are written.
    """

    def __init__(self, wanted: WantedTable, dialect: Dialect) -> None:
        for field in wanted.schema or ():
            parsed_type(field)  # raises for lists and records
        self._wanted, self._dialect = wanted, dialect
        self._first: tuple[str, tuple[str, ...]] | None = None
        self._types: dict[str, pa.DataType] = {}
        self._refused: dict[str, DTypeError] = {}

    def add(self, path: str, block: CsvBlock) -> int:
        """Looks at a block of the file at a path, and returns the number of its records.

        Raises:
            StructureError: If the file has other columns than the first one, and there is no schema
                (also a ValueError).
            The errors of parsing.
        """
        if self._wanted.schema is not None:
            return table_with(block, path, self._dialect, _NO_FIELDS).num_rows
        types, count = types_of(block, path, self._dialect, self._refused)
        if self._first is None:
            self._first, self._types = (path, block.names), types
        elif self._first[1] != block.names:
            expected = f"the columns of {self._first[0]}: {', '.join(self._first[1])[:200]}"
            fix = "Give schema= or names=."
            raise StructureError(path, expected, ", ".join(block.names)[:200], fix)
        self._types = joined_types(self._types, types, path, self._refused)
        return count

    @property
    def schema(self) -> pa.Schema:
        """The schema, after all blocks."""
        if self._wanted.schema is not None:
            return self._wanted.schema
        fields = self._wanted.pruned(pa.schema(self._types))
        return pa.schema([final_type(field, self._refused) for field in fields])


def table_with(block: CsvBlock, path: str, dialect: Dialect, schema: pa.Schema) -> pa.Table:
    """Returns the records of a block with the fields of a schema.

    Raises:
        FieldError: If the file has no column for a field that must not be null.
    """
    types = {f.name: parsed_type(f) for f in schema if f.name in block.names}
    for field in schema:
        if field.name not in types and not field.nullable:
            received = f"the columns {', '.join(block.names[:20])}"
            raise FieldError(Path(field.name), f"a column of {path}", received, "Correct schema=.")
    # Without a column, pyarrow would count no records.
    read = types or dict.fromkeys(block.names[:1], pa.string())
    table = table_of(block, path, dialect, read)
    for field in schema:
        if field.name not in types:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    if not len(schema):
        return table.select([])
    return WantedTable(schema=schema).table(table)


def _parts(source: Any, dialect: Dialect) -> list[tuple[str, CsvBlock]]:
    if isinstance(source, (bytes, bytearray, memoryview, pa.Buffer)):
        return _in_memory(pa.py_buffer(source), "CSV", dialect)
    if hasattr(source, "read"):
        content = source.read()
        if isinstance(content, str):
            content, dialect = content.encode(), dialect._replace(encoding="utf-8")
        name = getattr(source, "name", None)
        return _in_memory(pa.py_buffer(content), name if isinstance(name, str) else "CSV", dialect)
    if not isinstance(source, (str, os.PathLike, Iterable)):
        expected = "a path, a file object, bytes, or a list of paths"
        fix = "Give a path, or the text as bytes: text.encode()."
        raise DTypeError("read_csv", expected, type(source).__name__, fix)
    with fetched_ahead(files_at(source, SUFFIXES)) as files:
        return [(f.path, block) for f in files for block in blocks_of_file(f, dialect, _BLOCK)]


def _in_memory(buffer: pa.Buffer, name: str, dialect: Dialect) -> list[tuple[str, CsvBlock]]:
    with pa.BufferReader(decompressed(name, buffer)) as stream:
        return [(name, block) for block in blocks(stream, name, dialect, max(1, buffer.size))]


_NO_FIELDS = pa.schema([])
