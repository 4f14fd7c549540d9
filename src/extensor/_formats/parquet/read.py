"""Reading of Parquet files as StructuredTensors."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from extensor._arrow.arrow_type import contains_type
from extensor._arrow.nulls import empty_batch
from extensor._arrow.wanted_table import WantedTable
from extensor._files.files import FilePath, fetched_ahead
from extensor._files.part_cache import Cache
from extensor._files.ranges import Range
from extensor._files.store import READ_AHEAD, reading_as, reading_of
from extensor._formats.parquet.filters import filter_table, wrong_filters
from extensor._formats.parquet.opened import (
    check_count,
    dictionary_columns,
    open_row_groups,
    parquet_file,
    ranges_of_row_groups,
    readable,
)
from extensor._formats.parquet.partitions import partition_column
from extensor._formats.parquet.plan import ParquetPlan, PlannedFile, RowGroup
from extensor._formats.parquet.smallest import smallest_columns
from extensor._formats.parquet.unions import table_with_unions, without_unions
from extensor._path import Path, PathLike
from extensor._pruning.fields import FieldsUsed
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError, FormatError

if TYPE_CHECKING:
    import pyarrow.compute as pc

# Bytes: for less data, threads cost more time than they save.
_LARGE = 1 << 20


def read_parquet(
    paths: FilePath | Iterable[FilePath],
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    filters: pc.Expression | list[Any] | None = None,
    row_groups: Iterable[int] | None = None,
    *,
    read_ahead: int = READ_AHEAD,
    cache: FilePath | Cache | None = None,
) -> StructuredTensor:
    """Returns the records of Parquet files as a StructuredTensor.

    Args:
        paths: A file, folder, glob pattern or URL, or several; their records are concatenated. Of a
            folder, the files below it whose names end in `.parquet`, `.parq` or `.pq` are read,
            sorted by path. The values in the names of folders `key=value` become columns at the
            end, as in pyarrow: those below a folder that is given, and all those of a pattern or a
            list of files.
        columns: Paths of the fields to read, such as `["title", "ingredients.amount"]`. Other
            fields are not decoded, and may differ between the files. Fields come in this order.
            `xt.data.fields_used` returns those that a model uses. Default: all.
        schema: The spec of a StructuredTensor, or a pyarrow Schema, to which the columns are cast
            without loss. A nullable column that some of the files do not have is null there.
            Default: the schema of the files, which must agree.
        nulls: What becomes of nulls: `"error"` (the default), `"mask"` for a MaskedTensor,
            `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by path. More in
            `xt.from_arrow`.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        filters: The condition for records, as pyarrow takes it: a list of tuples
            `(path, operator, value)` that must all hold, a list of such lists of which one must
            hold, or an Expression of `pyarrow.compute`. The operators are `=`, `!=`, `<`, `<=`,
            `>`, `>=`, `in` and `not in`. Files and row groups that cannot have such records by
            their folders' names and their statistics are not read.
        row_groups: The numbers of the row groups to read, counted through all files in order.
            Default: all.
        read_ahead: How many bytes of files that are not local are fetched before they are read, or
            the next row group or 8 MB if these are larger; 0 for none. Default: 12 MB.
        cache: A folder of the disk in which the parts of files that are not local are kept that
            were read, or an `xt.data.Cache` with its size. Default: none.

    Returns:
        A StructuredTensor of shape `[number of records]`.

    Raises:
        MissingFileError: If a file does not exist (also a FileNotFoundError).
        FormatError: If a file is not Parquet, or is truncated (also a ValueError).
        FieldError: If a column does not exist (also a KeyError).
        StructureError: If no file or no column is given, files differ in the columns to read, or a
            row group does not exist (also a ValueError).
        DTypeError: If `paths` or `columns` is not a list of paths, or a value does not fit `schema`
            or `filters` (also a TypeError).
        NullError, UnsupportedTypeError: As in `from_arrow`.

    >>> import extensor as xt
    >>> path = "recipes.parquet"
    >>> xt.write_parquet(xt.DenseStructuredTensor([2], {"title": ["a", "b"], "x": [1, 2]}), path)
    >>> xt.read_parquet(path, columns=["title"], filters=[("x", ">", 1)])
    <StructuredTensor shape=(1,) {title: string} [{title: 'b'}]>
    """
    with reading_as(reading_of(read_ahead, cache)):
        if isinstance(columns, FieldsUsed):
            columns = smallest_columns(ParquetPlan(paths), columns)
        wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
        plan = ParquetPlan(paths, wanted, filters, row_groups, keep_footers=True)
    files = [each.file for each in plan.files]
    with fetched_ahead(files, map(_ranges, plan.files)) as opened:
        pairs = zip(plan.files, opened, strict=True)
        planned = [p if p.file is file else replace(p, file=file) for p, file in pairs]
        tables = [table_of(plan, each, each.row_groups) for each in planned]
    tables = tables or [pa.Table.from_batches([empty_batch(plan.schema)])]
    if any(table.schema != tables[0].schema for table in tables):
        tables = [table.cast(plan.schema) for table in tables]  # nullable in some files only
    return wanted.records_of_parts(tables, plan.schema)


def _ranges(file: PlannedFile) -> Iterator[Sequence[Range]]:
    """Yields where the row groups to read of a file of a store are."""
    if file.footer is not None:
        numbers = [group.number for group in file.row_groups]
        yield from ranges_of_row_groups(file.file, file.footer, numbers, file.columns)


def table_of(plan: ParquetPlan, file: PlannedFile, groups: Sequence[RowGroup]) -> pa.Table:
    """Returns the wanted records of row groups of a file; strings may be in dictionaries.

    Args:
        plan: The plan.
        file: A file of the plan.
        groups: Some of the row groups to read.

    Raises:
        FormatError: If the file is damaged, or changed since it was planned.
        DTypeError: If a column does not convert to the wanted schema.
    """
    is_one = len(plan.files) == len(groups) == 1  # Arrow cannot join the dictionaries of several
    names = _dictionaries(plan, file, groups[0]) if is_one else []
    with _reopen(file, groups, names) as source, _readable_groups(file, source, groups):
        table = _read(file, source, groups)
    check_count(file.file.path, sum(group.num_rows for group in groups), table.num_rows)
    if plan.filter is not None:
        table = filter_table(table, _mask(plan, file, groups))
    return _select(plan, file, table)


def counts_of(plan: ParquetPlan, file: PlannedFile) -> list[int]:
    """Returns how many records of each row group to read fulfil the filter of a plan."""
    mask, start, counts = _mask(plan, file, file.row_groups), 0, list[int]()
    for group in file.row_groups:
        found = mask.slice(start, group.num_rows)
        counts.append(sum(chunk.true_count for chunk in found.chunks))
        start += group.num_rows
    return counts


def batches_of(
    plan: ParquetPlan,
    file: PlannedFile,
    groups: Sequence[RowGroup],
    rows: int,
    may_encode: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yields the wanted records of row groups of a file in pieces, in order.

    Args:
        plan: The plan.
        file: A file of the plan.
        groups: Some of the row groups to read.
        rows: The maximal number of records in a piece.
        may_encode: Whether strings may be in dictionaries, others in each piece.

    Raises:
        FormatError: If the file is damaged, or changed since it was planned.
        DTypeError: If a column does not convert to the wanted schema.
    """
    if not may_encode or file.footer is None or file.file.store is not None:
        with _reopen(file, groups) as source:
            yield from _batches(plan, file, source, groups, rows)
        return
    with _open(file) as stream:
        for group in groups:
            names = _dictionaries(plan, file, group)
            with parquet_file(file.file, stream, file.footer, names) as source:
                yield from _batches(plan, file, source, [group], rows, bool(names))


def _batches(
    plan: ParquetPlan,
    file: PlannedFile,
    source: pq.ParquetFile,
    groups: Sequence[RowGroup],
    rows: int,
    is_encoded: bool = False,
) -> Iterator[pa.RecordBatch]:
    mask = _mask(plan, file, groups) if plan.filter is not None else None
    pieces, count = _pieces(file, source, groups, rows), 0
    while True:
        with _readable_groups(file, source, groups):
            piece = next(pieces, None)
        if piece is None:
            break
        table = pa.Table.from_batches([piece])
        if mask is not None:
            table = filter_table(table, mask.slice(count, piece.num_rows))
        count += piece.num_rows
        table = _select(plan, file, table)
        if table.schema != plan.schema and not is_encoded:
            table = table.cast(plan.schema)
        yield from table.combine_chunks().to_batches()
    check_count(file.file.path, sum(group.num_rows for group in groups), count)


def _dictionaries(plan: ParquetPlan, file: PlannedFile, group: RowGroup) -> list[str]:
    """Returns the columns of a row group to read as dictionaries, which takes half of the time.

    There are none where Arrow would have to cast the dictionaries, and none of a store.
    """
    columns, count = file.columns, len(file.layout.leaves)
    share = 1 if columns is None else len(columns) / count  # of many columns, few are wanted
    is_large = group.num_bytes * share > _LARGE
    if not is_large or plan.filter is not None or plan.wanted.schema is not None:
        return []
    strings = file.layout.strings
    if columns is not None:
        strings = {i: path for i, path in strings.items() if path in columns}
    if file.footer is None or file.file.store is not None or not strings:
        return []
    known, place = plan.dictionaries, (file.file.path, group.number, columns)
    if place not in known:
        known[place] = dictionary_columns(file.file, file.footer, group.number, strings)
    return known[place]


@contextlib.contextmanager
def _reopen(
    file: PlannedFile, groups: Sequence[RowGroup], dictionaries: Sequence[str] = ()
) -> Generator[pq.ParquetFile]:
    """Yields a file of a plan that is open for reading row groups.

    Raises:
        FormatError: If the file changed since it was planned.
    """
    if file.file.store is not None and file.footer is not None:
        numbers = [group.number for group in groups]
        with open_row_groups(file.file, file.footer, numbers, file.columns) as source:
            yield source
        return
    with (
        _open(file) as stream,
        parquet_file(file.file, stream, file.footer, dictionaries) as source,
    ):
        yield source


@contextlib.contextmanager
def _open(file: PlannedFile) -> Generator[pa.NativeFile]:
    """Yields a local file of a plan, open for reading; raises if it changed since then."""
    with file.file.open() as stream:
        file.file.expect_version(file.version)
        yield stream


@contextlib.contextmanager
def _readable_groups(
    file: PlannedFile, source: pq.ParquetFile, groups: Sequence[RowGroup]
) -> Generator[None]:
    """Replaces pyarrow's errors by those of `readable`, which name the row group too."""
    try:
        with readable(file.file.path):
            yield
    except FormatError as error:
        if not isinstance(error.__cause__, (pa.ArrowException, OSError)):
            raise  # the file was replaced
        for group in groups:
            try:
                source.read_row_group(group.number, columns=file.columns)
            except Exception:
                path = f"{error.path}, row group {group.number}"
                expected = "a complete Parquet file"
                fix = "Write the file again, or read the others with row_groups=."
                if "Expected all lists to be of size" in str(error.__cause__):
                    expected = "no null lists of a fixed size, which pyarrow before 26 cannot read"
                    fix = "pip install 'pyarrow>=26', or write lists of any size."
                raise FormatError(path, expected, error.received, fix) from error.__cause__
        raise


def _options(file: PlannedFile, groups: Sequence[RowGroup]) -> dict[str, Any]:
    """Returns the options of pyarrow to read row groups of a file."""
    is_large = sum(group.num_bytes for group in groups) > _LARGE
    return {"columns": file.columns, "use_threads": is_large}


def _read(file: PlannedFile, source: pq.ParquetFile, groups: Sequence[RowGroup]) -> pa.Table:
    options, numbers = _options(file, groups), [group.number for group in groups]
    # Of several row groups, pyarrow reads one column after another; remote files fetch row groups.
    if file.file.store is None or not groups:
        with contextlib.suppress(pa.ArrowNotImplementedError):
            return source.read_row_groups(numbers, **options)
    # Nor can Arrow join the dictionaries of several row groups inside lists and structs.
    tables = [source.read_row_group(i, **options) for i in numbers]
    # Not concat_tables, which loses the number of records without fields.
    pieces = [batch for table in tables for batch in table.to_batches()]
    return pa.Table.from_batches(pieces, tables[0].schema)


def _pieces(
    file: PlannedFile, source: pq.ParquetFile, groups: Sequence[RowGroup], rows: int
) -> Iterator[pa.RecordBatch]:
    options, runs = _options(file, groups), [[group.number for group in groups]]
    has_dictionaries = any(contains_type(f.type, pa.types.is_dictionary) for f in file.schema)
    if has_dictionaries or file.file.store is not None:
        runs = [[group.number] for group in groups]  # as in `_read`
    for numbers in runs:
        yield from source.iter_batches(rows, row_groups=numbers, **options)


def _mask(plan: ParquetPlan, file: PlannedFile, groups: Sequence[RowGroup]) -> pa.ChunkedArray:
    """Returns which records of row groups fulfil the filter, by reading only its columns."""
    import pyarrow.dataset as ds

    fragment = plan.fragment(file, groups)

    def scanner(columns: Any = None) -> ds.Scanner:
        schema = without_unions(plan.whole_schema)
        return ds.Scanner.from_fragment(fragment, schema=schema, columns=columns)

    with readable(file.file.path):
        try:
            mask = scanner({"": plan.filter}).to_table().column(0)
        except pa.ArrowInvalid as error:
            for _ in scanner().to_batches():
                pass  # raises if it is the file that is wrong
            raise wrong_filters(plan.filter, error) from error
    check_count(file.file.path, sum(group.num_rows for group in groups), len(mask))
    # pyarrow reads row groups in the order of a set of their numbers.
    rows, parts, start = {group.number: group.num_rows for group in groups}, dict[int, Any](), 0
    for number in (group.id for group in fragment.row_groups):
        parts[number] = mask.slice(start, rows[number])
        start += rows[number]
    chunks = [chunk for group in groups for chunk in parts[group.number].chunks]
    return pa.chunked_array(chunks, pa.bool_())


def _select(plan: ParquetPlan, file: PlannedFile, table: pa.Table) -> pa.Table:
    """Returns the columns of the plan, of the stored columns of a file."""
    table = table_with_unions(table, file.file.path)
    if table.schema.equals(plan.schema):
        return table
    for field in plan.schema:
        if field.name not in file.layout.names:
            table = table.append_column(field, _missing_column(file, field, table.num_rows))
    # pyarrow selects columns by dotted paths. For a name that contains a dot, it may read other
    # columns too.
    table = plan.wanted.table(table)
    names = plan.schema.names
    return table if table.schema.names == names else table.select(names)


def _missing_column(file: PlannedFile, field: pa.Field, count: int) -> pa.Array:
    """Returns the column of a field that a file does not store."""
    text = file.partition.get(field.name)
    try:
        return partition_column(text, field.type, count)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        expected = f"values of Arrow type {field.type}, as schema= says"
        received = f"{text!r} in the name of a folder of {file.file.path}"
        raise DTypeError(Path(field.name), expected, received, "Correct schema=.") from error
