"""Arrow buffers as tensors and back: without a copy where memory allows.

| Arrow | to a tensor | from a tensor |
| --- | --- | --- |
| integers, floats | shared, if the first value stands at a multiple of 64 bytes | shared |
| offsets of lists | shared, if aligned, starting at 0 and of the width asked for | shared |
| booleans (bits), strings | copied | copied |

What is not shared is copied; see `extensor._memory`. `tests/arrow/test_buffers.py` proves each
word "shared" by comparing addresses.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import is_large_string, is_list
from extensor._memory import array_over, tensor_at
from extensor._path import Path
from extensor.errors import FormatError, StructureError

# Where one way of making string tensors overtakes another (bench/strings.md).
_FEW = 512  # strings: below, an object array costs less than setting up an op
_LONG = 1536  # bytes on average: above, an object array is cheaper than substr
_ONE_BLOB = 1 << 23  # bytes: up to here all strings are cut from one blob
_BLOB = 1 << 18  # bytes of each blob above that, small enough for the allocator to reuse

_UTF8_HINT = "Give schema= with a binary type for this field if it holds bytes rather than text."


def numbers_in(array: pa.Array, dtype: tf.DType) -> tf.Tensor:
    """Returns an Arrow array of numbers without nulls as a tensor.

    Args:
        array: Of integers or floats; may be a slice.
        dtype: The dtype of the same memory layout.
    """
    if len(array) == 0:
        return tf.zeros([0], dtype)
    np_dtype = np.dtype(dtype.as_numpy_dtype)
    return _shared(array.buffers()[1], array.offset, len(array), np_dtype)


def _shared(buffer: pa.Buffer, first: int, length: int, np_dtype: np.dtype[Any]) -> tf.Tensor:
    return tensor_at(buffer, buffer.address + first * np_dtype.itemsize, length, np_dtype)


def booleans_in(array: pa.Array) -> tf.Tensor:
    """Returns an Arrow array of booleans without nulls as a tensor. Copies: Arrow packs bits."""
    return tf.convert_to_tensor(array.to_numpy(zero_copy_only=False))


def offsets_of(array: pa.Array, path: Path) -> np.ndarray[Any, Any]:
    """Returns the offsets of a list or string array as a NumPy view: one more than elements.

    Raises:
        StructureError: If they decrease or leave the memory that they point into (also a
            ValueError). Nothing may be read by such offsets.
    """
    large = pa.types.is_large_list(array.type) or is_large_string(array.type)
    dtype = np.dtype(np.int64 if large else np.int32)
    buffer = array.buffers()[1]
    if len(array) == 0 or buffer is None or buffer.size == 0:  # Arrow writes anything into these
        return np.zeros(len(array) + 1, dtype)
    first = array.offset
    if buffer.size < (first + len(array) + 1) * dtype.itemsize:
        raise _hostile(path, f"{first + len(array) + 1} offsets", "a shorter buffer")
    offsets = np.frombuffer(buffer, dtype, len(array) + 1, first * dtype.itemsize)
    if is_list(array.type):
        limit = len(array.values)
    else:
        data = array.buffers()[2]
        limit = 0 if data is None else data.size
    if offsets[0] < 0 or offsets[-1] > limit:
        raise _hostile(path, f"offsets from 0 to {limit}", f"{offsets[0]} to {offsets[-1]}")
    if (offsets[1:] < offsets[:-1]).any():
        raise _hostile(path, "offsets that never decrease", "a decrease")
    return offsets


def _hostile(path: Path, expected: str, received: str) -> StructureError:
    return StructureError(
        path=path,
        expected=expected,
        received=received,
        mend="The Arrow data is corrupt: Array.validate(full=True) tells more.",
    )


def row_splits_in(array: pa.Array, offsets: Any, dtype: tf.DType, path: Path) -> tf.Tensor:
    """Returns the offsets of a list array as row splits, which begin with 0.

    Shares Arrow's memory if it is asked for the width that the offsets have, and they begin with
    0 at an aligned address.

    Raises:
        StructureError: If int32 is asked for and does not hold them (also a ValueError).
    """
    np_dtype = np.dtype(dtype.as_numpy_dtype)
    buffer = array.buffers()[1]
    is_there = len(array) > 0 and buffer is not None and buffer.size > 0
    if is_there and offsets[0] == 0 and offsets.dtype == np_dtype:
        return _shared(buffer, array.offset, len(array) + 1, np_dtype)
    if np_dtype.itemsize < 8 and int(offsets[-1]) - int(offsets[0]) > np.iinfo(np.int32).max:
        raise StructureError(
            path=path,
            expected="at most 2**31 - 1 values under row_splits_dtype=tf.int32",
            received=f"{int(offsets[-1]) - int(offsets[0])}",
            mend="Leave row_splits_dtype out for int64.",
        )
    return tf.convert_to_tensor((offsets - offsets[0]).astype(np_dtype, copy=False))


def check_start(array: pa.Array, path: Path) -> None:
    """Raises if an array begins before its memory, which Arrow's own validation does not look at.

    Raises:
        StructureError: If so (also a ValueError). Arrow itself would end the process.
    """
    if array.offset < 0:
        raise _unheeded(path, "an offset of 0 or more", f"{array.offset}")


def check_fixed_size(array: pa.Array, path: Path) -> None:
    """Raises unless an array of lists of one size has all values that its slice asks for.

    Raises:
        StructureError: If it does not (also a ValueError). Arrow leaves the offset out of account.
    """
    needed = (array.offset + len(array)) * array.type.list_size
    if len(array.values) < needed:
        raise _unheeded(path, f"{needed} values", f"{len(array.values)}")


def _unheeded(path: Path, expected: str, received: str) -> StructureError:
    return StructureError(
        path=path,
        expected=expected,
        received=received,
        mend="Find out who wrote these buffers; nothing was read from them.",
    )


def strings_in(array: pa.Array, path: Path) -> tf.Tensor:
    """Returns an Arrow array of strings or bytes without nulls as a tensor. Always copies.

    Args:
        array: Of a string or binary type, large or not; may be a slice.
        path: Its path, for errors.
    """
    count = len(array)
    if count == 0:
        return tf.zeros([0], tf.string)
    offsets = offsets_of(array, path)
    first, last = int(offsets[0]), int(offsets[-1])
    total = last - first
    if total == 0:
        return tf.fill([count], "")
    data = array.buffers()[2]
    if count <= _FEW or total > _LONG * count:
        binary = pa.large_binary() if is_large_string(array.type) else pa.binary()
        as_bytes = pa.Array.from_buffers(binary, count, array.buffers(), offset=array.offset)
        return tf.constant(as_bytes.to_numpy(zero_copy_only=False))
    keep_freed_memory()
    view = memoryview(data)
    if total <= _ONE_BLOB:
        # A list of one blob: a bare bytes object takes a slow way through tf.constant.
        return tf.raw_ops.Substr(
            input=tf.constant([view[first:last].tobytes()]),
            pos=offsets[:-1] - first if first else offsets[:-1],
            len=np.diff(offsets),
        )
    return _cut_from_blobs(view, offsets, total)


def categories_in(array: pa.Array, words: tf.Tensor) -> tf.Tensor:
    """Returns an Arrow dictionary array of strings without nulls as a tensor of strings.

    Each word of the dictionary is converted once and copied to where it stands, which takes less
    than half of the time that converting as many strings takes.

    Args:
        array: A dictionary array whose indices are known to be right; may be a slice.
        words: Its dictionary.
    """
    if len(array) == 0:
        return tf.zeros([0], tf.string)
    indices = array.indices.cast(pa.int64() if _is_wide(array.type.index_type) else pa.int32())
    return tf.gather(words, indices.to_numpy())


def check_places(array: pa.Array, path: Path) -> None:
    """Raises unless the indices of an Arrow dictionary array point into its dictionary.

    Raises:
        StructureError: If one points outside (also a ValueError).
    """
    indices = array.indices.drop_null() if array.null_count else array.indices
    places, words = indices.to_numpy(), len(array.dictionary)
    if places.size and (places.min() < 0 or places.max() >= words):
        raise _hostile(path, f"indices below {words}, the size of the dictionary", "one outside")


def _is_wide(index_type: pa.DataType) -> bool:
    return index_type.bit_width == 64 or index_type == pa.uint32()


@functools.cache
def keep_freed_memory() -> None:
    """Lets the C library keep a few freed megabytes instead of giving them back at once.

    Tensors of many strings are large and short-lived. glibc maps each anew from the kernel, page
    by page, until it has seen a block of that size freed; then it keeps such blocks for reuse. A
    block that is freed untouched teaches it at no cost, and makes repeated conversions a third
    faster. Elsewhere this does nothing.
    """
    np.empty((32 << 20) - (64 << 10), np.uint8)  # the largest size that glibc learns from


def _cut_from_blobs(view: memoryview, offsets: Any, total: int) -> tf.Tensor:
    """Cuts strings from many blobs of about the same size, each holding as many strings."""
    count = len(offsets) - 1
    width = -(-count * _BLOB // total)  # strings in a blob
    blobs = -(-count // width)
    ends = np.full(blobs * width + 1, offsets[-1], offsets.dtype)
    ends[: count + 1] = offsets
    starts, stops = ends[0 : blobs * width : width], ends[width::width]
    parts = [view[i:j].tobytes() for i, j in zip(starts.tolist(), stops.tolist(), strict=True)]
    strings = tf.raw_ops.Substr(
        input=tf.constant(parts)[:, tf.newaxis],
        pos=ends[:-1].reshape(blobs, width) - starts[:, np.newaxis],
        len=np.diff(ends).reshape(blobs, width),
    )
    return tf.reshape(strings, [-1])[:count]


def numbers_out(tensor: tf.Tensor, arrow_type: pa.DataType) -> pa.Array:
    """Returns a vector of numbers as an Arrow array over the tensor's own memory."""
    length = int(tensor.shape[0])
    return pa.Array.from_buffers(arrow_type, length, [None, buffer_of(tensor)])


