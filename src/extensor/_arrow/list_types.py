"""Arrow's other kinds of lists: views of lists, and maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow import buffers
from extensor._arrow.column_type import ColumnType
from extensor._arrow.location import Location
from extensor._arrow.nested_types import ListType
from extensor._arrow.selection import expect_selectable, take_places
from extensor._memory import array_over
from extensor._path import Path
from extensor.errors import NullError


class ListViewType(ListType):
    """Lists with an offset and a size each, which may overlap and come in any order."""

    def check(self, array: pa.Array, path: Path) -> None:
        """Checks the offsets and sizes too. Arrow reads by them when it joins chunks."""
        super().check(array, path)
        buffers.views_of(array, path)

    def _uncut(self, array: pa.Array, location: Location) -> tuple[pa.Array, tf.Tensor, Location]:
        offsets, sizes = buffers.views_of(array, location)
        if location.hidden is not None:
            sizes = np.where(location.hidden, 0, sizes)
        splits = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        row_splits = buffers.splits_in(splits, location.splits, location)
        shifts = (offsets - splits[:-1])[sizes > 0]  # all the same: the lists follow one another
        first, total = int(shifts[0]) if len(shifts) else 0, int(splits[-1])
        if (shifts == first).all():
            values = array.values.slice(first, total)
        else:
            expect_selectable(array.values, location)
            places = np.repeat(offsets - splits[:-1], sizes) + np.arange(total)
            values = take_places(array.values, places)
        return values, row_splits, location.below(splits)

    def _of_offsets(
        self, inner: pa.Array, offsets: np.ndarray[Any, Any] | tf.Tensor, count: int
    ) -> pa.Array:
        if isinstance(offsets, tf.Tensor):
            offsets = array_over(offsets)
        parts = [None, pa.py_buffer(offsets), pa.py_buffer(np.diff(offsets))]
        return pa.Array.from_buffers(self.arrow, count, parts, children=[inner])


class MapType(ListType):
    """Maps, which become lists of records with the fields `key` and `value`."""

    @classmethod
    def from_arrow_type(
        cls, arrow: pa.DataType, path: Path, inner_type: Callable[..., ColumnType]
    ) -> ColumnType:
        """Returns the type."""
        entries = [arrow.key_field.with_name("key"), arrow.item_field.with_name("value")]
        return cls(arrow, inner_type(pa.struct(entries), path))

    def _of_offsets(
        self, inner: pa.Array, offsets: np.ndarray[Any, Any] | tf.Tensor, count: int
    ) -> pa.Array:
        keys = inner.field(0)
        if keys.null_count:  # Arrow would abort the process
            fix = "Fill the keys, or give schema= with a list of structs."
            raise NullError("key", "keys of a map without nulls", f"{keys.null_count} nulls", fix)
        return super()._of_offsets(inner, offsets, count)
