"""Arrow types that store integers with a unit: dates, times, durations, decimals, intervals.

The tensor has the integers. The unit, zone, precision and scale are in the Arrow type, which the
records keep.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow import buffers
from extensor._arrow.column_type import ColumnType, is_flat
from extensor._arrow.flat_types import NumberType
from extensor._arrow.location import Location
from extensor._memory import array_over
from extensor._path import Path
from extensor._typing import FieldValue


class TimeType(NumberType):
    """Dates, times of day, timestamps and durations, as the number of units."""

    @property
    def dtype(self) -> tf.DType:
        """int32 or int64, of the width of the Arrow type."""
        return tf.int32 if self.arrow.bit_width == 32 else tf.int64

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        if not is_flat(value) or not value.dtype.is_integer:
            return super()._write(value, path)
        if value.dtype == self.dtype:
            return buffers.numbers_out(value, self.arrow)
        width = pa.int32() if self.dtype == tf.int32 else pa.int64()
        return self._cast_numbers(value, width, path).view(self.arrow)


class SmallDecimalType(TimeType):
    """Decimals of 32 and 64 bits, as int64 numbers without the decimal point.

    With scale 2, 1.25 is 125.
    """

    @property
    def dtype(self) -> tf.DType:
        """int64, the dtype of all decimals of at most 18 digits."""
        return tf.int64

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        if self.arrow.bit_width == 64:
            return super()._read(array, location)
        return tf.cast(buffers.numbers_in(array, tf.int32), tf.int64)

    def _write_same(self, value: FieldValue, path: Path) -> pa.Array:
        return self._write(value, path)

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        if self.arrow.bit_width == 64 or not is_flat(value) or not value.dtype.is_integer:
            array = super()._write(value, path)
        else:
            array = self._cast_numbers(value, pa.int32(), path).view(self.arrow)
        return checked_digits(array, self, value, path)


class LargeDecimalType(ColumnType):
    """Decimals of 128 and 256 bits, as integers without the decimal point.

    Up to 18 digits they are int64. Decimals of more digits do not fit: each becomes 2 or 4 int64
    numbers of 64 bits, the lowest first, in two's complement. So the first alone is the integer,
    where it fits into int64.
    """

    @property
    def _limbs(self) -> int:
        return self.arrow.bit_width // 64

    @property
    def _is_narrow(self) -> bool:
        return self.arrow.precision <= 18

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of integers, or of rows of 2 or 4 integers."""
        return tf.TensorSpec([count] if self._is_narrow else [count, self._limbs], tf.int64)

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        rows = buffers.rows_in(array, self._limbs)
        if not self._is_narrow:
            return rows
        numbers = array_over(rows)
        is_wide = (numbers[:, 1:] != numbers[:, :1] >> 63).any(axis=1)
        if (is_wide if location.hidden is None else is_wide & ~location.hidden).any():
            digits = self.arrow.precision
            raise buffers.corrupt(location.path, f"decimals of {digits} digits", "more digits")
        return tf.convert_to_tensor(np.ascontiguousarray(numbers[:, 0]))

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        if is_flat(value) and value.dtype.is_integer and value.dtype != tf.uint64:
            low = array_over(value).astype(np.int64)[:, np.newaxis]
            rows = np.concatenate([low, np.repeat(low >> 63, self._limbs - 1, axis=1)], axis=1)
            buffer = pa.py_buffer(rows)
        elif self._is_rows(value):
            buffer = buffers.buffer_of(value)
        else:
            return super()._write(value, path)
        result = pa.Array.from_buffers(self.arrow, int(value.shape[0]), [None, buffer])
        return checked_digits(result, self, value, path)

    def _is_rows(self, value: FieldValue) -> bool:
        return (
            isinstance(value, tf.Tensor)
            and value.dtype == tf.int64
            and value.shape.rank == 2
            and value.shape[1] == self._limbs
        )


class IntervalType(ColumnType):
    """Intervals of months, days and nanoseconds, as rows of these three numbers."""

    _LAYOUT = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of rows of three integers."""
        return tf.TensorSpec([count, 3], tf.int64)

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        if len(array) == 0:
            return tf.zeros([0, 3], tf.int64)
        buffer, start = array.buffers()[1], array.offset * self._LAYOUT.itemsize
        parts = np.frombuffer(buffer, self._LAYOUT, len(array), start)
        names = self._LAYOUT.names or ()
        return tf.convert_to_tensor(np.stack([parts[n].astype(np.int64) for n in names], axis=1))

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        is_rows = isinstance(value, tf.Tensor) and value.shape.rank == 2 and value.shape[1] == 3
        if not is_rows or value.dtype != tf.int64:
            raise self.not_convertible(value, path)
        numbers = array_over(value)
        if (numbers[:, :2] != numbers[:, :2].astype(np.int32)).any():
            raise self.not_convertible(value, path)
        parts = np.empty(len(numbers), self._LAYOUT)
        for i, name in enumerate(self._LAYOUT.names or ()):
            parts[name] = numbers[:, i]
        buffer = pa.py_buffer(parts.view(np.uint8))
        return pa.Array.from_buffers(self.arrow, len(numbers), [None, buffer])


def checked_digits(
    array: pa.Array, described: ColumnType, value: FieldValue, path: Path
) -> pa.Array:
    """Returns an array of decimals as it is, after checking their digits.

    Raises:
        DTypeError: If a decimal has more digits than its type (also a TypeError).
    """
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise described.not_convertible(value, path) from error
    return array
