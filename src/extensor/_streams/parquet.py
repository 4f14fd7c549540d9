"""Parquet files: their row groups are the groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from extensor._arrow.found_nulls import FoundNulls
from extensor._arrow.wanted_table import WantedTable
from extensor._files.files import FilePath
from extensor._formats.parquet.null_counts import nulls_of_footers
from extensor._formats.parquet.plan import ParquetPlan
from extensor._formats.parquet.read import batches_of
from extensor._formats.parquet.smallest import smallest_columns
from extensor._pruning.fields import FieldsUsed
from extensor._streams.source import Group, Source, auto_fields
from extensor._typing import NullsLike


class ParquetSource(Source):
    """The records of Parquet files.

    Args:
        paths: The files.
        wanted: The arguments `columns` and `schema`.
        plan: What is read; by default all row groups of the files.
    """

    def __init__(
        self,
        paths: FilePath | Iterable[FilePath],
        wanted: WantedTable,
        plan: ParquetPlan | None = None,
    ) -> None:
        plan = plan or ParquetPlan(paths, wanted)
        files = {each.file.path: each.version for each in plan.files}
        super().__init__([each.file for each in plan.files], files)
        self._plan = plan
        self.schema = plan.schema
        self.groups = [
            # The footer counts the bytes of all columns.
            Group(
                each.file,
                f"row group {group.number}",
                group.num_rows,
                group.num_bytes * each.share,
                (each, group),
            )
            for each in plan.files
            for group in each.row_groups
        ]

    def pruned(self, schema: pa.Schema) -> Source:
        """Returns the same records with some of their fields; see `Source`."""
        return ParquetSource((), self._plan.wanted, self._plan.pruned(schema))

    def batches(self, groups: Sequence[Group], rows: int) -> Iterator[pa.RecordBatch]:
        """Yields the records of row groups of a file; see `Source`."""
        row_groups = [group.at[1] for group in groups]
        return batches_of(self._plan, groups[0].at[0], row_groups, rows)

    def smallest(self, fields: FieldsUsed) -> Sequence[str]:
        """Returns the paths to read for fields; see `Source`."""
        # With a schema, the first file may lack some of the fields.
        if self._plan.wanted.schema is not None:
            return list(fields)
        return smallest_columns(self._plan, fields)

    def nulls(self, nulls: NullsLike | None) -> Iterator[FoundNulls]:
        """Yields the nulls of fields; reads only those of which the footers do not tell."""
        found, unknown = nulls_of_footers(self._plan, nulls)
        yield from found
        autos = auto_fields(self.schema, nulls)
        yield from self.nulls_of([name for name in unknown if name in autos], nulls)
