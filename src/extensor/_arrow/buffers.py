"""Conversion of Arrow buffers to tensors and back, without a copy where possible.

| Arrow | to a tensor | from a tensor |
| --- | --- | --- |
| integers, floats | shared, if the address of the first value is a multiple of 64 | shared |
| dates, times, durations, decimals of 32 and 64 bits | as integers | as integers |
| decimals of 128 and 256 bits | as integers, from 19 digits on; else copied | the same |
| offsets of lists | shared, if aligned, starting at 0 and of the requested width | shared |
| booleans (bits) | copied | copied |
| strings | copied | shared with the table that they came from, while it lives; else copied |

Everything else is copied; see `extensor._memory`. `tests/arrow/test_buffers.py` compares addresses
for each "shared" in the table.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import invalid, is_large_list, is_large_string
from extensor._arrow.location import Location
from extensor._arrow.strings_by_batch import INSIDE
from extensor._count_text import count_text
from extensor._memory import (
    aligned_empty,
    array_over,
    keep_freed_memory,
    shared_tensor,
    tensor_at,
    tensor_over,
)
from extensor._path import Path
from extensor.errors import FormatError, StructureError

# The limits at which another way of converting strings becomes faster (bench/strings.md).
_FEW = 512  # strings: up to here, an object array costs less than setting up an op
_LONG = 1536  # bytes on average: above, an object array is faster than substr

_MAX_BYTES = 2**31 - 1  # that offsets of 32 bits reach
_MAX_GATHERED = 2**31 - 1  # strings that GatherNd takes

# Compared as numbers, because the functions of pa.types take most of the time of small columns.
_STRING_KINDS = {t.id for t in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())}
_LARGE_KINDS = {t.id for t in (pa.large_string(), pa.large_binary(), pa.large_list(pa.null()))}
_NARROW, _WIDE = np.dtype(np.int32), np.dtype(np.int64)

_FIRST_CODE = -64
"""Bytes of UTF-8 from 0x80 to 0xBF, which are less as int8, are inside a character."""

_UTF8_HINT = "Give schema= with a binary type for this field if it holds bytes rather than text."


@functools.cache
def _numpy_dtype(dtype: tf.DType) -> np.dtype[Any]:
    return np.dtype(dtype.as_numpy_dtype)


def numbers_in(array: pa.Array, dtype: tf.DType, shape: tuple[int, ...] | None = None) -> tf.Tensor:
    """Returns an Arrow array of numbers without nulls as a tensor.

    Args:
        array: Of integers or floats; may be a slice.
        dtype: The dtype of the same memory layout.
        shape: The shape of the tensor. Default: a vector.
    """
    shape = (len(array),) if shape is None else shape
    if len(array) == 0:
        return tf.zeros(shape, dtype)
    return _share(array.buffers()[1], array.offset, shape, _numpy_dtype(dtype))


def rows_in(array: pa.Array, width: int) -> tf.Tensor:
    """Returns an array of values of `width` times 8 bytes as an int64 tensor `[n, width]`."""
    if len(array) == 0:
        return tf.zeros([0, width], tf.int64)
    return _share(array.buffers()[1], array.offset * width, (len(array), width), _WIDE)


def _share(
    buffer: pa.Buffer, first: int, shape: tuple[int, ...], np_dtype: np.dtype[Any]
) -> tf.Tensor:
    return tensor_at(buffer, buffer.address + first * np_dtype.itemsize, shape, np_dtype)


def booleans_in(array: pa.Array) -> tf.Tensor:
    """Returns an Arrow array of booleans as a tensor. Copies: Arrow packs bits.

    Nulls are False.
    """
    if array.null_count:
        array = array.fill_null(False)
    return tensor_over(array.to_numpy(zero_copy_only=False))


def offsets_of(array: pa.Array, path: Path | Location) -> np.ndarray[Any, Any]:
    """Returns the n + 1 offsets of a list or string array of n elements, as a NumPy view.

    Raises:
        StructureError: If the offsets decrease or point outside the values (also a ValueError).
            Reading by such offsets would be unsafe.
    """
    kind, count, first = array.type.id, len(array), array.offset
    dtype = _WIDE if kind in _LARGE_KINDS else _NARROW
    parts = array.buffers()
    buffer = parts[1]
    if count == 0 or buffer is None or buffer.size == 0:  # the contents may be anything
        return np.zeros(count + 1, dtype)
    if buffer.size < (first + count + 1) * dtype.itemsize:
        held = buffer.size // dtype.itemsize
        raise corrupt(path, f"{first + count + 1} offsets", f"a buffer of {held} offsets")
    offsets = np.frombuffer(buffer, dtype, count + 1, first * dtype.itemsize)
    if kind in _STRING_KINDS:
        data = parts[2]
        limit = 0 if data is None else data.size
    else:
        limit = len(array.values)
    if offsets[0] < 0 or offsets[-1] > limit:
        received = f"offsets from {offsets[0]} to {offsets[-1]}"
        raise corrupt(path, f"offsets from 0 to {limit}", received)
    if (offsets[1] < offsets[0]) if count == 1 else (offsets[1:] < offsets[:-1]).any():
        raise corrupt(path, "offsets that never decrease", "decreasing offsets")
    return offsets


def views_of(array: pa.Array, path: Path | Location) -> tuple[Any, Any]:
    """Returns the offsets and the sizes of an array of list views, as NumPy views.

    Raises:
        StructureError: If a list is not inside the values (also a ValueError).
    """
    dtype = np.dtype(np.int64 if is_large_list(array.type) else np.int32)
    if len(array) == 0:
        return np.zeros(0, dtype), np.zeros(0, dtype)
    parts: list[Any] = []
    for buffer in array.buffers()[1:3]:
        count = 0 if buffer is None else buffer.size // dtype.itemsize
        if buffer is None or count < array.offset + len(array):
            raise corrupt(
                path, count_text(array.offset + len(array), "lists"), f"a buffer of {count}"
            )
        parts.append(np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize))
    offsets, sizes = parts
    limit = len(array.values)
    if offsets.min() < 0 or sizes.min() < 0 or (sizes > limit - offsets.astype(np.int64)).any():
        raise corrupt(path, f"lists inside the {limit} values", "lists outside of them")
    return offsets, sizes


def corrupt(path: Path | Location, expected: str, received: str) -> StructureError:
    """Returns the error for Arrow data that contradicts itself."""
    fix = "The Arrow data is corrupt; Array.validate(full=True) gives details."
    return StructureError(path, expected, received, fix)


def row_splits_in(
    array: pa.Array, offsets: np.ndarray[Any, Any], dtype: tf.DType, path: Path | Location
) -> tf.Tensor:
    """Returns the offsets of a list array as row splits, which begin with 0.

    Shares Arrow's memory if the offsets have the requested dtype, begin with 0 and are aligned.

    Raises:
        StructureError: If the row splits do not fit into int32 (also a ValueError).
    """
    np_dtype = _numpy_dtype(dtype)
    if offsets.dtype == np_dtype and offsets[0] == 0 and len(array):
        buffer = array.buffers()[1]
        if buffer is not None and buffer.size:
            return _share(buffer, array.offset, (len(array) + 1,), np_dtype)
    return splits_in(offsets, dtype, path)


def splits_in(offsets: np.ndarray[Any, Any], dtype: tf.DType, path: Path | Location) -> tf.Tensor:
    """Returns offsets that are a NumPy array as row splits, which begin with 0. Copies.

    Raises:
        StructureError: If the row splits do not fit into int32 (also a ValueError).
    """
    np_dtype = _numpy_dtype(dtype)
    first, total = offsets[0], int(offsets[-1]) - int(offsets[0])
    if np_dtype.itemsize < 8 and total > np.iinfo(np.int32).max:
        expected = "at most 2**31 - 1 values with row_splits_dtype=tf.int32"
        fix = "Leave row_splits_dtype out for int64."
        raise StructureError(path, expected, f"{total} values", fix)
    splits = aligned_empty(len(offsets), np_dtype)
    if first:
        np.subtract(offsets, first, out=splits, casting="unsafe")
    else:
        np.copyto(splits, offsets, casting="unsafe")  # in two thirds of the time
    return shared_tensor(splits)


def check_start(array: pa.Array, path: Path) -> None:
    """Raises if an array has a negative offset. Arrow's own validation does not test this.

    Raises:
        StructureError: If the offset is negative (also a ValueError). Arrow itself would abort the
            process.
    """
    if array.offset < 0:
        raise invalid(path, "an array offset of 0 or more", f"offset {array.offset}")


def check_fixed_size(array: pa.Array, path: Path) -> None:
    """Raises unless an array of fixed-size lists has all values of its slice.

    Raises:
        StructureError: If values are missing (also a ValueError). Arrow's own validation ignores
            the offset of the slice.
    """
    needed = (array.offset + len(array)) * array.type.list_size
    if len(array.values) < needed:
        raise invalid(path, count_text(needed, "values"), count_text(len(array.values), "values"))


def strings_in(array: pa.Array, path: Path | Location) -> tf.Tensor:
    """Returns an Arrow array of strings or bytes without nulls as a tensor. Always copies.

    Args:
        array: An array of a string or binary type, large or not; may be a slice.
        path: The path of the column, or its location, for errors.
    """
    count = len(array)
    if count == 0:
        return tf.zeros([0], tf.string)
    if count <= _FEW:
        as_bytes = _bytes_in(array)
        try:
            as_bytes.validate(full=True)
            return tf.constant(as_bytes.to_numpy(zero_copy_only=False))
        except (pa.ArrowInvalid, pa.ArrowIndexError):  # `offsets_of` raises if it is no empty text
            pass
    offsets = offsets_of(array, path)
    first, last = int(offsets[0]), int(offsets[-1])
    total = last - first
    if total == 0:
        return tf.fill([count], "")
    if total > _LONG * count:
        return tf.constant(_bytes_in(array).to_numpy(zero_copy_only=False))
    keep_freed_memory()
    view = memoryview(array.buffers()[2])
    # A list of one blob, because tf.constant is slower with a single bytes object.
    source = tf.constant([view[first:last].tobytes()])
    starts = offsets[:-1] - first if first else offsets[:-1]
    sizes = aligned_empty(count, offsets.dtype)
    np.subtract(offsets[1:], offsets[:-1], out=sizes)
    return _cut(source, starts, sizes, path)


def _cut(
    source: tf.Tensor,
    starts: np.ndarray[Any, Any],
    sizes: np.ndarray[Any, Any],
    path: Path | Location,
) -> tf.Tensor:
    """Returns strings that are cut out of bytes, or what stands in their place until batches are.

    Args:
        source: The bytes of all strings, as a vector of one.
        starts: Where each string begins.
        sizes: The number of its bytes.
        path: The path of the column, or its location.
    """
    if isinstance(path, Location) and path.by_batch is not None and path.is_in_list:
        kept = path.by_batch.keep(source, starts, sizes)
        if kept is not None:
            return kept
    return tf.raw_ops.Substr(input=source, pos=tensor_over(starts), len=tensor_over(sizes))


def _bytes_in(array: pa.Array) -> pa.Array:
    """Returns an array of strings as bytes without nulls, which are the bytes at their offsets."""
    binary = pa.large_binary() if array.type.id in _LARGE_KINDS else pa.binary()
    parts = [None, *array.buffers()[1:]]
    return pa.Array.from_buffers(binary, len(array), parts, offset=array.offset)


def categories_in(array: pa.Array, words: pa.Array, path: Path | Location) -> tf.Tensor:
    """Returns an Arrow dictionary array of strings as a tensor of strings; nulls may be any string.

    Gathers short strings of the dictionary by the indices, and cuts others out of its bytes: each
    takes up to twice as long where the other one is used.

    Args:
        array: A dictionary array with validated indices; may be a slice.
        words: Its dictionary, of a string or binary type with offsets, without nulls.
        path: The path of the column, or its location, for errors.
    """
    if len(array) == 0:
        return tf.zeros([0], tf.string)
    indices = array.indices
    if array.null_count:
        if not len(words):
            return tf.fill([len(array)], "")
        indices = indices.fill_null(0)
    offsets = offsets_of(words, path)
    sizes = np.diff(offsets)
    keep_freed_memory()
    if sizes.max() <= INSIDE and 2 * len(words) < len(array) <= _MAX_GATHERED:
        if indices.type != pa.int32():
            indices = indices.cast(pa.int64())
        dtype = tf.int32 if indices.type == pa.int32() else tf.int64
        codes = numbers_in(indices, dtype, (len(array), 1))
        # GatherV2 takes 2.7 times the CPU time, in two threads.
        return tf.raw_ops.GatherNd(params=strings_in(words, path), indices=codes)
    places = indices.cast(pa.int64()).to_numpy()
    data = words.buffers()[2]
    view = b"" if data is None else memoryview(data)
    source = tf.constant([bytes(view[offsets[0] : offsets[-1]])])
    starts = (offsets[:-1] - offsets[0]).take(places)
    return _cut(source, starts, sizes.take(places), path)


def check_indices(array: pa.Array, path: Path) -> None:
    """Raises unless the indices of an Arrow dictionary array point into its dictionary.

    Raises:
        StructureError: If an index is out of range (also a ValueError).
    """
    indices, size = array.indices, len(array.dictionary)
    if array.null_count:
        # As reading does it: a damaged number of nulls may make `drop_null` drop other indices.
        indices = indices.fill_null(0) if size else indices.drop_null()
    numbers = indices.to_numpy()
    if numbers.size and (numbers.min() < 0 or numbers.max() >= size):
        received = f"indices from {numbers.min()} to {numbers.max()}"
        raise corrupt(path, f"indices from 0 to {size - 1}, for a dictionary of {size}", received)


def numbers_out(tensor: tf.Tensor, arrow_type: pa.DataType) -> pa.Array:
    """Returns a vector of numbers as an Arrow array that shares the tensor's memory."""
    buffer = buffer_of(tensor)
    # The static shape of a tensor takes longer to find than its size.
    length = 8 * buffer.size // arrow_type.bit_width
    return pa.Array.from_buffers(arrow_type, length, [None, buffer])


