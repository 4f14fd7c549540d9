"""What is lost, without a word, where TensorFlow makes a tensor of a dtype.

It refuses to make integers of `[1.5]`, and makes them of `np.array([1.5])`. What loses nothing but
what everybody expects goes through: `1` becomes a float, and a float64 is rounded to a float32.
"""

from __future__ import annotations

import functools
from typing import Any, cast

import numpy as np
import tensorflow as tf

from extensor._tf import CompositeTensor
from extensor.errors import DTypeError


def lossless(value: Any, dtype: tf.DType | None, path: str) -> Any:
    """Returns a value that TensorFlow makes a tensor of without losing what is in it.

    Args:
        value: What `tf.convert_to_tensor` takes, or not: that it will say itself.
        dtype: The dtype of the tensor; None for the value's own.
        path: What to call the value.

    Returns:
        The value; a list where it is an array of objects.

    Raises:
        DTypeError: If fractions, imaginary parts or a mask would be lost, or numbers would become
            bools, or one is out of the dtype's range (also a TypeError).

    >>> xt.authoring.lossless([1, 2], tf.float32, "Cup.grams")
    [1, 2]
    >>> xt.authoring.lossless(np.array([1.5]), tf.int32, "Cup.grams")
    Traceback (most recent call last):
    extensor.errors.DTypeError: Cup.grams: expected values that dtype int32 holds, got float64. ...
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise DTypeError(
            path=path,
            expected="an array without a mask",
            received="one of numpy.ma, of which some is masked",
            mend="Fill it before: value.filled(0). xt.types.MaskedTensor.from_numpy keeps masks.",
        )
    if dtype is None or _place(dtype) is None:
        return value
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        value = value.tolist()  # a list, of which TensorFlow looks at the items
    _expect_held(value, dtype, path)
    return value


def _expect_held(value: Any, dtype: tf.DType, path: str) -> None:
    if isinstance(value, (tf.Tensor, tf.Variable)):  # one in a list, which TensorFlow would cast
        _expect_kind(value.dtype, dtype, path)
        return
    # The first is asked for the dtype itself; of the second TensorFlow makes no tensor, but NumPy
    # might take out all its items.
    if hasattr(value, "__tf_tensor__") or is_tensor_like(value):
        return
    try:
        array = np.asarray(value)
    except Exception:  # ragged lists, symbolic tensors, or whatever the items say
        array = None
    if array is not None and not array.dtype.hasobject:
        _expect_array(array, dtype, path)
    elif isinstance(value, (list, tuple)):
        for item in cast("Any", value):
            _expect_held(item, dtype, path)


def _expect_array(array: Any, dtype: tf.DType, path: str) -> None:
    if not array.size:  # an empty list has no dtype, and NumPy says float64
        return
    if array.dtype.kind in "SU" and not dtype.is_bool:  # the rest TensorFlow refuses itself
        return
    try:
        given = tf.dtypes.as_dtype(array.dtype)
    except TypeError:  # of times, for example, of which no tensor is made if no dtype is given
        raise _not_held(dtype, str(array.dtype), path) from None
    _expect_kind(given, dtype, path)
    if _overflows(array, dtype):
        mend = "Choose a wider dtype, or clip them before."
        raise _not_held(dtype, f"{given.name}, of which some is out of range", path, mend)


def _overflows(array: Any, dtype: tf.DType) -> bool:
    """Returns whether a number is out of the range of a dtype of its own kind, or a wider one."""
    if np.can_cast(array.dtype, dtype.as_numpy_dtype):
        return False
    if dtype.is_integer:
        return int(array.min()) < dtype.min or int(array.max()) > dtype.max
    try:
        with np.errstate(over="raise"):
            array.astype(dtype.as_numpy_dtype)
    except FloatingPointError:
        return True
    return False


def _expect_kind(given: tf.DType, dtype: tf.DType, path: str) -> None:
    place, last = _place(given), _place(dtype)
    if place is None or (last is not None and place > last):
        raise _not_held(dtype, given.name, path)


@functools.cache  # it takes long to tell the kind of a dtype
def _place(dtype: tf.DType) -> int | None:
    """Returns the place of a kind of numbers, of which each holds those before; None of others."""
    kinds = (dtype.is_bool, dtype.is_integer, dtype.is_floating, dtype.is_complex)
    return kinds.index(True) if True in kinds else None


def _not_held(
    dtype: tf.DType,
    received: str,
    path: str,
    mend: str = "Round or cast them before, so that it can be seen what is lost.",
) -> DTypeError:
    return DTypeError(
        path=path, expected=f"values that dtype {dtype.name} holds", received=received, mend=mend
    )


def is_tensor_like(value: Any) -> bool:
    """Returns whether a value is a tensor or decomposes into tensors.

    >>> xt.authoring.is_tensor_like(tf.ragged.constant([[1]])), xt.authoring.is_tensor_like([1])
    (True, False)
    """
    try:
        return isinstance(value, (tf.Tensor, CompositeTensor))
    except Exception:  # of a class of somebody else's, which has no hash
        return False
