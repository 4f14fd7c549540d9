"""Dicts of plain Python values to Arrow, by Arrow's own converter, where it is right.

Arrow reads each value once, which Python cannot. But it ignores keys that are not in the type,
makes lists of sets and of named tuples, numbers of bools, and integers of floats, and does not
distinguish Python's numbers from NumPy's. So these are checked, and nothing else. `ColumnConverter`
converts what Arrow refuses or might change, and names the place in its errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import contains_type, map_types
from extensor._arrow.natural_type import NATURAL_NUMBERS
from extensor._formats.python.place import Place
from extensor._formats.python.wanted import Fields, Leaf, Wanted, WantedLists

_ARROW = {tf.bool: pa.bool_(), **NATURAL_NUMBERS}
del _ARROW[tf.float16]
_NATURAL = {pa.int64(): pa.int32(), pa.float64(): pa.float32()}
"""The Arrow types of the dtypes that Python's numbers get."""

_INFERRED = (*_NATURAL.values(), pa.bool_(), pa.string(), pa.binary())

_REFUSED = (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError)
_SAMPLE = 256  # records
_DEPTH = 200
_MANY = 1_000_000  # values in a sample that may contain itself
_PART = 512  # records: those that Arrow has just read are in the processor's cache for the checks


def infer_array(records: list[dict[Any, Any]]) -> pa.Array | None:
    """Returns records as an Arrow array with the dtypes of `constant`.

    Args:
        records: Dicts, at least one.

    Returns:
        None if Arrow might not convert them as `ColumnConverter` does.
    """
    sample = records[:_SAMPLE]
    if not _is_shallow(sample):
        return None
    try:
        arrow = map_types(pa.infer_type(sample), _NATURAL.get)
        return None if contains_type(arrow, _is_odd) else _array(records, arrow, None)
    except _REFUSED:
        return None


def array_of_type(
    records: list[Any], wanted: Wanted, place: Place
) -> tuple[pa.Array, dict[str, str]] | None:
    """Returns records as the Arrow array that a spec wants, and the policies for its nulls.

    Args:
        records: The records.
        wanted: What is wanted of them.
        place: Their place.

    Returns:
        None if Arrow might not convert them as `ColumnConverter` does.
    """
    if not isinstance(wanted, Fields):
        return None
    policies: dict[str, str] = {}
    try:
        arrow = _type(wanted, place, lambda: iter(records), policies)
        array = None if arrow is None else _array(records, arrow, wanted)
    except _REFUSED:
        return None
    return None if array is None else (array, policies)


def _is_shallow(values: list[Any]) -> bool:
    """Returns whether values are not nested too deeply for Arrow, which aborts the process then."""
    for _ in range(_DEPTH):
        if not set(map(type, values)) & {dict, list, tuple}:
            return True
        inner: list[Any] = []
        for value in values:
            if type(value) is dict:
                inner.extend(value.values())
            elif type(value) is list or type(value) is tuple:
                inner.extend(value)
        values = inner
        if len(values) > _MANY:
            return False
    return False


def _is_odd(arrow: pa.DataType) -> bool:
    """Returns whether `ColumnConverter` must convert values of an inferred type."""
    is_nested = pa.types.is_struct(arrow) or pa.types.is_list(arrow)
    return not is_nested and arrow not in _INFERRED


