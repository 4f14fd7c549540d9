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
from extensor._files.files import FilePath
from extensor._formats.parquet.read import ParquetFiles
from extensor._path import PathLike
from extensor.errors import NullError, StructureError

# The approximate maximal size of a slab, in records and in bytes of the file. A slab has at least
# one batch.
_SLAB_ROWS = 1 << 15
_SLAB_BYTES = 1 << 22


def parquet(
    paths: FilePath | Iterable[FilePath],
    batch_size: int,
    columns: Iterable[PathLike] | None = None,
    drop_remainder: bool = False,
    row_splits_dtype: Any = tf.int64,
    nulls: Any = "error",
) -> tf.data.Dataset:
    """Returns a dataset that streams the records of Parquet files in structured batches.

    Each iteration of the dataset reads the files piece by piece.

    Args:
        paths: One file, or several files of one schema; their records are concatenated.
        batch_size: The number of records in a batch.
        columns: Paths of the fields to read, as in `read_parquet`; other fields are not decoded.
        drop_remainder: Whether to drop a last batch that is not full. The batch size is then part
            of the static shape.
        row_splits_dtype: As in `from_arrow`.
        nulls: What to do with nulls, as in `from_arrow`.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`. Its cardinality is known, and its
        spec depends only on the files' schema.

    Raises:
        StructureError: If `batch_size` is not a positive number (also a ValueError).
        MissingFileError, DirectoryError, FormatError, FieldError: As in `read_parquet`, at once.
        UnsupportedTypeError: As in `from_arrow`, at once, like the errors of `nulls`. Errors that
            depend on contents, such as those for nulls, are raised during iteration, as
            TensorFlow's errors of the dataset.

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
    spec = spec_from_schema(files.schema, batch_size if drop_remainder else None, splits, nulls)
    records = _Records(files, batch_size, drop_remainder, spec, splits, nulls)
    # No prefetch here: `stream` prefetches slabs, and cutting them into batches is fast.
    return stream(records.slabs, spec, count)


class _Records:
    """The records of files as slabs: pieces of many batches each.

    The time to convert records, and to pass them to a dataset, depends little on their number. So
    records are converted slab by slab, and TensorFlow cuts each slab into batches without a copy.
    """

    def __init__(
        self,
        files: ParquetFiles,
        batch_size: int,
        drop_remainder: bool,
        spec: Any,
        splits: tf.DType,
        nulls: Any,
    ) -> None:
        self._files = files
        self._batch_size = batch_size
        self._drop_remainder = drop_remainder
        self._spec = spec
        self._splits = splits
        self._nulls = nulls

    def slabs(self) -> Iterator[tf.data.Dataset]:
        """Yields a dataset of the batches of each slab."""
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
        """Yields datasets of the batches in a table, all of one size.

        Args:
            table: The records.
            size: The number of records in a batch.
            first: The number of the table's first record in the files, for errors.
        """
        try:
            records = from_arrow(table, self._splits, self._nulls)
        except NullError as error:
            if table.num_rows == size:
                raise NullError(
                    path=error.path,
                    expected=error.expected,
                    received=f"{error.received} of the batch that begins with record {first}",
                    mend=error.mend,
                ) from error
            # The dataset yields the batches before the batch with the null.
            for at in range(0, table.num_rows, size):
                yield from self._batches(table.slice(at, size), size, first + at)
        else:
            yield batches_of(records, size, self._spec)


def gathered(pieces: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Yields slabs of a multiple of `size` records, and the remainder at the end."""
    pending: list[pa.RecordBatch] = []
    rows = nbytes = 0
    for piece in pieces:
        pending.append(piece)
        rows += piece.num_rows
        nbytes += piece.nbytes
        if rows >= size and (rows >= _SLAB_ROWS - size or nbytes >= _SLAB_BYTES):
            table = pa.Table.from_batches(pending)
            whole = table.slice(0, rows - rows % size)
            rows %= size
            pending = table.slice(whole.num_rows).to_batches() if rows else []
            nbytes = sum(batch.nbytes for batch in pending)
            del table  # so that the slab alone keeps the memory
            yield whole
            del whole
    if rows:
        yield pa.Table.from_batches(pending)
