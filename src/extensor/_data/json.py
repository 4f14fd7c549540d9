"""JSON files as a dataset of structured batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import tensorflow as tf

from extensor._data.files import dataset_of_files
from extensor._data.position import Passes, Shuffle
from extensor._data.wanted import Wanted
from extensor._files.files import FilePath
from extensor._path import PathLike


def json(
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
    r"""Returns a dataset that streams the records of JSON files in structured batches.

    Files of one object a line are read some lines at a time, in any order. The records are counted
    first; without `schema=`, all records are parsed for their types then. A compressed file, or one
    with another layout, such as an array, is read from its beginning: shuffling has it in memory,
    and it belongs to one shard.

    Args:
        paths: One file, folder or glob pattern, or several; their records are concatenated.
        batch_size: The number of records in a batch. A batch may have records of several files.
        columns: Paths of the fields to read. "auto" for all fields, of which `fit`, `evaluate` and
            `predict` of a model of `xt.keras` read only those that the model and the functions of
            `map` use. None for all fields, always.
        schema: The spec of the records, or a pyarrow Schema, as in `read_json`. Default: that of
            all records.
        drop_remainder: Whether to drop a last batch of an epoch that is not full. The batch size is
            then part of the static shape.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        nulls: What becomes of nulls and missing fields: `"error"` (the default), `"mask"` for a
            MaskedTensor, `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by
            path. More in `xt.from_arrow`.
        shuffle: How to shuffle, an `xt.data.Shuffle`. Each epoch, in this pass or the next one, has
            another order.
        shard: The number of this shard, and the number of shards. Together, they have each record
            once, and each reads its own groups of records only, such as row groups. "service" if
            the workers of a tf.data service divide the records; the cardinality is unknown then.
        epochs: The number of epochs in a pass.
        state: Where the first pass begins, from `xt.data.state`.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`. Its cardinality is known, except if
        `state` lies within an epoch.

    Raises:
        StructureError, RowError: As in `parquet`.
        MissingFileError, FormatError, FieldError, DTypeError, NullError: As in `read_json`; with
            `schema=`, those of values are raised during iteration.
        UnsupportedTypeError: As in `from_arrow`.

    >>> import pathlib
    >>> import extensor as xt
    >>> path = pathlib.Path("recipes.jsonl")
    >>> _ = path.write_text('{"title": "Tea"}\n{"title": "Bread"}\n{"title": "Soup"}\n')
    >>> for batch in xt.data.json(path, batch_size=2):
    ...     print(batch["title"].numpy())
    [b'Tea' b'Bread']
    [b'Soup']
    """
    wanted = Wanted(columns, schema, nulls, row_splits_dtype)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    return dataset_of_files("json", paths, wanted, passes)
