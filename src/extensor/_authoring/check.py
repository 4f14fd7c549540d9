"""Checks of the parts of a value: at once where they are known, else by assertions in a graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._memory import array_over
from extensor.errors import DTypeError, StructureError


def integers(value: Any, path: str, rank: int | None = None) -> tf.Tensor:
    """Returns integers as a tensor: of int64, unless an array or tensor is of int32.

    Args:
        value: A number, list, array or tensor.
        path: What to call it in errors.
        rank: How many dimensions it must have. Default: any number.

    Raises:
        DTypeError: If it holds anything but integers of these dtypes (also a TypeError).
        StructureError: If it has another rank, or lists of different lengths (also a ValueError).

    >>> xt.authoring.integers([0, 2, 3], "Recipe.row_splits", rank=1)
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([0, 2, 3])>
    >>> xt.authoring.integers([0.5], "Recipe.row_splits")
    Traceback (most recent call last):
    extensor.errors.DTypeError: Recipe.row_splits: expected int64 or int32, got float64. ...
    """
    if not isinstance(value, (tf.Tensor, np.ndarray)):
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise StructureError(
                path=path,
                expected="integers",
                received="lists of different lengths",
                mend="Give one integer for each place.",
            ) from error
        is_integer = array.dtype.kind == "i" or array.size == 0
        value = array.astype(np.int64) if is_integer else array
    if value.dtype not in (np.int64, np.int32, tf.int64, tf.int32):
        raise DTypeError(
            path=path,
            expected="int64 or int32",
            received=value.dtype.name,
            mend="Give integers: tf.cast(value, tf.int64) makes them.",
        )
    tensor = tf.convert_to_tensor(value)
    if rank is not None and tensor.shape.rank not in (rank, None):
        raise StructureError(
            path=path,
            expected="a vector" if rank == 1 else f"{rank} dimension(s)",
            received=f"shape {tensor.shape}",
            mend="Give one integer for each place, in one dimension."
            if rank == 1
            else "Reshape it before.",
        )
    return tensor


def known_arrays(*tensors: Any) -> list[Any] | None:
    """Returns tensors of numbers as arrays over their memory, or None inside a graph.

    So a constructor checks in NumPy, where that is possible:

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
        Arrays that cannot be written to; None if one of the tensors is not known yet.
    """
    if not all(hasattr(tensor, "numpy") for tensor in tensors):
        return None
    return [array_over(tensor) for tensor in tensors]


def assertions(path: str, checks: Iterable[tuple[Any, str]]) -> list[Any]:
    """Returns assertions for a graph, to be used with `tf.control_dependencies`.

    Args:
        path: The type that is checked.
        checks: What must hold, as scalar bool tensors, each with a text that says so.

    >>> @tf.function
    ... def positive(x):
    ...     checks = [(tf.reduce_all(x > 0), "amounts must be positive")]
    ...     with tf.control_dependencies(xt.authoring.assertions("Recipe", checks)):
    ...         return tf.identity(x)
    >>> positive(tf.constant([1, 2])).numpy()
    array([1, 2], dtype=int32)
    """
    return [tf.debugging.Assert(holds, [f"{path}: {text}"]) for holds, text in checks]
