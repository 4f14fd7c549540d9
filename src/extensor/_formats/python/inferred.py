"""Dicts of plain Python values to Arrow, by Arrow's own converter, where it is right."""

from __future__ import annotations

import itertools
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_INT32 = np.iinfo(np.int32)


def inferred(records: list[dict[Any, Any]]) -> pa.Array | None:
    """Returns records as an Arrow array with the dtypes of `constant`.

    Arrow's converter is several times faster than Python. But it makes lists of sets and of
    objects, and does not distinguish Python's numbers from NumPy's.

    Args:
        records: Dicts.

    Returns:
        The array, or None if it might not be right; `Columns` converts any value, and tells why
        one does not convert.
    """
    try:
        array = pa.array(records)
        return _narrowed(array, records)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError, AttributeError):
        return None


def _narrowed(array: pa.Array, values: list[Any]) -> pa.Array | None:
    """Returns an array with Python's numbers as int32 or float32. None if it might not be right.

    Args:
        array: What Arrow made of `values`.
        values: The column.
    """
    kind = array.type
    if array.null_count:
        return None
    if pa.types.is_struct(kind):
        if set(map(type, values)) - {dict}:
            return None
        children: list[pa.Array] = []
        for index, field in enumerate(kind.fields):
            child = array.field(index)
            # Strings need no check, and are the most.
            read = values[:1] if _is_text(field.type) else values
            column = list(map(itemgetter(field.name), read))
            narrow = _narrowed(child, column)
            if narrow is None:
                return None
            children.append(narrow)
        fields = [
            pa.field(f.name, child.type) for f, child in zip(kind.fields, children, strict=True)
        ]
        return pa.Array.from_buffers(pa.struct(fields), len(array), [None], children=children)
    if pa.types.is_list(kind):
        if set(map(type, values)) - {list, tuple}:
            return None
        if any(type(v) is not list for v in values) and any(hasattr(v, "_fields") for v in values):
            return None
        items = [] if _is_text(kind.value_type) else list(itertools.chain.from_iterable(values))
        narrow = _narrowed(array.values, items)
        if narrow is None:
            return None
        return pa.Array.from_buffers(
            pa.list_(narrow.type), len(array), array.buffers()[:2], children=[narrow]
        )
    if pa.types.is_null(kind):  # of empty lists
        return array.cast(pa.float32())
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return _narrow_numbers(array, set(map(type, values)))
    return array if _is_text(kind) or pa.types.is_boolean(kind) else None


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_binary(kind)


def _narrow_numbers(array: pa.Array, types: set[type]) -> pa.Array | None:
    if not types <= {int, float}:
        return None
    if not len(array):
        return array
    if pa.types.is_integer(array.type):
        found: Any = pc.min_max(array).as_py()  # pyright: ignore
        wide = found["min"] < _INT32.min or found["max"] > _INT32.max
        return array if wide else array.cast(pa.int32())
    numbers = array.to_numpy()
    with np.errstate(over="ignore"):
        narrow = numbers.astype(np.float32)
    if (np.isinf(narrow) & ~np.isinf(numbers)).any():
        return None  # an error
    return pa.array(narrow)
