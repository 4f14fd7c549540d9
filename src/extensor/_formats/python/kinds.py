"""The kinds of Python values that a column may have: records, lists, numbers, strings, ..."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
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


def _is_number(cls: type) -> bool:
    try:
        dtype = tf.dtypes.as_dtype(np.dtype(cls))
    except TypeError:
        return False
    return dtype.is_floating or dtype.is_integer or dtype.is_complex


def plain(values: Any, types: set[type]) -> tuple[Any, set[type]]:
    """Returns a column with members of enums, and arrays without dimensions, replaced by values.

    Args:
        values: The column.
        types: The types in the column.
    """
    arrays = np.ndarray in types and any(
        type(value) is np.ndarray and not value.ndim for value in values
    )
    if not arrays and not any(issubclass(cls, enum.Enum) for cls in types):
        return values, types
    replaced = [_plain(value) for value in values]
    return replaced, set(map(type, replaced))


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if type(value) is np.ndarray and not value.ndim:
        return value[()]
    return value
