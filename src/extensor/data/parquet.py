"""Parquet files as a dataset of structured batches."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor.arrow.read import from_arrow
from extensor.arrow.schema import spec_from_schema, splits_dtype
from extensor.errors import NullError, StructureError
from extensor.formats.parquet import FilePath, ParquetFiles
from extensor.path import PathLike


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
    flat_specs = tf.nest.flatten(spec, expand_composites=True)
    readers = _Readers(files, batch_size, splits)

    def next_batch(reader: tf.Tensor) -> Any:
        tensors = tf.py_function(
            readers.next, [reader], [flat_spec.dtype for flat_spec in flat_specs]
        )
        for tensor, flat_spec in zip(tensors, flat_specs, strict=True):
            tensor.set_shape(flat_spec.shape)
        return tf.nest.pack_sequence_as(spec, tensors, expand_composites=True)

    def batches(reader: tf.Tensor) -> tf.data.Dataset:
        return tf.data.Dataset.range(count).map(lambda _: next_batch(reader))

    # Each pass over the dataset runs a generator of its own, which gives it a reader, and which
    # TensorFlow closes when the pass is over or given up.
    passes = tf.data.Dataset.from_generator(
        readers.one_pass, output_signature=tf.TensorSpec([], tf.int64)
    )
    dataset = passes.flat_map(batches)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
    return dataset.prefetch(tf.data.AUTOTUNE)


class _Readers:
    """The files being read, one iterator over all of them for each pass over the dataset."""

    def __init__(self, files: ParquetFiles, batch_size: int, splits: tf.DType) -> None:
        self._files = files
        self._batch_size = batch_size
        self._splits = splits
        self._numbers = itertools.count()
        self._open: dict[int, Iterator[list[tf.Tensor]]] = {}

    def one_pass(self) -> Iterator[int]:
        """Yields the number of a new reader, which lives as long as this generator."""
        number = next(self._numbers)
        self._open[number] = self._batches()
        try:
            yield number
        finally:
            del self._open[number]

    def next(self, reader: tf.Tensor) -> list[tf.Tensor]:
        """Returns the tensors of a reader's next batch."""
        return next(self._open[int(reader)])

    def _batches(self) -> Iterator[list[tf.Tensor]]:
        first = 0
        for table in rebatched(self._files.batches(self._batch_size), self._batch_size):
            try:
                records = from_arrow(table, self._splits)
            except NullError as error:
                raise NullError(
                    path=error.path,
                    expected=error.expected,
                    received=f"{error.received} of the batch that begins with record {first}",
                    mend=error.mend,
                ) from error
            yield tf.nest.flatten(records, expand_composites=True)
            first += table.num_rows


def rebatched(pieces: Iterator[pa.RecordBatch], batch_size: int) -> Iterator[pa.Table]:
    """Yields tables of `batch_size` records, and a smaller last one, from pieces of any size."""
    waiting: list[pa.RecordBatch] = []
    have = 0
    for piece in pieces:
        while have + piece.num_rows >= batch_size:
            need = batch_size - have
            yield pa.Table.from_batches([*waiting, piece.slice(0, need)])
            piece = piece.slice(need)
            waiting, have = [], 0
        if piece.num_rows:
            waiting.append(piece)
            have += piece.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting)
