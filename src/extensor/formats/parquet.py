"""Parquet files from and to Arrow, and straight to StructuredTensors."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf

from extensor.arrow.read import from_arrow
from extensor.arrow.write import to_arrow
from extensor.errors import (
    DirectoryError,
    DTypeError,
    FieldError,
    FormatError,
    MissingFileError,
    StructureError,
)
from extensor.path import Path, PathLike
from extensor.struct.tensor import StructuredTensor

FilePath = str | os.PathLike[str]


def read_parquet(
    path_or_paths: FilePath | Sequence[FilePath],
    columns: Sequence[PathLike] | None = None,
    row_splits_dtype: Any = tf.int64,
) -> StructuredTensor:
    """Returns the records of Parquet files as a StructuredTensor.

    Args:
        path_or_paths: One file or several of one schema, whose records follow one another.
        columns: Paths of the fields to read, such as `["title", "ingredients.amount"]`; the rest
            of the file is not decoded. Fields come in this order. Default: all.
        row_splits_dtype: As in `from_arrow`.

    Returns:
        A StructuredTensor of shape `[number of records]`.

    Raises:
        MissingFileError: If a file does not exist (also a FileNotFoundError).
        DirectoryError: If a path is a directory (also an IsADirectoryError).
        FormatError: If a file is not Parquet, or is cut off (also a ValueError).
        FieldError: If a column does not exist (also a KeyError).
        StructureError: If no file is given, or the files differ in schema (also a ValueError).
        NullError, UnsupportedTypeError: As in `from_arrow`.

    >>> path = getfixture("tmp_path") / "recipes.parquet"
    >>> xt.write_parquet(xt.DenseStructuredTensor([2], {"title": ["a", "b"], "x": [1, 2]}), path)
    >>> xt.read_parquet(path, columns=["title"])
    <StructuredTensor shape=(2,) {title: string}>
    """
    return from_arrow(read(path_or_paths, columns), row_splits_dtype)


def write_parquet(
    records: StructuredTensor | Iterable[StructuredTensor],
    path: FilePath,
    schema: pa.Schema | None = None,
) -> None:
    """Writes records to a Parquet file.

    The file appears under its name only once it is whole.

    Args:
        records: A StructuredTensor of rank 1, or batches of one schema, such as a dataset's.
        path: The file; one that exists is replaced.
        schema: The Arrow schema to write, as in `to_arrow`.

    Raises:
        DTypeError: If `records` holds anything but StructuredTensors of rank 1 (also a
            TypeError).
        StructureError: If there is no batch, or batches differ in schema (also a ValueError).

    >>> path = getfixture("tmp_path") / "recipes.parquet"
    >>> xt.write_parquet(xt.DenseStructuredTensor([2], {"est_time": [55.0, 30.0]}), path)
    >>> xt.read_parquet(path).to_py()
    [{'est_time': 55.0}, {'est_time': 30.0}]
    """
    batches = [records] if isinstance(records, StructuredTensor) else records
    write((_batch(batch, schema) for batch in batches), path)


def _batch(records: Any, schema: pa.Schema | None) -> pa.RecordBatch:
    if not isinstance(records, StructuredTensor) or records.rank != 1:
        raise DTypeError(
            path="write_parquet",
            expected="StructuredTensors of rank 1",
            received=repr(records)
            if isinstance(records, StructuredTensor)
            else type(records).__name__,
            mend="Parquet holds a list of records: give a batch of them.",
        )
    return to_arrow(records, schema)


def read(
    path_or_paths: FilePath | Sequence[FilePath], columns: Sequence[PathLike] | None = None
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
    path = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        raise _directory(path)
    if not os.path.isdir(folder):
        raise MissingFileError(
            path=path,
            expected="a folder to write to",
            received=f"{folder}, which does not exist",
            mend="Make the folder first.",
        )
    handle, unfinished = tempfile.mkstemp(dir=folder, prefix=".", suffix=".parquet")
    os.close(handle)
    try:
        _write_all(iter(batches), unfinished)
        os.chmod(unfinished, 0o666 & ~_umask())
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def _write_all(batches: Iterator[pa.RecordBatch], path: str) -> None:
    first = next(batches, None)
    if first is None:
        raise StructureError(
            path="write_parquet",
            expected="at least one batch of records",
            received="none",
            mend="A batch without records, of the right schema, makes an empty file.",
        )
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            if batch.schema != first.schema:
                raise StructureError(
                    path="write_parquet",
                    expected=f"batches of one schema: {_line(first.schema)}",
                    received=_line(batch.schema),
                    mend="Give schema=, or make the batches alike.",
                )
            writer.write_batch(batch)


def _line(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class ParquetFiles:
    """Parquet files of one schema, opened for reading some of their fields.

    Args:
        path_or_paths: One file or several.
        columns: Paths of the fields to read; None for all.

    Raises:
        As `read_parquet`, except for what concerns nulls and types.
    """

    def __init__(
        self,
        path_or_paths: FilePath | Sequence[FilePath],
        columns: Sequence[PathLike] | None = None,
    ) -> None:
        if isinstance(path_or_paths, (str, os.PathLike)):
            path_or_paths = [path_or_paths]
        self.paths = [os.fspath(path) for path in path_or_paths]
        if not self.paths:
            raise StructureError(
                path="Parquet files",
                expected="at least one file",
                received="an empty list",
                mend="Check the pattern that made the list.",
            )
        self.schema: pa.Schema = None
        """The Arrow schema of what is read."""
        self.num_rows = 0
        """How many records the files hold together."""
        self._leaves: list[str] | None = None
        self._names: list[str] | None = None
        whole: pa.Schema = None
        for path in self.paths:
            with _opened(path) as file:
                self.num_rows += file.metadata.num_rows
                arrow = file.schema_arrow
                if whole is None:
                    whole = arrow
                    if columns is not None:
                        self._choose(columns, arrow, file.schema)
                elif not arrow.equals(whole):
                    raise StructureError(
                        path=path,
                        expected=f"the schema of {self.paths[0]}: {_line(whole)}",
                        received=_line(arrow),
                        mend="Read files of different schemas one by one.",
                    )
        self.schema = whole if self._names is None else self._pruned_schema()

    def _choose(self, columns: Sequence[PathLike], arrow: pa.Schema, file_schema: Any) -> None:
        if isinstance(columns, (str, Path)):
            raise DTypeError(
                path="columns",
                expected="a list of paths",
                received=repr(str(columns)),
                mend=f"Write columns=[{str(columns)!r}].",
            )
        # Parquet stores leaf columns only, in the order in which Arrow nests them.
        leaves = list(_leaf_paths(arrow))
        chosen: set[int] = set()
        names: dict[str, None] = {}
        for column in columns:
            wanted = (column,) if column in arrow.names else Path.of(column).names
            below = [i for i, leaf in enumerate(leaves) if leaf[: len(wanted)] == wanted]
            if not wanted or not below:
                raise _no_column(wanted, leaves)
            chosen.update(below)
            names.setdefault(wanted[0])
        self._names = list(names)
        self._leaves = [file_schema.column(i).path for i in sorted(chosen)]

    def _pruned_schema(self) -> pa.Schema:
        with _opened(self.paths[0]) as file:
            empty = file.read_row_groups([], columns=self._leaves)
        return empty.select(self._names).schema

    def tables(self) -> Iterator[pa.Table]:
        """Yields the records of one file after another."""
        for path in self.paths:
            with _opened(path) as file, _readable(path):
                table = file.read(columns=self._leaves)
            yield table if self._names is None else table.select(self._names)

    def batches(self, batch_size: int) -> Iterator[pa.RecordBatch]:
        """Yields the records in pieces of at most `batch_size`, in their order."""
        for path in self.paths:
            with _opened(path) as file, _readable(path):
                for batch in file.iter_batches(batch_size, columns=self._leaves):
                    yield batch if self._names is None else batch.select(self._names)


def _leaf_paths(fields: Any, outer: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in fields:
        yield from _leaves_of(field.type, (*outer, field.name))


def _leaves_of(arrow: pa.DataType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if pa.types.is_struct(arrow):
        yield from _leaf_paths(arrow.fields, path)
    elif pa.types.is_map(arrow):
        yield from _leaves_of(arrow.key_type, (*path, "key"))
        yield from _leaves_of(arrow.item_type, (*path, "value"))
    elif pa.types.is_nested(arrow):
        yield from _leaves_of(arrow.value_type, path)
    else:
        yield path


def _no_column(wanted: tuple[str, ...], leaves: list[tuple[str, ...]]) -> FieldError:
    listed = ", ".join(str(Path(*leaf)) for leaf in leaves[:20])
    return FieldError(
        path=Path(*wanted) if wanted else "columns",
        expected=f"one of the columns {listed}" + (", ..." if len(leaves) > 20 else ""),
        received=f"{Path(*wanted)}" if wanted else "an empty path",
        mend="Check the spelling; a name that holds a dot is quoted in a path.",
    )


def _opened(path: str) -> pq.ParquetFile:
    if os.path.isdir(path):
        raise _directory(path)
    with _readable(path):
        return pq.ParquetFile(path)


def _directory(path: str) -> DirectoryError:
    return DirectoryError(
        path=path,
        expected="a file",
        received="a directory",
        mend="List the files: sorted(pathlib.Path(folder).glob('*.parquet')).",
    )


class _readable:  # noqa: N801 - used like a function
    """Turns pyarrow's complaints about a file into errors that name it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, FileNotFoundError):
            raise MissingFileError(
                path=self.path,
                expected="a Parquet file",
                received="nothing: it does not exist",
                mend="Check the path; relative paths start from the working directory.",
            ) from error
        if isinstance(error, (pa.ArrowInvalid, OSError)) and not isinstance(error, PermissionError):
            raise FormatError(
                path=self.path,
                expected="a whole Parquet file",
                received=f"a file that cannot be read as one ({str(error).splitlines()[0]})",
                mend="Write it anew; a file that was cut off lacks its footer.",
            ) from error