def buffer_of(tensor: tf.Tensor) -> pa.Buffer:
    """Returns the memory of a tensor of numbers as an Arrow buffer, which keeps it alive."""
    return pa.py_buffer(array_over(tensor).reshape(-1).view(np.uint8))


def booleans_out(tensor: tf.Tensor) -> pa.Array:
    """Returns a vector of booleans as an Arrow array. Copies: Arrow packs bits."""
    return pa.array(array_over(tensor), pa.bool_())


def strings_out(tensor: tf.Tensor, arrow_type: pa.DataType, path: Path) -> pa.Array:
    """Returns a vector of strings as an Arrow array. Always copies.

    Args:
        tensor: Of dtype string, rank 1.
        arrow_type: A string or binary type, large or not.
        path: Its path, for errors.

    Raises:
        FormatError: If text is asked for and a string is not UTF-8 (also a ValueError).
        StructureError: If the type's 32-bit offsets cannot hold the strings (also a ValueError).
    """
    count = int(tensor.shape[0])
    text = pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type)
    large = is_large_string(arrow_type)
    raw = pa.large_binary() if large else pa.binary()
    if count <= _FEW:
        array = pa.array(tensor.numpy(), raw)
        return _checked_text(array, arrow_type, path) if text else array
    blob: bytes = tf.raw_ops.ReduceJoin(
        inputs=tensor, reduction_indices=0, keep_dims=False, separator=""
    ).numpy()
    if not large and len(blob) > np.iinfo(np.int32).max:
        raise StructureError(
            path=path,
            expected=f"at most 2**31 - 1 bytes in an Arrow array of type {arrow_type}",
            received=f"{len(blob)}",
            mend="Give schema= with the large type, or write fewer records at a time.",
        )
    offsets = np.zeros(count + 1, np.int64 if large else np.int32)
    np.cumsum(array_over(tf.strings.length(tensor)), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(blob)]
    if text and not blob.isascii():
        return _checked_text(pa.Array.from_buffers(raw, count, buffers), arrow_type, path)
    return pa.Array.from_buffers(arrow_type, count, buffers)


def _checked_text(array: pa.Array, arrow_type: pa.DataType, path: Path) -> pa.Array:
    try:
        return array.cast(arrow_type)
    except pa.ArrowInvalid as error:
        raise FormatError(
            path=path,
            expected=f"text in UTF-8, as Arrow type {arrow_type} has it",
            received="bytes that are not UTF-8",
            mend=_UTF8_HINT,
        ) from error
