"""Masks of columns: made of Arrow's bits when they are first read, and shared between columns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._memory import aligned_empty, keep_freed_memory, shared_tensor, tensor_over

_LARGE = 1 << 20  # elements of a mask; the memory that they share is kept
_FEW = 64  # elements of a mask; making a tensor of them takes longer than finding one

# Elements: above, the kernel would map new memory for each temporary array.
_MANY = 1 << 17


def unpack_bits(bits: pa.Buffer | bytes, offset: int, count: int) -> np.ndarray[Any, Any]:
    """Returns so many bits from an offset on as booleans."""
    if count > _MANY:
        keep_freed_memory()
    first = offset // 8
    skipped = offset - 8 * first
    packed = np.frombuffer(bits, np.uint8)[first:]
    booleans = np.unpackbits(packed, count=skipped + count, bitorder="little")
    return booleans[skipped:].view(np.bool_)


class Masks:
    """The masks of one conversion. Columns share one if they have no nulls, or the same few."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Any, tf.Tensor] = {}

    def mask(self, valid: np.ndarray[Any, Any] | None, count: int) -> tf.Tensor:
        """Returns a mask as a tensor.

        Args:
            valid: Which elements are valid; None if all are.
            count: The number of elements.
        """
        if valid is not None and count > _FEW:
            return tensor_over(valid)
        key = count if valid is None else valid.tobytes()
        mask = self._known.get(key)
        if mask is None:
            mask = _all_true(count) if valid is None else tensor_over(valid)
            self._known[key] = mask
        return mask

    def maker(self, array: pa.Array) -> Callable[[], tf.Tensor]:
        """Returns a function that returns the mask of the bits of an array.

        It keeps a copy of these bits: the array may be a slice of much memory, such as a file.
        """
        bits = array.buffers()[0] if array.null_count else None
        if bits is None:
            return functools.partial(self._of_bits, None, 0, len(array))
        first, offset = divmod(array.offset, 8)
        own = bytes(memoryview(bits)[first : first + (offset + len(array) + 7) // 8])
        return functools.partial(self._of_bits, own, offset, len(array))

    def _of_bits(self, bits: bytes | None, offset: int, count: int) -> tf.Tensor:
        return self.mask(None if bits is None else unpack_bits(bits, offset, count), count)


def _all_true(count: int) -> tf.Tensor:
    """Returns a vector of True. Vectors that are not large share memory, which nobody writes to."""
    if not count:
        return tf.zeros([0], tf.bool)
    return shared_tensor(_trues()[:count] if count <= _LARGE else _new_trues(count))


@functools.cache
def _trues() -> np.ndarray[Any, Any]:
    return _new_trues(_LARGE)


def _new_trues(count: int) -> np.ndarray[Any, Any]:
    trues = aligned_empty(count, np.dtype(np.bool_))
    trues[:] = True
    return trues
