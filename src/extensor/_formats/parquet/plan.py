"""Which files and which of their row groups are read, and the schema of the records.

A plan is made of names and footers; it reads no records.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from extensor._arrow.arrow_type import inner_fields, is_string, is_string_view
from extensor._arrow.batches import common_schema, schema_text
from extensor._arrow.chosen_columns import leaf_paths, prefixes
from extensor._arrow.wanted_table import WantedTable
from extensor._files.files import File, FilePath, Version, file_at, files_at, look_up
from extensor._files.store import CONNECTIONS
from extensor._formats.parquet.filters import filter_expression
from extensor._formats.parquet.opened import check_count, open_parquet, readable, unit_of_int96
from extensor._formats.parquet.partitions import partition_fields, partition_of
from extensor._formats.parquet.unions import with_unions, without_unions
from extensor._path import Path
from extensor.errors import DTypeError, FieldError, StructureError

if TYPE_CHECKING:
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

# The suffixes of the files of a folder that are read.
SUFFIXES = (".parquet", ".parq", ".pq")

# The footers of the files of a plan are kept in memory up to so many bytes in all.
FOOTER_BYTES = 1 << 24

_Found = tuple[File, dict[str, str | None]]


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file.

    Attributes:
        number: Its number in the file, from 0.
        num_rows: The number of its records.
        num_bytes: The size of all its columns, before compression.
    """

    number: int
    num_rows: int
    num_bytes: int


