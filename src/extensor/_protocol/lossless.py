"""Checks that a conversion to a tensor does not silently lose data.

TensorFlow refuses to convert `[1.5]` to integers, but converts `np.array([1.5])`. The check refuses
both. It accepts the usual conversions: an integer to a float, and a float64 rounded to a float32.
"""

from __future__ import annotations

import functools
from typing import Any, cast

import numpy as np
import tensorflow as tf

from extensor._tf import CompositeTensor
from extensor._typing import TensorLike, Value
from extensor.errors import DTypeError, ExtensorError, NullError, StructureError


def lossless(value: TensorLike, dtype: tf.DType | None, path: str) -> tf.Tensor:
    """Returns a value that TensorFlow converts to a dtype without loss of data.

    Args:
        value: A value for `tf.convert_to_tensor`, which itself raises for a value of a wrong type.
        dtype: The dtype of the tensor; None for the value's own.
        path: The name of the value in errors.

    Returns:
        The value; an array of objects becomes a list.

    Raises:
        DTypeError: If fractions, imaginary parts or a mask would be lost, numbers would become
            bools, or a number is out of the dtype's range (also a TypeError).
        NullError: If nulls of Arrow, pandas or polars would become NaN (also a ValueError).

    >>> import numpy as np
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.lossless([1, 2], tf.float32, "Cup.grams")
    [1, 2]
    >>> xt.authoring.lossless(np.array([1.5]), tf.int32, "Cup.grams")
    Traceback (most recent call last):
    extensor.errors.DTypeError: Cup.grams: expected values that dtype int32 holds, got float64. ...
    """
    if type(value) is float and dtype in _WIDE and abs(value) < _FLOAT32_MAX:
        return value
    expect_no_nulls(value, path)
    if isinstance(value, (list, tuple)) and any(map(may_have_nulls, set(map(type, value)))):
        for column in cast("list[Value]", value):
            expect_no_nulls(column, path)
    if dtype is None or _numeric_rank(dtype) is None:
        return value
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        value = value.tolist()  # TensorFlow inspects the items of a list
    _expect_held(value, dtype, path)
    return value


def as_tensor(value: TensorLike, path: str, dtype: tf.DType | None = None) -> tf.Tensor:
    """Returns a value as a tensor, without loss of data, or raises an error that names it.

    Args:
        value: A value for `tf.convert_to_tensor`.
        path: The name of the value in errors.
        dtype: The dtype of the tensor; None for the value's own.

    Raises:
        DTypeError: As `lossless` does, or if the value has a type that no tensor has (also a
            TypeError).
        NullError: If nulls of Arrow, pandas or polars would become NaN (also a ValueError).
        StructureError: If lists differ in length or hold values of several types (also a
            ValueError).

    >>> import extensor as xt
    >>> xt.authoring.as_tensor([1, 2], "Cup.grams")
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>
    >>> xt.authoring.as_tensor([[1], [2, 3]], "Cup.grams")
    Traceback (most recent call last):
    extensor.errors.StructureError: Cup.grams: expected a tensor, or ..., got list. ...
    """
    value = lossless(value, dtype, path)
    try:
        return tf.convert_to_tensor(value, dtype)
    except ExtensorError:
        raise
    except (TypeError, ValueError) as error:
        kind = StructureError if isinstance(error, ValueError) else DTypeError
        expected = "a tensor, or a value that converts to a tensor"
        reason = str(error).strip().partition("\n")[0][:200]
        fix = (
            "Give all values one dtype, None a mask, and convert lists of different lengths with "
            f"tf.ragged.constant. TensorFlow says: {reason}"
        )
        raise kind(path, expected, type(value).__name__, fix) from error


def expect_no_nulls(value: Value, path: object) -> None:
    """Raises an error for an array with nulls, which TensorFlow converts to valid numbers.

    Args:
        value: Any value.
        path: The name of the value, or an object whose text is the name.
    """
    kind: Any = type(value)
    if not may_have_nulls(kind):
        return
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise _masked_error(str(path))
        return
    count: Any = 0
    array: Any = value
    if hasattr(kind, "null_count"):  # of Arrow, or of polars
        count = array.null_count() if callable(array.null_count) else array.null_count
    elif hasattr(kind, "isna"):
        if not isinstance(getattr(array, "dtype", None), _PLAIN_DTYPES):
            count = int(array.isna().sum())  # of pandas
    elif kind.__module__.startswith(("numpy", "tensorflow")):
        _WITHOUT_NULLS.add(kind)
    if count:
        expected = "values without nulls, because a tensor has no mask"
        received = f"a {kind.__qualname__} with {count} null{'s' * (count > 1)}"
        fix = (
            "Fill them first, or convert the table by xt.from_arrow or xt.from_pandas with "
            'nulls="mask", which makes MaskedTensors.'
        )
        raise NullError(str(path), expected, received, fix)


