"""What the type table has for an Arrow type: the base of all its rows."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow import buffers
from extensor._arrow.location import Location
from extensor._arrow.natural_type import expect_writable, natural_flat_type
from extensor._arrow.nulls import refuse_nulls
from extensor._path import Path
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, StructureError


class ColumnType(abc.ABC):
    """An Arrow type: the spec of its columns, and how these are checked, read and written.

    To add a type, derive a class that has `spec` and `_read`, and more of the methods that begin
    with an underscore where the default will not do. Then give it a row in `type_table.TABLE`.

    Args:
        arrow: The Arrow type.
    """

    copies_strings: bool = False
    """Whether reading a column copies strings, which takes long."""

    def __init__(self, arrow: pa.DataType) -> None:
        self.arrow = arrow

    @classmethod
    def of(
        cls, arrow: pa.DataType, path: Path, inner_type: Callable[..., ColumnType]
    ) -> ColumnType | None:
        """Returns this class's description of an Arrow type, or None if it has none.

        Args:
            arrow: The Arrow type.
            path: The path of the column, for errors.
            inner_type: Describes the types that this type holds: takes each with its path.
        """
        return cls(arrow)

    @abc.abstractmethod
    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of what is read of a column.

        Args:
            count: How many elements the column has; None if it varies.
            location: Where the column is.
        """

    def validate(self, array: pa.Array, path: Path) -> pa.Array:
        """Returns a column, of which every value that will be looked at is in its memory.

        Offsets of lists and strings are checked where they are read.

        Raises:
            StructureError: If it is not (also a ValueError).
        """
        buffers.check_start(array, path)
        try:
            array.validate()
            self.check(array, path)
        except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
            raise StructureError(
                path=path,
                expected="a valid Arrow array",
                received=f"one that Arrow rejects: {error}",
                mend="Find out who wrote these buffers; nothing was read from them.",
            ) from error
        return array

    def check(self, array: pa.Array, path: Path) -> None:
        """Raises for what Arrow's own validation passes over, in a column and those inside of it.

        Raises:
            StructureError: If something is wrong (also a ValueError).
        """
        buffers.check_start(array, path)

    def read(self, array: pa.Array, location: Location) -> Any:
        """Returns a column, which was validated, as the value of a field.

        Raises:
            NullError: If there is a null (also a ValueError).
            StructureError: If offsets lead out of the memory (also a ValueError).
        """
        refuse_nulls(array, location)
        return self._read(array, location)

    @abc.abstractmethod
    def _read(self, array: pa.Array, location: Location) -> Any:
        """Returns a column without nulls as the value of a field."""

    def write(self, value: Any, path: Path) -> pa.Array:
        """Returns the value of a field as a column of this type.

        Raises:
            UnsupportedTypeError: If values of its type have no Arrow type (also a TypeError).
            DTypeError: If it does not convert to this one (also a TypeError).
            StructureError, FieldError, FormatError: As `to_arrow`.
        """
        if isinstance(value, tf.Variable):
            value = tf.convert_to_tensor(value)
        expect_writable(value, path)
        return self._write(value, path)

    def _write(self, value: Any, path: Path) -> pa.Array:
        """Numbers and booleans are cast as Arrow does it; nothing else converts."""
        if not is_flat(value) or value.dtype == tf.string:
            raise self.not_convertible(value, path)
        natural = natural_flat_type(value.dtype, path)
        if value.dtype == tf.bool:
            array = buffers.booleans_out(value)
        else:
            array = buffers.numbers_out(value, natural)
        if natural == self.arrow:
            return array
        try:
            return array.cast(self.arrow)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self.not_convertible(value, path) from error

    def not_convertible(self, value: Any, path: Path) -> DTypeError:
        """Returns the error for a value that does not convert to this type."""
        return DTypeError(
            path=path,
            expected=f"values that fit Arrow type {self.arrow}",
            received=_form(value),
            mend="Change the schema, or cast the field first.",
        )


def is_flat(value: Any) -> bool:
    """Returns whether a value is a vector: a tensor of rank 1."""
    return isinstance(value, tf.Tensor) and value.shape.rank == 1


def is_rectangular(value: Any) -> bool:
    """Returns whether a value has a second dimension, of one size."""
    return not hasattr(value, "row_splits") and len(value.shape) > 1


def _form(value: Any) -> str:
    if hasattr(value, "row_splits"):
        return "a ragged value"
    if is_rectangular(value):
        return f"lists of {value.shape[1]}"
    if isinstance(value, StructuredTensor):
        return "records"
    return "string" if value.dtype == tf.string else f"{value.dtype.name} values that do not"
