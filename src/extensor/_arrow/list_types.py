"""Lists of all kinds: of any or one size, views of lists, and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow import buffers
from extensor._arrow.arrow_type import is_large_list
from extensor._arrow.column_type import ColumnType, Inner, WrapperType, is_rectangular
from extensor._arrow.dim_names import dim_of, with_item_dim
from extensor._arrow.flat_types import NumberType
from extensor._arrow.kept_strings import keep_column, kept_lists
from extensor._arrow.location import Location
from extensor._arrow.nulls import refuse_nulls, with_hidden_lists_empty
from extensor._arrow.selection import expect_selectable, take_places
from extensor._authoring.rows import uncut_rows
from extensor._memory import array_over, tensor_over
from extensor._path import Path
from extensor._protocol.row_splits import check_row_splits
from extensor._struct.common_shape import merge_shape
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.masked import is_masked
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._struct.reshape import merge_outer, split_outer
from extensor._struct.row_splits import cut, outer_sizes
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._tf import stacked, unstacked
from extensor._typing import FieldValue
from extensor.errors import NullError, StructureError


class ListType(WrapperType):
    """Lists of any length, with 32-bit or 64-bit offsets."""

    def __init__(self, arrow: pa.DataType, values: ColumnType) -> None:
        super().__init__(arrow, values)
        self.copies_strings = values.copies_strings
        self._dim = None if pa.types.is_map(arrow) else dim_of(arrow.value_field)

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of a ragged tensor, or of ragged records."""
        rows = cut_spec(self.values.spec(None, location), count, location.splits)
        return with_item_dim(rows, self._dim)

    def check(self, array: pa.Array, path: Path) -> None:
        """Checks the values too."""
        super().check(array, path)
        self.values.check(array.values, path)

    def inner(self, array: pa.Array, location: Location) -> Sequence[Inner]:
        """Returns the values of all lists."""
        values, _, below = self._uncut(array, location)
        return [(self.values, values, below)]

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        values, row_splits, below = self._uncut(array, location)
        return self._rows(self.values.read(values, below), row_splits, below)

    def read_and_free(self, columns: list[Any], number: int, location: Location) -> FieldValue:
        """Frees the columns inside too."""
        if columns[number].null_count:
            refuse_nulls(columns[number], location)
        values, row_splits, below = self._uncut(columns[number], location)
        columns[number], inner = None, [values]
        del values
        return self._rows(self.values.read_and_free(inner, 0, below), row_splits, below)

    def _uncut(self, array: pa.Array, location: Location) -> tuple[pa.Array, tf.Tensor, Location]:
        """Returns the values of all lists, the row splits, and the location of the values."""
        offsets = buffers.offsets_of(array, location)
        if array.null_count or location.hidden is not None:
            shown = with_hidden_lists_empty(array, offsets, location)
            if shown is not array:
                array, offsets = shown, buffers.offsets_of(shown, location)
        first, last = int(offsets[0]), int(offsets[-1])
        values = array.values.slice(first, last - first)
        row_splits = buffers.row_splits_in(array, offsets, location.splits, location)
        if location.owner is not None and not first and not array.offset:
            keep_column(row_splits, array, location.owner)
        starts = offsets - first if first else offsets
        return values, row_splits, location.below(starts)

    def _rows(self, inner: FieldValue, row_splits: tf.Tensor, location: Location) -> FieldValue:
        """Returns the values of all lists, as `read` returns them, cut into rows."""
        if isinstance(inner, StructuredTensor):
            return with_item_dim(RaggedStructuredTensor._of_parts(inner, row_splits), self._dim)
        return cut(inner, row_splits, location)

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        rows = uncut_rows(value)
        if rows is not None:
            values, row_splits = rows
            splits = array_over(row_splits)
            self._expect_lengths(splits, path)
            inner = self.values.write(values, path)
            kept = kept_lists(row_splits, self.arrow)
            if kept is not None and splits[-1] == len(inner):  # checked when they were read
                return self._of_offsets(inner, kept.buffers()[1], len(kept))
            check_row_splits(splits, len(inner), str(path))
            return self._cut(inner, row_splits, path)
        if not is_rectangular(value):
            return super()._write(value, path)
        if isinstance(value, DenseStructuredTensor):
            # Records made in a graph may have fields with rows of different lengths.
            merge_shape(value.shape, {}, value._columns, path)
        nrows, size = _outer_two(value)
        self._expect_size(size, path)
        if isinstance(value, tf.Tensor) and value.shape.rank == 2 and value.dtype != tf.string:
            merged = tensor_over(array_over(value).reshape(-1))  # in a tenth of the time of an op
        else:
            merged = merge_outer(value, [nrows, size])
        inner = self.values.write(merged, path)
        return self._cut_evenly(inner, nrows, size, path)

    def _expect_lengths(self, splits: np.ndarray[Any, Any], path: Path) -> None:
        """Raises StructureError if lists of this type cannot have the lengths of rows."""

    def _expect_size(self, size: int, path: Path) -> None:
        """Raises StructureError if lists of this type cannot have a size."""

    def _cut_evenly(self, inner: pa.Array, nrows: int, size: int, path: Path) -> pa.Array:
        """Returns values cut into lists of one size."""
        return self._cut(inner, np.arange(nrows + 1) * size, path)

    def _cut(
        self, inner: pa.Array, splits: np.ndarray[Any, Any] | tf.Tensor, path: Path
    ) -> pa.Array:
        """Returns values cut into lists, by row splits that fit: a tensor or an array."""
        width = np.int64 if is_large_list(self.arrow) else np.int32
        if splits.dtype != width:
            numbers = np.asarray(splits)
            if numbers[-1] > np.iinfo(width).max:
                expected = f"at most 2**31 - 1 values in an Arrow array of type {self.arrow}"
                fix = "Give schema= with large_list."
                raise StructureError(path, expected, f"{numbers[-1]} values", fix)
            splits = numbers.astype(width)
        return self._of_offsets(inner, splits, int(splits.shape[0]) - 1)

    def _of_offsets(
        self, inner: pa.Array, offsets: np.ndarray[Any, Any] | tf.Tensor | pa.Buffer, count: int
    ) -> pa.Array:
        """Returns values cut into lists, by offsets of the width of this type."""
        buffer = (
            buffers.buffer_of(offsets) if isinstance(offsets, tf.Tensor) else pa.py_buffer(offsets)
        )
        return pa.Array.from_buffers(self.arrow, count, [None, buffer], children=[inner])


