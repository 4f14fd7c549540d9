"""Parquet files: their row groups are the groups."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from extensor._arrow.found_nulls import FoundNulls
from extensor._arrow.reader import records_reader
from extensor._arrow.wanted_table import WantedTable
from extensor._files.files import FilePath
from extensor._files.ranges import Range
from extensor._formats.parquet.null_counts import nulls_of_footers
from extensor._formats.parquet.opened import ranges_of_row_groups
from extensor._formats.parquet.plan import ParquetPlan
from extensor._formats.parquet.read import batches_of, counts_of
from extensor._formats.parquet.smallest import smallest_columns
from extensor._pruning.fields import FieldsUsed
from extensor._streams.source import Group, Source, auto_fields
from extensor._typing import NullsLike

if TYPE_CHECKING:
    import pyarrow.compute as pc

    Filters = pc.Expression | Sequence[object]


class ParquetSource(Source):
    """The records of Parquet files.

    Args:
        paths: The files.
        wanted: The arguments `columns` and `schema`.
        filters: The condition for records, as in `read_parquet`. Its columns are read once to count
            the records.
    """

    def __init__(
        self,
        paths: FilePath | Iterable[FilePath],
        wanted: WantedTable,
        filters: Filters | None = None,
    ) -> None:
        self._is_encoded = False
        plan = ParquetPlan(paths, wanted, filters, keep_footers=True)
        files = {each.file.path: each.version for each in plan.files}
        super().__init__([each.file for each in plan.files], files)
        self._counts = (
            None if plan.filter is None else [counts_of(plan, each) for each in plan.files]
        )
        self._set_plan(plan)

    def _set_plan(self, plan: ParquetPlan) -> None:
        self._plan = plan
        self.schema = plan.schema
        self.groups = []
        for i, each in enumerate(plan.files):
            for j, group in enumerate(each.row_groups):
                rows = group.num_rows if self._counts is None else self._counts[i][j]
                # The footer counts the bytes of all columns, and of all records.
                nbytes = group.num_bytes * each.share * rows / max(1, group.num_rows)
                name = f"row group {group.number}"
                if rows or self._counts is None:
                    self.groups.append(Group(each.file, name, rows, nbytes, (each, group)))

    def identity(self) -> object:
        """Returns what differs between sources; see `Source`."""
        own, condition = super().identity(), self._plan.filter
        return own if condition is None else [own, str(condition)]

    def encoded(self) -> Source:
        """Returns the same records, whose strings may be in dictionaries; see `Source`."""
        found = copy.copy(self)
        found._is_encoded = True
        return found

    def pruned(self, schema: pa.Schema) -> Source:
        """Returns the same records with some of their fields; see `Source`."""
        found = copy.copy(self)
        found._set_plan(self._plan.pruned(schema))
        return found

    def batches(self, groups: Sequence[Group], rows: int) -> Iterator[pa.RecordBatch]:
        """Yields the records of row groups of a file; see `Source`."""
        row_groups = [group.at[1] for group in groups]
        file = replace(groups[0].at[0], file=groups[0].file)
        # Of smaller row groups, those of one table would have to be joined.
        may_encode = self._is_encoded and (
            len(self.groups) == 1 or min(each.num_rows for each in row_groups) >= 2 * rows
        )
        return batches_of(self._plan, file, row_groups, rows, may_encode)

    def ranges(self, groups: Sequence[Group]) -> Iterator[Sequence[Range]]:
        """Yields where the columns of each row group are; see `Source`."""
        file = groups[0].at[0]
        for group in groups:
            numbers = [group.at[1].number]
            yield from ranges_of_row_groups(file.file, file.footer, numbers, file.columns)

    def smallest(self, fields: FieldsUsed) -> Sequence[str]:
        """Returns the paths to read for fields; see `Source`."""
        # With a schema, the first file may lack some of the fields.
        if self._plan.wanted.schema is not None:
            return list(fields)
        return smallest_columns(self._plan, fields)

    def nulls(self, nulls: NullsLike | None) -> Iterator[FoundNulls]:
        """Yields the nulls of fields; reads only those of which the footers do not tell."""
        autos = auto_fields(self.schema, nulls)
        if self._plan.filter is not None:  # the footers tell of all records
            records_reader(self.schema, nulls)  # raises for policies that fit no field
            yield from self.nulls_of(autos, nulls)
            return
        found, unknown = nulls_of_footers(self._plan, nulls)
        yield from found
        yield from self.nulls_of([name for name in unknown if name in autos], nulls)
