"""Columns of single Python values: strings, values that Arrow converts, and tensors."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._formats.python.kinds import converts, kind_of_value, plain
from extensor._formats.python.place import Place, show
from extensor._formats.python.unfit import expect_one_zone, first_failing
from extensor._protocol.casting import cast_value
from extensor.errors import (
    DTypeError,
    ExtensorError,
    FormatError,
    StructureError,
    UnsupportedTypeError,
)


def strings(values: Sequence[Any], types: set[type], place: Place) -> pa.Array:
    """Returns a column of str or of bytes."""
    text = all(issubclass(cls, str) for cls in types)
    if not types <= {str, bytes}:
        values = [v.tobytes() if isinstance(v, memoryview) else v for v in values]
        values = [bytes(v) if isinstance(v, bytearray) else v for v in values]
    try:
        return pa.array(values, pa.string() if text else pa.binary())
    except UnicodeEncodeError:
        index, value = first_failing(values, lambda v: v is None or v.encode("utf-8"))
        expected = "text that UTF-8 can encode"
        fix = "Encode it first, such as with value.encode('utf-8', 'surrogatepass')."
        raise FormatError(place.at(index), expected, f"str {ascii(value)[:40]}", fix) from None
    except pa.ArrowCapacityError:
        return pa.array(values, pa.large_string() if text else pa.large_binary())


def uuids(values: Sequence[Any], place: Place) -> pa.Array:
    """Returns a column of UUIDs, given as text or as 16 bytes, as bytes.

    Raises:
        DTypeError: If a text is no UUID (also a TypeError).
    """
    made: list[bytes | None] = []
    for index, value in enumerate(values):
        try:
            made.append(uuid.UUID(value).bytes if isinstance(value, str) else value)
        except ValueError:
            fix = "Write 32 hexadecimal digits."
            raise DTypeError(place.at(index), "a UUID, or its text", show(value), fix) from None
    return pa.array(made, pa.binary())


def by_arrow(values: Sequence[Any], place: Place) -> pa.Array:
    """Returns values of other types (dates, decimals) as Arrow converts them."""
    problem = "Arrow would make a list of it"
    expect_one_zone(values, None, place)
    _expect_times_without_zone(values, place)
    try:
        array = _with_nanoseconds(values, pa.array(values))
        if not pa.types.is_nested(array.type):
            return array
        index = next(i for i, value in enumerate(values) if value is not None)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        index, _ = first_failing(values, lambda value: pa.array([value]))
        problem = "Arrow says: " + str(error).split("\n", 1)[0][:200]
    expected = "a number, a string, a bool, a list, a record, or a value that Arrow converts"
    fix = f"Convert the value first. {problem}"
    raise UnsupportedTypeError(place.at(index), expected, show(values[index]), fix)


def time_or_decimal(value: Any, arrow: pa.DataType) -> pa.Scalar:
    """Returns a time or a decimal as a scalar of an Arrow type, without loss.

    Raises:
        DTypeError: If the type does not hold the value exactly, or holds other values (also a
            TypeError).
    """
    if pa.types.is_date(arrow) and isinstance(value, datetime.datetime):
        day = value.date()
        value = day if value == datetime.datetime.combine(day, datetime.time()) else value
    (given,), _ = plain([value], {type(value)})
    if not converts(kind_of_value(given), arrow):
        raise DTypeError("value", str(arrow), show(value), f"Give values that convert to {arrow}.")
    return times_or_decimals([given], arrow, Place())[0]


def times_or_decimals(values: Sequence[Any], arrow: pa.DataType, place: Place) -> pa.Array:
    """Returns times, decimals or UUIDs as an array of an Arrow type, without loss.

    Raises:
        DTypeError: If the type does not hold a value exactly (also a TypeError).
    """
    if pa.types.is_decimal(arrow):
        values = [_decimal(value) for value in values]
    elif pa.types.is_timestamp(arrow):
        values = [_datetime(value) for value in values]
    expect_one_zone(values, arrow, place)
    _expect_times_without_zone(values, place)
    # Arrow's conversion of Python times would cut their microseconds; its cast refuses that.
    own = None if pa.types.is_temporal(arrow) else arrow
    try:
        return _with_nanoseconds(values, pa.array(values, own)).cast(arrow)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        index, value = first_failing(values, lambda v: pa.array([v], own).cast(arrow))
        problem = str(error).split("\n", 1)[0][:200]
        expected = f"a value that {arrow} holds exactly"
        fix = f"Round it first, or choose another type. Arrow says: {problem}"
        raise DTypeError(place.at(index), expected, show(value), fix) from error


def _expect_times_without_zone(values: Sequence[object], place: Place) -> None:
    """Raises DTypeError for a time of day with a zone, which Arrow would leave out."""
    if datetime.time not in set(map(type, values)):
        return
    for index, value in enumerate(values):
        if isinstance(value, datetime.time) and value.tzinfo is not None:
            expected = "a time of day without a zone, as Arrow's times are"
            fix = "Give a datetime, or value.replace(tzinfo=None)."
            raise DTypeError(place.at(index), expected, show(value), fix)


def _with_nanoseconds(values: Sequence[Any], array: pa.Array) -> pa.Array:
    """Returns times, of which Arrow made an array of microseconds, with all their digits.

    Of the classes of times, those of pandas and of Google's clients have nanoseconds: the latter
    count the microseconds as nanoseconds too.
    """
    arrow = array.type
    kinds = (pa.types.is_timestamp, pa.types.is_duration, pa.types.is_time64)
    if not any(is_kind(arrow) for is_kind in kinds) or arrow.unit == "ns":
        return array
    name = "nanoseconds" if pa.types.is_duration(arrow) else "nanosecond"
    if not any(hasattr(cls, name) for cls in set(map(type, values))):
        return array
    found = [getattr(value, name, 0) for value in values]
    rest = [int(each) % 1000 if each == each else 0 for each in found]  # a NaT has a NaN
    if not any(rest):
        return array
    made = pa.duration("ns") if pa.types.is_duration(arrow) else pa.time64("ns")
    if pa.types.is_timestamp(arrow):
        made = pa.timestamp("ns", arrow.tz)
    numbers: list[int | None] = array.cast(pa.int64()).to_pylist()
    numbers = [n if n is None else n * 1000 + each for n, each in zip(numbers, rest, strict=True)]
    return pa.array(numbers, pa.int64()).view(made)


def _decimal(value: object) -> object:
    """Returns a number as a Decimal: of a float, the digits that Python prints."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return decimal.Decimal(repr(value))
    return decimal.Decimal(value) if isinstance(value, int) else value


