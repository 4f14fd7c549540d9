"""The arguments that all functions share which read records from a format."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.buffers import check_start
from extensor._arrow.cast import cast_column
from extensor._arrow.chosen_columns import chosen_columns, leaf_paths, pruned_schema
from extensor._arrow.found_nulls import not_in_spec
from extensor._arrow.null_argument import has_auto, masking, with_masks_in_auto
from extensor._arrow.null_policy import policies_of
from extensor._arrow.nulls import nulls_of
from extensor._arrow.read import OwnedTable, nulls_in_table, read_records, table_of
from extensor._arrow.schema import masks_of_spec, schema_from_spec, spec_from_schema
from extensor._arrow.times_of_text import table_with_times
from extensor._arrow.write import to_arrow
from extensor._path import Path, PathLike
from extensor._struct.cast_request import CastRequest
from extensor._struct.common_shape import checked_splits_dtype
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.difference import differences
from extensor._struct.masked import is_nullable
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._typing import ArrowData, DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError, FieldError, NullError


class WantedTable:
    """The arguments `columns`, `schema`, `nulls` and `row_splits_dtype`, and what they ask for.

    Args:
        columns: Paths of the fields to read; None for all.
        schema: The spec of a StructuredTensor of rank 1, a pyarrow Schema, or None for the schema
            of the source. A spec describes any number of records, whatever its own number is.
        nulls: The policies for nulls. None is "error", or, with a spec, the masks of the spec. With
            a spec, "auto" is the masks of the spec too.
        row_splits_dtype: The dtype of row splits; None for tf.int64, or, with a spec, its own.

    Raises:
        DTypeError: If `schema` is neither a spec nor a Schema, or `columns` is no list of paths
            (also a TypeError).
        FieldError: If a column is not in the schema (also a KeyError).
        StructureError: If `columns` is empty, or the rank of the spec is not 1 (also a ValueError).
    """

    has_times_of_numpy = False
    """Whether the source has NumPy's times only, without zones and without times of day."""

    def __init__(
        self,
        columns: Iterable[PathLike] | None = None,
        schema: SchemaLike | None = None,
        nulls: NullsLike | None = None,
        row_splits_dtype: DTypeLike | None = None,
    ) -> None:
        # An iterator has its items once.
        if isinstance(columns, Iterable) and not isinstance(columns, (str, bytes, Path)):
            columns = list(columns)
        self.columns = columns
        self._spec = schema if isinstance(schema, StructuredTensorSpec) else None
        if self._spec is not None and self._spec.rank == 1:
            # That of other records, such as xt.spec_of(records), has their number.
            self._spec = self._spec._any_length()
        if self._spec is not None:
            schema = schema_from_spec(self._spec)
            nulls = self._nulls_of_spec(self._spec, schema, nulls)
            if row_splits_dtype is None:
                row_splits_dtype = next(iter(self._spec._row_splits_dtypes()), None)
        elif schema is not None and not isinstance(schema, pa.Schema):
            expected = "the spec of a StructuredTensor, or a pyarrow Schema"
            fix = "Give xt.spec_of(records), or pa.schema({...})."
            raise DTypeError("schema", expected, repr(schema)[:80], fix)
        self.nulls: Any = "error" if nulls is None else nulls
        self.row_splits_dtype = checked_splits_dtype(row_splits_dtype or tf.int64)
        self.schema: pa.Schema | None = None if schema is None else self.pruned(schema)
        """The Arrow schema of the records, or None if it follows from the source."""

    def _nulls_of_spec(
        self, spec: StructuredTensorSpec, schema: pa.Schema, nulls: NullsLike | None
    ) -> NullsLike:
        """Returns the policies for nulls; the spec says what None and "auto" mask."""
        if nulls is not None and not has_auto(nulls):
            return nulls
        masks: Any = masks_of_spec(spec)
        if self.columns is not None:
            masks = policies_of(masks, [str(Path(*p)) for p in leaf_paths(self.pruned(schema))])
        return masks if nulls is None else with_masks_in_auto(nulls, masks)

    def names_in(self, names: list[str]) -> list[str]:
        """Returns the names of the columns to read of a source; others may be of any type."""
        if self.schema is not None:
            return [name for name in names if name in self.schema.names]
        if not isinstance(self.columns, list):
            return names
        # A string equal to a column's name means that column, even if it contains a dot.
        chosen = {
            column if isinstance(column, str) and column in names else (*Path.of(column), "")[0]
            for column in self.columns
        }
        # Without one of them, the error of the reader lists all columns.
        return [name for name in names if name in chosen] if chosen <= set(names) else names

    def without_auto(self, nullable: Iterable[str] | None = None) -> WantedTable:
        """Returns these arguments with "mask" in place of "auto", to parse records by a spec.

        `settled` takes away the masks that are not needed.

        Args:
            nullable: The paths that may be null in the format, as `nulls` names them. Default: all.
        """
        if not has_auto(self.nulls):
            return self
        wanted, nulls = copy.copy(self), self.nulls
        wanted.nulls = masking(nulls) if nullable is None else with_masks_in_auto(nulls, nullable)
        return wanted

    def settle(self, records: StructuredTensor) -> StructuredTensor:
        """Returns the records of the spec of `without_auto` with the masks that "auto" leaves."""
        if not has_auto(self.nulls):
            return records
        return self.records(pa.Table.from_batches([to_arrow(records, self.schema)]))

    def pruned(self, schema: pa.Schema) -> pa.Schema:
        """Returns the schema of the chosen columns of a source.

        Raises:
            FieldError, StructureError, DTypeError: If there are no such columns.
        """
        if self.columns is None:
            return schema
        return pruned_schema(schema, chosen_columns(self.columns, schema))

    def spec(self, source: pa.Schema | None = None) -> DenseStructuredTensorSpec:
        """Returns the spec of the records.

        Args:
            source: The schema of the source; it counts if the caller gave none.
        """
        schema = self.schema if self.schema is not None else self.pruned(source)
        return spec_from_schema(schema, None, self.row_splits_dtype, self.nulls)

    @property
    def records_spec(self) -> StructuredTensorSpec:
        """The spec of what `records` returns, if the caller gave a spec or a schema."""
        return self.spec() if self._spec is None or self.columns is not None else self._spec

    def table(self, table: pa.Table, validate: bool = False) -> pa.Table:
        """Returns the wanted columns of a table, cast to the wanted types.

        Args:
            table: The table.
            validate: Whether to check the columns that are cast, because a cast reads by their
                offsets. The other columns are checked when their records are read.

        Raises:
            FieldError: If a column does not exist (also a KeyError).
            DTypeError: If a column does not convert without loss (also a TypeError).
            pa.ArrowInvalid, StructureError: If `validate` finds a wanted column that is damaged.
        """
        schema = self.schema if self.schema is not None else self.pruned(table.schema)
        if schema.equals(table.schema):
            return table
        columns = [_cast(table, field, validate, not self.has_times_of_numpy) for field in schema]
        # `columns` may be empty, so the number of records is given.
        return pa.Table.from_arrays(columns, schema=schema) if columns else table.select([])

    def with_missing(self, table: pa.Table) -> pa.Table:
        """Returns a table with the columns of `schema=` that it lacks and that may be null."""
        for field in self.schema or ():
            if field.nullable and field.name not in table.schema.names:
                table = table.append_column(field, nulls_of(field.type, table.num_rows))
        return table

    def expect_columns(self, names: Collection[str]) -> None:
        """Raises for a column of `schema=` that no part of the source has.

        Args:
            names: The names of the columns of all parts.

        Raises:
            FieldError: If there is one (also a KeyError).
        """
        for field in self.schema or ():
            if field.name not in names:
                expected = "one column of this name"
                received = f"the columns {', '.join(list(names)[:20])}"
                raise FieldError(Path(field.name), expected, received, "Correct schema=.")

    def records(self, table: pa.Table, schema: pa.Schema | None = None) -> StructuredTensor:
        """Returns the wanted records of a table.

        Args:
            table: The table.
            schema: The schema of the wanted records, if strings of the table may be in
                dictionaries.

        Raises:
            FieldError, DTypeError: As `table`.
            NullError, UnsupportedTypeError, StructureError: As `from_arrow`.
        """
        return self._records(self.table(table), schema)

    def records_of_parts(
        self, parts: list[pa.Table], schema: pa.Schema | None = None
    ) -> StructuredTensor:
        """Returns the wanted records of a list of tables, with less memory than `records`.

        Args:
            parts: The tables. The list is empty afterwards, so that their memory can be freed.
            schema: As in `records`.

        Raises:
            As `records`.
        """
        table = self.table(pa.concat_tables(parts))
        parts.clear()
        owned = OwnedTable(table)
        del table
        return self._records(owned, schema)

    def _records(self, table: pa.Table | OwnedTable, schema: pa.Schema | None) -> StructuredTensor:
        try:
            records = read_records(table, self.row_splits_dtype, self.nulls, schema or table.schema)
        except NullError as error:
            if self._spec is None:
                raise
            raise not_in_spec(error, self.nulls, nulls_in_table(table, self.nulls)) from None
        return self.cast(records)

    def cast(self, records: StructuredTensor) -> StructuredTensor:
        """Returns records of the wanted schema as records of the spec that the caller gave."""
        if self._spec is None or self.columns is not None:
            return records
        return self._spec.cast(records)


