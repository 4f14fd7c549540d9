"""Parquet files as a dataset of structured batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import tensorflow as tf

from extensor._data.files import dataset_of_files
from extensor._data.position import Passes, Shuffle
from extensor._data.wanted import Wanted
from extensor._files.files import FilePath
from extensor._formats.parquet.plan import ParquetPlan
from extensor._formats.parquet.smallest import smallest_columns
from extensor._path import PathLike
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
        columns: Paths of the fields to read. "auto" for all fields, of which `fit`, `evaluate` and
            `predict` of a model of `xt.keras` read only those that the model and the functions of
            `map` use. None for all fields, always. Other fields are not decoded.
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
            once, and each reads its own groups of records only, such as row groups. "service" if
            the workers of a tf.data service divide the records; the cardinality is unknown then.
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
        columns = smallest_columns(ParquetPlan(paths), columns)
    wanted = Wanted(columns, schema, nulls, row_splits_dtype)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    return dataset_of_files("parquet", paths, wanted, passes)
