"""ColumnType, the base of the classes that describe Arrow types in the type table."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow import buffers
from extensor._arrow.arrow_type import contains_type, decoded_type, rejection
from extensor._arrow.location import Location
from extensor._arrow.natural_type import expect_writable, natural_flat_type
from extensor._arrow.nulls import nulls_of, refuse_nulls, valid_bits, with_nulls
from extensor._arrow.parallel_columns import free_unused
from extensor._authoring.rows import uncut_rows
from extensor._path import Path
from extensor._struct.masked import is_masked
from extensor._struct.tensor import StructuredTensor
from extensor._typing import FieldValue
from extensor.errors import DTypeError

Inner = tuple["ColumnType", pa.Array, Location]
"""A column inside another one: its type, the column, and its location."""


class ColumnType(abc.ABC):
    """An Arrow type: the spec of its columns, and how to validate, read and write them.

    To add a type, derive a class with `spec` and `_read`, and override the other methods where the
    default does not fit. Then add the class to `type_table.TABLE`.

    Args:
        arrow: The Arrow type.
    """

    copies_strings: bool = False
    """Whether reading a column copies strings, which is slow."""

    def __init__(self, arrow: pa.DataType) -> None:
        self.arrow = arrow

    @classmethod
    def from_arrow_type(
        cls, arrow: pa.DataType, path: Path, inner_type: Callable[..., ColumnType]
    ) -> ColumnType | None:
        """Returns the ColumnType of an Arrow type, or None if this class does not support it.

        Args:
            arrow: The Arrow type.
            path: The path of the column, for errors.
            inner_type: Returns the ColumnType of a type inside `arrow`, given the type and path.
        """
        return cls(arrow)

    @abc.abstractmethod
    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of the field value that `read` returns.

        Args:
            count: The number of elements in the column; None if it varies.
            location: The location of the column.
        """

    def validate(self, array: pa.Array, path: Path) -> pa.Array:
        """Returns a column as it is, after checking that its values are inside its buffers.

        Offsets of lists and strings are validated when they are read.

        Raises:
            StructureError: If the column is not valid (also a ValueError).
        """
        if array.offset < 0:
            buffers.check_start(array, path)
        try:
            array.validate()
            self.check(array, path)
        except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
            raise rejection(path, error) from error
        return array

    def check(self, array: pa.Array, path: Path) -> None:
        """Raises for faults that Arrow's own validation does not detect, also in inner columns.

        Raises:
            StructureError: If there is such a fault (also a ValueError).
        """
        if array.offset < 0:
            buffers.check_start(array, path)

    def read(self, array: pa.Array, location: Location) -> FieldValue:
        """Returns a validated column as the value of a field.

        Raises:
            NullError: If there is a null (also a ValueError).
            StructureError: If offsets point outside the values (also a ValueError).
        """
        if array.null_count:
            refuse_nulls(array, location)
        return self.read_hidden(array, location)

    def read_and_free(self, columns: list[Any], number: int, location: Location) -> FieldValue:
        """Returns `read` of a column of a list, which has None in its place afterwards.

        Nothing else has the column, so its memory is freed. Lists and records of any length free
        each column inside of them once it is converted.
        """
        made = self.read(columns[number], location)
        columns[number] = None
        free_unused()
        return made

    def read_hidden(self, array: pa.Array, location: Location) -> FieldValue:
        """Returns a validated column as the value of a field; all its nulls are hidden."""
        return self._read(array, location)

    def valid(self, array: pa.Array) -> np.ndarray[Any, Any] | None:
        """Returns which elements of a validated column are not null; None if no element is null.

        Some types have no validity bitmap of their own, such as dictionaries whose values are null.
        """
        return valid_bits(array)

    def inner(self, array: pa.Array, location: Location) -> Sequence[Inner]:
        """Returns the columns inside a validated column; all its nulls are hidden at its location.

        `read` reads these columns, each with its type at its location.
        """
        return ()

    @abc.abstractmethod
    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        """Returns a column as the value of a field. Values that are null may be anything.

        Hidden lists become empty lists.
        """

    def write(self, value: FieldValue, path: Path) -> pa.Array:
        """Returns the value of a field as a column of this type.

        Raises:
            UnsupportedTypeError: If Arrow has no type for the value (also a TypeError).
            DTypeError: If the value does not convert to this type (also a TypeError).
            StructureError, FieldError, FormatError: As in `to_arrow`.
        """
        if isinstance(value, tf.Variable):
            value = tf.convert_to_tensor(value)
        expect_writable(value, path)
        if is_masked(value) and value.mask.shape.rank == 1:
            return self._write_masked(value, path)
        return self._write(value, path)

    def _write_masked(self, value: FieldValue, path: Path) -> pa.Array:
        """Returns a MaskedTensor with a mask of rank 1 as a column with nulls."""
        values, valid = value.values, value.mask.numpy()
        if not valid.any() and contains_type(self.arrow, pa.types.is_null):
            return nulls_of(self.arrow, len(valid))  # hidden items have values in tensors
        if isinstance(values, tf.Tensor) and not valid.all():
            values = self._without_invalid(values, value.mask)
        return with_nulls(self.write(values, path), valid, path)

    def vocabulary(self, array: pa.Array) -> pa.Array | None:
        """Returns the values of the dictionary in a column, or None if there is none."""
        return None

    def with_vocabulary(self, words: pa.Array) -> ColumnType:
        """Returns this type with the values that its dictionary begins with when it is written."""
        return self

    def _without_invalid(self, values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns values in which those that are not valid fit this type too."""
        arrow = decoded_type(self.arrow)
        while pa.types.is_fixed_size_list(arrow):
            arrow = decoded_type(arrow.value_type)
        if values.dtype == tf.string:
            zero = b"\0" * (arrow.byte_width if pa.types.is_fixed_size_binary(arrow) else 0)
        elif natural_flat_type(values.dtype, Path()) == arrow:
            return values
        else:
            zero = tf.zeros([], values.dtype)
        return tf.where(over_rows(mask, values), values, zero)

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        """Returns numbers or booleans cast to this type by Arrow. Other values raise."""
        return self._cast_numbers(value, self.arrow, path)

    def _cast_numbers(self, value: FieldValue, target: pa.DataType, path: Path) -> pa.Array:
        """Returns numbers or booleans as an Arrow array, by Arrow's safe cast.

        Floats may lose precision. Raises if an integer changes, or a finite float overflows.
        """
        if not is_flat(value) or value.dtype == tf.string:
            raise self.not_convertible(value, path)
        natural = natural_flat_type(value.dtype, path)
        if value.dtype == tf.bool:
            array = buffers.booleans_out(value)
        else:
            array = buffers.numbers_out(value, natural)
        if natural == target:
            return array
        try:
            result = array.cast(target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self.not_convertible(value, path) from error
        if pa.types.is_floating(target) and not _holds_all(array, result):
            raise self.not_convertible(value, path)
        return result

    def not_convertible(self, value: FieldValue, path: Path) -> DTypeError:
        """Returns the error for a value that does not convert to this type."""
        fix = "Change the schema, or cast the field first."
        return DTypeError(path, f"values that fit Arrow type {self.arrow}", _value_text(value), fix)


class WrapperType(ColumnType):
    """A type around one other type: lists, dictionaries, runs, extension types.

    Args:
        arrow: The Arrow type.
        values: The type of the values inside.
    """

    def __init__(self, arrow: pa.DataType, values: ColumnType) -> None:
        super().__init__(arrow)
        self.values = values

    @classmethod
    def from_arrow_type(
        cls, arrow: pa.DataType, path: Path, inner_type: Callable[..., ColumnType]
    ) -> ColumnType:
        """Returns the type."""
        is_extension = isinstance(arrow, pa.BaseExtensionType)
        inner = arrow.storage_type if is_extension else arrow.value_type
        return cls(arrow, inner_type(inner, path))

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of the values."""
        return self.values.spec(count, location)

    def vocabulary(self, array: pa.Array) -> pa.Array | None:
        """Returns the values of the dictionary inside."""
        return self.values.vocabulary(self._values_of(array))

    def with_vocabulary(self, words: pa.Array) -> ColumnType:
        """Returns this type with the values of the dictionary inside."""
        return type(self)(self.arrow, self.values.with_vocabulary(words))

    def _values_of(self, array: pa.Array) -> pa.Array:
        """Returns the column inside a column."""
        return array.values


class SameRowsType(WrapperType):
    """A type whose values have its rows: an extension type, or one with a policy for nulls."""

    def __init__(self, arrow: pa.DataType, values: ColumnType) -> None:
        super().__init__(arrow, values)
        self.copies_strings = values.copies_strings

    def check(self, array: pa.Array, path: Path) -> None:
        """Checks the values."""
        super().check(array, path)
        self.values.check(self._values_of(array), path)

    def valid(self, array: pa.Array) -> np.ndarray[Any, Any] | None:
        """Returns which elements of the values are not null."""
        return self.values.valid(self._values_of(array))

    def inner(self, array: pa.Array, location: Location) -> Sequence[Inner]:
        """Returns the columns inside the values."""
        return self.values.inner(self._values_of(array), location)

    def _values_of(self, array: pa.Array) -> pa.Array:
        return array


def _holds_all(numbers: pa.Array, floats: pa.Array) -> bool:
    """Returns whether a cast to floats made no finite number infinite, and changed no integer.

    Arrow tests neither for 16 bits, and no overflow of floats.
    """
    if floats.type.bit_width == 64 or numbers.type == pa.bool_():
        return True
    before, after = numbers.to_numpy(), floats.to_numpy()
    if pa.types.is_integer(numbers.type):
        return floats.type.bit_width > 16 or bool((after.astype(np.float64) == before).all())
    return not bool((np.isinf(after) & np.isfinite(before)).any())


def over_rows(mask: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Returns a vector with as many dimensions as the values whose rows it is for."""
    return tf.reshape(mask, [-1, *[1] * (values.shape.rank - 1)])


def is_flat(value: FieldValue) -> bool:
    """Returns whether a value is a tensor of rank 1."""
    return isinstance(value, tf.Tensor) and value.shape.rank == 1


def is_rectangular(value: FieldValue) -> bool:
    """Returns whether a value has a second dimension that is not ragged."""
    return uncut_rows(value) is None and len(value.shape) > 1


def _value_text(value: FieldValue) -> str:
    if is_masked(value):
        return f"masked {_value_text(value.values)}"
    if hasattr(value, "row_splits"):
        return "a ragged value"
    if is_rectangular(value):
        return f"lists of {value.shape[1]}"
    if isinstance(value, StructuredTensor):
        return "records"
    return f"{value.dtype.name} values"
