"""The error for nulls in a column, and nulls below nulls.

`ColumnType.read` calls `refuse_nulls` before it reads a column. A nullable column without nulls is
accepted. So are nulls in values that are hidden: in a null record, or in a null list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from extensor._arrow import buffers
from extensor._arrow.arrow_type import (
    inner_fields,
    is_large_list,
    is_string_view,
    is_view,
    may_be_empty,
)
from extensor._arrow.location import Location
from extensor._arrow.masks import unpack_bits
from extensor._arrow.selection import expect_selectable, filter_lists
from extensor._path import Path
from extensor.errors import NullError


def valid_bits(array: pa.Array) -> np.ndarray[Any, Any] | None:
    """Returns which elements are not null, as booleans; None if no element is null."""
    nulls = array.null_count
    if not nulls:
        return None
    if nulls == len(array):  # also an array of Arrow's null type, which has no bits
        return np.zeros(nulls, np.bool_)
    return unpack_bits(array.buffers()[0], array.offset, len(array))


def refuse_nulls(array: pa.Array, location: Location) -> None:
    """Raises if there is a null in a column that no null around it hides.

    Raises:
        NullError: If there is a null; the error names the path and the first record with a null
            (also a ValueError).
    """
    valid = valid_bits(array)
    if valid is None:
        return
    nulls = ~valid if location.hidden is None else ~(valid | location.hidden)
    count = int(np.count_nonzero(nulls))
    if not count:
        return
    expected = "a column without nulls"
    received = (
        f"{count} null{'s' if count > 1 else ''}, the first in record "
        f"{location.record(int(np.argmax(nulls)))}"
    )
    fix = (
        None  # `refused_nulls` adds it
        if location.path
        else "Leave these records out before the conversion: an Arrow array has drop_null for it."
    )
    raise NullError(location.text() or "records", expected, received, fix)


def with_nulls(array: pa.Array, valid: np.ndarray[Any, Any], path: Path) -> pa.Array:
    """Returns an array with nulls where `valid` is False; null lists are empty.

    Args:
        array: An array without nulls, and without an offset.
        valid: A boolean for each element.
        path: The path of the column, for errors.
    """
    if valid.all():
        return array
    children = []
    if pa.types.is_fixed_size_list(array.type):
        children = [array.values]
    elif is_view(array.type):
        return _view_with_nulls(array, valid)
    elif may_be_empty(array.type):  # Parquet stores no values in null lists
        array = empty_hidden_lists(array, buffers.offsets_of(array, path), ~valid, path)
        children = [array.values]
    elif pa.types.is_struct(array.type):
        children = [array.field(i) for i in range(array.type.num_fields)]
    count = len(array.buffers()) if is_string_view(array.type) else array.type.num_buffers
    own = [_bits(valid), *array.buffers()[1:count]]
    return pa.Array.from_buffers(array.type, len(array), own, children=children or None)


def _view_with_nulls(array: pa.Array, valid: np.ndarray[Any, Any]) -> pa.Array:
    """Returns list views with nulls; null lists are empty, and their values stay."""
    offsets, sizes = array.buffers()[1:3]
    width = np.int64 if is_large_list(array.type) else np.int32
    sizes = np.where(valid, np.frombuffer(sizes, width, len(array)), 0).astype(width)
    own = [_bits(valid), offsets, pa.py_buffer(sizes)]
    return pa.Array.from_buffers(array.type, len(array), own, children=[array.values])


def _bits(valid: np.ndarray[Any, Any]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def with_hidden_lists_empty(
    array: pa.Array, offsets: np.ndarray[Any, Any], location: Location
) -> pa.Array:
    """Returns an array of lists in which lists that are null, or below a null, are empty.

    Args:
        array: An array of `list`, `large_list` or `map`; may be a slice.
        offsets: Its validated offsets.
        location: Its location; if elements are hidden there, its own nulls are too.

    Returns:
        The array itself if no such list has values.

    Raises:
        StructureError: If the values are not valid (also a ValueError).
    """
    hidden = location.hidden
    if hidden is None:
        if not array.null_count or _nulls_are_empty(array, offsets):
            return array
        hidden = ~unpack_bits(array.buffers()[0], array.offset, len(array))
    return empty_hidden_lists(array, offsets, hidden, location)


def _nulls_are_empty(array: pa.Array, offsets: np.ndarray[Any, Any]) -> bool:
    """Returns whether no null list has values; False also if finding out takes unpacked bits."""
    if array.offset % 8:
        return False
    filled = np.packbits(offsets[1:] != offsets[:-1], bitorder="little")
    valid = np.frombuffer(array.buffers()[0], np.uint8, len(filled), array.offset // 8)
    return not (filled & ~valid).any()


def empty_hidden_lists(
    array: pa.Array,
    offsets: np.ndarray[Any, Any],
    hidden: np.ndarray[Any, Any],
    path: Path | Location,
) -> pa.Array:
    """Returns an array of lists in which each hidden list is empty.

    Args:
        array: An array of `list`, `large_list` or `map`; may be a slice.
        offsets: Its validated offsets.
        hidden: Which lists are null, or below a null.
        path: The path of the column, for errors.

    Returns:
        The array itself if no hidden list has values.

    Raises:
        StructureError: If the values are not valid (also a ValueError).
    """
    filled = offsets[1:] != offsets[:-1]
    if not np.logical_and(filled, hidden, out=filled).any():  # as most writers leave null lists
        return array
    lengths = np.diff(offsets)
    hidden_lengths = lengths * hidden
    values = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    expect_selectable(values, path)
    kept = filter_lists(values, (offsets - offsets[0])[:-1], lengths, ~hidden)
    starts = np.zeros(len(offsets), offsets.dtype)
    np.cumsum(lengths - hidden_lengths, out=starts[1:])
    return pa.Array.from_buffers(
        array.type, len(array), [None, pa.py_buffer(starts)], children=[kept]
    )


def nulls_of(arrow: pa.DataType, count: int) -> pa.Array:
    """Returns nulls of a type; those of a union are in its first variant.

    `pa.nulls` makes arrays that are not valid of types with runs inside, and `pa.array` makes none
    of unions.
    """
    t = pa.types
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow, nulls_of(arrow.storage_type, count))
    if t.is_run_end_encoded(arrow):
        runs = min(count, 1)
        ends = pa.array([count] * runs, arrow.run_end_type)
        return pa.RunEndEncodedArray.from_arrays(ends, nulls_of(arrow.value_type, runs), type=arrow)
    if not t.is_nested(arrow):
        return pa.nulls(count, arrow)
    types = [field.type for field in inner_fields(arrow)]
    if t.is_union(arrow):
        codes = pa.py_buffer(np.full(count, arrow.type_codes[0], np.int8))
        if arrow.mode == "sparse":
            buffers, sizes = [None, codes], [count] * len(types)
        else:
            offsets = pa.py_buffer(np.arange(count, dtype=np.int32))
            buffers, sizes = [None, codes, offsets], [count] + [0] * (len(types) - 1)
    elif t.is_struct(arrow):
        buffers, sizes = [_no_bits(count)], [count] * len(types)
    elif t.is_fixed_size_list(arrow):
        buffers, sizes = [_no_bits(count)], [count * arrow.list_size]
    else:  # lists, views of lists, and maps
        if t.is_map(arrow):
            types = [pa.struct(inner_fields(arrow))]
        zeros = pa.py_buffer(np.zeros(count + 1, np.int64))
        buffers, sizes = [_no_bits(count), zeros, *([zeros] if is_view(arrow) else [])], [0]
    children = [nulls_of(inner, size) for inner, size in zip(types, sizes, strict=True)]
    return pa.Array.from_buffers(arrow, count, buffers, children=children)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Returns a batch of no records: Arrow makes none of types with runs or unions inside.

    >>> import pyarrow as pa
    >>> from extensor._arrow.nulls import empty_batch
    >>> len(empty_batch(pa.schema({"x": pa.dense_union([pa.field("y", pa.int64())])})))
    0
    """
    return pa.RecordBatch.from_arrays([nulls_of(each.type, 0) for each in schema], schema=schema)


def _no_bits(count: int) -> pa.Buffer | None:
    # Arrow takes a map for invalid if its entries have any bits.
    return pa.py_buffer(bytes((count + 7) // 8)) if count else None
