"""Casts of Arrow columns that keep the meaning of numbers."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from extensor._arrow.arrow_type import (
    contains_type,
    decoded_type,
    inner_fields,
    is_encoded,
    is_large_list,
    is_list,
    is_text,
    is_view,
    may_be_empty,
)
from extensor._arrow.encoded_types import decode, encode
from extensor._arrow.nulls import nulls_of
from extensor._arrow.selection import items_of
from extensor._path import Path
from extensor._raised import first_line
from extensor._struct.meaning import are_apart, different_meanings, meaning_of
from extensor.errors import DTypeError

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time


def cast_column(
    column: pa.Array | pa.ChunkedArray,
    arrow: pa.DataType,
    path: Path,
    fix: str,
    is_typed: bool = True,
) -> pa.Array | pa.ChunkedArray:
    """Returns a column as another Arrow type, by Arrow's safe cast.

    Args:
        column: An array or a chunked array.
        arrow: The type.
        path: The path of the column, for errors.
        fix: How to correct a cast that fails.
        is_typed: Whether the type of the column says what its numbers count.

    Raises:
        DTypeError: If the cast loses information, or the numbers of the type count something else
            (also a TypeError).
    """
    if is_typed:
        _expect_meaning(arrow, column.type, path)
    try:
        if isinstance(arrow, pa.UuidType) and is_text(column.type):
            column = _uuids(column)
        made = _cast(column, arrow)
    except (ValueError, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        expected = f"values of Arrow type {arrow}, as schema= says"
        received = f"Arrow type {column.type} ({first_line(error)})"
        raise DTypeError(path, expected, received, fix) from error
    # Of a number that is too large, Arrow makes an infinite one without an error.
    if contains_type(arrow, _is_narrow_float) and _num_infinite(made) > _num_infinite(column):
        received = f"Arrow type {column.type} (a number is too large)"
        raise DTypeError(path, f"values of Arrow type {arrow}, as schema= says", received, fix)
    return made


def _cast(array: pa.Array | pa.ChunkedArray, arrow: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Returns an array by Arrow's safe cast, also to types that Arrow has no cast to.

    These are unions, and, unless the values are text, dictionaries, runs and views of lists.
    """
    if array.type.equals(arrow):  # Arrow does not cast intervals, not even to their own type
        return array
    # Of slices of views of lists, Arrow makes lists with wrong offsets (pyarrow 26).
    made = _cast_inside(array, arrow) if contains_type(array.type, is_view) else None
    if made is not None:
        return made
    try:
        return array.cast(arrow)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        made = _cast_inside(array, arrow)
        if made is None:
            raise
        return made


def _cast_inside(array: Any, arrow: pa.DataType) -> pa.Array | pa.ChunkedArray | None:
    """Returns an array with the arrays inside it cast, or None if it has another structure."""
    t, have = pa.types, array.type
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([_cast(chunk, arrow) for chunk in array.chunks], arrow)
    if t.is_null(have):
        return nulls_of(arrow, len(array))
    if isinstance(have, pa.JsonType) and isinstance(arrow, pa.JsonType):
        return pa.ExtensionArray.from_storage(arrow, _cast(array.storage, arrow.storage_type))
    if is_encoded(have):
        return _cast(decode(array), arrow)
    if is_encoded(arrow):
        return encode(_cast(array, arrow.value_type), arrow)
    if array.offset:
        array = pa.concat_arrays([array, array.slice(0, 0)])
    wanted = inner_fields(arrow)
    if is_list(arrow) and may_be_empty(have) and not t.is_map(have) and may_be_empty(arrow):
        lengths = pc.list_value_length(array).fill_null(0).to_numpy()
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
        return _lists(offsets, _cast(items_of(array), arrow.value_type), arrow, array.is_null())
    if t.is_list(have) and t.is_map(arrow) and _is_of_pairs(have, wanted):
        array = _cast(array, pa.list_(pa.struct(wanted)))
        have = arrow
    if t.is_map(have) and t.is_map(arrow):
        inner, wanted = [array.values], [pa.field("entries", pa.struct(wanted))]
    elif t.is_fixed_size_list(have) and have.id == arrow.id and have.list_size == arrow.list_size:
        inner = [array.values]
    elif have.id == arrow.id and _names(have) == _names(arrow):
        inner = [array.field(i) for i in range(have.num_fields)]
    else:
        return None
    children = [_cast(one, field.type) for one, field in zip(inner, wanted, strict=True)]
    own = array.buffers()[: array.type.num_buffers]
    return pa.Array.from_buffers(arrow, len(array), own, children=children)


