"""The records of files in groups, which datasets and streams read."""

from __future__ import annotations

import abc
import contextlib
import copy
import functools
import itertools
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from extensor._arrow.chosen_columns import chosen_columns, pruned_schema
from extensor._arrow.found_nulls import FoundNulls
from extensor._arrow.null_argument import by_path
from extensor._arrow.null_policy import REST, is_auto, place_of, policies_of
from extensor._arrow.nulls import empty_batch
from extensor._arrow.read import nulls_in_table
from extensor._arrow.reader import records_reader
from extensor._arrow.wanted_table import WantedTable
from extensor._files.files import File
from extensor._files.ranges import Block, FetchAhead, Range, joined_ranges, pieces_of
from extensor._files.store import replaced_error
from extensor._path import Path, PathLike
from extensor._pruning.fields import FieldsUsed
from extensor._typing import NullsLike
from extensor.errors import FormatError

BLOCK = 1 << 18
"""The approximate size in bytes of a group, where the file has no groups of its own."""

# The number of records to read at once while nulls are looked for.
_ROWS = 1 << 16


class Group(NamedTuple):
    """Records of a file that are read at once.

    Attributes:
        file: The file.
        name: Where the group is in the file, for errors.
        rows: The number of records; None if they were not counted.
        nbytes: The approximate size in bytes.
        at: What finds the group in the file. None if it is the whole file. Of most formats it is a
            tuple, whose first value is the first byte.
    """

    file: File
    name: str
    rows: int | None
    nbytes: float
    at: Any = None