def records_of_spec(
    data: ArrowData, spec: StructuredTensorSpec, request: CastRequest
) -> StructuredTensor:
    """Returns a table or record batch as records of a spec, by a cast without loss.

    Args:
        data: The table.
        spec: The spec. A column that may be null may be missing.
        request: What the caller of `cast` asks for.

    Raises:
        FieldError, DTypeError, NullError: If the table does not have the fields of the spec.
    """
    table = table_of(data, "cast")
    wanted = WantedTable(None, spec)
    if request.dropped is not None:
        have = spec_from_schema(table.schema, nulls="mask")
        found = differences(spec, have, Path(), False)
        more = [each for each in found if each.is_extra and not request.drops(each.path)]
        if more:
            fix = 'Leave it out of the table, or give extra="ignore".'
            raise FieldError(more[0].path, "no such field", more[0].received, fix)
    assert wanted.schema is not None
    whole = table_with_times(table, wanted.schema) if request.reads_times else table
    for field in wanted.schema:
        absent = field.name not in table.schema.names and field.name in spec.field_names()
        if absent and is_nullable(spec._record.field_specs[field.name], 1):
            whole = whole.append_column(field, nulls_of(field.type, table.num_rows))
    try:
        return wanted.records(whole)
    except DTypeError:  # Arrow refuses types of which not all values fit
        return spec._cast_as(whole.to_pylist(), request)


