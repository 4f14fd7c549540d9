"""Dicts of plain Python values to Arrow, by Arrow's own converter, where it is right."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from extensor._arrow.arrow_type import holds, map_types

_SAMPLE = 256  # records
_DEPTH = 200
_MANY = 1_000_000  # values in a sample that may contain itself
_NATURAL = {pa.int64(): pa.int32(), pa.float64(): pa.float32()}
"""The Arrow types of the dtypes that Python's numbers get."""


def inferred(records: list[dict[Any, Any]]) -> pa.Array | None:
    """Returns records as an Arrow array with the dtypes of `constant`.

    Arrow's converter is faster than Python, and twice as fast where it need not infer the type:
    the first records give it. But it ignores keys that are not in the type, makes lists of sets
    and of named tuples, and does not distinguish Python's numbers from NumPy's. So all of these
    are checked.

    Args:
        records: Dicts, at least one.

    Returns:
        The array, or None if it might not be right; `Columns` converts any value, and tells why
        one does not convert.
    """
    sample = records[:_SAMPLE]
    if not _is_shallow(sample):
        return None
    try:
        array = pa.array(records, map_types(pa.infer_type(sample), _NATURAL.get))
        right = not holds(array.type, pa.types.is_null) and _is_right(array, records)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError):
        return None
    return array if right else None


def _is_shallow(values: list[Any]) -> bool:
    """Returns whether values are not nested too deeply for Arrow, which aborts the process then."""
    for _ in range(_DEPTH):
        types = set(map(type, values))
        if not types & {dict, list, tuple}:
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


def _is_right(array: pa.Array, values: Iterable[Any]) -> bool:
    """Returns whether Arrow made an array of all of the values, and of plain Python values.

    Args:
        array: What Arrow made of `values`.
        values: The column. It is read once.
    """
    kind, t = array.type, pa.types
    if array.null_count:
        return False
    if t.is_struct(kind):
        records = list(values)
        return set(map(len, records)) <= {kind.num_fields} and all(
            _is_right(array.field(i), map(itemgetter(field.name), records))
            for i, field in enumerate(kind.fields)
        )
    if t.is_list(kind):
        lists = list(values)
        return set(map(type, lists)) <= {list, tuple} and _is_right(
            array.values, itertools.chain.from_iterable(lists)
        )
    if kind == pa.int32():
        return set(map(type, values)) <= {int}
    if kind == pa.float32():
        # An infinity may be a number that float32 cannot hold.
        return set(map(type, values)) <= {int, float} and not np.isinf(array.to_numpy()).any()
    # The names of fields may be bytes; the first value shows it.
    return (t.is_string(kind) or t.is_binary(kind) or t.is_boolean(kind)) and (
        next(iter(values), "") is not None
    )