@dataclass(frozen=True)
class PlannedFile:
    """A file to read.

    Attributes:
        file: Where it is.
        partition: The values in the names of its folders, as text; None for null.
        layout: The columns that it stores.
        row_groups: The row groups to read, in order.
        version: The identity, size and time of change of the file.
        footer: The footer, if it is kept: that of a store is.
        columns: The stored columns to read, by Parquet's paths; None for all.
    """

    file: File
    partition: dict[str, str | None]
    layout: _FileLayout
    row_groups: tuple[RowGroup, ...]
    version: Version
    footer: pq.FileMetaData | None = None
    columns: tuple[str, ...] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of all columns that it stores."""
        return self.layout.schema

    @property
    def share(self) -> float:
        """The share of its leaf columns that is read."""
        return 1.0 if self.columns is None else len(self.columns) / len(self.layout.leaves)

    def with_fields_of(self, schema: pa.Schema) -> PlannedFile:
        """Returns the file with the columns to read that hold the fields of a schema."""
        with readable(self.file.path):  # a name inside of a list may not be UTF-8
            return replace(self, columns=self.layout.stored_columns(schema))


class ParquetPlan:
    """The files and row groups that hold the wanted records, and their schema.

    Args:
        paths: A file, folder, glob pattern or URL, or several.
        wanted: The columns and the schema that the caller asked for.
        filters: The condition for records, as in `read_parquet`. It leaves out the files and row
            groups that cannot fulfil it by their folders' names and their statistics.
        row_groups: The numbers of the row groups to read, counted through all files. Default: all.
        keep_footers: Whether to keep the footers of local files, for reading them once soon.

    Raises:
        The errors of `read_parquet`, except those for nulls and types.

    Attributes:
        files: The files that have row groups to read, in order.
        schema: The Arrow schema of the records.
        whole_schema: The Arrow schema of all columns of the files and their folders' names. Where
            files differ, the wider of two types of numbers, or that of the first file that has it.
        filter: The condition for the records of the row groups, or None.
        dictionaries: The columns that are read as dictionaries, by the path of a file, the number
            of a row group, and the columns to read. Readers keep here what they found.
    """

    def __init__(
        self,
        paths: FilePath | Iterable[FilePath],
        wanted: WantedTable | None = None,
        filters: pc.Expression | Sequence[object] | None = None,
        row_groups: Iterable[int] | None = None,
        keep_footers: bool = False,
    ) -> None:
        self.wanted = wanted = WantedTable() if wanted is None else wanted
        self.dictionaries: dict[tuple[str, int, tuple[str, ...] | None], list[str]] = {}
        self.filter: pc.Expression | None = None
        found = _found(paths)
        footers = _Footers(FOOTER_BYTES if keep_footers else 0)
        first = footers.read(*found[0])
        named = partition_fields([partition for _, partition in found])
        # What a file stores counts more than the names of its folders.
        self._partition_fields = [f for f in named if f.name not in first.layout.names]
        kept = found
        if filters is not None:
            schema = without_unions(self._with_partition(first.schema))
            added = [field for field in wanted.schema or () if field.name not in schema.names]
            schema = pa.schema([*schema, *added])  # what the first file does not have is null there
            self.filter = filter_expression(filters, schema)
            if row_groups is None:  # they are counted through all files
                kept = _of_partitions(found, self._partition_fields, schema, self.filter)
        rest = iter(footers.read_all([each for each in kept if each is not found[0]]))
        files = [first if each is found[0] else next(rest) for each in kept]
        # Without any file there would be no schema. The others have the layout of one of these.
        known = list({f.layout: f for f in reversed(files or [first])}.values())[::-1]
        self.whole_schema: pa.Schema = self._with_partition(_merge([f.schema for f in known]))
        self.schema: pa.Schema = self._records_schema(known)
        numbers = _row_group_numbers(row_groups, sum(len(file.row_groups) for file in files))
        before, chosen = 0, list[PlannedFile]()
        for file in files:
            groups = file.row_groups
            if numbers is not None:
                groups = tuple(g for g in groups if before + g.number in numbers)
            before += len(file.row_groups)
            if self.filter is not None and groups:
                groups = self._filter(file, groups, self.filter)
            if groups or (numbers is None and self.filter is None):
                own = file if groups is file.row_groups else replace(file, row_groups=groups)
                chosen.append(own.with_fields_of(self.schema))
        self.files: tuple[PlannedFile, ...] = tuple(chosen)

    def pruned(self, schema: pa.Schema) -> ParquetPlan:
        """Returns the plan that reads the same records with the fields of a schema.

        Args:
            schema: The schema, which has some of the fields of the records.
        """
        plan = copy.copy(self)
        plan.schema, plan.wanted = schema, WantedTable(schema=schema)
        if self.wanted.schema is None:  # nothing is cast
            whole = [f.name for f in schema if f.equals(self.schema.field(f.name))]
            fields = leaf_paths(f for f in schema if f.name not in whole)
            plan.wanted = WantedTable([*map(Path, whole), *(Path(*leaf) for leaf in fields)])
        plan.files = tuple(file.with_fields_of(schema) for file in self.files)
        return plan

    def fragment(self, file: PlannedFile, groups: Sequence[RowGroup]) -> ds.ParquetFileFragment:
        """Returns row groups of a file as a part of a pyarrow dataset, to which filters apply."""
        import pyarrow.dataset as ds  # here, because it imports pandas

        is_local = file.file.store is None
        options: Any = ds.ParquetFragmentScanOptions(
            pre_buffer=not is_local, use_buffered_stream=is_local
        )
        fields = [f for f in self._partition_fields if f.name not in file.layout.names]
        read = ds.ParquetReadOptions(coerce_int96_timestamp_unit=file.layout.unit_of_int96)
        return ds.ParquetFileFormat(read, default_fragment_scan_options=options).make_fragment(
            file.file.inner,
            file.file.system,
            partition_expression=_guarantee(file.partition, fields),
            row_groups=[group.number for group in groups],
        )

    def _with_partition(self, schema: pa.Schema) -> pa.Schema:
        """Returns a schema with the columns of the folders' names that it does not have itself."""
        for field in self._partition_fields:
            if field.name not in schema.names:
                schema = schema.append(field)
        return schema

    def _records_schema(self, files: list[PlannedFile]) -> pa.Schema:
        """Returns the schema of the records.

        Raises:
            FieldError: If a column does not exist.
            StructureError: If the files differ in the columns that are asked for.
        """
        if self.wanted.schema is not None:
            self.wanted.expect_columns(self.whole_schema.names)
            self._check_schema(self.wanted.schema, files)
            return self.wanted.schema
        schemas: list[tuple[str, pa.Schema]] = []
        for path, stored in [(file.file.path, file.schema) for file in files]:
            try:
                schemas.append((path, self.wanted.pruned(self._with_partition(stored))))
            except FieldError as error:
                if not schemas:
                    raise
                first, schema = schemas[0]
                expected = f"the columns of {first}: {schema_text(schema)}"
                fix = "Give columns= of what is equal in all of them, or schema=."
                raise StructureError(path, expected, f"no column {error.path}", fix) from error
        return common_schema(schemas)

    def _check_schema(self, schema: pa.Schema, files: list[PlannedFile]) -> None:
        """Raises for a column of `schema=` that must not be null, and that a file lacks."""
        of_files = [frozenset(self._with_partition(file.schema).names) for file in files]
        for field in schema:
            for file, stored in () if field.nullable else zip(files, of_files, strict=True):
                if field.name not in stored:
                    expected = "a column in every file, as schema= has no nulls in it"
                    received = f"{file.file.path} without it"
                    fix = "Make the field nullable in schema=, and choose nulls=."
                    raise StructureError(Path(field.name), expected, received, fix)

    def _filter(
        self, file: PlannedFile, groups: tuple[RowGroup, ...], condition: pc.Expression
    ) -> tuple[RowGroup, ...]:
        with readable(file.file.path):
            fragment = self.fragment(file, groups)
            try:
                kept = fragment.subset(filter=condition, schema=without_unions(self.whole_schema))
            except pa.ArrowInvalid:  # the statistics do not fit, which the records may do
                return groups
            numbers = {group.id for group in kept.row_groups}
        return tuple(group for group in groups if group.number in numbers)


