"""The columns that a Parquet file stores: computed once for all files that store the same."""

from __future__ import annotations

import functools

import pyarrow as pa
import pyarrow.parquet as pq

from extensor._arrow.arrow_type import inner_fields, is_string, is_string_view
from extensor._arrow.chosen_columns import leaf_paths, prefixes
from extensor._formats.parquet.opened import unit_of_int96
from extensor._formats.parquet.unions import with_unions, without_unions


class FileLayout:
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
