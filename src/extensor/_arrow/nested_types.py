"""Arrow types that contain other types: structs, lists, fixed-size lists."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow import buffers
from extensor._arrow.arrow_type import contains_type, is_large_list, names_of, without_fields
from extensor._arrow.cast import cast_column
from extensor._arrow.column_type import ColumnType, Inner, WrapperType, is_rectangular
from extensor._arrow.dim_names import dim_of, with_item_dim
from extensor._arrow.flat_types import NumberType
from extensor._arrow.kept_strings import is_kept, keep_column, kept_lists
from extensor._arrow.location import Location
from extensor._arrow.natural_type import natural_field
from extensor._arrow.nulls import with_hidden_lists_empty
from extensor._arrow.parallel_columns import LARGE, convert_and_free, convert_columns
from extensor._arrow.selection import expect_selectable, take_places
from extensor._authoring.rows import uncut_rows
from extensor._count_text import count_text
from extensor._memory import array_over, tensor_over
from extensor._path import Path
from extensor._protocol.row_splits import check_row_splits
from extensor._struct.arrow_types import ArrowType, ArrowTypes, form_of, meaning_beside, type_fits
from extensor._struct.common_shape import merge_shape
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.dims import Dims
from extensor._struct.masked import is_masked
from extensor._struct.meaning import meaning_of
from extensor._struct.metadata import Metadata
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._struct.reshape import merge_outer, split_outer
from extensor._struct.row_splits import cut, outer_sizes
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._tf import stacked, unstacked
from extensor._typing import FieldValue
from extensor.errors import FieldError, NullError, StructureError

# This file calls `StructuredTensor._field`, which is faster than `field_value`.


_STRING = 24  # bytes of a string in a tensor; longer ones than 22 have more memory elsewhere


class StructType(ColumnType):
    """Structs, which become records.

    Args:
        arrow: The Arrow type.
        fields: The types of the fields, by name.
        dims: The name of the dimension of the records.
    """

    def __init__(self, arrow: pa.DataType, fields: dict[str, ColumnType], dims: Dims = ()) -> None:
        super().__init__(arrow)
        self.fields = fields
        self._checked: tuple[Path | None, list[Path]] = None, []
        self._dims = dims
        self._arrow_types: ArrowTypes | None = None
        self._inner_type: Callable[[pa.DataType, Path], ColumnType] | None = None
        self.copies_strings = any(field.copies_strings for field in fields.values())

    @functools.cached_property
    def _kept(self) -> list[pa.Field]:
        return [without_fields(field) for field in self.arrow.fields]

    @functools.cached_property
    def _encode(self) -> list[tuple[int, str]]:
        """The number and name of each field with a dictionary."""
        fields = enumerate(self.fields.items())
        return [(i, n) for i, (n, f) in fields if contains_type(f.arrow, pa.types.is_dictionary)]

    @functools.cached_property
    def paths(self) -> list[Path]:
        """The path of each field from these records."""
        return list(map(Path, self.fields))

    @classmethod
    def from_arrow_type(
        cls, arrow: pa.DataType, path: Path, inner_type: Callable[..., ColumnType], dims: Dims = ()
    ) -> StructType:
        """Returns the type. Raises if two fields have the same name."""
        fields = arrow.fields
        names = names_of(fields, path)
        types = [inner_type(f.type, path / n) for n, f in zip(names, fields, strict=True)]
        made = cls(arrow, dict(zip(names, types, strict=True)), dims)
        made._inner_type = inner_type
        return made

    def spec(self, count: int | None, location: Location) -> DenseStructuredTensorSpec:
        """Returns the spec of dense records of rank 1."""
        fields = {n: f.spec(count, location.field(n)) for n, f in self.fields.items()}
        types = {
            name: ArrowType(field, form_of(fields[name], 1))
            for name, field in zip(self.fields, self._kept, strict=True)
        }
        return DenseStructuredTensorSpec([count], fields, types, self._dims or None)

    def check(self, array: pa.Array, path: Path) -> None:
        """Checks the fields too."""
        super().check(array, path)
        last, paths = self._checked
        if last is not path:  # made once for all chunks of a column
            paths = [path / name for name in self.fields]
            self._checked = path, paths
        for i, field in enumerate(self.fields.values()):
            field.check(array.field(i), paths[i])

    def inner(self, array: pa.Array, location: Location) -> Sequence[Inner]:
        """Returns the fields."""
        fields = enumerate(self.fields.items())
        return [(field, array.field(i), location.field(name)) for i, (name, field) in fields]

    def _read(self, array: pa.Array, location: Location) -> DenseStructuredTensor:
        columns = [array.field(i) for i in range(len(self.fields))]
        return self.read_columns(columns, len(array), location)

    def read_columns(
        self, columns: list[pa.Array], count: int, location: Location, frees: bool = False
    ) -> DenseStructuredTensor:
        """Returns the records of validated columns.

        Args:
            columns: One column for each field.
            count: The number of records.
            location: The location of the records.
            frees: Whether to take each column out of the list once it is converted.
        """
        types = list(self.fields.values())
        locations = [location.field(name) for name in self.fields]
        sizes: dict[int, int] = {}
        for i, each in enumerate(types):
            # Strings that are read from a dictionary have few bytes in Arrow.
            factor = 1 if columns[i].type == each.arrow else 4
            if each.copies_strings and columns[i].get_total_buffer_size() * factor > LARGE:
                size = columns[i].nbytes * factor  # takes longer; a slice has the buffers of all
                if size > LARGE:
                    sizes[i] = size

        def convert(number: int) -> Any:
            return types[number].read(columns[number], locations[number])

        if frees and not self._encode:
            values = convert_and_free(convert, columns, sizes)
        else:
            values = convert_columns(convert, len(columns), sizes)
        fields = dict(zip(self.fields, values, strict=True))
        rows = None if fields else tf.zeros([count], tf.bool)
        extra = Metadata(self._types(fields, columns), self._dims)
        # The shape, because finding it from the fields takes longer than making one.
        shape = tf.TensorShape([count])
        return DenseStructuredTensor._of_parts(1, fields, rows, None, extra, shape)

    def _types(self, fields: dict[str, Any], columns: Sequence[pa.Array]) -> ArrowTypes:
        """Returns the Arrow types of fields, with the values of their dictionaries."""
        types = self._arrow_types
        if types is None:  # the same for all values of this type
            pairs = zip(fields.items(), self._kept, strict=True)
            types = {name: ArrowType(kept, form_of(value, 1)) for (name, value), kept in pairs}
            self._arrow_types = types
        found: ArrowTypes = {}
        for i, name in self._encode:
            words = self.fields[name].vocabulary(columns[i])
            if words is not None:
                found[name] = types[name]._replace(words=words)
        return {**types, **found} if found else types

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        if not isinstance(value, DenseStructuredTensor) or value.rank != 1:
            return super()._write(value, path)
        self._expect_fields(value.field_names(), path)
        columns = write_fields(value, list(self.fields.items()), path, self._inner_type)
        expect_same_size(self.fields, columns, path)
        count = len(columns[0]) if columns else int(value.shape[0])
        return pa.Array.from_buffers(self.arrow, count, [None], children=columns)

    def _expect_fields(self, names: tuple[str, ...], path: Path) -> None:
        given = set(names)
        for name in self.fields:
            if name not in given:
                expected = "records with this field of the schema"
                received = f"records with the fields {', '.join(names)}"
                fix = "Add the field with with_updates, or remove it from the schema."
                raise FieldError(path / name, expected, received, fix)
        for name in names:
            if name not in self.fields:
                expected = f"one of the schema's fields {', '.join(self.fields)}"
                fix = "Remove the field with without, or add it to the schema."
                raise FieldError(path / name, expected, "a field that is not in the schema", fix)


def write_fields(
    records: StructuredTensor,
    types: Sequence[tuple[str, ColumnType]],
    path: Path,
    type_of: Callable[[pa.DataType, Path], ColumnType] | None = None,
) -> list[pa.Array]:
    """Returns fields of records as columns; those with many strings in parallel.

    Args:
        records: Dense records of rank 1.
        types: The name and the type of each field to write.
        path: The path of the records, for errors.
        type_of: Returns the type to write for an Arrow type, where numbers have another meaning in
            the types that are given. None if they are the types of the records.
    """
    known = records._metadata.types
    calls: list[Callable[[], pa.Array]] = []
    sizes: dict[int, int] = {}
    for name, field in types:
        at, kept = path / name, known.get(name)
        if kept is not None and kept.words is not None:
            field = field.with_vocabulary(kept.words)
        value = records._field(name, at)
        if type_of is not None and kept is not None and _means_other(kept, value, field.arrow):
            own = type_of(natural_field(records, name, value, path).type, at)
            calls.append(functools.partial(_change_shapes, own, value, field.arrow, at))
            continue
        if field.copies_strings and (size := _size_of_strings(value)) > LARGE:
            sizes[len(calls)] = size
        calls.append(functools.partial(field.write, value, at))
    return convert_columns(lambda i: calls[i](), len(calls), sizes)


def _means_other(kept: ArrowType, value: FieldValue, arrow: pa.DataType) -> bool:
    """Returns whether the numbers of a field have a meaning, which is not that of a type."""
    if kept.field.type == arrow:
        return False
    want = meaning_of(arrow)
    return meaning_beside(kept.meaning, kept, want) not in (None, want) and type_fits(
        kept, value, 1
    )


def _change_shapes(own: ColumnType, value: FieldValue, arrow: pa.DataType, path: Path) -> pa.Array:
    """Returns a field, written as its own type and cast to another one."""
    return cast_column(own.write(value, path), arrow, path, "Correct schema=.")


def _size_of_strings(value: FieldValue) -> int:
    """Returns how many bytes the strings to copy take in TensorFlow, without long ones."""
    tensors = tf.nest.flatten(value, expand_composites=True)
    return sum(
        _STRING * t.shape.num_elements() for t in tensors if t.dtype == tf.string and not is_kept(t)
    )


def expect_same_size(names: Iterable[str], columns: Sequence[pa.Array], path: Path) -> None:
    """Raises StructureError unless all columns of written records have the same length.

    The size of a variable may have changed since it became a field.
    """
    if len(set(map(len, columns))) < 2:
        return
    count = len(columns[0])
    for name, column in zip(names, columns, strict=True):
        if len(column) != count:
            expected = count_text(count, "values, one for each record")
            fix = "Give every field one value for each record."
            raise StructureError(path / name, expected, count_text(len(column), "values"), fix)


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
        return self._rows(*self._uncut(array, location))

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

    def _rows(self, values: pa.Array, row_splits: tf.Tensor, location: Location) -> FieldValue:
        """Returns the values of all lists, cut into rows."""
        inner = self.values.read(values, location)
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
