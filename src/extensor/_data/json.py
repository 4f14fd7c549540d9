"""JSON files as a dataset of structured batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.wanted_table import WantedTable
from extensor._data.argument import listed
from extensor._data.plan import Passes
from extensor._data.planned import Format, Group, Groups, makes_again, planned, whole
from extensor._data.position import Shuffle
from extensor._files.files import File, FilePath, files_at
from extensor._formats.json.source import SUFFIXES, Text
from extensor._formats.json.stream import (
    Block,
    batches_as,
    blocks,
    num_records,
    table_of,
    with_types_of,
)
from extensor._path import PathLike

# The approximate size in bytes of the lines that are read at once.
_BLOCK = 1 << 18


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
        columns: Paths of the fields to read, as in `read_json`. "auto" for
            all fields, except that models of `xt.keras` read only those that they use, as in
            `parquet`. None for all fields, always.
        schema: The spec of the records, or a pyarrow Schema, as in `read_json`. Default: that of
            all records.
        drop_remainder: Whether to drop a last batch of an epoch that is not full. The batch size is
            then part of the static shape.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        nulls: What becomes of nulls and missing fields: `"error"` (the default), `"mask"` for a
            MaskedTensor, `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by
            path. More in `xt.from_arrow`.
        shuffle: How to shuffle, an `xt.data.Shuffle`.
        shard: The number of this shard, and the number of shards. Together, they have each record
            once. A shard reads its own lines only, after the first pass. "service" as in `parquet`.
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
    names, is_auto = listed(columns)
    wanted = WantedTable(names, schema, nulls, row_splits_dtype)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    return planned(_FORMAT, _files_at(paths), wanted, is_auto, passes)


def _files_at(paths: Any) -> list[File]:
    return files_at(paths, SUFFIXES)


def _opened(files: Sequence[File], wanted: WantedTable) -> Groups:
    record: pa.DataType = pa.struct([])
    groups: list[Group] = []
    for file in files:
        found: list[Group] = []
        for block in blocks(file, _BLOCK):
            text = _text(file, block)
            if wanted.schema is None:
                table = table_of(text, block.line)
                record = with_types_of(record, table.schema, text, block.line)
                rows = table.num_rows
            else:
                rows = num_records(text, block.line)
            at = None if block.start is None else (block.start, block.line)
            name = f"lines from {block.line + 1} on" if at else "its records"
            found.append(Group(file, name, rows, len(block.data), at))
        groups += found if found and found[0].at else _one(found)
    if wanted.schema is not None:
        return Groups(wanted.schema, groups, _typed)
    every = wanted.pruned(pa.schema(record.fields))

    def batches(group: Group) -> Iterator[pa.RecordBatch]:
        for text, line in _texts(group):
            for batch in batches_as(table_of(text, line), record, group.file.path):
                yield from wanted.table(pa.Table.from_batches([batch])).to_batches()

    return Groups(every, groups, lambda schema: batches if schema is every else _typed(schema))


_FORMAT = makes_again(Format("json", _opened), _files_at)


def _one(groups: list[Group]) -> list[Group]:
    """Returns the blocks of a file as one group."""
    rows, nbytes = sum(each.rows for each in groups), sum(each.nbytes for each in groups)
    return [group._replace(rows=rows, nbytes=nbytes) for group in groups[:1]]


def _typed(schema: pa.Schema) -> Callable[[Group], Iterator[pa.RecordBatch]]:
    wanted = WantedTable(schema=schema)

    def batches(group: Group) -> Iterator[pa.RecordBatch]:
        for text, line in _texts(group):
            for batch in table_of(text, line, wanted).to_batches():
                yield whole(batch, schema)

    return batches


def _texts(group: Group) -> Iterator[tuple[Text, int]]:
    """Yields the texts of a group, each with the number of lines before it."""
    if group.at is None:
        for block in blocks(group.file, _BLOCK):
            yield _text(group.file, block), block.line
        return
    start, line = group.at
    with group.file.open() as stream:
        stream.seek(start)
        yield Text(group.file.path, stream.read_buffer(int(group.nbytes))), line


def _text(file: File, block: Block) -> Text:
    return Text(file.path, pa.py_buffer(block.data))
