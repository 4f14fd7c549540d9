"""Elements of validated Arrow arrays at given places, also of types that Arrow cannot select."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from extensor._arrow.arrow_type import rejection
from extensor._arrow.location import Location
from extensor._path import Path

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time


def expect_selectable(array: pa.Array, path: Path | Location) -> None:
    """Raises unless all values inside an array are valid: selecting reads by inner offsets.

    Raises:
        StructureError: If they are not (also a ValueError).
    """
    try:
        array.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
        raise rejection(path, error) from error


def take_places(array: pa.Array, places: np.ndarray[Any, Any]) -> pa.Array:
    """Returns the elements of an array at given places."""
    try:
        return array.take(pa.array(places))
    except pa.ArrowNotImplementedError:  # string views and runs
        spans = [array.slice(place, 1) for place in places.tolist()]
        return pa.concat_arrays([array.slice(0, 0), *spans])


def filter_lists(
    array: pa.Array,
    starts: np.ndarray[Any, Any],
    lengths: np.ndarray[Any, Any],
    kept: np.ndarray[Any, Any],
) -> pa.Array:
    """Returns the values of some lists.

    Args:
        array: The values of all lists.
        starts: The start of each list.
        lengths: The length of each list.
        kept: Which lists are kept.
    """
    is_kept = np.repeat(kept, lengths)
    bits = pa.py_buffer(np.packbits(is_kept, bitorder="little"))  # faster than `pa.array`
    try:
        return array.filter(pa.Array.from_buffers(pa.bool_(), len(is_kept), [None, bits]))
    except pa.ArrowNotImplementedError:  # string views and runs
        spans = zip(starts[kept].tolist(), lengths[kept].tolist(), strict=True)
        return pa.concat_arrays([array.slice(0, 0), *(array.slice(*span) for span in spans)])


def items_of(array: pa.Array) -> pa.Array:
    """Returns the items of all lists that are not null, one list after another."""
    try:
        return array.flatten()
    except pa.ArrowNotImplementedError:  # null lists, and views, of extension types
        fixed = pa.types.is_fixed_size_list(array.type)
        size, first = (array.type.list_size, array.offset) if fixed else (0, 0)
        count = len(array)
        starts = size * np.arange(first, first + count) if fixed else array.offsets.to_numpy()
        sizes = pc.list_value_length(array).fill_null(0).to_numpy()
        before = np.cumsum(sizes) - sizes
        places = np.repeat(starts[:count] - before, sizes) + np.arange(sizes.sum())
        return take_places(array.values, places)
