"""Floats as JSON text, by orjson where it is installed: it takes half of the time of Arrow."""

# pyarrow makes most functions of pyarrow.compute when it is imported.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import contextlib
import functools
import importlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time

# Arrow writes an exponent from 1e10 on, and orjson only for larger numbers; of float64, orjson
# writes one below 1e-5, and Arrow below 1e-6.
_LARGE = 9e9
_SMALL = (9e-7, 1.1e-5)

_MOST = 1 << 26  # numbers: the text of more might not fit offsets of 32 bits

_COMMA, _COLON, _BRACKET = b",:]"

_Numbers = np.ndarray[Any, Any]


def float_texts(array: pa.Array) -> pa.StringArray:
    """Returns the shortest text of each float; a null stays null.

    Integers have a point, so that they are read as floats again. NaN is `nan`, and infinity `inf`.
    """
    numbers = _numbers(array.fill_null(0) if array.null_count else array)
    if numbers is None:
        return _of_arrow(array)
    data, ends = _write_array(numbers)
    ends -= np.arange(1, len(array) + 1)  # without the bracket and the commas
    data = np.frombuffer(data.tobytes().translate(None, b"[,]"), np.uint8)
    texts = _texts(data, [0], ends)
    others = ~_is_plain(numbers)
    if others.any():
        replaced = _of_arrow(pa.array(numbers[others], array.type))
        texts = pc.replace_with_mask(texts, pa.array(others), replaced)
    if array.null_count:
        texts = pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string()))
    return texts


def after_colons(array: pa.Array) -> pa.StringArray | None:
    """Returns the text of each float, with a colon before it, as in an object.

    Returns None where orjson does not write this text: of nulls and some numbers.
    """
    numbers = _plain_numbers(array)
    if numbers is None:
        return None
    data, ends = _write_array(numbers)
    data[0] = data[ends[:-1]] = _COLON  # in place of the bracket and the commas
    return _texts(data, [0], ends)


def closed_lists(items: pa.Array, lengths: _Numbers) -> pa.StringArray | None:
    """Returns the text of the items of each list, and the bracket that ends it.

    Returns None as `after_colons`, and for empty lists.

    Args:
        items: The items of all lists, one list after another.
        lengths: The number of items of each list.
    """
    numbers = _plain_numbers(items) if lengths.all() else None
    if numbers is None:
        return None
    data, ends = _write_array(numbers)
    ends = ends[np.cumsum(lengths) - 1]
    data[ends] = _BRACKET  # in place of the comma between two lists
    return _texts(data, [1], ends + 1)


def _texts(data: _Numbers, start: list[int], ends: _Numbers) -> pa.StringArray:
    offsets = pa.py_buffer(np.concatenate((start, ends), dtype=np.int32, casting="unsafe"))
    return pa.StringArray.from_buffers(len(ends), offsets, pa.py_buffer(data))


@functools.cache
def _orjson() -> Any:
    """Returns the module, which the extra `json` installs, or None."""
    with contextlib.suppress(ImportError):
        return importlib.import_module("orjson")
    return None


def _numbers(array: pa.Array) -> _Numbers | None:
    """Returns floats without nulls as orjson takes them, or None if it does not."""
    is_taken = array.type != pa.float16() and 0 < len(array) < _MOST
    return array.to_numpy() if is_taken and _orjson() is not None else None


def _plain_numbers(array: pa.Array) -> _Numbers | None:
    """Returns floats whose text orjson writes; None of nulls and other numbers."""
    numbers = None if array.null_count else _numbers(array)
    return numbers if numbers is not None and _is_plain(numbers).all() else None


def _write_array(numbers: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Returns numbers as one JSON array, and where each of them ends: at a comma or a bracket."""
    orjson = _orjson()
    text: bytes = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY)
    data = np.frombuffer(bytearray(text), np.uint8)
    is_end = data == _COMMA
    is_end[-1] = True
    return data, np.flatnonzero(is_end)


def _is_plain(numbers: _Numbers) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns which numbers are finite, and have the same text by Arrow and by orjson."""
    sizes = np.abs(numbers)
    plain = sizes < _LARGE
    if numbers.dtype == np.float64:
        plain &= (sizes < _SMALL[0]) | (sizes > _SMALL[1])
    return plain


def _of_arrow(array: pa.Array) -> pa.StringArray:
    text = array.cast(pa.string())
    if array.type == pa.float16():  # which Arrow does not compare
        array = array.cast(pa.float32())
    is_integer = pc.and_(pc.is_finite(array), pc.equal(pc.floor(array), array))
    if pc.any(is_integer).as_py():
        needs_point = pc.and_not(is_integer, pc.match_substring(text, "e"))
        text = pc.binary_join_element_wise(text, pc.if_else(needs_point, ".0", ""), "")
    return text
