"""Which fields of Parquet files have nulls, as far as their footers say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf

from extensor._arrow.arrow_type import contains_type, decoded_type, is_list
from extensor._arrow.column_type import ColumnType
from extensor._arrow.found_nulls import FoundNulls
from extensor._arrow.location import Location
from extensor._arrow.nullable_type import NullableType
from extensor._arrow.reader import records_reader
from extensor._arrow.struct_type import StructType
from extensor._formats.parquet.opened import checked_row_group, open_parquet, readable
from extensor._formats.parquet.plan import ParquetPlan
from extensor._path import Path
from extensor._typing import NullsLike

_Leaf = tuple[str, ...]


def nulls_of_footers(
    plan: ParquetPlan, nulls: NullsLike | None
) -> tuple[list[FoundNulls], list[str]]:
    """Returns what the footers of the files of a plan say about nulls.

    These are the nulls of fields outside of lists, and the names of the fields whose nulls only the
    records show: where the statistics are missing, and where lists or records may be null. Parquet
    counts the nulls of a leaf column together with null records and empty lists around it.

    Args:
        plan: The plan.
        nulls: The argument `nulls` for its fields.

    Raises:
        FieldError, DTypeError: If there are policies that fit no field.
        FormatError: If a file is damaged.
    """
    records = records_reader(plan.schema, nulls)
    counts, records_at = _counts(plan), Location(Path(), tf.int64)
    found, unknown = list[FoundNulls](), list[str]()
    for name, field in records.fields.items():
        try:
            found += list(_of_field(field, records_at.field(name), counts))
        except _UnknownError:
            unknown.append(name)
    return found, unknown


class _UnknownError(Exception):
    """The footers do not say which fields have nulls."""


def _counts(plan: ParquetPlan) -> dict[_Leaf, int | None]:
    """Returns the number of nulls of each leaf column in all files; None where it is unknown."""
    totals: dict[_Leaf, int | None] = {}
    names = frozenset(plan.schema.names)
    for file in plan.files:
        leaves = [(i, leaf) for i, leaf in enumerate(file.layout.leaves) if leaf[0] in names]
        lacking = names - {leaf[0] for _, leaf in leaves}
        totals.update(dict.fromkeys([(name,) for name in lacking]))
        if not leaves or not file.row_groups:
            continue
        with open_parquet(file.file) as source, readable(file.file.path):
            paths = [source.schema.column(i).path for i, _ in leaves]
            miscounted = _fields_to_count(source)
            for group in file.row_groups:
                number, size = group.number, file.file.size
                metadata = checked_row_group(source.metadata, number, paths, size)
                for i, leaf in leaves:
                    count, before = _null_count(metadata.column(i)), totals.get(leaf, 0)
                    if count is None or before is None or leaf[0] in miscounted:
                        totals[leaf] = None
                    else:
                        totals[leaf] = count + before
    return totals


def _fields_to_count(file: pq.ParquetFile) -> set[str]:
    """Returns the names of the fields of which the writer of a file did not count all nulls.

    Arrow before 26 left out null lists of records.
    """
    writer = re.match(r"parquet-cpp-arrow version (\d+)", file.metadata.created_by or "")
    if writer is None or int(writer[1]) >= 26:
        return set()
    return {f.name for f in file.schema_arrow if contains_type(f.type, _is_list_of_records)}


def _is_list_of_records(arrow: pa.DataType) -> bool:
    return pa.types.is_map(arrow) or (is_list(arrow) and pa.types.is_struct(arrow.value_type))


def _null_count(column: pq.ColumnChunkMetaData) -> int | None:
    """Returns the number of nulls that the footer has for a column of a row group."""
    found = column.statistics
    return found.null_count if found is not None and found.has_null_count else None


def _of_field(
    described: ColumnType, location: Location, counts: Mapping[_Leaf, int | None]
) -> Iterator[FoundNulls]:
    """Yields the nulls of a field of records that are not null.

    Raises:
        _UnknownError: If the footers do not say it.
    """
    names = location.place[0]
    inside = [count for leaf, count in counts.items() if leaf[: len(names)] == names]
    if inside and not any(count is None or count for count in inside):
        return
    values = described.values if isinstance(described, NullableType) else described
    if isinstance(values, StructType):
        if 0 not in inside:
            raise _UnknownError
        # A null record is a null of all columns in it.
        for name, field in values.fields.items():
            yield from _of_field(field, location.field(name), counts)
    elif len(inside) == 1 and inside[0] and not pa.types.is_nested(decoded_type(values.arrow)):
        yield FoundNulls(described, location, inside[0])
    else:
        raise _UnknownError