def buffer_of(tensor: tf.Tensor) -> pa.Buffer:
    """Returns the memory of a tensor of numbers as an Arrow buffer, which keeps it alive."""
    return pa.py_buffer(tensor)


def booleans_out(tensor: tf.Tensor) -> pa.Array:
    """Returns a vector of booleans as an Arrow array. Copies: Arrow packs bits."""
    return pa.array(array_over(tensor), pa.bool_())


def strings_out(tensor: tf.Tensor, arrow_type: pa.DataType, path: Path) -> pa.Array:
    """Returns a vector of strings as an Arrow array. Always copies.

    Args:
        tensor: A tensor of strings of rank 1.
        arrow_type: A string or binary type, large or not.
        path: The path of the field, for errors.

    Raises:
        FormatError: If `arrow_type` is text and a string is not UTF-8 (also a ValueError).
        StructureError: If the strings do not fit 32-bit offsets (also a ValueError).
    """
    count = int(tensor.shape[0])
    text = pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type)
    large = is_large_string(arrow_type)
    raw = pa.large_binary() if large else pa.binary()
    if count <= _FEW:
        strings = tensor.numpy()
        if not large:  # of more bytes, Arrow makes several arrays
            _expect_fits(sum(map(len, strings)), arrow_type, path)
        array = pa.array(strings, raw)
        return _checked_text(array, arrow_type, path) if text else array
    blob: bytes = tf.raw_ops.ReduceJoin(
        inputs=tensor, reduction_indices=0, keep_dims=False, separator=""
    ).numpy()
    if not large:
        _expect_fits(len(blob), arrow_type, path)
    offsets = np.zeros(count + 1, np.int64 if large else np.int32)
    np.cumsum(array_over(tf.strings.length(tensor)), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(blob)]
    array = pa.Array.from_buffers(raw if text else arrow_type, count, buffers)
    return _checked_text(array, arrow_type, path) if text else array


