"""Reductions and cumulative operations on MaskedTensors, which skip values that are not valid.

A result of nulls only is not valid. A sum or product of no values at all is what it is without a
mask; an extreme or a mean of no values is not valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from extensor._types.masked import item
from extensor._types.masked.check import Mask
from extensor._types.masked.value import Axes, MaskedTensor, Op
from extensor.dispatch import implements, name_of
from extensor.errors import DTypeError


class _Reduction(NamedTuple):
    """How an operation skips values.

    Attributes:
        neutral: The number that takes the place of values that are not valid.
        of_nothing: Whether the operation has a value for no values at all. So a mask without nulls
            does not change its results.
        ragged: Whether TensorFlow has it for RaggedTensors.
    """

    neutral: float
    of_nothing: bool = False
    ragged: bool = False


_REDUCTIONS = {
    tf.reduce_sum: _Reduction(0, of_nothing=True, ragged=True),
    tf.reduce_prod: _Reduction(1, of_nothing=True, ragged=True),
    tf.reduce_all: _Reduction(True, of_nothing=True, ragged=True),
    tf.reduce_any: _Reduction(False, of_nothing=True, ragged=True),
    tf.reduce_max: _Reduction(-np.inf, ragged=True),
    tf.reduce_min: _Reduction(np.inf, ragged=True),
    tf.reduce_mean: _Reduction(0, ragged=True),
    tf.math.reduce_variance: _Reduction(0, ragged=True),
    tf.math.reduce_std: _Reduction(0, ragged=True),
    tf.reduce_logsumexp: _Reduction(-np.inf, of_nothing=True, ragged=True),
    tf.math.reduce_euclidean_norm: _Reduction(0, of_nothing=True),
}
_OTHERS = {
    tf.norm: _Reduction(0, of_nothing=True),
    tf.math.count_nonzero: _Reduction(0),
    tf.argmax: _Reduction(-np.inf),
    tf.argmin: _Reduction(np.inf),
    tf.cumsum: _Reduction(0, ragged=True),
    tf.math.cumprod: _Reduction(1),
}
_RULES = {**_REDUCTIONS, **_OTHERS}
_MOMENTS = (tf.reduce_mean, tf.math.reduce_variance, tf.math.reduce_std)


def valid_mask(op: Op, x: MaskedTensor, axis: Axes, keepdims: bool) -> Mask:
    """Returns the mask of a reduction of dense values.

    Args:
        op: The reduction, which may have a value for no values at all.
        x: The MaskedTensor that is reduced.
        axis: The reduced axes; None for all.
        keepdims: Whether reduced axes remain, of size 1.
    """
    if within_items(x, axis):
        return x.mask
    return _valid(op, item.element_mask(x.values, x.mask), axis, keepdims)


def _valid(op: Op, mask: Mask, axis: Axes, keepdims: bool) -> Mask:
    """Returns which results are valid: those of a valid value, and of no values if `op` has one."""
    found = _any(mask, axis, keepdims)
    if not _RULES[op].of_nothing or (isinstance(mask, tf.Tensor) and _has_items(mask.shape, axis)):
        return found
    # Of nulls only, both are False; of no values, the second is True.
    return tf.logical_or(found, tf.reduce_all(mask, axis, keepdims))


def _has_items(shape: tf.TensorShape, axis: Axes) -> bool:
    """Returns whether a reduction is statically known to be of some values."""
    if axis is None:
        return shape.is_fully_defined() and shape.num_elements() > 0
    known = item.static_value(axis)
    if known is None or shape.rank is None:
        return False
    sizes = shape.as_list()
    return all(sizes[a] for a in np.reshape(known, [-1]).tolist())


def _fill(op: Op, x: MaskedTensor, mask: Mask) -> Mask:
    neutral = _RULES[op].neutral
    if neutral in (np.inf, -np.inf) and x.dtype.is_integer:
        neutral = x.dtype.max if neutral > 0 else x.dtype.min
    return item.fill(mask, x.values, neutral)


def _can(op: Op, x: MaskedTensor) -> bool:
    """Returns whether TensorFlow has an operation for the class and the dtype of the values.

    Raises:
        DTypeError: If it has none for any values of the dtype (also a TypeError).
    """
    if item.is_tensor(x.values):
        _expect_dtype(op, x.dtype)
    is_variance = op in _MOMENTS and op is not tf.reduce_mean
    if isinstance(x.values, tf.RaggedTensor):
        return _RULES[op].ragged and (not is_variance or _is_real(x) or x.dtype.is_integer)
    return isinstance(x.values, tf.Tensor) and (not is_variance or _is_real(x))


def _expect_dtype(op: Op, dtype: tf.DType) -> None:
    of_bools = op in (tf.reduce_all, tf.reduce_any)
    if dtype.is_bool:
        fits = of_bools or op in (tf.argmax, tf.argmin, tf.math.count_nonzero)
    else:
        fits = not of_bools and (dtype.is_integer or dtype.is_floating or dtype.is_complex)
    if fits:
        return
    expected, fix = "numbers", "Convert text with tf.strings.to_number."
    if of_bools:
        expected, fix = "bools", "Compare the values first, such as x > 0."
    elif dtype.is_bool:
        fix = "Count bools with tf.math.count_nonzero, or cast them: tf.cast(x, tf.int32)."
    raise DTypeError(name_of(op), expected, dtype.name, fix)


def within_items(x: MaskedTensor, axis: Axes) -> bool:
    """Returns whether all reduced dimensions are statically known to be inside the items."""
    if axis is None:
        return False
    known, rank, outer = item.static_value(axis), x.values.shape.rank, x.mask.shape.rank
    if known is None or rank is None or outer is None:
        return False
    axes: list[Any] = [known] if isinstance(known, int) else np.reshape(known, [-1]).tolist()
    return all(outer <= (a if a >= 0 else a + rank) for a in axes)


def _reduce_lists(op: Op, x: MaskedTensor, axis: Axes, keepdims: bool) -> MaskedTensor:
    """Returns the reduction of lists that may be null, of items that may be null.

    A null list is null in the result too, or, if lists are reduced together, has no valid item.
    """
    if within_items(x, axis):
        return MaskedTensor.combined(op(x.values, axis, keepdims), x.mask)
    single = _with_one_mask(x)
    if not item.is_tensor(single.values):
        return NotImplemented
    result = op(single, axis, keepdims)
    if axis is not None or not _RULES[op].of_nothing:
        return result
    # A null list has no items in the values, and is a null all the same.
    only_nulls = tf.logical_not(tf.logical_or(_any(single.mask, None, False), _all_lists(x)))
    return MaskedTensor.combined(result, tf.broadcast_to(~only_nulls, tf.shape(result.values)))


def _all_lists(x: MaskedTensor) -> tf.Tensor | bool:
    """Returns whether no list around the numbers is null, at any level."""
    if not isinstance(x.values, MaskedTensor):
        return True
    return tf.logical_and(tf.reduce_all(x.mask), _all_lists(x.values))


def _with_one_mask(x: MaskedTensor) -> MaskedTensor:
    """Returns a MaskedTensor of tensors with the masks around them in one, of single numbers."""
    if not isinstance(x.values, MaskedTensor):
        return x
    inner = _with_one_mask(x.values)
    if not item.is_tensor(inner.values):
        return inner
    masks = (item.element_mask(inner.values, mask) for mask in (inner.mask, x.mask))
    return MaskedTensor._of_parts(inner.values, tf.logical_and(*masks))


@implements(*_REDUCTIONS, on=MaskedTensor)
def reduce(
    op: Op, input_tensor: MaskedTensor, axis: Axes = None, keepdims: bool | None = False, *_: object
) -> MaskedTensor:
    """Returns the reduction of the valid values along `axis`."""
    x, keepdims = input_tensor, bool(keepdims)
    if isinstance(x.values, MaskedTensor):
        return _reduce_lists(op, x, axis, keepdims)
    if not _can(op, x):
        return NotImplemented
    if within_items(x, axis):
        return MaskedTensor._of_parts(op(_fill(op, x, x.mask), axis, keepdims), x.mask)
    mask = item.element_mask(x.values, x.mask)
    valid = _valid(op, mask, axis, keepdims)
    if op in _MOMENTS:
        return MaskedTensor._of_parts(_moment(op, x, mask, valid, axis, keepdims), valid)
    return MaskedTensor._of_parts(op(_fill(op, x, mask), axis, keepdims), valid)


def _moment(op: Op, x: MaskedTensor, mask: Mask, valid: Mask, axis: Axes, keepdims: bool) -> Mask:
    """Returns the mean, variance or standard deviation of the valid values along `axis`.

    Args:
        op: One of `_MOMENTS`.
        x: The MaskedTensor that is reduced.
        mask: True for each valid number.
        valid: True for each result that is valid.
        axis: The reduced axes; None for all.
        keepdims: Whether reduced axes remain, of size 1.
    """
    values = x.values
    if op is tf.reduce_mean:
        return _mean(values, mask, axis, keepdims)
    if values.dtype.is_integer:
        values = tf.cast(values, _quotient_dtype(values.dtype))
    if isinstance(values, tf.RaggedTensor) and _crosses_rows(x, axis):
        # As TensorFlow does: a mean of columns does not broadcast to rows of other lengths.
        mean = _mean(values, mask, axis, keepdims)
        variance = _mean(_square(values), mask, axis, keepdims) - _square(mean)
    else:
        apart = item.fill(mask, values - _mean(values, mask, axis, True), 0)
        variance = _mean(_square(apart), mask, axis, keepdims)
    return tf.sqrt(item.fill(valid, variance, 1)) if op is tf.math.reduce_std else variance


def _crosses_rows(x: MaskedTensor, axis: Axes) -> bool:
    """Returns whether a dimension is reduced that has one inside of it that is not."""
    known = None if axis is None else item.static_value(axis)
    if known is None:
        return False
    rank = x.values.shape.rank
    axes = {a % rank for a in np.reshape(known, [-1]).tolist()}
    return bool(axes) and not axes >= set(range(min(axes), rank))


def _square(values: Mask) -> Mask:
    is_complex = values.dtype.is_complex
    return tf.math.real(values * tf.math.conj(values)) if is_complex else tf.square(values)


def _mean(values: Mask, mask: Mask, axis: Axes, keepdims: bool) -> Mask:
    if values.dtype.is_integer:
        return _integer_mean(values, mask, axis, keepdims)
    if values.dtype in _SHORT:  # 65,504 is the largest count that float16 holds
        return tf.cast(_mean(tf.cast(values, tf.float32), mask, axis, keepdims), values.dtype)
    total = _sum(item.fill(mask, values, 0), axis, keepdims)
    count = _sum(_cast_mask(mask, total.dtype), axis, keepdims)
    if total.dtype in _DIVIDED and isinstance(total, tf.Tensor):
        return tf.raw_ops.DivNoNan(x=total, y=count)
    none = tf.equal(count, 0)
    return total / tf.where(none, tf.ones_like(count), count)


def _integer_mean(values: Mask, mask: Mask, axis: Axes, keepdims: bool) -> Mask:
    """Returns the mean of integers: an integer, but a float of ragged values, as in TensorFlow.

    Of integers of at most 32 bits, neither the sum nor the count has to fit in their dtype.
    """
    dtype = values.dtype
    wide = tf.uint64 if dtype == tf.uint64 else tf.int64
    total = _sum(tf.cast(item.fill(mask, values, 0), wide), axis, keepdims)
    count = _sum(_cast_mask(mask, wide), axis, keepdims)
    count = tf.maximum(count, tf.ones_like(count))
    if isinstance(values, tf.RaggedTensor):
        return tf.cast(total / count, _quotient_dtype(dtype))
    return tf.cast(tf.truncatediv(total, count), dtype)


def _quotient_dtype(dtype: tf.DType) -> tf.DType:
    """Returns the dtype of a quotient of integers, as in TensorFlow."""
    return tf.float32 if dtype.size <= 2 else tf.float64


# The kernels alone: on a few values, the functions of TensorFlow take several times as long.

_DIVIDED = frozenset([tf.float32, tf.float64, tf.complex64, tf.complex128])
_SHORT = frozenset([tf.float16, tf.bfloat16])


def _sum(values: Mask, axis: Axes, keepdims: bool) -> Mask:
    if not isinstance(values, tf.Tensor) or values.shape.rank is None:
        return tf.reduce_sum(values, axis, keepdims)
    return tf.raw_ops.Sum(input=values, axis=_axes(values, axis), keep_dims=keepdims)


def _any(mask: Mask, axis: Axes, keepdims: bool) -> Mask:
    if not isinstance(mask, tf.Tensor) or mask.shape.rank is None:
        return tf.reduce_any(mask, axis, keepdims)
    return tf.raw_ops.Any(input=mask, axis=_axes(mask, axis), keep_dims=keepdims)


def _axes(values: tf.Tensor, axis: Axes) -> tf.Tensor | Sequence[int]:
    # Of a Python list, a kernel takes three times as long as of a tensor.
    axes = list(range(values.shape.rank)) if axis is None else axis
    return tf.convert_to_tensor(axes, tf.int32) if isinstance(axes, (int, list, tuple)) else axes


def _cast_mask(mask: Mask, dtype: tf.DType) -> Mask:
    if isinstance(mask, tf.Tensor):
        return tf.raw_ops.Cast(x=mask, DstT=dtype)
    return tf.cast(mask, dtype)


@implements(tf.argmax, tf.argmin, on=MaskedTensor)
def extreme(
    op: Op, input: MaskedTensor, axis: Axes = None, output_type: tf.DType = tf.int64, *_: object
) -> MaskedTensor:
    """Returns the index of the largest or smallest valid value along an axis."""
    if not _can(op, input):
        return NotImplemented
    axis = 0 if axis is None else axis
    mask = item.element_mask(input.values, input.mask)
    numbers = input
    if input.dtype.is_bool:
        numbers = tf.cast(input, tf.int32)
    elif input.dtype.is_floating:  # TensorFlow passes over NaNs
        numbers = MaskedTensor._of_parts(input.values, mask & ~tf.math.is_nan(input.values))
    filled = _fill(op, numbers, item.element_mask(numbers.values, numbers.mask))
    # A valid value may be as extreme as the number in place of the others.
    best = (tf.reduce_max if op is tf.argmax else tf.reduce_min)(filled, axis, True)
    places = tf.argmax(tf.logical_and(mask, tf.equal(filled, best)), axis, output_type)
    return MaskedTensor._of_parts(places, tf.reduce_any(mask, axis))


@implements(tf.math.count_nonzero, on=MaskedTensor)
def count_nonzero(
    input: MaskedTensor,
    axis: Axes = None,
    keepdims: bool | None = None,
    dtype: tf.DType = tf.int64,
    *_: object,
) -> tf.Tensor:
    """Returns the number of valid values that are not zero, as a plain tensor."""
    if not _can(tf.math.count_nonzero, input) or not (input.dtype.is_integer or _is_real(input)):
        return NotImplemented
    mask = item.element_mask(input.values, input.mask)
    return tf.math.count_nonzero(
        _fill(tf.math.count_nonzero, input, mask), axis, bool(keepdims), dtype
    )


def _is_real(x: MaskedTensor) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex


@implements(tf.cumsum, tf.math.cumprod, on=MaskedTensor)
def cumulative(op: Op, x: MaskedTensor, *args: object) -> MaskedTensor:
    """Returns cumulative sums or products of the valid values, with the same mask."""
    if not _can(op, x):
        return NotImplemented
    mask = item.element_mask(x.values, x.mask)
    # An element mask would lose null lists.
    kept = x.mask if isinstance(x.values, tf.RaggedTensor) else mask
    return MaskedTensor._of_parts(op(_fill(op, x, mask), *args), kept)
