"""Files of serialized protocol buffers as a dataset of structured batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import tensorflow as tf

from extensor._arrow.wanted_table import WantedTable
from extensor._data.files import dataset_of_files
from extensor._data.position import Passes, Shuffle
from extensor._data.wanted import Wanted
from extensor._files.files import FilePath
from extensor._formats.protobuf.descriptors import descriptor_of
from extensor._formats.protobuf.read import spec_from_proto
from extensor._path import PathLike


def proto(
    paths: FilePath | Iterable[FilePath],
    message: Any,
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
    max_depth: int | None = None,
) -> tf.data.Dataset:
    """Returns a dataset that streams the messages of files in structured batches.

    A file is a TFRecord file, or has each message after its length, as `writeDelimitedTo` of Java
    and `serialize_length_prefixed` of Python write them. Both say where each message begins; so
    they are read in any order. A compressed TFRecord file is read from its beginning: shuffling
    has it in memory, and it belongs to one shard.

    Args:
        paths: One file, folder or glob pattern, or several; their messages are concatenated.
        message: The class of the messages, or its descriptor.
        batch_size: The number of records in a batch. A batch may have records of several files.
        columns: Paths of the fields to read. "auto" for all fields, of which `fit`, `evaluate` and
            `predict` of a model of `xt.keras` read only those that the model and the functions of
            `map` use. None for all fields, always. Other fields are not decoded.
        schema: The spec of the records, or a pyarrow Schema. Default: as the message type says.
        drop_remainder: Whether to drop a last batch of an epoch that is not full. The batch size is
            then part of the static shape.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        nulls: What a field becomes that a message does not have. Default: an empty list. Or a
            policy of `xt.from_arrow`, or a dict of policies by path. `"default"` is the default
            value of the field.
        shuffle: How to shuffle, an `xt.data.Shuffle`. Each epoch, in this pass or the next one, has
            another order.
        shard: The number of this shard, and the number of shards. Together, they have each record
            once, and each reads its own groups of records only, such as row groups. "service" if
            the workers of a tf.data service divide the records; the cardinality is unknown then.
        epochs: The number of epochs in a pass.
        state: Where the first pass begins, from `xt.data.state`.
        max_depth: How often a message type is read inside itself. A message that is nested deeper
            is an error. Needed for recursive types without `columns`.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`. Its cardinality is known, except if
        `state` lies within an epoch.

    Raises:
        StructureError, RowError: As in `parquet`.
        MissingFileError: If a path does not exist (also a FileNotFoundError).
        FormatError: If a file is of neither kind, or is cut; during iteration, if bytes are not a
            message of the type (also a ValueError).
        FieldError, DTypeError, MissingDependencyError: As in `from_proto`.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> from google.protobuf import descriptor_pb2
    >>> Name = descriptor_pb2.UninterpretedOption.NamePart
    >>> with tf.io.TFRecordWriter("names.tfrecord") as writer:
    ...     for text in ("a", "b", "c"):
    ...         writer.write(Name(name_part=text, is_extension=True).SerializeToString())
    >>> for batch in xt.data.proto("names.tfrecord", Name, batch_size=2):
    ...     print(batch["name_part"].numpy())
    [b'a' b'b']
    [b'c']
    """
    descriptor, asked = descriptor_of(message), Wanted(columns)
    names = asked.columns
    spec = spec_from_proto(descriptor, names, schema, nulls, row_splits_dtype, max_depth)
    wanted = Wanted("auto" if asked.is_auto else None, spec)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    own = {
        "message": descriptor,
        "columns": names,
        "schema": None if schema is None else WantedTable(None, schema).schema,
        "policies": nulls,
        "max_depth": max_depth,
    }
    return dataset_of_files("proto", paths, wanted, passes, **own)
