"""Numbers in memory that NumPy, Arrow and TensorFlow share.

TensorFlow's kernels assume that a tensor begins at a multiple of 64 bytes: a tensor over memory
that does not aborts the process at some later op. Such memory is copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

ALIGNMENT = 64


class _View:
    """Lets NumPy see foreign memory as an array, keeping its owner alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: Any, address: int, length: int, typestr: str) -> None:
        self.owner = owner
        # DLPack exports no array that says of itself that it cannot be written to.
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (length,),
            "typestr": typestr,
            "version": 3,
        }


def tensor_at(owner: Any, address: int, length: int, np_dtype: np.dtype[Any]) -> tf.Tensor:
    """Returns a vector over memory, or over a copy of it where it is not aligned.

    Args:
        owner: What keeps the memory alive.
        address: Where the first number stands.
        length: How many numbers there are.
        np_dtype: Of integers, floats or complex numbers.
    """
    view = np.asarray(_View(owner, address, length, np_dtype.str))
    if address % ALIGNMENT:
        return tf.convert_to_tensor(view)  # copies, into memory of TensorFlow's own
    return tf.experimental.dlpack.from_dlpack(view.__dlpack__())


def tensor_over(array: np.ndarray[Any, Any]) -> tf.Tensor:
    """Returns a vector over the memory of an array, or over a copy of it.

    The memory is shared if the array is a contiguous vector of numbers in the machine's byte order
    and begins at a multiple of 64 bytes. Nobody may write to it as long as the tensor lives.

    >>> xt.authoring.tensor_over(np.arange(3, dtype=np.int32))
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([0, 1, 2], dtype=int32)>
    """
    is_shareable = array.ndim == 1 and array.flags.c_contiguous and array.dtype.isnative
    if not is_shareable or array.size == 0 or array.dtype.kind not in "iufc":
        return tf.convert_to_tensor(array)
    return tensor_at(array, array.ctypes.data, array.size, array.dtype)


def array_over(tensor: tf.Tensor) -> np.ndarray[Any, Any]:
    """Returns a tensor of numbers as an array over its memory, which cannot be written to.

    >>> xt.authoring.array_over(tf.constant([1.5, 2.0])).flags.writeable
    False
    """
    return np.asarray(memoryview(tensor))
