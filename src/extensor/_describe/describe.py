"""describe: the statistics of records, from files, datasets and values."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.nulls import empty_batch
from extensor._arrow.read import has_capsules, table_of
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._describe.drift import Drift, drifts_between, no_path
from extensor._describe.page import comparison_page, description_page, write_page
from extensor._describe.paths import PathStatistics, Statistics
from extensor._describe.sketches import datasketches
from extensor._describe.table import comparison_table, description_table
from extensor._files.files import FilePath
from extensor._path import Path, PathLike
from extensor._progress import progress_bar
from extensor._streams.read import open_stream
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._typing import ArrowData
from extensor.errors import DTypeError

# A comparison reads an attribute of descriptions that is private to this file.


class Description:
    """The statistics of records, path by path; the result of `xt.data.describe`.

    `print` shows a table, a notebook shows a page, and `write_html` writes the page.

    >>> import extensor as xt
    >>> data = [{"title": "tea", "minutes": 5}, {"title": "pie", "minutes": 7}]
    >>> found = xt.data.describe(xt.struct.constant(data))
    >>> found.num_records, found["minutes"].numbers.max
    (2, 7)
    """

    def __init__(self, tree: Statistics) -> None:
        self._tree = tree

    @property
    def num_records(self) -> int:
        """The number of records."""
        return self._tree.num_records

    @property
    def paths(self) -> Mapping[str, PathStatistics]:
        """The statistics by path, in the order of the fields, such as `steps[*].minutes`."""
        return MappingProxyType(self._tree.paths)

    def __getitem__(self, path: str) -> PathStatistics:
        """Returns the statistics of a path.

        Raises:
            FieldError: If there is no such path (also a KeyError).
        """
        if isinstance(path, Path):
            path = str(path)
        if path in self._tree.paths:
            return self._tree.paths[path]
        raise no_path(path, self._tree.paths)

    def merge(self, other: Description) -> Description:
        """Returns the description of the records of both: of two files, or of two machines' parts.

        Raises:
            DTypeError: If a path has values of different types (also a TypeError).

        >>> import pyarrow as pa
        >>> import extensor as xt
        >>> one, two = (xt.data.describe(pa.table({"x": x})) for x in ([1, 2], [5]))
        >>> one.merge(two)["x"].numbers.max
        5
        """
        _expect_description(other)
        tree = Statistics()
        tree.merge(self._tree)
        tree.merge(other._tree)
        return Description(tree)

    def compare(
        self, other: Description, threshold: float = 0.1, thresholds: Mapping[str, float] = {}
    ) -> Comparison:
        """Returns which paths have other values in other records, such as those seen in serving.

        Numbers, and the lengths of lists, are compared by the Kolmogorov-Smirnov distance: the
        largest difference between the shares of numbers up to any number. Strings are compared by
        the L-infinity distance: the largest difference between the shares of any string. For each
        path the shares of nulls are compared too. All these are between 0 and 1. A path has drifted
        if its distance is larger than the threshold, and larger than what two samples of the same
        values differ by in one case of 100.

        Args:
            other: The description of the other records.
            threshold: The largest distance that is no drift.
            thresholds: Other thresholds, by path.

        Raises:
            DTypeError: If `other` is not a Description, or a threshold is not a number (also a
                TypeError).
            FieldError: If a path of `thresholds` is in neither description (also a KeyError).

        >>> import pyarrow as pa
        >>> import extensor as xt
        >>> train = xt.data.describe(pa.table({"age": [float(i % 80) for i in range(720)]}))
        >>> serving = xt.data.describe(pa.table({"age": [float(i % 40) for i in range(720)]}))
        >>> print(train.compare(serving))
        1 of 1 paths drifted
        path  drifted  statistic           distance  limit  because
        age   yes      Kolmogorov-Smirnov     0.500  0.100  medians 39.5 and 19.5
        """
        _expect_description(other)
        drifts = drifts_between(self.paths, other.paths, threshold, thresholds)
        return Comparison(self, other, drifts)

    def write_html(self, path: FilePath) -> None:
        """Writes a page with a histogram for each path. It has no scripts, and needs no network.

        Raises:
            MissingFileError, DirectoryError: If the folder of `path` does not exist, or `path` is a
                folder (also a FileNotFoundError, an IsADirectoryError).
        """
        write_page(description_page(self._tree), path)

    def __str__(self) -> str:
        return description_table(self._tree)

    def __repr__(self) -> str:
        return f"<Description of {self.num_records:,} records, {len(self.paths)} paths>"

    def _repr_html_(self) -> str:
        return description_page(self._tree, is_document=False)


class Comparison:
    """Which paths differ between two descriptions; the result of `Description.compare`.

    >>> import extensor as xt
    >>> data = [{"title": "tea", "minutes": 5}, {"title": "pie", "minutes": 7}]
    >>> found = xt.data.describe(xt.struct.constant(data))
    >>> found.compare(found).drifted
    []
    """

    def __init__(self, one: Description, other: Description, drifts: list[Drift]) -> None:
        self.one = one
        self.other = other
        self._drifts = drifts

    @property
    def drifts(self) -> list[Drift]:
        """The difference at each path, the largest first; drifted ones before all others."""
        return list(self._drifts)

    @property
    def drifted(self) -> list[str]:
        """The paths that drifted."""
        return [drift.path for drift in self._drifts if drift.drifted]

    def write_html(self, path: FilePath) -> None:
        """Writes a page with two histograms for each path, those that drifted first.

        Raises:
            MissingFileError, DirectoryError: As `Description.write_html`.
        """
        write_page(self._page(), path)

    def __str__(self) -> str:
        return comparison_table(self._drifts)

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.drifted)} of {len(self._drifts)} paths drifted>"

    def _repr_html_(self) -> str:
        return self._page(is_document=False)

    def _page(self, is_document: bool = True) -> str:
        return comparison_page(self.one._tree, self.other._tree, self._drifts, is_document)


def _expect_description(value: object) -> None:
    if not isinstance(value, Description):
        fix = "Give the result of xt.data.describe."
        raise DTypeError("Description", "a Description", type(value).__name__, fix)


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
