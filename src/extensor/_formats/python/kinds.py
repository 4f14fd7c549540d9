"""The kinds of Python values that a column may have: records, lists, numbers, strings, ..."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._formats.python.objects import is_object_class
from extensor._protocol.lossless import is_tensor_like
from extensor._protocol.symbolic import is_symbolic

RECORD, LIST, STRING, BOOL, NUMBER, TENSOR, OTHER = (
    "a record",
    "a list",
    "a string",
    "a bool",
    "a number",
    "a tensor",
    "a value of another type",
)
DATE, DATETIME, TIME, DURATION, DECIMAL, UUID = (
    "a date",
    "a datetime",
    "a time",
    "a duration",
    "a decimal",
    "a UUID",
)

MEASURES: dict[type, str] = {
    # A datetime is a date too.
    datetime.datetime: DATETIME,
    np.datetime64: DATETIME,
    datetime.date: DATE,
    datetime.time: TIME,
    datetime.timedelta: DURATION,
    np.timedelta64: DURATION,
    decimal.Decimal: DECIMAL,
    uuid.UUID: UUID,
}
"""The kinds of values that Arrow converts, by class."""

_ARROW_KINDS: tuple[tuple[Any, str], ...] = (
    (pa.types.is_timestamp, DATETIME),
    (pa.types.is_date, DATE),
    (pa.types.is_time, TIME),
    (pa.types.is_duration, DURATION),
    (pa.types.is_decimal, DECIMAL),
)

_KINDS: dict[type, str] = {
    dict: RECORD,
    list: LIST,
    tuple: LIST,
    str: STRING,
    bytes: STRING,
    bool: BOOL,
    int: NUMBER,
    float: NUMBER,
    complex: NUMBER,
}


def kind_of(cls: type, values: Iterable[Any]) -> str:
    """Returns the kind of the values of a class.

    Args:
        cls: The class.
        values: The column, for classes whose values differ in kind.
    """
    found = _KINDS.get(cls)
    if found is not None:
        return found
    if hasattr(cls, "__tf_type_spec__"):
        return TENSOR
    if issubclass(cls, Mapping) or is_object_class(cls):
        return RECORD
    if issubclass(cls, enum.Enum):
        return OTHER  # `plain` replaces members by their values
    if issubclass(cls, (str, bytes, bytearray, memoryview)):
        return STRING
    if issubclass(cls, (bool, np.bool_)):
        return BOOL
    for measure, kind in MEASURES.items():
        if issubclass(cls, measure):
            return kind
    if issubclass(cls, np.generic):
        return NUMBER if _is_number(cls) else OTHER
    if issubclass(cls, (int, float, complex)):
        return NUMBER
    example = next(value for value in values if type(value) is cls)
    if is_tensor_like(example) or isinstance(example, tf.Variable) or is_symbolic(example):
        return TENSOR
    if issubclass(cls, (np.ndarray, Sequence)):
        return LIST
    return OTHER


def of_arrow(arrow: pa.DataType) -> str | None:
    """Returns the kind of the Python values of an Arrow type, if it is in `MEASURES`."""
    for is_kind, kind in _ARROW_KINDS:
        if is_kind(arrow):
            return kind
    return UUID if getattr(arrow, "extension_name", "") == "arrow.uuid" else None


def converts(kind: str, arrow: pa.DataType) -> bool:
    """Returns whether Python values of a kind are converted to an Arrow type in `MEASURES`.

    Numbers are decimals too, and dates are timestamps without a zone.
    """
    own = of_arrow(arrow)
    if own == DATETIME and kind == DATE:
        return arrow.tz is None
    return kind == own or (kind, own) == (NUMBER, DECIMAL)


def _is_number(cls: type) -> bool:
    try:
        dtype = tf.dtypes.as_dtype(np.dtype(cls))
    except TypeError:
        return False
    return dtype.is_floating or dtype.is_integer or dtype.is_complex


def plain(values: Any, types: set[type]) -> tuple[Any, set[type]]:
    """Returns a column with members of enums, and arrays without dimensions, replaced by values.

    Days, hours and minutes of NumPy are replaced by what Arrow has, and times that are none (NaT)
    by None.

    Args:
        values: The column.
        types: The types in the column.
    """
    arrays = np.ndarray in types and any(
        type(value) is np.ndarray and not value.ndim for value in values
    )
    replaced_kinds = (enum.Enum, np.datetime64, np.timedelta64)
    if not arrays and not any(
        issubclass(cls, replaced_kinds) or cls.__name__ == "NaTType" for cls in types
    ):
        return values, types
    replaced = [_plain(value) for value in values]
    return replaced, set(map(type, replaced))


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if type(value) is np.ndarray and not value.ndim:
        value = value[()]
    if type(value).__name__ == "NaTType":  # of pandas, which need not be installed
        return None
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _numpy_time(value)
    return value


def _numpy_time(value: Any) -> Any:
    """Returns a time of NumPy in a unit of Arrow, a date as one of Python, and None for NaT."""
    if np.isnat(value):
        return None
    unit = np.datetime_data(value.dtype)[0]
    if isinstance(value, np.datetime64):
        return (
            value.astype("M8[s]")
            if unit in ("h", "m")
            else value.item()
            if unit in "YMWD"
            else value
        )
    return value.astype("m8[s]") if unit in ("W", "D", "h", "m") else value
