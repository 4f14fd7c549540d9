"""TFRecord files as a dataset of structured batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import tensorflow as tf

from extensor._data.files import dataset_of_files
from extensor._data.position import Passes, Shuffle
from extensor._data.wanted import Wanted
from extensor._files.files import FilePath
from extensor._formats.tfrecord.files import expect_message
from extensor._path import PathLike


def tfrecord(
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
    keys: Mapping[PathLike, str] | None = None,
    context: Iterable[PathLike] = (),
    message: str | None = None,
) -> tf.data.Dataset:
    """Returns a dataset that streams the records of TFRecord files in structured batches.

    The lengths of the records, which the file stores, say where each begins; so they are read in
    any order. Without `schema=`, all records are parsed first, in Python. A compressed file is read
    from its beginning: shuffling has it in memory, and it belongs to one shard.

    Args:
        paths: One file, folder or glob pattern, or several; their records are concatenated.
        batch_size: The number of records in a batch. A batch may have records of several files.
        columns: Paths of the fields to read. "auto" for all fields, of which `fit`, `evaluate` and
            `predict` of a model of `xt.keras` read only those that the model and the functions of
            `map` use. None for all fields, always.
        schema: The spec of the records, or a pyarrow Schema. Default: that of the features.
        drop_remainder: Whether to drop a last batch of an epoch that is not full. The batch size is
            then part of the static shape.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        nulls: The policy for features that are missing, or a dict of policies by path: `"error"`
            (the default), `"mask"`, or `xt.fill(value)`. With a spec, its MaskedTensors are masked.
        shuffle: How to shuffle, an `xt.data.Shuffle`. Each epoch, in this pass or the next one, has
            another order.
        shard: The number of this shard, and the number of shards. Together, they have each record
            once, and each reads its own groups of records only, such as row groups. "service" if
            the workers of a tf.data service divide the records; the cardinality is unknown then.
        epochs: The number of epochs in a pass.
        state: Where the first pass begins, from `xt.data.state`.
        keys: The names of features by path, such as `{"image.data": "image/encoded"}`, for those
            that have other names than their fields. It needs a schema.
        context: The paths of the lists that are features of the context of a SequenceExample.
            Without a schema, they are found out.
        message: "Example" or "SequenceExample". Default: SequenceExample if a record (with a
            schema: one of the first) has feature lists. For other messages, see `proto`.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`. Its cardinality is known, except if
        `state` lies within an epoch.

    Raises:
        StructureError, RowError: As in `parquet`.
        MissingFileError, FormatError, DTypeError, FieldError, NullError, UnsupportedTypeError: As
            in `read_tfrecord`; those that depend on contents during iteration.

    >>> import extensor as xt
    >>> path = "recipes.tfrecord"
    >>> xt.write_tfrecord(xt.DenseStructuredTensor([3], {"est_time": [55.0, 30.0, 45.0]}), path)
    >>> for batch in xt.data.tfrecord(path, batch_size=2):
    ...     print(batch["est_time"].numpy())
    [55. 30.]
    [45.]
    """
    expect_message(message)
    wanted = Wanted(columns, schema, nulls, row_splits_dtype)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    own = {"message": message, "keys": keys, "context": list(context)}
    return dataset_of_files("tfrecord", paths, wanted, passes, **own)