class FixedSizeListType(ListType):
    """Fixed-size lists, which become one more dense dimension."""

    read_and_free = ColumnType.read_and_free

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of the values with one more dimension."""
        size = self.arrow.list_size
        values = self.values.spec(None if count is None else count * size, location)
        return with_item_dim(split_spec(values, count, size, location.splits), self._dim)

    def check(self, array: pa.Array, path: Path) -> None:
        """Checks the number of values too."""
        buffers.check_start(array, path)
        buffers.check_fixed_size(array, path)
        super().check(array, path)

    def inner(self, array: pa.Array, location: Location) -> Sequence[Inner]:
        """Returns the values of all lists."""
        size = self.arrow.list_size
        values = array.values.slice(array.offset * size, len(array) * size)
        return [(self.values, values, location.below(size=size))]

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        described, values, below = self.inner(array, location)[0]
        shape = len(array), self.arrow.list_size
        if type(described) is NumberType and not values.null_count:  # needs no op
            return buffers.numbers_in(values, described.dtype, shape)
        return with_item_dim(split_outer(described.read(values, below), [*shape]), self._dim)

    def _expect_lengths(self, splits: np.ndarray[Any, Any], path: Path) -> None:
        lengths = np.diff(splits)
        wrong = lengths != self.arrow.list_size
        if wrong.any():
            row = int(np.argmax(wrong))
            expected = f"lists of {self.arrow.list_size}, the size in the schema"
            fix = "Give schema= with a list type for this field."
            raise StructureError(path, expected, f"a list of {lengths[row]} in row {row}", fix)

    def _expect_size(self, size: int, path: Path) -> None:
        if size != self.arrow.list_size:
            expected = f"lists of {self.arrow.list_size}, the size in the schema"
            raise StructureError(path, expected, f"lists of {size}", "Change the schema.")

    def _cut(
        self, inner: pa.Array, splits: np.ndarray[Any, Any] | tf.Tensor, path: Path
    ) -> pa.Array:
        return self._cut_evenly(inner, int(splits.shape[0]) - 1, self.arrow.list_size, path)

    def _cut_evenly(self, inner: pa.Array, nrows: int, size: int, path: Path) -> pa.Array:
        return pa.Array.from_buffers(self.arrow, nrows, [None], children=[inner])


def _outer_two(value: FieldValue) -> list[int]:
    """Returns the first two sizes of a value, which hold also if its static shape lacks them."""
    sizes = value.shape[:2]
    return sizes.as_list() if sizes.is_fully_defined() else outer_sizes(value, 2).numpy().tolist()


def cut_spec(values: tf.TypeSpec, nrows: int | None, splits: tf.DType) -> tf.TypeSpec:
    """Returns the spec of values that are cut into rows of any length."""
    shape = tf.TensorShape([nrows, None]).concatenate(values.shape[1:])
    if isinstance(values, StructuredTensorSpec):
        return RaggedStructuredTensorSpec(shape, values, splits)
    if hasattr(type(values), "__tf_cut_rows__"):
        return values.__tf_cut_rows__(nrows, splits)
    if is_masked(values):
        parts = (cut_spec(part, nrows, splits) for part in (values.values, values.mask))
        return type(values)(*parts)
    ragged_rank = values.ragged_rank + 1 if isinstance(values, tf.RaggedTensorSpec) else 1
    return tf.RaggedTensorSpec(shape, values.dtype, ragged_rank, splits)


def split_spec(values: tf.TypeSpec, nrows: int | None, size: int, splits: tf.DType) -> tf.TypeSpec:
    """Returns the spec of values with the first dimension split into `nrows` rows of `size`."""
    if isinstance(values, RaggedStructuredTensorSpec):
        return cut_spec(values._any_length(), nrows, splits)
    if isinstance(values, DenseStructuredTensorSpec):
        shape = tf.TensorShape([nrows, size]).concatenate(values.shape[1:])
        fields = {n: split_spec(s, nrows, size, splits) for n, s in values.field_specs.items()}
        return DenseStructuredTensorSpec(shape, fields, values._metadata.types)
    if is_masked(values):
        parts = (split_spec(part, nrows, size, splits) for part in (values.values, values.mask))
        return type(values)(*parts)
    return stacked(stacked(unstacked(values), size), nrows)


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
