"""Arrow IPC files as a dataset of structured batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.chosen_columns import leaf_paths
from extensor._arrow.wanted_table import WantedTable
from extensor._data.argument import listed
from extensor._data.plan import Passes
from extensor._data.planned import Format, Group, Groups, makes_again, planned, whole
from extensor._data.position import Shuffle
from extensor._files.files import File, FilePath, files_at
from extensor._formats.arrow import SUFFIXES, batches_in, opened, readable, reader_of
from extensor._path import PathLike
from extensor.errors import StructureError


def arrow(
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
    """Returns a dataset that streams the records of Arrow IPC and Feather files in batches.

    The record batches of a file are read in any order. IPC streams and compressed files are read
    from their beginning: shuffling has such a file in memory, and it belongs to one shard.

    Args:
        paths: One file, folder or glob pattern, or several, of one schema; their records are
            concatenated.
        batch_size: The number of records in a batch. A batch may have records of several files.
        columns: Paths of the fields to read, as in `read_arrow`. "auto" for
            all fields, except that models of `xt.keras` read only those that they use, as in
            `parquet`. None for all fields, always.
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
        shuffle: How to shuffle, an `xt.data.Shuffle`.
        shard: The number of this shard, and the number of shards. Together, they have each record
            once. A shard reads its own record batches only. "service" as in `parquet`.
        epochs: The number of epochs in a pass.
        state: Where the first pass begins, from `xt.data.state`.

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
    names, is_auto = listed(columns)
    wanted = WantedTable(names, schema, nulls, row_splits_dtype)
    passes = Passes(batch_size, drop_remainder, shuffle, shard, epochs, state)
    return planned(_FORMAT, _files_at(paths), wanted, is_auto, passes)


def _files_at(paths: Any) -> list[File]:
    return files_at(paths, SUFFIXES)


def _opened(files: Sequence[File], wanted: WantedTable) -> Groups:
    schemas: list[pa.Schema] = []
    groups: list[Group] = []
    for file in files:
        with readable(file.path), opened(file) as stream:
            with reader_of(file.path, stream) as reader:
                found: pa.Schema = reader.schema
            leaf_paths(found)  # raises for a name that is not UTF-8
            schemas.append(found if wanted.schema is not None else wanted.pruned(found))
            groups += _groups(file, stream, found)
    schema = wanted.schema if wanted.schema is not None else _common(files, schemas)

    return Groups(schema, groups, _reader)


_FORMAT = makes_again(Format("arrow", _opened), _files_at)


def _reader(schema: pa.Schema) -> Callable[[Group], Iterator[pa.RecordBatch]]:
    def batches(group: Group) -> Iterator[pa.RecordBatch]:
        for batch in _batches(group, schema.names):
            yield whole(batch, schema)

    return batches


def _groups(file: File, stream: pa.NativeFile, schema: pa.Schema) -> list[Group]:
    """Returns the record batches of a file; a stream is one group.

    Only the shortest column is read, to know the numbers of records.
    """
    stream.seek(0)
    size = stream.size()
    fields = _shortest(schema)
    with reader_of(file.path, stream, fields) as reader:
        rows = [batch.num_rows for batch in batches_in(file.path, stream, reader)]
        is_stream = not isinstance(reader, pa.RecordBatchFileReader)
    share = size / max(1, sum(rows))
    if is_stream:
        return [Group(file, "its record batches", sum(rows), size)]
    return [Group(file, f"record batch {i}", n, n * share, i) for i, n in enumerate(rows)]


def _shortest(schema: pa.Schema) -> list[int] | None:
    widths = [
        field.type.bit_width if pa.types.is_primitive(field.type) else 1 << 10 for field in schema
    ]
    return [widths.index(min(widths))] if widths else None


def _batches(group: Group, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    file = group.file
    with readable(file.path), opened(file) as stream:
        with reader_of(file.path, stream) as reader:
            found: pa.Schema = reader.schema
        stream.seek(0)
        fields = [i for i, name in enumerate(found.names) if name in names]
        chosen = None if len(fields) == len(found) or not fields else fields
        with reader_of(file.path, stream, chosen) as reader:
            if group.at is None:
                each = batches_in(file.path, stream, reader)
            elif group.at < reader.num_record_batches:
                each = iter([reader.get_batch(group.at)])
            else:
                each = iter([])
            for batch in each:
                batch.validate(full=True)
                yield batch


def _common(files: Sequence[File], schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Returns the schema of all files; a field is nullable if it is in one of them."""
    first = schema = schemas[0]
    for file, found in zip(files, schemas, strict=True):
        if found.names != first.names or found.types != first.types:
            raise StructureError(
                file.path,
                f"the columns of {files[0].path}: {', '.join(map(str, first))}",
                ", ".join(map(str, found)),
                "Give schema=, in which added columns are nullable.",
            )
        schema = pa.unify_schemas([schema, found])
    return schema
