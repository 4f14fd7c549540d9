"""Arrow types whose columns become vectors: numbers, booleans and strings."""

from __future__ import annotations

import pyarrow as pa
import tensorflow as tf

from extensor._arrow import buffers
from extensor._arrow.arrow_type import unsupported_error
from extensor._arrow.column_type import ColumnType, is_flat
from extensor._arrow.encoded_types import DictionaryType
from extensor._arrow.kept_strings import keep_column, kept_column
from extensor._arrow.location import Location
from extensor._arrow.natural_type import NUMBERS, is_all_null
from extensor._path import Path
from extensor._typing import FieldValue

_DICTIONARY = pa.dictionary(pa.int8(), pa.string()).id


class NumberType(ColumnType):
    """Integers and floats, whose buffers have the layout of tensors."""

    @property
    def dtype(self) -> tf.DType:
        """The dtype of tensors with the memory layout of this type."""
        return NUMBERS[self.arrow]

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of a vector of the same layout."""
        return tf.TensorSpec([count], self.dtype)

    def write(self, value: FieldValue, path: Path) -> pa.Array:
        """Returns the value of a field as a column, most values without a copy."""
        is_same = isinstance(value, tf.Tensor) and value.dtype == self.dtype
        if is_same and value.shape.rank == 1:
            return self._write_same(value, path)
        return super().write(value, path)

    def _write_same(self, value: tf.Tensor, path: Path) -> pa.Array:
        """Returns a vector with the memory layout of this type as a column."""
        return buffers.numbers_out(value, self.arrow)

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        return buffers.numbers_in(array, self.dtype)


class NullType(ColumnType):
    """Arrow's null type: nulls alone, or lists that are always empty.

    Its values are float32, as `tf.ragged.constant` makes lists that are always empty.
    """

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of a vector of float32."""
        return tf.TensorSpec([count], tf.float32)

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        if array.type == self.arrow:
            return tf.zeros([len(array)], tf.float32)
        return buffers.numbers_in(array, tf.float32)  # a value in place of nulls

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        if is_flat(value) and value.shape[0] == 0:
            return pa.nulls(0)
        raise self.not_convertible(value, path)

    def _write_masked(self, value: FieldValue, path: Path) -> pa.Array:
        if is_all_null(value):
            return pa.nulls(int(value.shape[0]))
        raise self.not_convertible(value, path)


class BooleanType(ColumnType):
    """Booleans, which Arrow packs into bits."""

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of a vector of booleans."""
        return tf.TensorSpec([count], tf.bool)

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        return buffers.booleans_in(array)


class StringType(ColumnType):
    """Strings of characters or bytes, with 32-bit or 64-bit offsets.

    A reader of files may give a dictionary of these strings instead.
    """

    copies_strings = True

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of a vector of strings."""
        return tf.TensorSpec([count], tf.string)

    def check(self, array: pa.Array, path: Path) -> None:
        """Checks the dictionary too, if there is one."""
        super().check(array, path)
        if array.type.id == _DICTIONARY:
            DictionaryType(array.type, self).check(array, path)

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        if array.type.id == _DICTIONARY:
            return DictionaryType(array.type, self).read(array, location)
        strings = buffers.strings_in(array, location)
        if location.owner is not None:
            keep_column(strings, array, location.owner)
        return strings

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        if is_flat(value) and value.dtype == tf.string:
            return self._write_strings(value, path)
        return super()._write(value, path)

    def _write_strings(self, strings: tf.Tensor, path: Path) -> pa.Array:
        kept = kept_column(strings, self.arrow)
        return buffers.strings_out(strings, self.arrow, path) if kept is None else kept


class StringViewType(StringType):
    """Views of strings, converted through strings with offsets."""

    def check(self, array: pa.Array, path: Path) -> None:
        """Raises also if a view points outside its buffers."""
        super().check(array, path)
        array.validate(full=True)

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        return buffers.strings_in(array.cast(self._with_offsets()), location)

    def _write_strings(self, strings: tf.Tensor, path: Path) -> pa.Array:
        return buffers.strings_out(strings, self._with_offsets(), path).cast(self.arrow)

    def _with_offsets(self) -> pa.DataType:
        return pa.large_binary() if pa.types.is_binary_view(self.arrow) else pa.large_string()


class FixedSizeBinaryType(StringType):
    """Bytes of one length, converted through bytes with offsets."""

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        return buffers.strings_in(array.cast(pa.large_binary()), location)

    def _write_strings(self, strings: tf.Tensor, path: Path) -> pa.Array:
        try:
            return buffers.strings_out(strings, pa.large_binary(), path).cast(self.arrow)
        except pa.ArrowInvalid as error:  # strings of other lengths
            raise self.not_convertible(strings, path) from error


class UnreadType(ColumnType):
    """A type that is not in the table. Supports only writing, where Arrow can cast to it."""

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Raises UnsupportedTypeError."""
        raise unsupported_error(self.arrow, location.path)

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        raise unsupported_error(self.arrow, location.path)
