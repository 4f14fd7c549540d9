"""The kinds of Python values that a column may have: records, lists, numbers, strings, ..."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._formats.python.objects import names_of
from extensor._protocol.lossless import is_tensor_like
from extensor._protocol.symbolic import is_symbolic


class Kind(enum.Enum):
    """A kind of Python values, as errors name it. Its name is that of the variant of a union."""

    RECORD = "a record"
    LIST = "a list"
    STRING = "a string"
    BOOL = "a bool"
    NUMBER = "a number"
    TENSOR = "a tensor"
    DATE = "a date"
    DATETIME = "a datetime"
    TIME = "a time"
    DURATION = "a duration"
    DECIMAL = "a decimal"
    UUID = "a UUID"
    NULL = "null"
    OTHER = "a value of another type"


def _is_uuid(arrow: pa.DataType) -> bool:
    return getattr(arrow, "extension_name", "") == "arrow.uuid"


_OF_ARROW: tuple[tuple[tuple[type, ...], Kind, Callable[[pa.DataType], bool]], ...] = (
    # A datetime is a date too.
    ((datetime.datetime, np.datetime64), Kind.DATETIME, pa.types.is_timestamp),
    ((datetime.date,), Kind.DATE, pa.types.is_date),
    ((datetime.time,), Kind.TIME, pa.types.is_time),
    ((datetime.timedelta, np.timedelta64), Kind.DURATION, pa.types.is_duration),
    ((decimal.Decimal,), Kind.DECIMAL, pa.types.is_decimal),
    ((uuid.UUID,), Kind.UUID, _is_uuid),
)
"""The classes whose values Arrow converts, their kind, and which Arrow types have such values."""

_OF_PYTHON: dict[type, Kind] = {
    dict: Kind.RECORD,
    list: Kind.LIST,
    tuple: Kind.LIST,
    str: Kind.STRING,
    bytes: Kind.STRING,
    bool: Kind.BOOL,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    complex: Kind.NUMBER,
}


def kind_of(cls: type, values: Collection[object]) -> Kind:
    """Returns the kind of the values of a class.

    Args:
        cls: The class.
        values: The column, for classes whose values differ in kind.
    """
    found = _OF_PYTHON.get(cls)
    if found is not None:
        return found
    if hasattr(cls, "__tf_type_spec__"):
        return Kind.TENSOR
    if issubclass(cls, Mapping) or names_of(cls) is not None:
        return Kind.RECORD
    if issubclass(cls, enum.Enum):
        return Kind.OTHER  # `plain` replaces members by their values
    if issubclass(cls, (str, bytes, bytearray, memoryview)):
        return Kind.STRING
    if issubclass(cls, (bool, np.bool_)):
        return Kind.BOOL
    for classes, kind, _ in _OF_ARROW:
        if issubclass(cls, classes):
            return kind
    if issubclass(cls, np.generic):
        return Kind.NUMBER if _is_number(cls) else Kind.OTHER
    if issubclass(cls, (int, float, complex)):
        return Kind.NUMBER
    example = next(value for value in values if type(value) is cls)
    if is_tensor_like(example) or isinstance(example, tf.Variable) or is_symbolic(example):
        return Kind.TENSOR
    return Kind.LIST if issubclass(cls, (np.ndarray, Sequence)) else Kind.OTHER


def kind_of_value(value: object) -> Kind:
    """Returns the kind of a value."""
    return kind_of(type(value), [value])


def kind_of_arrow(arrow: pa.DataType | None) -> Kind | None:
    """Returns the kind of the Python values of an Arrow type, if Arrow converts such values."""
    if arrow is None:
        return None
    return next((kind for _, kind, is_type in _OF_ARROW if is_type(arrow)), None)


def class_of_arrow(arrow: pa.DataType) -> type | None:
    """Returns the class of the Python values of an Arrow type, as `kind_of_arrow`."""
    return next((classes[0] for classes, _, is_type in _OF_ARROW if is_type(arrow)), None)


def converts(kind: Kind, arrow: pa.DataType | None) -> bool:
    """Returns whether values of a kind are converted to an Arrow type of times, decimals or UUIDs.

    Numbers are decimals too, and dates are timestamps without a zone.
    """
    own = kind_of_arrow(arrow)
    if arrow is None or own is None:
        return False
    if own is Kind.DATETIME and kind is Kind.DATE:
        return arrow.tz is None
    return kind is own or (kind, own) == (Kind.NUMBER, Kind.DECIMAL)


def _is_number(cls: type) -> bool:
    try:
        dtype = tf.dtypes.as_dtype(np.dtype(cls))
    except TypeError:
        return False
    return dtype.is_floating or dtype.is_integer or dtype.is_complex


def plain(values: Sequence[object], types: set[type]) -> tuple[Sequence[object], set[type]]:
    """Returns a column with members of enums, and arrays without dimensions, replaced by values.

    Days, hours and minutes of NumPy are replaced by what Arrow has, and times that are none (NaT)
    by None.

    Args:
        values: The column.
        types: The types in the column.
    """
    has_arrays = np.ndarray in types and any(
        type(value) is np.ndarray and not value.ndim for value in values
    )
    replaced_kinds = (enum.Enum, np.datetime64, np.timedelta64)
    if not has_arrays and not any(
        issubclass(cls, replaced_kinds) or cls.__name__ == "NaTType" for cls in types
    ):
        return values, types
    replaced = [_plain(value) for value in values]
    return replaced, set(map(type, replaced))


def _plain(value: object) -> object:
    if isinstance(value, enum.Enum):
        return value.value
    if type(value) is np.ndarray and not value.ndim:
        value = value[()]
    if type(value).__name__ == "NaTType":  # of pandas, which need not be installed
        return None
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _time_of_numpy(value)
    return value


def _time_of_numpy(value: np.datetime64 | np.timedelta64) -> object:
    """Returns a time of NumPy in a unit of Arrow, a date as one of Python, and None for NaT."""
    if np.isnat(value):
        return None
    unit = np.datetime_data(value.dtype)[0]
    if isinstance(value, np.datetime64) and unit in "YMWD":
        return value.item()
    if unit in ("W", "D", "h", "m"):
        return value.astype("M8[s]" if isinstance(value, np.datetime64) else "m8[s]")
    return value
