"""Parquet files as a dataset of structured batches."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.found_nulls import FoundNulls, settled
from extensor._arrow.null_argument import has_auto
from extensor._arrow.null_policy import policies_of
from extensor._arrow.wanted_table import WantedTable
from extensor._data.argument import listed
from extensor._data.conversion import Conversion
from extensor._data.feed import Feed
from extensor._data.first_pass import auto_fields, nulls_in
from extensor._data.plan import PART_BYTES, PART_ROWS, Passes
from extensor._data.position import Shuffle
from extensor._data.prunable import prunable
from extensor._data.recipe import arguments_of, passes_of, recipe
from extensor._data.stream import MAKERS, stream
from extensor._files.files import FilePath
from extensor._formats.parquet.null_counts import nulls_of_footers
from extensor._formats.parquet.plan import ParquetPlan, PlannedFile
from extensor._formats.parquet.read import batches_of
from extensor._formats.parquet.smallest import smallest_columns
from extensor._path import Path, PathLike
from extensor._pruning.fields import FieldsUsed


def parquet(
    paths: FilePath | Iterable[FilePath],
    batch_size: int,
    columns: Iterable[PathLike] | Literal["auto"] | None = "auto",
    schema: Any = None,
    drop_remainder: bool = False,
    row_splits_dtype: Any = None,
    nulls: Any = None,
    shuffle: Shuffle | None = None,
    shard: tuple[int, int] | Literal["service"] | None = None,
    epochs: int = 1,
    state: dict[str, Any] | None = None,
) -> tf.data.Dataset:
    """Returns a dataset that streams the records of Parquet files in structured batches.

    Each iteration of the dataset reads the files part by part, one part ahead.

    Args:
        paths: One file, folder or glob pattern, or several, of one schema; their records are
            concatenated.
        batch_size: The number of records in a batch. A batch may have records of several files.
        columns: Paths of the fields to read, as in `read_parquet`; other fields are not decoded.
            "auto" for all fields, except that `fit`, `evaluate` and `predict` of a model of
            `xt.keras` read only the fields that the model and the functions of `map` use. None for
            all fields, always.
        schema: The spec of the records, or a pyarrow Schema, as in `read_parquet`: a nullable
            column that some of the files do not have is null there. Default: the schema of the
            files, which must agree.
        drop_remainder: Whether to drop a last batch of an epoch that is not full. The batch size is
            then part of the static shape.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        nulls: What becomes of nulls: `"error"` (the default), `"mask"` for a MaskedTensor,
            `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by path. More in
            `xt.from_arrow`.
        shuffle: How to shuffle, an `xt.data.Shuffle`. Each epoch, in this pass or the next one, has
            another order.
        shard: The number of this shard, and the number of shards. Together, they have each record
            once. A shard reads its own row groups only. "service" if the workers of a tf.data
            service divide the records; the cardinality is unknown then.
        epochs: The number of epochs in a pass.
        state: Where the first pass begins, from `xt.data.state`.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`. Its spec depends only on the files'
        schema. Its cardinality is known, except if `state` lies within an epoch.

    Raises:
        StructureError: If `batch_size` or `epochs` is not a positive number, or `state` is of
            another dataset (also a ValueError).
        RowError: If there is no shard of this number (also an IndexError).
        MissingFileError, FormatError, FieldError: As in `read_parquet`, at once.
        UnsupportedTypeError: As in `from_arrow`, at once, like the errors of `nulls`. Errors that
            depend on contents, such as those for nulls, are raised during iteration.

    >>> import extensor as xt
    >>> path = "recipes.parquet"
    >>> xt.write_parquet(xt.DenseStructuredTensor([3], {"est_time": [55.0, 30.0, 45.0]}), path)
    >>> for batch in xt.data.parquet(path, batch_size=2):
    ...     print(batch["est_time"].numpy())
    [55. 30.]
    [45.]
    """
    if isinstance(columns, FieldsUsed):
        columns = smallest_columns(paths, columns)
    names, is_auto = listed(columns)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)

    def feed_of(columns: Any, nulls: Any, passes: Passes) -> Feed:
        wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
        return _feed(paths, columns, wanted.schema, wanted.row_splits_dtype, wanted.nulls, passes)

    feed = feed_of(names, nulls, passes)
    if not is_auto:
        return stream(feed)

    def reread(fields: FieldsUsed) -> tf.data.Dataset:
        # With a schema, the first file may lack some of the fields.
        chosen = smallest_columns(paths, fields) if schema is None else list(fields)
        narrow = feed_of(
            chosen, policies_of(feed.conversion.nulls, chosen), passes._replace(state=None)
        )
        narrow.plan.position = feed.plan.position
        return stream(narrow)

    return prunable(stream(feed), reread)


_SLAB_ROWS, _SLAB_BYTES = PART_ROWS, PART_BYTES


def _feed(
    paths: Any,
    columns: Any,
    schema: pa.Schema | None,
    row_splits_dtype: tf.DType,
    nulls: Any,
    passes: Passes,
) -> Feed:
    """Returns the feed of `parquet`."""
    source = _ParquetSource(paths, columns, schema)
    if has_auto(nulls):
        nulls = settled(nulls, source.nulls(nulls))
    plan = passes.plan(source, _SLAB_ROWS, _SLAB_BYTES)
    conversion = Conversion(plan, source.schema, row_splits_dtype, nulls)
    text = recipe(
        "parquet",
        paths=source.paths,
        columns=columns,
        schema=schema,
        row_splits_dtype=row_splits_dtype,
        nulls=nulls,
        passes=passes.of(plan),
    )
    return Feed(plan, conversion, text)


def _feed_again(text: str) -> Feed:
    arguments: dict[str, Any] = arguments_of(text)
    arguments["passes"] = passes_of(arguments["passes"])
    return _feed(**arguments)


MAKERS["parquet"] = _feed_again


class _ParquetSource:
    """The row groups of Parquet files."""

    def __init__(self, paths: Any, columns: Any, schema: pa.Schema | None) -> None:
        self._paths, self._schema = paths, schema
        self._plan = plan = ParquetPlan(paths, WantedTable(columns, schema))
        files = [file.file for file in plan.files]
        self.paths = [file.inner if file.is_local else file.path for file in files]
        self.schema = plan.schema
        self._groups = [(file, group) for file in plan.files for group in file.row_groups]
        self.rows = np.array([group.num_rows for _, group in self._groups], np.int64)
        # The footer counts the bytes of all columns.
        self.nbytes = np.array([group.num_bytes * _share(file) for file, group in self._groups])

    def read(self, groups: Sequence[int], rows: int) -> Iterator[pa.RecordBatch]:
        """Yields the records of row groups; see `Source`."""
        found = [self._groups[i] for i in groups]
        for _, run in itertools.groupby(found, lambda each: each[0].file.path):
            of_file = list(run)
            yield from batches_of(self._plan, of_file[0][0], [g for _, g in of_file], rows)

    def nulls(self, nulls: Any) -> Iterator[FoundNulls]:
        """Yields the nulls of all records; reads only the fields of which the footers do not tell.

        Args:
            nulls: The argument `nulls`.
        """
        found, unknown = nulls_of_footers(self._plan, nulls)
        yield from found
        autos = auto_fields(self.schema, nulls)
        fields = [Path(name) for name in unknown if name in autos]
        if not fields:
            return
        plan = ParquetPlan(self._paths, WantedTable(fields, self._schema))
        own = policies_of(nulls, fields)
        for file in plan.files:
            yield from nulls_in(batches_of(plan, file, file.row_groups, PART_ROWS), own)

    def place(self, group: int) -> str:
        """Returns the file and number of a row group."""
        file, found = self._groups[group]
        return f"{file.file.path}, row group {found.number}"

    def identity(self) -> Any:
        """Returns the names of the files, the sizes of their row groups, and the schema."""
        files = [
            [
                os.path.basename(file.file.inner),
                [[g.num_rows, g.num_bytes] for g in file.row_groups],
            ]
            for file in self._plan.files
        ]
        return ["parquet", files, self.schema.to_string(show_schema_metadata=False)]


def _share(file: PlannedFile) -> float:
    """Returns the share of the leaf columns of a file that is read."""
    return 1.0 if file.columns is None else len(file.columns) / max(1, len(file.layout.leaves))
