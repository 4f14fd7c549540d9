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

_COMMA, _END = b",]"

_Numbers = np.ndarray[Any, Any]


def float_texts(array: pa.Array) -> pa.StringArray:
    """Returns the shortest text of each float; a null stays null.

    Integers have a point, so that they are read as floats again. NaN is `nan`, and infinity `inf`.
    """
    numbers = _numbers(array.fill_null(0) if array.null_count else array)
    if numbers is None:
        return _of_arrow(array)
    text, ends = _write_array(numbers)
    offsets = np.zeros(len(array) + 1, np.int32)
    offsets[1:] = ends - np.arange(1, len(array) + 1)  # without the bracket and the commas
    data = text.translate(None, b"[,]")
    texts = pa.StringArray.from_buffers(len(array), pa.py_buffer(offsets), pa.py_buffer(data))
    others = ~_is_plain(numbers)
    if others.any():
        replaced = _of_arrow(pa.array(numbers[others], array.type))
        texts = pc.replace_with_mask(texts, pa.array(others), replaced)
    if array.null_count:
        texts = pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string()))
    return texts


def closed_lists(items: pa.Array, lengths: _Numbers) -> pa.StringArray | None:
    """Returns the text of the items of each list, and the bracket that ends it.

    Returns None where orjson does not write this text: of empty lists, nulls and some numbers.

    Args:
        items: The items of all lists, one list after another.
        lengths: The number of items of each list.
    """
    numbers = None if items.null_count or not lengths.all() else _numbers(items)
    if numbers is None or not _is_plain(numbers).all():
        return None
    text, ends = _write_array(numbers)
    ends = ends[np.cumsum(lengths) - 1]
    data = np.frombuffer(bytearray(text), np.uint8)
    data[ends] = _END  # in place of the comma between two lists
    offsets = np.ones(len(lengths) + 1, np.int32)
    offsets[1:] = ends + 1
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(data))


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


def _write_array(numbers: _Numbers) -> tuple[bytes, _Numbers]:
    """Returns numbers as one JSON array, and where each of them ends: at a comma or a bracket."""
    orjson = _orjson()
    text: bytes = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY)
    commas = np.flatnonzero(np.frombuffer(text, np.uint8) == _COMMA)
    return text, np.append(commas, len(text) - 1)


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
