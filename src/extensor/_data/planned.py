"""Datasets of files of any format: their records in groups, and the plan over these."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.chosen_columns import chosen_columns, pruned_schema
from extensor._arrow.empty import empty_batch
from extensor._arrow.found_nulls import settled
from extensor._arrow.null_argument import has_auto
from extensor._arrow.null_policy import policies_of
from extensor._arrow.reader import records_reader
from extensor._arrow.wanted_table import WantedTable
from extensor._data.conversion import Conversion
from extensor._data.feed import Feed
from extensor._data.first_pass import auto_fields, nulls_in
from extensor._data.plan import PART_BYTES, PART_ROWS, Passes
from extensor._data.prunable import prunable
from extensor._data.recipe import arguments_of, passes_of, recipe
from extensor._data.stream import MAKERS, stream
from extensor._files.files import File
from extensor._path import Path, PathLike
from extensor._pruning.fields import FieldsUsed
from extensor.errors import FormatError


class Group(NamedTuple):
    """Records of a file that are read at once.

    Attributes:
        file: The file.
        name: Where the group is in the file, for errors.
        rows: The number of records.
        nbytes: The approximate size in bytes.
        at: What finds the group in the file.
    """

    file: File
    name: str
    rows: int
    nbytes: float
    at: Any = None


class Groups:
    """The records of files, in groups; a `Source` of `Plan`.

    Args:
        schema: The schema of the records.
        groups: The groups, in the order of the files.
        reader: Returns the function that reads a group, for records of a schema: of this one, or of
            one with fewer fields.
    """

    def __init__(
        self,
        schema: pa.Schema,
        groups: Sequence[Group],
        reader: Callable[[pa.Schema], Callable[[Group], Iterator[pa.RecordBatch]]],
    ) -> None:
        self.schema = schema
        self._groups = groups
        self._reader = reader
        self._batches = reader(schema)
        self.versions: dict[str, Any] = {}
        """The versions of the files of which the groups were made, by path."""
        self.rows = np.array([group.rows for group in groups], np.int64)
        self.nbytes = np.array([group.nbytes for group in groups], np.float64)

    def read(self, groups: Sequence[int], rows: int) -> Iterator[pa.RecordBatch]:
        """Yields the records of groups; see `Source`.

        Raises:
            FormatError: If a file was replaced or written to.
        """
        for number in groups:
            group, count = self._groups[number], 0
            self._expect_version(group.file)
            for batch in self._batches(group):
                if group.file.is_local:  # an object is not overwritten while it is open
                    self._expect_version(group.file)
                count += batch.num_rows
                yield from (batch.slice(at, rows) for at in range(0, batch.num_rows, rows))
            self._expect_version(group.file)
            if count != group.rows:
                raise FormatError(
                    self.place(number),
                    f"{group.rows} records, as when the dataset was made",
                    f"{count} records: the file was written to",
                    "Make the dataset again.",
                )

    def _expect_version(self, file: File) -> None:
        if file.path in self.versions:
            file.expect_version(self.versions[file.path])

    def with_fields(self, paths: Sequence[PathLike]) -> Groups:
        """Returns the same records with some of their fields."""
        schema = pruned_schema(self.schema, chosen_columns(paths, self.schema))
        groups = Groups(schema, self._groups, self._reader)
        groups.versions = self.versions
        return groups

    def place(self, group: int) -> str:
        """Returns the file of a group, and where it is in the file."""
        found = self._groups[group]
        return f"{found.file.path}, {found.name}"

    def identity(self) -> Any:
        """Returns the names of the files, the sizes of their groups, and the schema."""
        groups = [[os.path.basename(g.file.inner), g.name, g.rows] for g in self._groups]
        return [groups, self.schema.to_string(show_schema_metadata=False)]


class Format(NamedTuple):
    """A format of files of which datasets are made.

    Attributes:
        kind: The name of the function.
        opened: Returns the records of files that are wanted; has the function's own arguments.
    """

    kind: str
    opened: Callable[..., Groups]


def planned(
    format: Format,
    files: Sequence[File],
    wanted: WantedTable,
    is_auto: bool,
    passes: Passes,
    **own: Any,
) -> tf.data.Dataset:
    """Returns a dataset of the records of files.

    Args:
        format: The format.
        files: The files.
        wanted: The arguments `columns`, `schema`, `nulls` and `row_splits_dtype`.
        is_auto: Whether models choose the fields: `columns="auto"`.
        passes: The arguments `batch_size`, `drop_remainder`, `shuffle`, `shard`, `epochs` and
            `state`.
        **own: The arguments that only this format has.
    """
    feed, source = _feed(format, files, wanted, passes, **own)
    if not is_auto:
        return stream(feed)

    def reread(fields: FieldsUsed) -> tf.data.Dataset:
        narrow = source.with_fields(fields)
        plan = passes._replace(state=None).plan(narrow, PART_ROWS, PART_BYTES)
        plan.position = feed.plan.position
        nulls = policies_of(feed.conversion.nulls, fields)
        return stream(Feed(plan, Conversion(plan, narrow.schema, wanted.row_splits_dtype, nulls)))

    return prunable(stream(feed), reread)


def makes_again(format: Format, files_at: Callable[[Any], list[File]]) -> Format:
    """Lets other processes make the datasets of a format, and returns it."""
    MAKERS[format.kind] = functools.partial(_feed_again, format, files_at)
    return format


def _feed(
    format: Format, files: Sequence[File], wanted: WantedTable, passes: Passes, **own: Any
) -> tuple[Feed, Groups]:
    versions = {file.path: file.version() for file in files}  # before they are read
    source = format.opened(files, wanted, **own)
    source.versions = versions
    nulls = _settled(source, wanted.nulls)
    plan = passes.plan(source, PART_ROWS, PART_BYTES)
    conversion = Conversion(plan, source.schema, wanted.row_splits_dtype, nulls)
    text = recipe(
        format.kind,
        files=[file.inner if file.is_local else file.path for file in files],
        wanted=[wanted.columns, wanted.schema, nulls, wanted.row_splits_dtype],
        passes=passes.of(plan),
        **own,
    )
    return Feed(plan, conversion, text), source


def _settled(source: Groups, nulls: Any) -> Any:
    """Returns the argument `nulls` without "auto", after a pass over the fields that have it.

    Args:
        source: The records of all files, also of those of other shards.
        nulls: The argument.

    Raises:
        FieldError, DTypeError: If there are policies that fit no field.
        The errors of reading the files.
    """
    if not has_auto(nulls):
        return nulls
    records_reader(source.schema, nulls)  # raises for policies that fit no field
    fields = [Path(name) for name in auto_fields(source.schema, nulls)]
    narrow = source if len(fields) == len(source.schema) else source.with_fields(fields)
    batches = narrow.read(range(len(source.rows)), PART_ROWS)
    return settled(nulls, nulls_in(batches, policies_of(nulls, fields)))


def _feed_again(format: Format, files_at: Callable[[Any], list[File]], text: str) -> Feed:
    arguments: dict[str, Any] = arguments_of(text)
    arguments["passes"] = passes_of(arguments["passes"])
    arguments["files"] = files_at(arguments["files"])
    columns, *rest = arguments["wanted"]
    arguments["wanted"] = WantedTable(columns, *rest)
    return _feed(format, **arguments)[0]


def whole(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns a batch with the columns of a schema; nullable ones that it lacks are null.

    Raises:
        FieldError, DTypeError: As `WantedTable.table`.
    """
    if batch.schema.equals(schema):
        return batch
    table = pa.Table.from_batches([batch])
    for field in schema:
        if field.nullable and field.name not in table.schema.names:
            table = table.append_column(field, pa.nulls(batch.num_rows, field.type))
    table = WantedTable(schema=schema).table(table)
    return (table.combine_chunks().to_batches() or [empty_batch(schema)])[0]