def _expect_fits(size: int, arrow_type: pa.DataType, path: Path) -> None:
    """Raises StructureError if strings have too many bytes for 32-bit offsets."""
    if size > _MAX_BYTES:
        expected = f"at most 2**31 - 1 bytes in an Arrow array of type {arrow_type}"
        fix = "Give schema= with the large type, or write fewer records at a time."
        raise StructureError(path, expected, f"{size} bytes", fix)


def as_text(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Returns strings or bytes as text, without a copy, if they are UTF-8.

    Args:
        array: Strings or bytes with offsets.
        arrow_type: The type of text with offsets of the same width.

    Raises:
        pa.ArrowInvalid: If they are not UTF-8.
        StructureError: If the offsets decrease or point outside the bytes (also a ValueError).
    """
    text = pa.Array.from_buffers(arrow_type, len(array), array.buffers(), offset=array.offset)
    # Arrow checks each string alone, which takes 4 times as long, and 50 times where all are ASCII.
    if not _is_text_at_once(text):
        text.validate(full=True)
    return text


def _is_text_at_once(text: pa.Array) -> bool:
    """Returns whether the bytes of all strings are UTF-8, and each begins with a character."""
    offsets = offsets_of(text, Path())
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last:
        return True
    data = text.buffers()[2]
    codes = np.frombuffer(data, np.int8)
    if codes[first:last].min() >= 0:  # ASCII
        return True
    starts = offsets[: np.searchsorted(offsets, last)]
    if (codes[starts] < _FIRST_CODE).any():
        return False
    ends = pa.py_buffer(offsets[[0, -1]])
    try:
        pa.Array.from_buffers(text.type, 1, [None, ends, data]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _checked_text(array: pa.Array, arrow_type: pa.DataType, path: Path) -> pa.Array:
    try:
        return as_text(array, arrow_type)
    except pa.ArrowInvalid as error:
        expected = f"text in UTF-8 for Arrow type {arrow_type}"
        raise FormatError(path, expected, "bytes that are not UTF-8", _UTF8_HINT) from error
