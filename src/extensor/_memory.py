"""Memory that NumPy, Arrow and TensorFlow share.

TensorFlow's kernels assume that the memory of a tensor starts at a multiple of 64 bytes. A tensor
over other memory aborts the process in a later op. Therefore such memory is copied.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

ALIGNMENT = 64


class _View:
    """Exposes foreign memory to NumPy as an array, and keeps its owner alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: object, address: int, shape: tuple[int, ...], typestr: str) -> None:
        self.owner = owner
        # The array must not be marked read-only, because DLPack does not export read-only arrays.
        self.__array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "typestr": typestr,
            "version": 3,
        }


def tensor_at(
    owner: object, address: int, shape: tuple[int, ...], np_dtype: np.dtype[Any]
) -> tf.Tensor:
    """Returns a tensor that shares memory, or a copy if the memory is not aligned.

    Args:
        owner: The object that keeps the memory alive.
        address: The address of the first number.
        shape: The shape, of 1 element or more.
        np_dtype: A boolean, integer, floating point or complex dtype.
    """
    view = np.asarray(_View(owner, address, shape, np_dtype.str))
    if address % ALIGNMENT:
        # tf.constant copies twice, and takes twice as long for few numbers too.
        aligned = aligned_empty(view.size, np_dtype).reshape(shape)
        aligned[:] = view
        view = aligned
    return shared_tensor(view)


def shared_tensor(aligned: np.ndarray[Any, Any]) -> tf.Tensor:
    """Returns a tensor that shares the memory of an array from `aligned_empty`."""
    return tf.experimental.dlpack.from_dlpack(aligned.__dlpack__())


def aligned_empty(length: int, np_dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Returns a new vector that starts at a multiple of 64 bytes; its numbers may be anything."""
    # Arrow's memory does. To find such an address in memory of NumPy takes three times as long.
    return np.frombuffer(pa.allocate_buffer(length * np_dtype.itemsize), np_dtype)


def tensor_over(array: np.ndarray[Any, Any]) -> tf.Tensor:
    """Returns a vector that shares the memory of an array, or a copy.

    The memory is shared if the array is a contiguous vector of numbers or booleans in native byte
    order that starts at a multiple of 64 bytes. Do not write to the array as long as the tensor
    exists.

    >>> import numpy as np
    >>> import extensor as xt
    >>> xt.authoring.tensor_over(np.arange(3, dtype=np.int32))
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([0, 1, 2], dtype=int32)>
    """
    is_shareable = array.ndim == 1 and array.flags.c_contiguous and array.dtype.isnative
    if not is_shareable or array.size == 0 or array.dtype.kind not in "biufc":
        return tf.convert_to_tensor(array)
    return tensor_at(array, array.ctypes.data, array.shape, array.dtype)


def array_over(tensor: tf.Tensor) -> np.ndarray[Any, Any]:
    """Returns a read-only array that shares the memory of a tensor of numbers.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.array_over(tf.constant([1.5, 2.0])).flags.writeable
    False
    """
    return np.asarray(memoryview(tensor))


@functools.cache
def keep_freed_memory() -> None:
    """Makes glibc keep a few freed megabytes instead of returning them to the kernel at once.

    Tensors of many strings are large and short-lived. glibc maps each of them anew from the
    kernel, page by page, until the program has freed one block of that size; after that, it keeps
    such blocks for reuse. Freeing a block that was never written costs nothing, and makes repeated
    conversions a third faster: see the rows of from_arrow and strings in docs/bench.md. With other
    C libraries, this does nothing.
    """
    np.empty((32 << 20) - (64 << 10), np.uint8)  # the largest size with this effect