def _cast(table: pa.Table, field: pa.Field, validate: bool, is_typed: bool) -> pa.ChunkedArray:
    """Returns a column of a table as the type of a field; see `WantedTable.table`."""
    found = table.schema.get_all_field_indices(field.name)
    if len(found) != 1:
        expected = "one column of this name"
        received = f"the columns {', '.join(table.schema.names[:20])}"
        if found:
            received = f"{len(found)} columns of this name"
        fix = "Correct schema=." if not found else "Rename the columns in the source."
        raise FieldError(Path(field.name), expected, received, fix)
    column = table.column(found[0])
    is_cast = not column.type.equals(field.type)
    if validate:
        _validate(table, found[0], full=is_cast)
    if not is_cast:
        return column
    fix = "Correct schema=, or convert the column in the source."
    return cast_column(column, field.type, Path(field.name), fix, is_typed)


def _validate(table: pa.Table, number: int, full: bool) -> None:
    """Raises `pa.ArrowInvalid` if a column of a table is damaged, or has not its length."""
    path = Path(table.schema.names[number])
    for chunk in table.column(number).chunks:
        check_start(chunk, path)
    try:
        table.select([number]).validate(full=full)
    except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
        reason = str(error).removeprefix("Column 0: ")
        raise pa.ArrowInvalid(f"column {path}: {reason}") from error