def may_have_nulls(kind: type) -> bool:
    """Returns whether a type may be that of an array with nulls.

    >>> from extensor._protocol.lossless import may_have_nulls
    >>> import numpy as np
    >>> may_have_nulls(np.ma.MaskedArray), may_have_nulls(np.ndarray)
    (True, False)
    """
    try:
        return kind not in _WITHOUT_NULLS and hasattr(kind, "__array__")
    except Exception:  # a class without a hash
        return hasattr(kind, "__array__")


def _masked_error(path: str) -> DTypeError:
    expected = "an array without a mask"
    fix = "Fill it first: value.filled(0). xt.types.MaskedTensor.from_numpy keeps masks."
    return DTypeError(path, expected, "a numpy.ma.MaskedArray with masked items", fix)


_WITHOUT_NULLS: set[type] = {float, int, bool, str, bytes, list, tuple, np.ndarray}
"""Types of no array with nulls. Those of NumPy and TensorFlow are added when a value is met."""
_PLAIN_DTYPES = (np.dtype, type(None))
"""The dtypes of arrays of pandas in which NaN is a number, and what a table has."""
_WIDE = frozenset([tf.float32, tf.float64])
_FLOAT32_MAX = 3.4e38


def _expect_held(value: Value, dtype: tf.DType, path: str) -> None:
    if isinstance(value, (tf.Tensor, tf.Variable)):  # inside a list, TensorFlow would cast it
        _expect_kind(value.dtype, dtype, path)
        return
    # `__tf_tensor__` gets the dtype and checks it. TensorFlow refuses composite tensors, but
    # np.asarray might iterate over all their items.
    if hasattr(value, "__tf_tensor__") or is_tensor_like(value):
        return
    try:
        array = np.asarray(value)
    except Exception:  # ragged lists, symbolic tensors, or any error that the items raise
        array = None
    is_list = isinstance(value, (list, tuple))
    # NumPy makes floats of integers of which only uint64 holds some, and others only int64.
    is_unsure = is_list and array is not None and array.dtype.kind == "f" and dtype.is_integer
    if array is not None and not array.dtype.hasobject and not is_unsure:
        _expect_array(array, dtype, path)
    elif is_list:
        for item in cast("Any", value):
            _expect_held(item, dtype, path)
    elif isinstance(value, int) and dtype == tf.uint64:
        # More than 64 bits. TensorFlow makes 2**64 - 1 of it from the second time on.
        fix = "Choose a wider dtype, or clip the values first."
        raise _not_held(dtype, "an int out of range", path, fix)


def _expect_array(array: np.ndarray[Any, Any], dtype: tf.DType, path: str) -> None:
    if not array.size:  # NumPy gives an empty list float64
        return
    if array.dtype.kind in "SU" and not dtype.is_bool:  # TensorFlow refuses strings, but for bool
        return
    try:
        given = tf.dtypes.as_dtype(array.dtype)
    except TypeError:  # datetime64, for example, which TensorFlow converts if a dtype is given
        raise _not_held(dtype, str(array.dtype), path) from None
    _expect_kind(given, dtype, path)
    if _overflows(array, dtype):
        fix = "Choose a wider dtype, or clip the values first."
        raise _not_held(dtype, f"{given.name} values out of range", path, fix)


def _overflows(array: np.ndarray[Any, Any], dtype: tf.DType) -> bool:
    """Returns whether an array has a number out of the range of a dtype.

    The dtype is of the kind of the array (bool, integer, float, complex) or of a wider kind.
    """
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
    rank, highest = _numeric_rank(given), _numeric_rank(dtype)
    if rank is None or (highest is not None and rank > highest):
        raise _not_held(dtype, given.name, path)


@functools.cache  # the properties of tf.DType are slow
def _numeric_rank(dtype: tf.DType) -> int | None:
    """Returns the rank of a dtype in bool < integer < float < complex; None for other dtypes."""
    kinds = (dtype.is_bool, dtype.is_integer, dtype.is_floating, dtype.is_complex)
    return kinds.index(True) if True in kinds else None


def _not_held(
    dtype: tf.DType,
    received: str,
    path: str,
    fix: str = "Round or cast the values first, so that the loss is explicit.",
) -> DTypeError:
    return DTypeError(path, f"values that dtype {dtype.name} holds", received, fix)


def is_tensor_like(value: object) -> bool:
    """Returns whether a value is a tensor or decomposes into tensors.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.is_tensor_like(tf.ragged.constant([[1]])), xt.authoring.is_tensor_like([1])
    (True, False)
    """
    try:
        return isinstance(value, (tf.Tensor, CompositeTensor))
    except Exception:  # isinstance of an ABC fails for a class that cannot be hashed
        return False
