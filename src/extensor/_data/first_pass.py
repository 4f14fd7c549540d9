"""The first pass over records for `nulls="auto"`: which fields it reads, and what it finds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from extensor._arrow.found_nulls import FoundNulls
from extensor._arrow.null_argument import by_path
from extensor._arrow.null_policy import REST, is_auto, place_of
from extensor._arrow.read import nulls_in_table


def auto_fields(schema: pa.Schema, nulls: Any) -> list[str]:
    """Returns the names of the fields of records that have the policy "auto", at any place."""
    given = by_path(nulls)
    if is_auto(given.get(REST)):
        return schema.names
    autos = {place_of(path)[0][0] for path, each in given.items() if is_auto(each)}
    return [name for name in schema.names if name in autos]


def nulls_in(batches: Iterable[pa.RecordBatch], nulls: Any) -> Iterator[FoundNulls]:
    """Yields the nulls of all records of batches, under the argument `nulls`."""
    tables = (pa.Table.from_batches([batch]) for batch in batches)
    return itertools.chain.from_iterable(nulls_in_table(table, nulls) for table in tables)
