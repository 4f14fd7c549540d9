"""TFRecord files as a dataset of structured batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.chosen_columns import leaf_paths
from extensor._arrow.null_policy import policies_of
from extensor._arrow.schema import spec_from_schema
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._data.argument import listed
from extensor._data.plan import Passes
from extensor._data.planned import Format, Group, Groups, makes_again, planned
from extensor._data.position import Shuffle
from extensor._data.serialized import groups_of_records, serialized
from extensor._files.files import File, FilePath, files_at
from extensor._formats.tfrecord.files import expect_message, message_of
from extensor._formats.tfrecord.inferred import inferred
from extensor._formats.tfrecord.layout import EXAMPLE, SEQUENCE
from extensor._formats.tfrecord.parsed import Parser, with_nullable
from extensor._path import Path, PathLike
from extensor.errors import StructureError


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
        columns: Paths of the fields to read, as in `read_tfrecord`. "auto" for
            all fields, except that models of `xt.keras` read only those that they use, as in
            `parquet`. None for all fields, always.
        schema: The spec of the records, or a pyarrow Schema. Default: that of the features.
        drop_remainder: Whether to drop a last batch of an epoch that is not full. The batch size is
            then part of the static shape.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        nulls: The policy for features that are missing, or a dict of policies by path: `"error"`
            (the default), `"mask"`, or `xt.fill(value)`. With a spec, its MaskedTensors are masked.
        shuffle: How to shuffle, an `xt.data.Shuffle`.
        shard: The number of this shard, and the number of shards. Together, they have each record
            once. A shard reads its own records only, after the first pass. "service" as in
            `parquet`.
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
    names, is_auto = listed(columns)
    wanted = WantedTable(names, schema, nulls, row_splits_dtype)
    own = {"message": message, "keys": keys, "context": list(context)}
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    return planned(_FORMAT, files_at(paths), wanted, is_auto, passes, **own)


def _opened(
    files: Sequence[File], wanted: WantedTable, message: Any, keys: Any, context: Any
) -> Groups:
    groups = groups_of_records(files)
    if keys and wanted.schema is None:
        raise StructureError("keys", "a schema", "none", "Give schema=, whose paths keys= names.")
    if message is None:
        message = _message(groups if wanted.schema is None else groups[:1])
    if wanted.schema is None:
        records = _Records(groups)
        found, lists = inferred(records, message, records.name)
        schema = wanted.pruned(found)
        kept = set(schema.names)
        context = [path for path in lists if path[0] in kept] if message == SEQUENCE else ()
    else:
        schema = wanted.schema

    wanted = with_nullable(wanted, schema)

    def reader(fields: pa.Schema) -> Callable[[Group], Iterator[pa.RecordBatch]]:
        nulls = policies_of(wanted.nulls, [str(Path(*names)) for names in leaf_paths(fields)])
        spec = spec_from_schema(fields, None, wanted.row_splits_dtype, nulls)
        paths = {path for path, _ in spec.leaves()}
        of_paths = {path: key for path, key in (keys or {}).items() if Path.of(path) in paths}
        lists = [path for path in context if Path.of(path) in paths]
        if fields is schema:  # raises for what names no field
            spec, nulls, of_paths, lists = wanted.spec(schema), wanted.nulls, keys, context
        parser = Parser(spec, message, nulls, of_paths, lists)

        def batches(group: Group) -> Iterator[pa.RecordBatch]:
            for name, each in serialized(group):
                yield to_arrow(parser.records(each, name), fields)

        return batches

    return Groups(schema, groups, reader)


_FORMAT = makes_again(Format("tfrecord", _opened), files_at)


def _message(groups: Sequence[Group]) -> str:
    messages = [message_of(each, name)[0] for group in groups for name, each in serialized(group)]
    return SEQUENCE if SEQUENCE in messages else EXAMPLE


class _Records:
    """The messages of groups, one by one, and the name of the last one."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups

    def __iter__(self) -> Iterator[bytes]:
        for group in self._groups:
            for name, each in serialized(group):
                for number, one in enumerate(each.numpy()):
                    self._place = name, number
                    yield one

    def name(self, _: int) -> str:
        name, number = self._place
        return name(number)