def _is_of_pairs(arrow: pa.DataType, wanted: list[pa.Field]) -> bool:
    """Returns whether a type is the lists of records that stand for a map, such as in awkward."""
    names = {field.name for field in inner_fields(arrow.value_type)}
    return pa.types.is_struct(arrow.value_type) and names == {field.name for field in wanted}


def _names(arrow: pa.DataType) -> object:
    """Returns the names of the fields of structs or unions, in their order; unions have codes."""
    codes = arrow.type_codes if pa.types.is_union(arrow) else ()
    return [field.name for field in inner_fields(arrow)], codes


def _lists(offsets: Any, items: pa.Array, arrow: pa.DataType, nulls: pa.Array) -> pa.Array:
    """Returns lists or views of lists of a type."""
    made = pa.array(offsets).cast(pa.int64() if is_large_list(arrow) else pa.int32())
    if not is_view(arrow):
        lists = pa.LargeListArray if is_large_list(arrow) else pa.ListArray
        return lists.from_arrays(made, items, type=arrow, mask=nulls)
    views = pa.LargeListViewArray if is_large_list(arrow) else pa.ListViewArray
    sizes = pc.subtract(made[1:], made[:-1])
    return views.from_arrays(made[:-1], sizes, items, type=arrow, mask=nulls)


def _is_narrow_float(arrow: pa.DataType) -> bool:
    arrow = decoded_type(arrow)
    return pa.types.is_floating(arrow) and arrow.bit_width < 64


def _num_infinite(column: pa.Array | pa.ChunkedArray) -> int:
    """Returns how many floats of a column, also in lists, records and unions, are infinite."""
    t, arrow = pa.types, column.type
    if isinstance(column, pa.ChunkedArray):
        return sum(map(_num_infinite, column.chunks))
    if is_encoded(arrow):
        return _num_infinite(decode(column))
    if t.is_floating(arrow):
        return pc.sum(pc.is_inf(column)).as_py() or 0
    if t.is_struct(arrow) or t.is_union(arrow):
        return sum(_num_infinite(column.field(i)) for i in range(arrow.num_fields))
    if t.is_map(arrow):
        return _num_infinite(column.items)
    return _num_infinite(items_of(column)) if is_list(arrow) else 0


def _uuids(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns the bytes of UUIDs of text."""
    found = [text if text is None else uuid.UUID(text).bytes for text in texts.to_pylist()]
    return pa.array(found, pa.binary(16))


def _expect_meaning(want: pa.DataType, have: pa.DataType, path: Path) -> None:
    """Raises a DTypeError if the numbers of a column count something else than wanted.

    Arrow itself takes a time without a zone for one of UTC, and drops the hours of a date.
    """
    meanings = meaning_of(want), meaning_of(have)
    if are_apart(*meanings):
        raise different_meanings(*meanings, path)
    want, have = decoded_type(want), decoded_type(have)
    wanted, found = inner_fields(want), inner_fields(have)
    if pa.types.is_struct(want) and pa.types.is_struct(have):
        types = {field.name: field.type for field in found}
        for field in wanted:
            if field.name in types:
                _expect_meaning(field.type, types[field.name], path / field.name)
        return
    for inner, other in zip(wanted, found, strict=False):
        _expect_meaning(inner.type, other.type, path)