class Source(abc.ABC):
    """The records of files of one format, in groups that can be read in any order.

    A format is a subclass. Its constructor finds out `schema` and `groups`; `batches` reads groups.

    Args:
        files: The files.
        versions: The versions of the files, by path. Default: their versions now.

    Attributes:
        files: The files.
        schema: The schema of the records.
        groups: The groups, in the order of the files.
    """

    schema: pa.Schema
    groups: Sequence[Group]

    def __init__(self, files: Sequence[File], versions: Mapping[str, Any] | None = None) -> None:
        self.files = files
        self._versions = versions or {file.path: file.version() for file in files}

    @abc.abstractmethod
    def batches(self, groups: Sequence[Group], rows: int) -> Iterator[pa.RecordBatch]:
        """Yields the records of groups of one file, with the fields of the schema.

        Args:
            groups: Groups of one file; only one if it is the whole file.
            rows: The number of records that are wanted at once. Record batches may have more.
        """

    def encoded(self) -> Source:
        """Returns the same records, whose strings may be in dictionaries."""
        return self

    def pruned(self, schema: pa.Schema) -> Source:
        """Returns the same records with the fields of a schema, which are some of their fields."""
        found = copy.copy(self)
        found.schema = schema
        return found

    def smallest(self, fields: FieldsUsed) -> Sequence[str]:
        """Returns the paths to read for fields, with the smallest where there is a choice."""
        return list(fields)

    def nulls(self, nulls: NullsLike | None) -> Iterator[FoundNulls]:
        """Yields the nulls of the fields that have the policy "auto".

        Args:
            nulls: The argument `nulls`.

        Raises:
            FieldError, DTypeError: If there are policies that fit no field.
            The errors of reading the files.
        """
        records_reader(self.schema, nulls)  # raises for policies that fit no field
        return self.nulls_of(auto_fields(self.schema, nulls), nulls)

    # What follows is the same for all formats.

    @functools.cached_property
    def rows(self) -> np.ndarray[Any, Any]:
        """The number of records in each group."""
        return np.array([group.rows for group in self.groups], np.int64)

    @functools.cached_property
    def nbytes(self) -> np.ndarray[Any, Any]:
        """The approximate size of each group in bytes."""
        return np.array([group.nbytes for group in self.groups], np.float64)

    @property
    def num_records(self) -> int | None:
        """The number of records, or None if they were not counted."""
        counts = [group.rows for group in self.groups]
        return None if None in counts else int(self.rows.sum())

    def ranges(self, groups: Sequence[Group]) -> Iterator[Sequence[Range]]:
        """Yields where groups of one file are, each time the ranges that are fetched together.

        Args:
            groups: Groups of one file of a store; only one if it is the whole file.
        """
        if groups[0].at is None:
            found = pieces_of(groups[0].file.size)
        else:
            found = joined_ranges((g.at[0], g.at[0] + int(g.nbytes)) for g in groups)
        yield from ([each] for each in found)

    def ahead(self, numbers: Iterable[int], reads_ahead: bool = True) -> FetchAhead | None:
        """Returns what fetches groups before they are read; None if no file is in a store.

        Args:
            numbers: The numbers of the groups, in the order in which they are read.
            reads_ahead: Whether to do so, rather than when a group is read.
        """
        if self._room is None:
            return None
        return FetchAhead(self._to_fetch(numbers), self._room if reads_ahead else 0)

    @functools.cached_property
    def _room(self) -> int | None:
        """How many bytes are fetched ahead; None if no file is in a store."""
        return next((file.store.read_ahead for file in self.files if file.store is not None), None)

    def _to_fetch(self, numbers: Iterable[int]) -> Iterator[Block]:
        found = ((number, self.groups[number]) for number in numbers)
        checked: set[str] = set()
        for _, run in itertools.groupby(found, _run):
            groups = [group for _, group in run]
            file = groups[0].file
            if file.store is not None:
                yield from file.blocks(self.ranges(groups), file.path not in checked)
                checked.add(file.path)

    def in_order(
        self, numbers: Iterable[int], ahead: FetchAhead | None = None
    ) -> Generator[tuple[int, Group]]:
        """Yields groups with their numbers, whose files are fetched while they are read.

        Args:
            numbers: The numbers of the groups.
            ahead: What fetches these groups. Default: a new one, as `ahead` returns it.
        """
        found = list(numbers)
        own = self.ahead(found) if ahead is None else None
        try:
            for number in found:
                group = self.groups[number]
                if group.file.store is not None:
                    group = group._replace(file=replace(group.file, ahead=ahead or own))
                yield number, group
        finally:
            if own is not None:
                own.close()

    def read(
        self, numbers: Iterable[int], rows: int, ahead: FetchAhead | None = None
    ) -> Generator[pa.RecordBatch]:
        """Yields the records of groups, in pieces of at most so many records; each group once.

        Args:
            numbers: The numbers of the groups.
            rows: The number of records.
            ahead: As in `in_order`.

        Raises:
            FormatError: If a file was replaced or written to.
        """
        with contextlib.closing(self.in_order(numbers, ahead)) as found:
            for _, run in itertools.groupby(found, _run):
                yield from self._of_file([group for _, group in run], rows)

    def _of_file(self, groups: Sequence[Group], rows: int) -> Iterator[pa.RecordBatch]:
        count = 0
        for batch in self._expect_unchanged(groups, rows):
            count += batch.num_rows
            yield from (batch.slice(at, rows) for at in range(0, batch.num_rows, rows))
        expected = sum(group.rows or 0 for group in groups)
        if count != expected and groups[0].rows is not None:
            received, fix = f"{count} records: the file was written to", "Make the dataset again."
            expected = f"{expected} records, as when the dataset was made"
            raise FormatError(_place(groups[0]), expected, received, fix)

    def _expect_unchanged(self, groups: Sequence[Group], rows: int) -> Iterator[pa.RecordBatch]:
        file = groups[0].file
        version = self._versions[file.path]
        file.expect_version(version)
        pieces = self.batches(groups, rows)
        for number in itertools.count():
            piece = next(pieces, None)
            now = file.version()
            # Once it is open, a new file at its path does not change it. A write to it does.
            is_same = not number or now[:1] == version[:1]
            if is_same and now not in (version, (None,)):
                raise replaced_error(file.path)
            if piece is None:
                return
            yield piece

    def with_fields(self, paths: Sequence[PathLike]) -> Source:
        """Returns the same records with some of their fields."""
        return self.pruned(pruned_schema(self.schema, chosen_columns(paths, self.schema)))

    def nulls_of(self, names: Sequence[str], nulls: NullsLike | None) -> Iterator[FoundNulls]:
        """Yields the nulls of all records in some fields, and reads only these.

        Args:
            names: The names of the fields.
            nulls: The argument `nulls`.
        """
        fields = [Path(name) for name in names]
        if not fields:
            return
        source = self if len(fields) == len(self.schema) else self.with_fields(fields)
        own = policies_of(nulls, fields)
        for batch in source.read(range(len(source.groups)), _ROWS):
            yield from nulls_in_table(pa.Table.from_batches([batch]), own)

    def place(self, number: int) -> str:
        """Returns the file of a group, and where it is in the file."""
        return _place(self.groups[number])

    def identity(self) -> object:
        """Returns what differs between sources, as data that JSON can represent.

        These are the names of the files, the sizes of their groups, and the schema.
        """
        groups = [[os.path.basename(g.file.inner), g.name, g.rows, g.nbytes] for g in self.groups]
        return [groups, self.schema.to_string(show_schema_metadata=False)]


def _run(numbered: tuple[int, Group]) -> tuple[str, int]:
    """Returns a key that is the same for groups that are read together."""
    number, group = numbered
    return group.file.path, number if group.at is None else -1


def _place(group: Group) -> str:
    return f"{group.file.path}, {group.name}"


def joined_group(groups: Sequence[Group]) -> list[Group]:
    """Returns the groups of a file as one, which is the whole file."""
    rows, nbytes = sum(each.rows or 0 for each in groups), sum(each.nbytes for each in groups)
    return [group._replace(rows=rows, nbytes=nbytes) for group in groups[:1]]


def auto_fields(schema: pa.Schema, nulls: NullsLike | None) -> list[str]:
    """Returns the names of the fields of records that have the policy "auto", at any place."""
    given = by_path(nulls)
    if is_auto(given.get(REST)):
        return schema.names
    autos = {place_of(path)[0][0] for path, each in given.items() if is_auto(each)}
    return [name for name in schema.names if name in autos]


def with_columns_of(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns a batch with the columns of a schema; nullable ones that it lacks are null.

    Raises:
        FieldError, DTypeError: As `WantedTable.table`.
    """
    if batch.schema.equals(schema):
        return batch
    wanted = WantedTable(schema=schema)
    table = wanted.table(wanted.with_missing(pa.Table.from_batches([batch])))
    return (table.combine_chunks().to_batches() or [empty_batch(schema)])[0]
