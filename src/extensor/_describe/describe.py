"""describe: the statistics of records, from files, datasets and values."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.nulls import empty_batch
from extensor._arrow.read import has_capsules, table_of
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._describe.description import Description
from extensor._describe.paths import Statistics
from extensor._describe.sketches import datasketches
from extensor._path import PathLike
from extensor._progress import progress_bar
from extensor._streams.read import open_stream
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._typing import ArrowData
from extensor.errors import DTypeError

if TYPE_CHECKING:
    from extensor._files.files import FilePath

_ROWS = 1 << 15
"""Larger batches are described in parts of so many records, which bounds memory."""


def describe(
    source: FilePath | tf.data.Dataset | StructuredTensor | ArrowData | Iterable[Any],
    columns: Iterable[PathLike] | None = None,
    *,
    format: str | None = None,
    progress: bool | None = None,
) -> Description:
    """Returns the statistics of each path of records, in one pass and in bounded memory.

    For every path: the number of values and of nulls. For numbers: their range, mean, standard
    deviation and quantiles. For strings: the most frequent ones, and how many are different. For
    lists: the statistics of their lengths. Needs `pip install "extensor[describe]"`.

    Counts, ranges, means and standard deviations are exact. Quantiles are those of a sketch: with a
    probability of 99%, a rank differs by less than 0.5% from the true one. Counts of strings are
    exact for up to 3,072 different strings; beyond, they differ by at most 0.1% of all strings.

    Args:
        source: Paths of files, as in `xt.read_parquet`, `read_arrow`, `read_csv`, `read_json` and
            `read_tfrecord`; a `tf.data.Dataset` of StructuredTensors; a StructuredTensor; a table,
            a record batch, a pyarrow reader, an array of structs or another object with the Arrow
            PyCapsule interface, which is imported as a whole; or an iterable of such batches. CSV,
            JSON and TFRecord files are read twice: their types are known only at the end.
        columns: Paths of the fields to describe. Default: all.
        format: The format of the files, "parquet", "arrow", "csv", "json" or "tfrecord". Default:
            that of their suffix.
        progress: Whether to show a progress bar. Default: on a terminal and in a notebook, after a
            second.

    Raises:
        DTypeError: If the source is nothing of these (also a TypeError).
        UnsupportedTypeError: If a DataFrame has Python objects (also a TypeError).
        FieldError: If a column does not exist (also a KeyError).
        MissingFileError, FormatError, StructureError: As in the functions that read the format.
        MissingDependencyError: If the extra is not installed (also an ImportError).

    >>> import extensor as xt
    >>> recipes = xt.struct.constant([{"title": "Tea", "minutes": [5, 2]},
    ...                               {"title": "Tea", "minutes": []}])
    >>> print(xt.data.describe(recipes))
    2 records
    path        type    values  nulls  min  median  mean  max  most frequent
    title       string       2   0.0%                          Tea 100.0%
    minutes     list         2   0.0%    0       1     1    2  (lengths)
    minutes[*]  int32        2   0.0%    2     3.5   3.5    5  std 1.5
    """
    datasketches()  # raises before the first read
    wanted = None if columns is None else WantedTable(columns)
    batches, total = _batches(source, wanted, format)
    tree = Statistics()
    with progress_bar("describe", progress, total, extra="describe") as advance:
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS):
                tree.add(batch.slice(start, _ROWS))
            if not batch.num_rows:
                tree.add(batch)  # its paths
            advance(batch.num_rows)
    return Description(tree)


def _batches(
    source: Any, wanted: WantedTable | None, format: str | None
) -> tuple[Iterator[pa.RecordBatch], int | None]:
    """Returns the batches of a source, and the number of records, or None if it is not known."""
    if isinstance(source, (str, bytes, os.PathLike)):
        return _of_files(source, wanted, format)
    if isinstance(source, tf.data.Dataset):
        return _of_dataset(source, wanted), None
    if isinstance(source, StructuredTensor):
        return _of_value(source, wanted), source.shape[0] if source.rank == 1 else None
    if has_capsules(source):
        return _of_arrow(source, wanted), getattr(source, "num_rows", None)
    if isinstance(source, Iterable):
        items = iter(source)
        first = next(items, None)
        items = itertools.chain([] if first is None else [first], items)
        if first is None or isinstance(first, (str, bytes, os.PathLike)):
            return _of_files(items, wanted, format)
        return (batch for item in items for batch in _of_item(item, wanted)), None
    raise _no_source(source)


def _of_files(
    paths: Any, wanted: WantedTable | None, format: str | None
) -> tuple[Iterator[pa.RecordBatch], int | None]:
    source = open_stream(paths, None if wanted is None else wanted.columns, format)
    # A file without records has paths too.
    return itertools.chain([empty_batch(source.schema)], source.batches()), source.num_records


def _of_dataset(dataset: tf.data.Dataset, wanted: WantedTable | None) -> Iterator[pa.RecordBatch]:
    spec = dataset.element_spec
    if not isinstance(spec, StructuredTensorSpec):
        received = f"a dataset of {type(spec).__name__}"
        fix = "Map it to its records: dataset.map(lambda records, labels: records)."
        raise DTypeError("xt.data.describe", "a dataset of StructuredTensors", received, fix)
    if spec.rank == 0:
        dataset = dataset.batch(1024)
    for records in dataset:
        yield from _of_value(records, wanted)


def _of_item(item: Any, wanted: WantedTable | None) -> Iterable[pa.RecordBatch]:
    if isinstance(item, StructuredTensor):
        return _of_value(item, wanted)
    if has_capsules(item):
        return _of_arrow(item, wanted)
    raise _no_source(item)


def _of_value(records: StructuredTensor, wanted: WantedTable | None) -> Iterator[pa.RecordBatch]:
    if records.rank != 1:
        received = f"records of rank {records.rank}"
        fix = "Merge the dimensions: records.merge_dims(0, -1)."
        raise DTypeError("xt.data.describe", "records of rank 1", received, fix)
    return _of_arrow(to_arrow(records), wanted)


def _of_arrow(source: Any, wanted: WantedTable | None) -> Iterator[pa.RecordBatch]:
    if isinstance(source, pa.RecordBatchReader):
        batches = itertools.chain([empty_batch(source.schema)], source)
        tables: Iterable[pa.Table] = (pa.Table.from_batches([batch]) for batch in batches)
    else:
        tables = [table_of(source, "xt.data.describe")]
    for table in tables:
        chosen = table if wanted is None else wanted.table(table)
        yield from chosen.to_batches() or [empty_batch(chosen.schema)]


def _no_source(source: object) -> DTypeError:
    expected = "paths, a dataset of StructuredTensors, or Arrow data"
    fix = "Python objects: describe(xt.struct.constant(records))."
    return DTypeError("xt.data.describe", expected, type(source).__name__, fix)