def _found(paths: FilePath | Iterable[FilePath]) -> list[_Found]:
    """Returns the files at paths, each with the values in the names of its folders.

    As in pyarrow, the folders below a folder count; all folders of a file that was found by a
    pattern, or is one of several; and none for the path of one file.
    """
    is_list = isinstance(paths, Iterable) and not isinstance(paths, (str, bytes))
    given = list(cast("Iterable[FilePath]", paths if is_list else [paths]))
    found: list[_Found] = []
    places = [file_at(path) for path in given]
    look_up(places)
    for at in places:
        kind = at.system.get_file_info(at.inner).type
        for file in files_at(at, SUFFIXES):
            inner = file.inner
            if kind == pafs.FileType.Directory:
                inner = inner.removeprefix(at.inner)
            is_one = kind == pafs.FileType.File and not is_list
            found.append((file, {} if is_one else partition_of(inner.replace("\\", "/"))))
    if not found:
        files_at(given)  # raises
    return found


class _Footers:
    """Reads the footers of files; what follows from their schemas, once for equal schemas.

    Args:
        room: How many bytes of footers are kept.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._layout: _FileLayout | None = None

    def read_all(self, found: Sequence[_Found]) -> list[PlannedFile]:
        """Returns files with all of their row groups; those of stores, many at a time."""
        if not found or found[0][0].store is None:
            return [self.read(*each) for each in found]
        files: list[PlannedFile] = []
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for i in range(0, len(found), CONNECTIONS):
                some = found[i : i + CONNECTIONS]
                for each, (version, source) in zip(some, pool.map(_open, some), strict=True):
                    files.append(self._plan(*each, version, source))
        return files

    def read(self, file: File, partition: dict[str, str | None]) -> PlannedFile:
        """Returns a file with all of its row groups.

        Raises:
            MissingFileError, DirectoryError, FormatError: As `open_parquet`.
        """
        version = file.version()
        with open_parquet(file) as source:
            return self._plan(file, partition, version, source)

    def _plan(
        self, file: File, partition: dict[str, str | None], version: Version, source: pq.ParquetFile
    ) -> PlannedFile:
        with readable(file.path):
            metadata = source.metadata
            groups: list[RowGroup] = []
            for i in range(metadata.num_row_groups):
                group = metadata.row_group(i)
                groups.append(RowGroup(i, group.num_rows, group.total_byte_size))
            check_count(file.path, metadata.num_rows, sum(group.num_rows for group in groups))
            if self._layout is None or not self._layout.is_of(source):
                self._layout = _FileLayout(source)
            self._room -= metadata.serialized_size
            kept = metadata if self._room >= 0 or file.store is not None else None
            return PlannedFile(file, partition, self._layout, tuple(groups), version, kept)


def _open(found: _Found) -> tuple[Version, pq.ParquetFile]:
    """Returns the version of a file of a store, and the file with its footer."""
    file = found[0]
    with contextlib.ExitStack() as stack:
        return file.version(), stack.enter_context(open_parquet(file))


def _of_partitions(
    found: list[_Found], fields: list[pa.Field], schema: pa.Schema, condition: pc.Expression
) -> list[_Found]:
    """Returns the files whose folders' names do not contradict a condition; reads no file."""
    if not fields:
        return found
    import pyarrow.dataset as ds

    format = ds.ParquetFileFormat()
    kept: list[_Found] = []
    for file, partition in found:
        guarantee = _guarantee(partition, fields)
        fragment = format.make_fragment(file.inner, file.system, guarantee)
        whole = ds.FileSystemDataset([fragment], schema, format, file.system)
        if next(iter(whole.get_fragments(condition)), None) is not None:
            kept.append((file, partition))
    return kept


def _guarantee(partition: dict[str, str | None], fields: list[pa.Field]) -> pc.Expression:
    """Returns what the names of folders say of all records in them."""
    import pyarrow.compute as pc

    conditions: list[Any] = [
        pc.field(field.name).is_null()
        if partition.get(field.name) is None
        else pc.field(field.name) == pa.scalar(partition[field.name]).cast(field.type)
        for field in fields
    ]
    return functools.reduce(operator.and_, conditions, pc.scalar(True))


def _merge(schemas: list[pa.Schema]) -> pa.Schema:
    if len(schemas) == 1:
        return schemas[0]
    fields: dict[str, pa.Field] = {}
    for schema in schemas:
        for field in schema:
            fields[field.name] = _wider(fields.get(field.name, field), field)
    # All of the first schema: two columns of one name are refused where they are read.
    names = frozenset(schemas[0].names)
    own = [field.with_type(fields[field.name].type) for field in schemas[0]]
    added = [field for name, field in fields.items() if name not in names]
    return pa.schema([*own, *added], metadata=schemas[0].metadata)


