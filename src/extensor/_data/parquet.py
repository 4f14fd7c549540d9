"""Parquet files as a dataset of structured batches."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.location import splits_dtype
from extensor._arrow.read import from_arrow
from extensor._arrow.schema import spec_from_schema
from extensor._data.slab import batches_of
from extensor._data.stream import stream
from extensor._formats.parquet import FilePath, ParquetFiles
from extensor._path import PathLike
from extensor.errors import NullError, StructureError

# A slab has at most so many records, and about so many bytes in the file, or else is one batch.
_SLAB_ROWS = 1 << 15
_SLAB_BYTES = 1 << 22


def parquet(
    paths: FilePath | Iterable[FilePath],
    batch_size: int,
    columns: Iterable[PathLike] | None = None,
    drop_remainder: bool = False,
    row_splits_dtype: Any = tf.int64,
) -> tf.data.Dataset:
    """Returns a dataset that streams the records of Parquet files in structured batches.

    The files are read piece by piece while the dataset is iterated, each iteration on its own.

    Args:
        paths: One file or several of one schema, whose records follow one another.
        batch_size: How many records a batch holds.
        columns: Paths of the fields to read, as in `read_parquet`; the rest is not decoded.
        drop_remainder: Whether to leave out a last batch that is not full. The batch size is then
            part of the static shape.
        row_splits_dtype: As in `from_arrow`.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`, with a known cardinality and a
        spec that follows from the files' schema alone.

    Raises:
        StructureError: If `batch_size` is no positive number (also a ValueError).
        MissingFileError, DirectoryError, FormatError, FieldError: As in `read_parquet`, at once.
        UnsupportedTypeError: As in `from_arrow`, at once. What depends on contents, such as
            nulls, is raised during iteration, as TensorFlow raises errors of datasets.

    >>> path = getfixture("tmp_path") / "recipes.parquet"
    >>> xt.write_parquet(xt.DenseStructuredTensor([3], {"est_time": [55.0, 30.0, 45.0]}), path)
    >>> for batch in xt.data.parquet(path, batch_size=2):
    ...     print(batch["est_time"].numpy())
    [55. 30.]
    [45.]
    """
    if not isinstance(batch_size, numbers.Integral) or batch_size < 1:
        raise StructureError(
            path="xt.data.parquet: batch_size",
            expected="a positive number",
            received=repr(batch_size),
            mend="Give the number of records in a batch.",
        )
    batch_size = int(batch_size)
    splits = splits_dtype(row_splits_dtype)
    files = ParquetFiles(paths, columns)
    full, rest = divmod(files.num_rows, batch_size)
    count = full if drop_remainder or not rest else full + 1
    spec = spec_from_schema(files.schema, batch_size if drop_remainder else None, splits)
    records = _Records(files, batch_size, drop_remainder, spec, splits)
    # No prefetching at the end: slabs are read ahead, and cutting them takes no time.
    return stream(records.slabs, spec, count)


class _Records:
    """The records of files, converted many batches at a time.

    What it takes to convert records, and to hand them to a dataset, depends little on their
    number. So they are converted in slabs, which TensorFlow cuts into batches without a copy.
    """

    def __init__(
        self,
        files: ParquetFiles,
        batch_size: int,
        drop_remainder: bool,
        spec: Any,
        splits: tf.DType,
    ) -> None:
        self._files = files
        self._batch_size = batch_size
        self._drop_remainder = drop_remainder
        self._spec = spec
        self._splits = splits

    def slabs(self) -> Iterator[tf.data.Dataset]:
        """Yields datasets of batches."""
        first, size = 0, self._batch_size
        pieces = self._files.batches(size, _SLAB_ROWS, _SLAB_BYTES)
        for table in gathered(pieces, size):
            full = table.num_rows - table.num_rows % size
            if full:
                yield from self._batches(table.slice(0, full), size, first)
            if full < table.num_rows and not self._drop_remainder:
                rest = table.slice(full)
                yield from self._batches(rest, rest.num_rows, first + full)
            first += table.num_rows

    def _batches(self, table: pa.Table, size: int, first: int) -> Iterator[tf.data.Dataset]:
        """Yields datasets of the batches, all of one size, in a table.

        Args:
            table: The records.
            size: How many of them a batch has.
            first: The number of the first one in the files, for errors.
        """
        try:
            records = from_arrow(table, self._splits)
        except NullError as error:
            if table.num_rows == size:
                raise NullError(
                    path=error.path,
                    expected=error.expected,
                    received=f"{error.received} of the batch that begins with record {first}",
                    mend=error.mend,
                ) from error
            # The batches before the one that it is in are whole.
            for at in range(0, table.num_rows, size):
                yield from self._batches(table.slice(at, size), size, first + at)
        else:
            yield batches_of(records, size, self._spec)


def gathered(pieces: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Yields slabs, of a multiple of `size` records, and what is left at the end."""
    waiting: list[pa.RecordBatch] = []
    rows = nbytes = 0
    for piece in pieces:
        waiting.append(piece)
        rows += piece.num_rows
        nbytes += piece.nbytes
        if rows >= size and (rows >= _SLAB_ROWS - size or nbytes >= _SLAB_BYTES):
            table = pa.Table.from_batches(waiting)
            whole = table.slice(0, rows - rows % size)
            rows %= size
            waiting = table.slice(whole.num_rows).to_batches() if rows else []
            nbytes = sum(batch.nbytes for batch in waiting)
            del table  # its memory goes with the slab
            yield whole
            del whole
    if rows:
        yield pa.Table.from_batches(waiting)
