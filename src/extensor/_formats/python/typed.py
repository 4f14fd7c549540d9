"""Dicts of Python values to Arrow as a spec wants them, by Arrow's own converter.

Arrow reads each value once, which Python cannot. But it ignores keys that are not in the type,
makes lists of sets, numbers of bools, and integers of floats. So these are checked, and nothing
else. `Columns` converts what Arrow refuses or might change, and names the place in its errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import holds
from extensor._arrow.natural_type import NUMBERS
from extensor._formats.python.place import Place
from extensor._formats.python.wanted import Fields, Leaf, Lists

_ARROW = {
    tf.bool: pa.bool_(),
    **{dtype: arrow for arrow, dtype in NUMBERS.items() if dtype != tf.float16},
}
_PART = 512  # records: those that Arrow has just read are in the processor's cache for the checks
_INTEGERS, _REALS = {int, type(None)}, {int, float, type(None)}


def typed(records: list[Any], wanted: Any, place: Place) -> tuple[pa.Array, dict[str, str]] | None:
    """Returns records as the Arrow array that a spec wants, and the policies for its nulls.

    Args:
        records: The records.
        wanted: What is wanted of them.
        place: Their place.

    Returns:
        None if Arrow might not convert them as `Columns` does.
    """
    if not isinstance(wanted, Fields):
        return None
    policies: dict[str, str] = {}
    try:
        kind = _type_of(wanted, place, lambda: iter(records), policies)
        array = None if kind is None else _array(records, kind, wanted)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError):
        return None  # Columns raises an error with the place of the value
    return None if array is None else (array, policies)


def _array(records: list[Any], kind: pa.DataType, wanted: Any) -> pa.Array | None:
    """Returns records as an array; None if Arrow might have changed values."""
    # Without lists, the checks are fast, and each part costs more than it saves.
    size = _PART if holds(kind, pa.types.is_list) else len(records)
    parts: list[pa.Array] = []
    for start in range(0, len(records), size) if records else [0]:
        part = records[start : start + size]
        array = pa.array(part, kind)
        if not isinstance(array, pa.Array) or not _is_right(array, lambda p=part: p, wanted):
            return None
        parts.append(array)
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _type_of(
    wanted: Any, place: Place, values: Callable[[], Iterator[Any]], policies: dict[str, str]
) -> pa.DataType | None:
    """Returns the Arrow type of a column, or None if `Columns` must convert it.

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
    if isinstance(wanted, Lists) and not wanted.nullable:
        items = lambda: itertools.chain.from_iterable(values())  # noqa: E731
        inner = _type_of(wanted.items, place.items(None), items, policies)
        if inner is None or (wanted.dense and wanted.size is None):
            return None
        return pa.list_(inner, wanted.size) if wanted.dense else pa.list_(inner)
    if not isinstance(wanted, Fields) or wanted.nullable:
        return None
    fields: list[tuple[str, pa.DataType]] = []
    for name, each in wanted.fields.items():
        of_field = lambda name=name: map(itemgetter(name), values())  # noqa: E731
        inner = _type_of(each, place.field(name), of_field, policies)
        if inner is None:
            return None
        fields.append((name, inner))
    return pa.struct(fields)


def _is_right(array: pa.Array, values: Callable[[], Iterable[Any]], wanted: Any) -> bool:
    """Returns whether Arrow made an array of all of the values as `Columns` would.

    Args:
        array: What Arrow made of the values.
        values: Returns the values. They are read only if Arrow might have changed them: reading
            takes most of the time.
        wanted: What the spec wants of them.
    """
    if array.null_count and not wanted.nullable:
        return False
    if isinstance(wanted, Fields):
        if not all(isinstance(each, Leaf) for each in wanted.fields.values()):
            # Inner records would read the values of all levels around them again.
            records = list(values())
            values = lambda: records  # noqa: E731
        # Arrow takes all records as it finds the first: as dicts or pairs, with names of text or
        # of bytes.
        first = next(iter(values()), None)
        return (
            (first is None or (isinstance(first, dict) and wanted.fields.keys() <= first.keys()))
            and set(map(len, values())) <= {len(wanted.fields)}
            and all(
                _is_right(array.field(i), lambda n=name: map(itemgetter(n), values()), each)
                for i, (name, each) in enumerate(wanted.fields.items())
            )
        )
    if isinstance(wanted, Lists):
        return set(map(type, values())) <= {list, tuple} and _is_right(
            array.values, lambda: itertools.chain.from_iterable(values()), wanted.items
        )
    if wanted.dtype.is_integer:
        return set(map(type, values())) <= _INTEGERS
    if not wanted.dtype.is_floating:
        return True  # Arrow takes no other values for strings and bools
    numbers = array.to_numpy(zero_copy_only=False)
    if np.isinf(numbers).any():
        return False  # it may be a number that float32 cannot hold
    # A bool would be 0 or 1.
    return not ((numbers == 0) | (numbers == 1)).any() or set(map(type, values())) <= _REALS