def _type(
    wanted: Wanted, place: Place, values: Callable[[], Iterator[Any]], policies: dict[str, str]
) -> pa.DataType | None:
    """Returns the Arrow type of a column, or None if `ColumnConverter` must convert it.

    Args:
        wanted: What is wanted of the column.
        place: Its place.
        values: Returns an iterator of its values. The first of them tells text from bytes.
        policies: Gets the policies for nulls.
    """
    if isinstance(wanted, Leaf) and wanted.arrow is None:
        if wanted.nullable:
            policies[place.text] = "mask"
        if wanted.dtype != tf.string:
            return _ARROW.get(wanted.dtype)
        first = next((value for value in values() if value is not None), "")
        return pa.string() if isinstance(first, str) else pa.binary()
    if isinstance(wanted, WantedLists) and not wanted.nullable:
        items = lambda: itertools.chain.from_iterable(values())  # noqa: E731
        inner = _type(wanted.items, place.items(None), items, policies)
        if inner is None or (wanted.dense and wanted.size is None):
            return None
        return pa.list_(inner, wanted.size) if wanted.dense else pa.list_(inner)
    if not isinstance(wanted, Fields) or wanted.nullable:
        return None
    fields: list[tuple[str, pa.DataType]] = []
    for name, each in wanted.fields.items():
        of_field = lambda name=name: map(itemgetter(name), values())  # noqa: E731
        inner = _type(each, place.field(name), of_field, policies)
        if inner is None:
            return None
        fields.append((name, inner))
    return pa.struct(fields)


def _array(records: list[Any], arrow: pa.DataType, wanted: Wanted | None) -> pa.Array | None:
    """Returns records as an array; None if Arrow might have changed values.

    Args:
        records: The records.
        arrow: The type of the array.
        wanted: What is wanted of the records; None if the type is inferred from them.
    """
    # Without lists, the checks are fast, and each part costs more than it saves.
    size = _PART if contains_type(arrow, pa.types.is_list) else len(records)
    parts: list[pa.Array] = []
    for start in range(0, len(records), size) if records else [0]:
        part = records[start : start + size]
        array = pa.array(part, arrow)
        if not isinstance(array, pa.Array) or not _is_right(array, lambda p=part: p, wanted):
            return None
        parts.append(array)
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _is_right(array: pa.Array, values: Callable[[], Iterable[Any]], wanted: Wanted | None) -> bool:
    """Returns whether Arrow made an array of all of the values as `ColumnConverter` would.

    Args:
        array: What Arrow made of the values.
        values: Returns the values. They are read only if Arrow might have changed them: reading
            takes most of the time.
        wanted: What is wanted of them; None if the type is inferred from them. Then numbers must be
            Python's, because those of NumPy have dtypes of their own.
    """
    arrow = array.type
    if array.null_count and (wanted is None or not wanted.nullable):
        return False
    if pa.types.is_struct(arrow):
        inner = wanted.fields if isinstance(wanted, Fields) else {}
        if any(pa.types.is_nested(field.type) for field in arrow.fields):
            # Inner records would read the values of all levels around them again.
            records = list(values())
            values = lambda: records  # noqa: E731
        # Arrow takes all records as it finds the first: as dicts or pairs, with names of text or
        # of bytes.
        first, names = next(iter(values()), None), [field.name for field in arrow.fields]
        return (
            (first is None or (isinstance(first, dict) and first.keys() >= set(names)))
            and set(map(len, values())) <= {len(names)}
            and all(
                _is_right(array.field(i), lambda n=n: map(itemgetter(n), values()), inner.get(n))
                for i, n in enumerate(names)
            )
        )
    if pa.types.is_list(arrow) or pa.types.is_fixed_size_list(arrow):
        items = wanted.items if isinstance(wanted, WantedLists) else None
        inner_values = lambda: itertools.chain.from_iterable(values())  # noqa: E731
        are_lists = set(map(type, values())) <= {list, tuple}
        return are_lists and _is_right(array.values, inner_values, items)
    if pa.types.is_integer(arrow):
        return set(map(type, values())) <= {int, type(None)}
    if not pa.types.is_floating(arrow):
        return True  # Arrow takes no other values for strings and bools
    numbers = array.to_numpy(zero_copy_only=False)
    if np.isinf(numbers).any():
        return False  # it may be a number that float32 cannot hold
    # A bool would be 0 or 1.
    is_sure = wanted is not None and not ((numbers == 0) | (numbers == 1)).any()
    return is_sure or set(map(type, values())) <= {int, float, type(None)}
