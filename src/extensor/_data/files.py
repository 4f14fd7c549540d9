"""Files of any format as datasets of structured batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from extensor._arrow.wanted_table import WantedTable
from extensor._data.dataset import Wanted, dataset_of_files
from extensor._data.position import Passes, Shuffle
from extensor._files.files import FilePath
from extensor._files.part_cache import Cache
from extensor._files.store import READ_AHEAD, reading_of
from extensor._formats.csv.lines import dialect_of
from extensor._formats.parquet.plan import ParquetPlan
from extensor._formats.parquet.smallest import smallest_columns
from extensor._formats.protobuf.descriptors import descriptor_of
from extensor._formats.protobuf.read import spec_from_proto
from extensor._formats.tfrecord.files import expect_message
from extensor._path import PathLike
from extensor._pruning.fields import FieldsUsed
from extensor._typing import DTypeLike, NullsLike, SchemaLike

if TYPE_CHECKING:
    import pyarrow.compute as pc
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message


def arrow(
    paths: FilePath | Iterable[FilePath],
    batch_size: int,
    columns: Iterable[PathLike] | Literal["auto"] | None = "auto",
    schema: SchemaLike | None = None,
    drop_remainder: bool = False,
    row_splits_dtype: DTypeLike | None = None,
    nulls: NullsLike | None = None,
    shuffle: Shuffle | None = None,
    shard: tuple[int, int] | Literal["service"] | None = None,
    epochs: int = 1,
    state: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
    *,
    read_ahead: int = READ_AHEAD,
    cache: FilePath | Cache | None = None,
) -> tf.data.Dataset:
    """Returns a dataset that streams the records of Arrow IPC and Feather files in batches.

    The record batches of a file are read in any order. IPC streams and compressed files are read
    from their beginning: shuffling has such a file in memory, and it belongs to one shard.

    Args:
        paths: One file, folder or glob pattern, or several, of one schema; their records are
            concatenated.
        batch_size: The number of records in a batch. A batch may have records of several files.
        columns: Paths of the fields to read. "auto" for all fields, of which `fit`, `evaluate` and
            `predict` of a model of `xt.keras` read only those that the model and the functions of
            `map` use. None for all fields, always.
        schema: The spec of the records, or a pyarrow Schema, to which the columns are cast without
            loss. A nullable column that a file does not have is null there. Default: the schema of
            the files, which must agree.
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
        state: Where the first pass begins, from `xt.data.state`. The states of all shards of an
            earlier run, as a list, if the number of shards is another now: the shards divide what
            those had not read.
        read_ahead: How many bytes of files that are not local are fetched before they are read, or
            the next row group or 8 MB if these are larger; 0 for none. Default: 12 MB.
        cache: A folder of the disk in which the parts of files that are not local are kept that
            were read, or an `xt.data.Cache` with its size. Default: none.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`. Its cardinality is known, except if
        `state` lies within an epoch.

    Raises:
        StructureError, RowError: As in `parquet`; StructureError also if files have different
            schemas.
        MissingFileError, FormatError, FieldError, DTypeError: As in `read_arrow`.
        NullError, UnsupportedTypeError: As in `from_arrow`.

    >>> import extensor as xt
    >>> path = "recipes.arrow"
    >>> xt.write_arrow(xt.DenseStructuredTensor([3], {"est_time": [55.0, 30.0, 45.0]}), path)
    >>> for batch in xt.data.arrow(path, batch_size=2):
    ...     print(batch["est_time"].numpy())
    [55. 30.]
    [45.]
    """
    wanted = Wanted(columns, schema, nulls, row_splits_dtype)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    return dataset_of_files("arrow", paths, wanted, passes, reading_of(read_ahead, cache))


def csv(
    paths: FilePath | Iterable[FilePath],
    batch_size: int,
    columns: Iterable[PathLike] | Literal["auto"] | None = "auto",
    schema: SchemaLike | None = None,
    drop_remainder: bool = False,
    row_splits_dtype: DTypeLike | None = None,
    nulls: NullsLike | None = None,
    shuffle: Shuffle | None = None,
    shard: tuple[int, int] | Literal["service"] | None = None,
    epochs: int = 1,
    state: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
    *,
    delimiter: str | None = None,
    names: Iterable[str] | None = None,
    null_values: Iterable[str] = ("",),
    encoding: str = "utf-8",
    read_ahead: int = READ_AHEAD,
    cache: FilePath | Cache | None = None,
) -> tf.data.Dataset:
    r"""Returns a dataset that streams the records of CSV files in structured batches.

    Some lines are read at a time, in any order. All are parsed once first, to count the records
    and to find out their types, or only to count them with `schema=`. A file that is compressed, or
    in another encoding than UTF-8, is read from its beginning: shuffling has it in memory, and it
    belongs to one shard.

    Args:
        paths: One file, folder or glob pattern, or several; their records are concatenated.
        batch_size: The number of records in a batch. A batch may have records of several files.
        columns: Paths of the fields to read. "auto" for all fields, of which `fit`, `evaluate` and
            `predict` of a model of `xt.keras` read only those that the model and the functions of
            `map` use. None for all fields, always.
        schema: The spec of the records, or a pyarrow Schema, as in `read_csv`. Default: that of all
            records.
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
        state: Where the first pass begins, from `xt.data.state`. The states of all shards of an
            earlier run, as a list, if the number of shards is another now: the shards divide what
            those had not read.
        delimiter: The character between values. Default: a comma, and a tab in `.tsv` files.
        names: The names of the fields, if the files have no line with them.
        null_values: The texts without quotes that are nulls, such as `["", "NA"]`. Default: only
            the empty one.
        encoding: The encoding of the text, as Python names it, such as "latin-1".
        read_ahead: How many bytes of files that are not local are fetched before they are read, or
            the next row group or 8 MB if these are larger; 0 for none. Default: 12 MB.
        cache: A folder of the disk in which the parts of files that are not local are kept that
            were read, or an `xt.data.Cache` with its size. Default: none.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`. Its cardinality is known, except if
        `state` lies within an epoch.

    Raises:
        StructureError, RowError: As in `parquet`.
        MissingFileError, FormatError, FieldError, DTypeError, NullError: As in `read_csv`; with
            `schema=`, those of values are raised during iteration.
        UnsupportedTypeError: As in `from_arrow`.

    >>> import pathlib
    >>> import extensor as xt
    >>> path = pathlib.Path("recipes.csv")
    >>> _ = path.write_text('title\nTea\nBread\nSoup\n')
    >>> for batch in xt.data.csv(path, batch_size=2):
    ...     print(batch["title"].numpy())
    [b'Tea' b'Bread']
    [b'Soup']
    """
    own = dialect_of(delimiter, names, null_values, encoding)._asdict()
    wanted = Wanted(columns, schema, nulls, row_splits_dtype)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    return dataset_of_files("csv", paths, wanted, passes, reading_of(read_ahead, cache), **own)


def json(
    paths: FilePath | Iterable[FilePath],
    batch_size: int,
    columns: Iterable[PathLike] | Literal["auto"] | None = "auto",
    schema: SchemaLike | None = None,
    drop_remainder: bool = False,
    row_splits_dtype: DTypeLike | None = None,
    nulls: NullsLike | None = None,
    shuffle: Shuffle | None = None,
    shard: tuple[int, int] | Literal["service"] | None = None,
    epochs: int = 1,
    state: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
    *,
    read_ahead: int = READ_AHEAD,
    cache: FilePath | Cache | None = None,
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
        state: Where the first pass begins, from `xt.data.state`. The states of all shards of an
            earlier run, as a list, if the number of shards is another now: the shards divide what
            those had not read.
        read_ahead: How many bytes of files that are not local are fetched before they are read, or
            the next row group or 8 MB if these are larger; 0 for none. Default: 12 MB.
        cache: A folder of the disk in which the parts of files that are not local are kept that
            were read, or an `xt.data.Cache` with its size. Default: none.

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
    return dataset_of_files("json", paths, wanted, passes, reading_of(read_ahead, cache))


def parquet(
    paths: FilePath | Iterable[FilePath],
    batch_size: int,
    columns: Iterable[PathLike] | Literal["auto"] | None = "auto",
    schema: SchemaLike | None = None,
    drop_remainder: bool = False,
    row_splits_dtype: DTypeLike | None = None,
    nulls: NullsLike | None = None,
    shuffle: Shuffle | None = None,
    shard: tuple[int, int] | Literal["service"] | None = None,
    epochs: int = 1,
    state: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
    *,
    filters: pc.Expression | list[Any] | None = None,
    read_ahead: int = READ_AHEAD,
    cache: FilePath | Cache | None = None,
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
        state: Where the first pass begins, from `xt.data.state`. The states of all shards of an
            earlier run, as a list, if the number of shards is another now: the shards divide what
            those had not read.
        filters: The condition for records, as in `read_parquet`. Row groups that cannot have such
            records are not read. The columns of the condition are read once more first, to count
            the records.
        read_ahead: How many bytes of files that are not local are fetched before they are read, or
            the next row group or 8 MB if these are larger; 0 for none. Default: 12 MB.
        cache: A folder of the disk in which the parts of files that are not local are kept that
            were read, or an `xt.data.Cache` with its size. Default: none.

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
    return dataset_of_files(
        "parquet", paths, wanted, passes, reading_of(read_ahead, cache), filters=filters
    )


def proto(
    paths: FilePath | Iterable[FilePath],
    message: type[Message] | Descriptor,
    batch_size: int,
    columns: Iterable[PathLike] | Literal["auto"] | None = "auto",
    schema: SchemaLike | None = None,
    drop_remainder: bool = False,
    row_splits_dtype: DTypeLike | None = None,
    nulls: NullsLike | None = None,
    shuffle: Shuffle | None = None,
    shard: tuple[int, int] | Literal["service"] | None = None,
    epochs: int = 1,
    state: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
    max_depth: int | None = None,
    *,
    read_ahead: int = READ_AHEAD,
    cache: FilePath | Cache | None = None,
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
        state: Where the first pass begins, from `xt.data.state`. The states of all shards of an
            earlier run, as a list, if the number of shards is another now: the shards divide what
            those had not read.
        max_depth: How often a message type is read inside itself. A message that is nested deeper
            is an error. Needed for recursive types without `columns`.
        read_ahead: How many bytes of files that are not local are fetched before they are read, or
            the next row group or 8 MB if these are larger; 0 for none. Default: 12 MB.
        cache: A folder of the disk in which the parts of files that are not local are kept that
            were read, or an `xt.data.Cache` with its size. Default: none.

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
    given = WantedTable(None, schema, nulls)
    wanted = Wanted("auto" if asked.is_auto else None, spec)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    own = {
        "message": descriptor,
        "columns": names,
        "schema": given.schema,
        "policies": given.nulls if isinstance(given.nulls, dict) else nulls,  # masks of a spec
        "max_depth": max_depth,
    }
    return dataset_of_files("proto", paths, wanted, passes, reading_of(read_ahead, cache), **own)


def tfrecord(
    paths: FilePath | Iterable[FilePath],
    batch_size: int,
    columns: Iterable[PathLike] | Literal["auto"] | None = "auto",
    schema: SchemaLike | None = None,
    drop_remainder: bool = False,
    row_splits_dtype: DTypeLike | None = None,
    nulls: NullsLike | None = None,
    shuffle: Shuffle | None = None,
    shard: tuple[int, int] | Literal["service"] | None = None,
    epochs: int = 1,
    state: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
    keys: Mapping[PathLike, str] | None = None,
    context: Iterable[PathLike] = (),
    message: str | None = None,
    *,
    read_ahead: int = READ_AHEAD,
    cache: FilePath | Cache | None = None,
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
        state: Where the first pass begins, from `xt.data.state`. The states of all shards of an
            earlier run, as a list, if the number of shards is another now: the shards divide what
            those had not read.
        keys: The names of features by path, such as `{"image.data": "image/encoded"}`, for those
            that have other names than their fields. It needs a schema.
        context: The paths of the lists that are features of the context of a SequenceExample.
            Without a schema, they are found out.
        message: "Example" or "SequenceExample". Default: SequenceExample if a record (with a
            schema: one of the first) has feature lists. For other messages, see `proto`.
        read_ahead: How many bytes of files that are not local are fetched before they are read, or
            the next row group or 8 MB if these are larger; 0 for none. Default: 12 MB.
        cache: A folder of the disk in which the parts of files that are not local are kept that
            were read, or an `xt.data.Cache` with its size. Default: none.

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
    return dataset_of_files("tfrecord", paths, wanted, passes, reading_of(read_ahead, cache), **own)
