"""Checks of the components of a value: in NumPy if they are known, else as ops in a graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._memory import array_over
from extensor._typing import TensorLike
from extensor.errors import DTypeError, StructureError

_SMALLER = (np.int8, np.int16, np.uint8, np.uint16, np.uint32)


def integers(value: Any, path: str, rank: int | None = None) -> tf.Tensor:
    """Returns an integer tensor: of int32 for an int32 array or tensor, else of int64.

    As TensorFlow does, it takes arrays of all integers that fit, and tensors of int32 and int64.

    Args:
        value: A number, array, tensor or variable, or a list of numbers or scalar tensors.
        path: The name of the value in errors.
        rank: The required rank. Default: any rank.

    Raises:
        DTypeError: If the values are no integers, an array of uint64, or a tensor of another dtype
            (also a TypeError).
        StructureError: If the rank differs, or a list is ragged (also a ValueError).

    >>> import extensor as xt
    >>> xt.authoring.integers([0, 2, 3], "Recipe.row_splits", rank=1)
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([0, 2, 3])>
    >>> xt.authoring.integers([0.5], "Recipe.row_splits")
    Traceback (most recent call last):
    extensor.errors.DTypeError: Recipe.row_splits: expected int64 or int32, got float64. ...
    """
    if not isinstance(value, (tf.Tensor, tf.Variable, np.ndarray)):
        try:
            array: Any = np.asarray(value)
        except NotImplementedError:  # it has tensors of a graph
            array = tf.convert_to_tensor(value)
            return integers(
                tf.cast(array, tf.int64) if array.dtype == tf.int32 else array, path, rank
            )
        except ValueError as error:
            fix = "Give nested lists of equal lengths."
            raise StructureError(path, "integers", "lists of different lengths", fix) from error
        is_integer = array.dtype.kind == "i" or array.size == 0
        value = array.astype(np.int64) if is_integer else array
    if value.dtype not in (np.int64, np.int32, tf.int64, tf.int32):
        if not isinstance(value, np.ndarray) or value.dtype not in _SMALLER:
            fix = "Convert it with tf.cast(value, tf.int64)."
            raise DTypeError(path, "int64 or int32", value.dtype.name, fix)
        value = value.astype(np.int64)
    tensor = tf.convert_to_tensor(value)
    if rank is not None and tensor.shape.rank not in (rank, None):
        expected = "a vector" if rank == 1 else f"{rank} dimension(s)"
        received = f"shape {tensor.shape}"
        fix = (
            "Give a list of integers, or a tensor of rank 1." if rank == 1 else "Reshape it first."
        )
        raise StructureError(path, expected, received, fix)
    return tensor


def known_arrays(*tensors: TensorLike) -> list[Any] | None:
    """Returns numeric tensors as NumPy arrays over the same memory, or None in a graph.

    Use it in a constructor to check values in NumPy:

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> def check(splits):
    ...     arrays = xt.authoring.known_arrays(splits)
    ...     if arrays is not None:
    ...         xt.authoring.check_row_splits(arrays[0], None, "Recipe.row_splits")
    >>> check(tf.constant([0, 2, 1]))
    Traceback (most recent call last):
    extensor.errors.StructureError: Recipe.row_splits: expected splits that never decrease, ...

    Args:
        *tensors: Tensors of numbers, or placeholders of another library.

    Returns:
        Read-only arrays; None if the value of a tensor is not known.
    """
    if not all(hasattr(tensor, "numpy") for tensor in tensors):
        return None
    return [array_over(tensor) for tensor in tensors]


def assertions(path: str, checks: Iterable[tuple[Any, str]]) -> list[tf.Operation]:
    """Returns assertion ops for a graph, for use with `tf.control_dependencies`.

    Args:
        path: The name of the type, for the error texts.
        checks: Pairs of a condition, as a scalar bool tensor, and the error text.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @tf.function
    ... def positive(x):
    ...     checks = [(tf.reduce_all(x > 0), "amounts must be positive")]
    ...     with tf.control_dependencies(xt.authoring.assertions("Recipe", checks)):
    ...         return tf.identity(x)
    >>> positive(tf.constant([1, 2])).numpy()
    array([1, 2], dtype=int32)
    """
    return [tf.debugging.Assert(holds, [f"{path}: {text}"]) for holds, text in checks]