def _wider(one: pa.Field, other: pa.Field) -> pa.Field:
    """Returns a field with a type of numbers or times that holds the values of both, or the first.

    A condition compares the values of all files as this type.
    """
    if one.type == other.type or not all(pa.types.is_primitive(f.type) for f in (one, other)):
        return one
    try:
        found = pa.unify_schemas(
            [pa.schema([one]), pa.schema([other])], promote_options="permissive"
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return one
    return found.field(0)


def _row_group_numbers(row_groups: Iterable[int] | None, count: int) -> set[int] | None:
    if row_groups is None:
        return None
    try:
        numbers = [operator.index(number) for number in row_groups]
    except TypeError as error:
        fix = "Write row_groups=[0, 1]."
        raise DTypeError("row_groups", "a list of numbers", repr(row_groups)[:80], fix) from error
    wrong = [number for number in numbers if not 0 <= number < count]
    if wrong or len(set(numbers)) < len(numbers):
        expected = f"different numbers from 0 to {count - 1}: the files have {count} row groups"
        fix = "Row groups are counted through all files, in the order of the files."
        raise StructureError("row_groups", expected, str(wrong or numbers)[:80], fix)
    return set(numbers)


class _FileLayout:
    """The columns that a file stores. Files that store the same columns share one layout.

    Args:
        source: A file that is open for reading.

    Attributes:
        schema: The Arrow schema of all columns.
        names: The names of the columns of the schema.
        leaves: The path of each leaf column, as `leaf_paths` returns them.
        unit_of_int96: See the function.
    """

    def __init__(self, source: pq.ParquetFile) -> None:
        self._arrow: pa.Schema = source.schema_arrow
        self.schema: pa.Schema = with_unions(self._arrow)
        self.leaves = leaf_paths(self._arrow)  # raises for a name that is not UTF-8
        self.names = frozenset(self.schema.names)
        self.unit_of_int96 = unit_of_int96(source.metadata)
        # Parquet stores leaf columns only, in the order in which Arrow nests them.
        self._parquet = source.schema
        self._last: tuple[pa.Schema | None, tuple[str, ...] | None] = None, None

    def is_of(self, source: pq.ParquetFile) -> bool:
        """Returns whether an open file has this layout."""
        return source.schema.equals(self._parquet) and source.schema_arrow.equals(self._arrow)

    def stored_columns(self, schema: pa.Schema) -> tuple[str, ...] | None:
        """Returns the stored columns that hold the fields of a schema; None for all.

        The columns are by Parquet's paths.
        """
        if self._last[0] is not schema:
            self._last = schema, self._stored_columns(schema)
        return self._last[1]

    def _stored_columns(self, schema: pa.Schema) -> tuple[str, ...] | None:
        if schema is self.schema:
            return None
        wanted = leaf_paths(without_unions(schema))
        ends, inner = set(wanted), prefixes(wanted)

        def is_wanted(leaf: tuple[str, ...]) -> bool:
            return leaf in inner or any(leaf[:n] in ends for n in range(1, len(leaf)))

        heads = {path[0] for path in wanted}  # of many columns, most are not wanted
        chosen = {i for i, leaf in enumerate(self.leaves) if leaf[0] in heads and is_wanted(leaf)}
        # A field that is cast to a type of other inner fields is read as a whole.
        found, names = {self.leaves[i][0] for i in chosen}, set(schema.names)
        chosen |= {
            i for i, leaf in enumerate(self.leaves) if leaf[0] in names and leaf[0] not in found
        }
        if len(chosen) == len(self.leaves):
            return None
        return tuple(self._parquet.column(i).path for i in sorted(chosen))

    @functools.cached_property
    def strings(self) -> dict[int, str]:
        """The number and Parquet's path of each leaf column that Arrow reads as a dictionary too.

        It does so for strings with offsets; there are none here where it may not be certain.
        """
        are_strings = [is_leaf for field in self._arrow for is_leaf in _are_strings(field.type)]
        if self.schema is not self._arrow or len(are_strings) != len(self.leaves):
            return {}  # unions are read from plain strings
        return {i: self._parquet.column(i).path for i, found in enumerate(are_strings) if found}


def _are_strings(arrow: pa.DataType) -> list[bool]:
    """Returns whether the leaf columns of a type are strings with offsets."""
    inner = inner_fields(arrow)
    if inner:
        return [is_leaf for field in inner for is_leaf in _are_strings(field.type)]
    return [is_string(arrow) and not is_string_view(arrow)]
