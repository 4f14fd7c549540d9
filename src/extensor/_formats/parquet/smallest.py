"""Which columns are read for fields of which there is a choice."""

from __future__ import annotations

from extensor._formats.parquet.opened import checked_row_group, open_parquet, readable
from extensor._formats.parquet.plan import ParquetPlan, PlannedFile
from extensor._path import Path
from extensor._pruning.fields import FieldsUsed


def smallest_columns(plan: ParquetPlan, fields: FieldsUsed) -> list[str]:
    """Returns the paths to read for fields, with the smallest where there is a choice.

    The sizes are those in the first row group.
    """
    files = [file for file in plan.files if file.row_groups]
    return fields.chosen(lambda path: _bytes_of(files[0], path) if files else 0)


def _bytes_of(file: PlannedFile, path: Path) -> int:
    """Returns the compressed bytes of a field in the first row group of a file."""
    leaves = enumerate(file.layout.leaves)
    numbers = [i for i, leaf in leaves if leaf[: len(path.names)] == path.names]
    with open_parquet(file.file) as source, readable(file.file.path):
        names = [source.metadata.schema.column(i).path for i in numbers]
        number, size = file.row_groups[0].number, file.file.size
        group = checked_row_group(source.metadata, number, names, size)
        return sum(group.column(i).total_compressed_size for i in numbers)