def _datetime(value: object) -> object:
    """Returns a date as the datetime at which it begins."""
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime.combine(value, datetime.time())
    return value


def tensor_of_numbers(values: Sequence[Any], dtype: tf.DType, place: Place) -> tf.Tensor:
    """Returns a column of numbers as a tensor, of a dtype that Arrow lacks."""

    def convert(given: list[Any]) -> tf.Tensor:
        return cast_value(tf.TensorSpec([len(given)], dtype), given, place.text)

    try:
        return convert(list(values))
    except ExtensorError as error:
        index, value = first_failing(values, lambda v: convert([v]))
        raise DTypeError(place.at(index), dtype.name, show(value), error.fix) from error


def stacked_tensors(values: Sequence[Any], place: Place) -> tf.Tensor | tf.RaggedTensor:
    """Returns tensors, one for each record, as one tensor or RaggedTensor."""
    try:
        if any(isinstance(v, tf.RaggedTensor) for v in values):
            return tf.ragged.stack(list(values))
        tensors = [tf.convert_to_tensor(v) for v in values]
        if len({t.dtype for t in tensors}) == 1 and len({t.shape.rank for t in tensors}) == 1:
            return tf.ragged.stack(tensors) if tensors[0].shape.rank else tf.stack(tensors)
    except (TypeError, ValueError) as error:
        problem = str(error).split("\n", 1)[0][:200]
    else:
        problem = "; ".join(dict.fromkeys(f"{t.dtype.name}{t.shape}" for t in tensors))
    expected = "tensors of one dtype and rank, one for each record"
    fix = "Cast or reshape the tensors first."
    raise StructureError(place.text or "records", expected, problem, fix)
