"""TFRecord files as a dataset of structured batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._data.plan import Shuffle
from extensor._data.planned import Format, Group, Groups, makes_again, planned
from extensor._files.files import File, FilePath, files_at
from extensor._formats.protobuf.read import from_proto, spec_from_proto
from extensor._formats.tfrecord.files import (
    ends_of_records,
    expect_message,
    message_of,
    records_between,
    serialized_batches,
)
from extensor._formats.tfrecord.inferred import inferred
from extensor._formats.tfrecord.layout import EXAMPLE, SEQUENCE
from extensor._formats.tfrecord.parsed import Parser
from extensor._path import PathLike
from extensor.errors import ExtensorError, StructureError

# The approximate size in bytes of the records that are read at once.
_BLOCK = 1 << 18


def tfrecord(
    paths: FilePath | Iterable[FilePath],
    batch_size: int,
    columns: Iterable[PathLike] | None = None,
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
    message: Any = None,
) -> tf.data.Dataset:
    """Returns a dataset that streams the records of TFRecord files in structured batches.

    The lengths of the records, which the file stores, say where each begins; so they are read in
    any order. Without `schema=`, all records are parsed first, in Python. A compressed file is read
    from its beginning: shuffling has it in memory, and it belongs to one shard.

    Args:
        paths: One file, folder or glob pattern, or several; their records are concatenated.
        batch_size: The number of records in a batch. A batch may have records of several files.
        columns: Paths of the fields to read, as in `read_tfrecord`. Default: all.
        schema: The spec of the records, or a pyarrow Schema. Default: that of the features.
        drop_remainder: Whether to drop a last batch of an epoch that is not full. The batch size is
            then part of the static shape.
        row_splits_dtype: As in `from_arrow`.
        nulls: The policies for features that are missing, as in `from_tf_example`.
        shuffle: How to shuffle, an `xt.data.Shuffle`.
        shard: As in `parquet`; a shard reads its own records only, after the first pass.
        epochs: The number of epochs in a pass.
        state: Where the first pass begins, from `xt.data.state`.
        keys: As in `read_tfrecord`; it needs a schema.
        context: As in `read_tfrecord`.
        message: "Example" or "SequenceExample", or the class of messages, or its descriptor, as in
            `from_proto`; a class cannot be sent to the workers of a tf.data service. Default:
            SequenceExample if a record (with a schema: one of the first) has feature lists.

    Returns:
        A dataset of StructuredTensors of shape `[batch_size]`. Its cardinality is known, except if
        `state` lies within an epoch.

    Raises:
        StructureError, RowError: As in `parquet`.
        MissingFileError, FormatError, DTypeError, FieldError, NullError, UnsupportedTypeError: As
            in `read_tfrecord` and `from_proto`; those that depend on contents during iteration.

    >>> import extensor as xt
    >>> path = "recipes.tfrecord"
    >>> xt.write_tfrecord(xt.DenseStructuredTensor([3], {"est_time": [55.0, 30.0, 45.0]}), path)
    >>> for batch in xt.data.tfrecord(path, batch_size=2):
    ...     print(batch["est_time"].numpy())
    [55. 30.]
    [45.]
    """
    names = columns if columns is None or isinstance(columns, (str, bytes)) else list(columns)
    files, rest = files_at(paths), (batch_size, drop_remainder, shuffle, shard, epochs, state)
    if message is None or isinstance(message, str):
        expect_message(message)
        wanted = WantedTable(names, schema, nulls, row_splits_dtype)
        own = {"message": message, "keys": keys, "context": list(context)}
        return planned(_EXAMPLES, files, wanted, *rest, **own)
    reads: Any = (message, names, schema, nulls, row_splits_dtype)
    wanted = WantedTable(None, spec_from_proto(*reads))
    return planned(_PROTOS, files, wanted, *rest, reads=reads)


def _examples(
    files: Sequence[File], wanted: WantedTable, message: Any, keys: Any, context: Any
) -> Groups:
    groups = _groups(files)
    if keys and wanted.schema is None:
        raise StructureError(
            path="keys",
            expected="a schema",
            received="none",
            mend="Give schema=, whose paths keys= names.",
        )
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
    parser = Parser(wanted.spec(schema), message, wanted.nulls, keys, context)
    return Groups(schema, groups, _reader(schema, parser.records))


def _protos(files: Sequence[File], wanted: WantedTable, reads: Any) -> Groups:
    def parsed(serialized: tf.Tensor, name_of: Callable[[int], str]) -> Any:
        try:
            return from_proto(serialized, *reads)
        except ExtensorError as error:
            if error.received is None:
                raise
            raise type(error)(
                path=error.path,
                expected=error.expected,
                received=f"{error.received} (counted from {name_of(0)})",
                mend=error.mend,
            ) from error

    assert wanted.schema is not None
    return Groups(wanted.schema, _groups(files), _reader(wanted.schema, parsed))


_EXAMPLES = makes_again(Format("tfrecord", _examples), files_at)
_PROTOS = Format("messages", _protos)


def _groups(files: Sequence[File]) -> list[Group]:
    groups: list[Group] = []
    for file in files:
        ends = ends_of_records(file)
        if ends is None:
            sizes = [int(tf.size(each)) for each in serialized_batches(file)]
            size = file.system.get_file_info(file.inner).size
            groups.append(Group(file, "its records", sum(sizes), size))
            continue
        first = start = 0
        while first < len(ends):
            stop = max(int(np.searchsorted(ends, start + _BLOCK, "right")), first + 1)
            end = int(ends[stop - 1])
            name = f"records from {first} on"
            groups.append(Group(file, name, stop - first, end - start, (first, start)))
            first, start = stop, end
    return groups


def _serialized(group: Group) -> Iterator[tuple[Callable[[int], str], tf.Tensor]]:
    """Yields messages of a group, each time with a function that names one of them."""
    first, start = group.at or (0, 0)
    if group.at is None:
        found = serialized_batches(group.file)
    else:
        found = records_between(group.file, start, start + int(group.nbytes), group.rows)
    for serialized in found:
        yield _namer(first, group.file.path), serialized
        first += int(tf.size(serialized))


def _namer(first: int, path: str) -> Callable[[int], str]:
    return lambda number: f"record {first + number} of {path}"


def _message(groups: Sequence[Group]) -> str:
    messages = [message_of(each, name)[0] for group in groups for name, each in _serialized(group)]
    return SEQUENCE if SEQUENCE in messages else EXAMPLE


class _Records:
    """The messages of groups, one by one, and the name of the last one."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups

    def __iter__(self) -> Iterator[bytes]:
        for group in self._groups:
            for name, serialized in _serialized(group):
                for number, one in enumerate(serialized.numpy()):
                    self._place = name, number
                    yield one

    def name(self, _: int) -> str:
        name, number = self._place
        return name(number)


def _reader(
    schema: pa.Schema, parsed: Callable[[Any, Callable[[int], str]], Any]
) -> Callable[[Group], Iterator[pa.RecordBatch]]:
    """Returns a function that reads the records of a group.

    Args:
        schema: Their schema.
        parsed: Returns the records of messages, which have names.
    """

    def batches(group: Group) -> Iterator[pa.RecordBatch]:
        for name, serialized in _serialized(group):
            yield to_arrow(parsed(serialized, name), schema)

    return batches
