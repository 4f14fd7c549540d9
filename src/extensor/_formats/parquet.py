"""Reading and writing of Parquet files, as Arrow data or StructuredTensors."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf

from extensor._arrow.arrow_type import (
    holds,
    inner_fields,
    is_string_view,
    with_inner_fields,
)
from extensor._arrow.chosen_columns import chosen_columns, leaf_paths, pruned_schema
from extensor._arrow.read import read_table
from extensor._arrow.write import to_arrow
from extensor._files.files import FilePath, whole_output
from extensor._path import Path, PathLike
from extensor._struct.tensor import StructuredTensor
from extensor.errors import (
    DirectoryError,
    DTypeError,
    FormatError,
    MissingFileError,
    StructureError,
    UnsupportedTypeError,
)

# A row group is written once it has this many records or bytes.
_GROUP_ROWS = 1 << 16
_GROUP_BYTES = 1 << 26

# Options that keep memory small. By default pyarrow keeps all data that it has read until the file
# is closed (pre_buffer), and reads a whole column of a row group at once (no buffer).
_READ_OPTIONS: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 17}


def read_parquet(
    path_or_paths: FilePath | Iterable[FilePath],
    columns: Iterable[PathLike] | None = None,
    row_splits_dtype: Any = tf.int64,
    nulls: Any = "error",
) -> StructuredTensor:
    """Returns the records of Parquet files as a StructuredTensor.

    Args:
        path_or_paths: One file, or several files of one schema; their records are concatenated.
        columns: Paths of the fields to read, such as `["title", "ingredients.amount"]`. Other
            fields are not decoded. Fields come in this order. Default: all.
        row_splits_dtype: As in `from_arrow`.
        nulls: What to do with nulls, as in `from_arrow`.

    Returns:
        A StructuredTensor of shape `[number of records]`.

    Raises:
        MissingFileError: If a file does not exist (also a FileNotFoundError).
        DirectoryError: If a path is a directory (also an IsADirectoryError).
        FormatError: If a file is not Parquet, or is truncated (also a ValueError).
        FieldError: If a column does not exist (also a KeyError).
        StructureError: If no file or no column is given, or the files have different schemas (also
            a ValueError).
        DTypeError: If `path_or_paths` or `columns` is not a list of paths (also a TypeError).
        NullError, UnsupportedTypeError: As in `from_arrow`.

    >>> path = getfixture("tmp_path") / "recipes.parquet"
    >>> xt.write_parquet(xt.DenseStructuredTensor([2], {"title": ["a", "b"], "x": [1, 2]}), path)
    >>> xt.read_parquet(path, columns=["title"])
    <StructuredTensor shape=(2,) {title: string} [{title: b'a'}, {title: b'b'}]>
    """
    files = ParquetFiles(path_or_paths, columns, keep_dictionaries=True)
    tables = list(files.tables())
    if any(table.schema != tables[0].schema for table in tables):
        tables = [table.cast(files.schema) for table in tables]  # dictionaries in some files only
    return read_table(pa.concat_tables(tables), row_splits_dtype, nulls, files.schema)


def write_parquet(
    records: StructuredTensor | Iterable[StructuredTensor],
    path: FilePath,
    schema: pa.Schema | None = None,
) -> None:
    """Writes records to a Parquet file.

    The file appears at `path` only when it is complete. Batches are joined into row groups of
    65,536 records or 64 MiB.

    Args:
        records: A StructuredTensor of rank 1, or an iterable of batches of one schema, such as a
            dataset.
        path: The file. An existing file is replaced.
        schema: The Arrow schema to write, as in `to_arrow`.

    Raises:
        DTypeError: If `records` is or yields anything but StructuredTensors of rank 1 (also a
            TypeError).
        StructureError: If there is no batch, or batches have different schemas (also a
            ValueError).
        UnsupportedTypeError: If Parquet does not support a type, such as records without fields
            (also a TypeError).
        MissingFileError, DirectoryError: If the folder of `path` does not exist, or `path` is a
            directory (also a FileNotFoundError, an IsADirectoryError).
        FormatError: If a string that becomes text is not UTF-8, or `path` is a device (also a
            ValueError).

    >>> path = getfixture("tmp_path") / "recipes.parquet"
    >>> xt.write_parquet(xt.DenseStructuredTensor([2], {"est_time": [55.0, 30.0]}), path)
    >>> xt.read_parquet(path).to_py()
    [{'est_time': 55.0}, {'est_time': 30.0}]
    """
    batches = [records] if isinstance(records, StructuredTensor) else records
    if not isinstance(batches, Iterable):
        batches = [batches]  # `_batch` raises, as for any batch of the wrong type
    write((_batch(batch, schema) for batch in batches), path)


def _batch(records: Any, schema: pa.Schema | None) -> pa.RecordBatch:
    if not isinstance(records, StructuredTensor) or records.rank != 1:
        raise DTypeError(
            path="write_parquet",
            expected="StructuredTensors of rank 1",
            received=f"{type(records).__name__} of shape {records.shape}"
            if isinstance(records, StructuredTensor)
            else type(records).__name__,
            mend="Give a batch of records; Parquet stores lists of records.",
        )
    return to_arrow(records, schema)


def read(
    path_or_paths: FilePath | Iterable[FilePath], columns: Iterable[PathLike] | None = None
) -> pa.Table:
    """Returns the records of Parquet files as an Arrow Table.

    Args:
        path_or_paths: As in `read_parquet`.
        columns: As in `read_parquet`.
    """
    files = ParquetFiles(path_or_paths, columns)
    return pa.concat_tables(list(files.tables()))


def write(batches: Iterable[pa.RecordBatch], path: FilePath) -> None:
    """Writes Arrow record batches of one schema to a Parquet file."""
    with whole_output(*_paths([path])) as stream:
        _write_all(iter(batches), stream)


def _write_all(batches: Iterator[pa.RecordBatch], stream: pa.NativeFile) -> None:
    first = next(batches, None)
    if first is None:
        raise StructureError(
            path="write_parquet",
            expected="at least one batch of records",
            received="0 batches",
            mend="To write an empty file, give a batch of 0 records.",
        )
    _check_storable(pa.struct(list(first.schema)), Path())
    with pq.ParquetWriter(stream, first.schema) as writer:
        for group in _row_groups(itertools.chain([first], batches), first.schema):
            writer.write_table(group)


def _row_groups(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yields batches joined into row groups, because each row group costs space and time."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.schema != schema:
            raise StructureError(
                path="write_parquet",
                expected=f"batches of one schema: {_schema_text(schema)}",
                received=_schema_text(batch.schema),
                mend="Give schema=, or convert the batches to one schema.",
            )
        pending.append(batch)
        rows += batch.num_rows
        size += batch.get_total_buffer_size()
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.Table.from_batches(pending)
            pending, rows, size = [], 0, 0
    if pending:
        yield pa.Table.from_batches(pending)


def _check_storable(arrow: pa.DataType, path: Path) -> None:
    """Raises for a type that Parquet cannot store, or that pyarrow cannot read back."""
    empty = pa.types.is_struct(arrow) and not arrow.num_fields
    if empty or (pa.types.is_fixed_size_list(arrow) and not arrow.list_size):
        raise UnsupportedTypeError(
            path=path if path else "write_parquet",
            expected="records with at least one field, and lists of at least one value",
            received="records without fields" if empty else "lists of the fixed size 0",
            mend="Parquet stores columns of values. Remove the field with without."
            if path
            else "Parquet stores columns of values. Add a field with with_updates.",
        )
    if pa.types.is_union(arrow):
        raise UnsupportedTypeError(
            path=path,
            expected="a type that Parquet stores",
            received="a union",
            mend="Parquet has no unions. Write one field for each variant, with the nulls that "
            "union.match or union.is_variant gives (with_updates), or an Arrow IPC file.",
        )
    if pa.types.is_interval(arrow) or pa.types.is_run_end_encoded(arrow):
        raise UnsupportedTypeError(
            path=path,
            expected="a type that Parquet stores",
            received=f"Arrow type {arrow}",
            mend="Give schema= with another type, such as that of the values, or its parts.",
        )
    for field in inner_fields(arrow):
        _check_storable(field.type, path / field.name if pa.types.is_struct(arrow) else path)


def _schema_text(schema: pa.Schema) -> str:
    return ", ".join(
        f"{field.name}: {field.type}" + ("" if field.nullable else " not null") for field in schema
    )


class ParquetFiles:
    """Parquet files of one schema, opened for reading some of their fields.

    Args:
        path_or_paths: One file or several.
        columns: Paths of the fields to read; None for all.
        keep_dictionaries: Whether to read columns that are stored as dictionaries of strings as
            Arrow dictionary arrays, which is faster than reading them as strings.

    Raises:
        The errors of `read_parquet`, except those for nulls and types.
    """

    def __init__(
        self,
        path_or_paths: FilePath | Iterable[FilePath],
        columns: Iterable[PathLike] | None = None,
        keep_dictionaries: bool = False,
    ) -> None:
        self.paths = _paths(path_or_paths)
        self._keep_dictionaries = keep_dictionaries
        self._rows: list[int] = []
        whole: pa.Schema = None
        stored: list[str] = []
        for path in self.paths:
            with _opened(path) as file, _readable(path):
                self._rows.append(file.metadata.num_rows)
                groups = range(file.metadata.num_row_groups)
                _check_count(path, file, sum(file.metadata.row_group(i).num_rows for i in groups))
                arrow = file.schema_arrow
                if whole is None:
                    whole = arrow
                    # Parquet stores leaf columns only, in the order in which Arrow nests them.
                    stored = [file.schema.column(i).path for i in range(len(file.schema))]
                elif not arrow.equals(whole):
                    raise StructureError(
                        path=path,
                        expected=f"the schema of {self.paths[0]}: {_schema_text(whole)}",
                        received=_schema_text(arrow),
                        mend="Read files of different schemas one by one.",
                    )
        self.num_rows = sum(self._rows)
        """The number of records in all files."""
        self.schema: pa.Schema = whole
        """The Arrow schema of the columns to read."""
        self._whole = whole
        self._columns: list[str] | None = None
        if columns is not None:
            chosen = chosen_columns(columns, whole)
            self.schema = pruned_schema(whole, chosen)
            leaves = leaf_paths(whole)
            self._columns = [
                name
                for name, leaf in zip(stored, leaves, strict=True)
                if any(leaf[: len(path)] == path for path in chosen)
            ]

    def tables(self) -> Iterator[pa.Table]:
        """Yields a table of the records of each file."""
        for path, file in self._files():
            with _readable(path):
                table = self._read_dictionaries(path, file) if self._keep_dictionaries else None
                table = self._read(file) if table is None else table
            _check_count(path, file, table.num_rows)
            yield self._pruned(table)

    def _read(self, file: pq.ParquetFile) -> pa.Table:
        try:
            return file.read(columns=self._columns)
        except pa.ArrowNotImplementedError:
            return self._read_groups(file)

    def _read_groups(self, file: pq.ParquetFile) -> pa.Table:
        # One row group at a time, because Arrow cannot join dictionaries inside lists and structs.
        groups = range(file.metadata.num_row_groups)
        return pa.concat_tables([file.read_row_group(i, columns=self._columns) for i in groups])

    def _read_dictionaries(self, path: str, file: pq.ParquetFile) -> pa.Table | None:
        """Returns the records with dictionary arrays, or None if pyarrow cannot read these."""
        names = _dictionary_columns(file)
        if not names:
            return None
        with pq.ParquetFile(
            path, metadata=file.metadata, read_dictionary=names, **_READ_OPTIONS
        ) as again:
            try:
                return self._read_groups(again)
            except pa.ArrowNotImplementedError:
                return None

    def batches(
        self, batch_size: int, max_rows: int = 0, max_bytes: int = 0
    ) -> Iterator[pa.RecordBatch]:
        """Yields the records in pieces, in order.

        Args:
            batch_size: The number of records in a piece is a multiple of this, except at the end
                of a file or row group.
            max_rows: The maximal number of records in a piece, if `batch_size` is smaller.
            max_bytes: The approximate maximal size of a piece in bytes, if a batch is smaller.
        """
        for path, file in self._files():
            rows = min(max_rows, int(max_bytes / max(1.0, _bytes_per_row(file.metadata))))
            rows = max(1, rows // batch_size) * batch_size
            pieces, count = self._pieces(file, rows), 0
            state = _state(path)
            while True:
                with _readable(path):
                    piece = next(pieces, None)
                # A new file at this path does not change the open file. A write to it does.
                if (now := _state(path)) != state and now[:1] == state[:1]:
                    raise _replaced(path, "the file to stay unchanged while it is read")
                if piece is None:
                    break
                count += piece.num_rows
                yield self._pruned(piece)
            _check_count(path, file, count)

    def _pieces(self, file: pq.ParquetFile, rows: int) -> Iterator[pa.RecordBatch]:
        if not any(holds(field.type, pa.types.is_dictionary) for field in file.schema_arrow):
            yield from file.iter_batches(rows, columns=self._columns)
            return
        # Arrow cannot join the dictionaries of several row groups inside lists and structs.
        for i in range(file.metadata.num_row_groups):
            yield from file.iter_batches(rows, row_groups=[i], columns=self._columns)

    def _files(self) -> Iterator[tuple[str, pq.ParquetFile]]:
        """Yields each path and its file, which is open until the next iteration."""
        for path, rows in zip(self.paths, self._rows, strict=True):
            with _opened(path) as file:
                with _readable(path):
                    is_same = file.metadata.num_rows == rows and file.schema_arrow.equals(
                        self._whole
                    )
                if not is_same:
                    raise _replaced(path, f"a file of {rows} records with an unchanged schema")
                yield path, file

    def _pruned(self, data: Any) -> Any:
        if self._columns is None:
            return data
        data = data.select(self.schema.names)
        # pyarrow selects columns by dotted paths. For a name that contains a dot, it may read other
        # columns too; the cast drops them.
        return data if _decoded(data.schema) == self.schema else data.cast(self.schema)


def _state(path: str) -> tuple[Any, ...]:
    """Returns the identity of the file at a path, and its size and time of change."""
    try:
        status = os.stat(path)
    except OSError:
        return (None,)
    return (status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns


def _replaced(path: str, expected: str) -> FormatError:
    return FormatError(
        path=path,
        expected=expected,
        received="a file that was replaced or written to",
        mend="Open the files again.",
    )


def _check_count(path: str, file: pq.ParquetFile, count: int) -> None:
    if count != file.metadata.num_rows:
        raise FormatError(
            path=path,
            expected=f"{file.metadata.num_rows} records, the number in the footer",
            received=f"{count} records",
            mend="Write the file again.",
        )


def _bytes_per_row(metadata: Any) -> float:
    """Returns the approximate size of a record in bytes, with all columns."""
    if not metadata.num_row_groups:
        return 0.0
    group = metadata.row_group(0)
    return group.total_byte_size / max(1, group.num_rows)


def _dictionary_columns(file: pq.ParquetFile) -> list[str]:
    """Returns the columns whose strings are stored as a dictionary in all row groups.

    When a dictionary grows too large, a writer stores the other strings plainly, each with a length
    of four bytes. So a column of fewer than four bytes a value is all dictionary.
    """
    metadata, schema = file.metadata, file.schema
    if any(holds(field.type, is_string_view) for field in file.schema_arrow):
        return []  # Arrow cannot convert dictionaries to string views
    if sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)) < _SMALL:
        return []
    strings = [i for i in range(len(schema)) if schema.column(i).physical_type == "BYTE_ARRAY"]
    groups = [
        _checked_row_group(file, i, [schema.column(j).path for j in strings])
        for i in range(metadata.num_row_groups if strings else 0)
    ]
    names: list[str] = []
    for i in strings if groups else ():
        chunks = [group.column(i) for group in groups]
        if all(
            chunk.has_dictionary_page and chunk.total_uncompressed_size < 4 * chunk.num_values
            for chunk in chunks
        ):
            names.append(chunks[0].path_in_schema)
    return names


_SMALL = 1 << 16
"""Bytes: smaller files are read without looking for dictionaries, which takes longer."""


def _checked_row_group(file: pq.ParquetFile, number: int, columns: list[str]) -> Any:
    """Returns the metadata of a row group in which these columns can be accessed safely.

    Accessing the damaged metadata of a column aborts the process (pyarrow 26). Reading from the
    column raises an error instead, so this reads one record first.
    """
    next(file.iter_batches(1, row_groups=[number], columns=columns, use_threads=False), None)
    return file.metadata.row_group(number)


def _decoded(schema: pa.Schema) -> pa.Schema:
    """Returns a schema with each dictionary type replaced by the type of its values."""

    def decoded(field: pa.Field) -> pa.Field:
        arrow = field.type
        if pa.types.is_dictionary(arrow):
            return field.with_type(arrow.value_type)
        return field.with_type(with_inner_fields(arrow, list(map(decoded, inner_fields(arrow)))))

    return pa.schema([decoded(field) for field in schema], schema.metadata)


def _paths(path_or_paths: Any) -> list[str]:
    try:
        if isinstance(path_or_paths, (str, bytes, os.PathLike)):
            path_or_paths = [path_or_paths]
        paths = [os.fsdecode(path) for path in path_or_paths]
    except TypeError as error:
        raise DTypeError(
            path="Parquet files",
            expected="a path, or a list of paths",
            received=f"{type(path_or_paths).__name__} ({error})",
            mend="Give a path as a str or a pathlib.Path.",
        ) from error
    if not paths:
        raise StructureError(
            path="Parquet files",
            expected="at least one file",
            received="an empty list",
            mend="Check the glob pattern of the list.",
        )
    return paths


def _opened(path: str) -> pq.ParquetFile:
    if os.path.isdir(path):
        mend = "List the files: sorted(pathlib.Path(folder).glob('*.parquet'))."
        raise _directory(path, mend)
    with _readable(path):
        return pq.ParquetFile(path, **_READ_OPTIONS)


def _directory(path: str, mend: str) -> DirectoryError:
    return DirectoryError(path=path, expected="a file", received="a directory", mend=mend)


class _readable:  # noqa: N801 - used like a function
    """Replaces pyarrow's errors about a file by errors that name the file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, FileNotFoundError):
            raise MissingFileError(
                path=self.path,
                expected="a Parquet file",
                received="a path that does not exist",
                mend="Check the path; relative paths start from the working directory.",
            ) from error
        # An OSError with an errno comes from the system (no permission, too many open files).
        # A footer with two names for one column raises a KeyError; a name that is not UTF-8 raises
        # a UnicodeDecodeError.
        unreadable = (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError, UnicodeDecodeError)
        if isinstance(error, unreadable) or (isinstance(error, OSError) and not error.errno):
            reason = (str(error).splitlines() or ["no reason given"])[0]
            raise FormatError(
                path=self.path,
                expected="a complete Parquet file",
                received=f"a file that cannot be read as Parquet ({reason})",
                mend="Write the file again; a truncated file has no footer.",
            ) from error
