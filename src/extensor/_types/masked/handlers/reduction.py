"""Reductions and cumulative operations on MaskedTensors, which skip values that are not valid.

A result of nulls only is not valid. A sum or product of no values at all is what it is without a
mask; an extreme or a mean of no values is not valid.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor._types.masked import item
from extensor._types.masked.value import MaskedTensor
from extensor.dispatch import implements

# The neutral element of each operation, which replaces values that are not valid.
_NEUTRAL: dict[Any, Any] = {
    tf.reduce_sum: 0,
    tf.reduce_prod: 1,
    tf.reduce_all: True,
    tf.reduce_any: False,
    tf.reduce_max: -np.inf,
    tf.reduce_min: np.inf,
    tf.reduce_logsumexp: -np.inf,
    tf.math.reduce_euclidean_norm: 0,
    tf.math.count_nonzero: 0,
    tf.argmax: -np.inf,
    tf.argmin: np.inf,
    tf.cumsum: 0,
    tf.math.cumprod: 1,
}


_RAGGED = frozenset(
    [
        *(tf.reduce_sum, tf.reduce_prod, tf.reduce_all, tf.reduce_any, tf.reduce_max),
        *(tf.reduce_min, tf.reduce_mean, tf.math.reduce_variance, tf.math.reduce_std),
        *(tf.reduce_logsumexp, tf.cumsum),
    ]
)


# They have a value for no values at all. So a mask without nulls does not change their results.
_OF_NOTHING = frozenset(
    [
        *(tf.reduce_sum, tf.reduce_prod, tf.reduce_all, tf.reduce_any),
        *(tf.reduce_logsumexp, tf.math.reduce_euclidean_norm, tf.norm),
    ]
)


def valid_results(op: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """Returns the mask of a reduction of dense values.

    Args:
        op: The reduction, which may have a value for no values at all.
        x: The MaskedTensor that is reduced.
        axis: The reduced axes; None for all.
        keepdims: Whether reduced axes remain, of size 1.
    """
    if within_items(x, axis):
        return x.mask
    return _valid(op, item.elements(x.values, x.mask), axis, keepdims)


def _valid(op: Any, mask: Any, axis: Any, keepdims: bool) -> Any:
    """Returns which results are valid: those of a valid value, and of no values if `op` has one."""
    found = _any(mask, axis, keepdims)
    if op not in _OF_NOTHING or (isinstance(mask, tf.Tensor) and _has_items(mask.shape, axis)):
        return found
    # Of nulls only, both are False; of no values, the second is True.
    return tf.logical_or(found, tf.reduce_all(mask, axis, keepdims))


def _has_items(shape: tf.TensorShape, axis: Any) -> bool:
    """Returns whether a reduction is statically known to be of some values."""
    if axis is None:
        return shape.is_fully_defined() and shape.num_elements() > 0
    known = item.static(axis)
    if known is None or shape.rank is None:
        return False
    sizes = shape.as_list()
    return all(sizes[a] for a in np.reshape(known, [-1]).tolist())


def _filled(op: Any, x: Any, mask: Any) -> Any:
    neutral = _NEUTRAL[op]
    if neutral in (np.inf, -np.inf) and x.dtype.is_integer:
        neutral = x.dtype.max if neutral > 0 else x.dtype.min
    return item.choose(mask, x.values, neutral)


def _can(op: Any, x: Any) -> bool:
    return isinstance(x.values, tf.Tensor) or (
        isinstance(x.values, tf.RaggedTensor) and op in _RAGGED
    )


def within_items(x: Any, axis: Any) -> bool:
    """Returns whether all reduced dimensions are statically known to be inside the items."""
    if axis is None:
        return False
    known, rank, outer = item.static(axis), x.values.shape.rank, x.mask.shape.rank
    if known is None or rank is None or outer is None:
        return False
    axes: list[Any] = [known] if isinstance(known, int) else np.reshape(known, [-1]).tolist()
    return all(outer <= (a if a >= 0 else a + rank) for a in axes)


def _of_lists(op: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """Returns the reduction of lists that may be null, of items that may be null.

    A null list is null in the result too, or, if lists are reduced together, has no valid item.
    """
    if within_items(x, axis):
        return MaskedTensor.combined(op(x.values, axis, keepdims), x.mask)
    single = _with_one_mask(x)
    if not item.is_tensor(single.values):
        return NotImplemented
    result = op(single, axis, keepdims)
    if axis is not None or op not in _OF_NOTHING:
        return result
    # A null list has no items in the values, and is a null all the same.
    only_nulls = tf.logical_not(tf.logical_or(_any(single.mask, None, False), _all_lists(x)))
    return MaskedTensor.combined(result, tf.broadcast_to(~only_nulls, tf.shape(result.values)))


def _all_lists(x: Any) -> Any:
    """Returns whether no list around the numbers is null, at any level."""
    if not isinstance(x.values, MaskedTensor):
        return True
    return tf.logical_and(tf.reduce_all(x.mask), _all_lists(x.values))


def _with_one_mask(x: Any) -> Any:
    """Returns a MaskedTensor of tensors with the masks around them in one, of single numbers."""
    if not isinstance(x.values, MaskedTensor):
        return x
    inner = _with_one_mask(x.values)
    if not item.is_tensor(inner.values):
        return inner
    masks = (item.elements(inner.values, mask) for mask in (inner.mask, x.mask))
    return MaskedTensor.of_parts(inner.values, tf.logical_and(*masks))


@implements(
    *(tf.reduce_sum, tf.reduce_prod, tf.reduce_all, tf.reduce_any, tf.reduce_max, tf.reduce_min),
    *(tf.reduce_logsumexp, tf.math.reduce_euclidean_norm),
    on=MaskedTensor,
)
def reduce(op: Any, input_tensor: Any, axis: Any = None, keepdims: Any = False, *_: Any) -> Any:
    """Returns the reduction of the valid values along `axis`."""
    x, keepdims = input_tensor, bool(keepdims)
    if isinstance(x.values, MaskedTensor):
        return _of_lists(op, x, axis, keepdims)
    if not _can(op, x):
        return NotImplemented
    if within_items(x, axis):
        return MaskedTensor.of_parts(op(_filled(op, x, x.mask), axis, keepdims), x.mask)
    mask = item.elements(x.values, x.mask)
    values = op(_filled(op, x, mask), axis, keepdims)
    return MaskedTensor.of_parts(values, _valid(op, mask, axis, keepdims))


@implements(tf.reduce_mean, tf.math.reduce_variance, tf.math.reduce_std, on=MaskedTensor)
def moment(op: Any, input_tensor: Any, axis: Any = None, keepdims: Any = False, *_: Any) -> Any:
    """Returns the mean, variance or standard deviation of the valid values along `axis`."""
    x, keepdims = input_tensor, bool(keepdims)
    if isinstance(x.values, MaskedTensor):
        return _of_lists(op, x, axis, keepdims)
    if not _can(op, x):
        return NotImplemented
    if op is not tf.reduce_mean and not (x.dtype.is_floating or x.dtype.is_complex):
        return NotImplemented
    if within_items(x, axis):
        return MaskedTensor.of_parts(op(item.choose(x.mask, x.values, 0), axis, keepdims), x.mask)
    mask = item.elements(x.values, x.mask)
    valid = _any(mask, axis, keepdims)
    if op is tf.reduce_mean:
        return MaskedTensor.of_parts(_mean(x.values, mask, axis, keepdims), valid)
    if isinstance(x.values, tf.RaggedTensor) and _crosses_rows(x, axis):
        # As TensorFlow does: a mean of columns does not broadcast to rows of other lengths.
        mean = _mean(x.values, mask, axis, keepdims)
        values = _mean(_square(x.values), mask, axis, keepdims) - _square(mean)
    else:
        apart = item.choose(mask, x.values - _mean(x.values, mask, axis, True), 0)
        values = _mean(_square(apart), mask, axis, keepdims)
    if op is tf.math.reduce_std:
        values = tf.sqrt(item.choose(valid, values, 1))
    return MaskedTensor.of_parts(values, valid)


def _crosses_rows(x: Any, axis: Any) -> bool:
    """Returns whether a dimension is reduced that has one inside of it that is not."""
    known = None if axis is None else item.static(axis)
    if known is None:
        return False
    rank = x.values.shape.rank
    axes = {a % rank for a in np.reshape(known, [-1]).tolist()}
    return bool(axes) and not axes >= set(range(min(axes), rank))


def _square(values: Any) -> Any:
    is_complex = values.dtype.is_complex
    return tf.math.real(values * tf.math.conj(values)) if is_complex else tf.square(values)


def _mean(values: Any, mask: Any, axis: Any, keepdims: bool) -> Any:
    total = _sum(item.choose(mask, values, 0), axis, keepdims)
    count = _sum(_as(mask, total.dtype), axis, keepdims)
    if total.dtype.is_integer:
        return tf.truncatediv(total, tf.maximum(count, tf.ones_like(count)))
    if total.dtype in _DIVIDED and isinstance(total, tf.Tensor):
        return tf.raw_ops.DivNoNan(x=total, y=count)
    none = tf.equal(count, 0)
    return total / tf.where(none, tf.ones_like(count), count)


# The kernels alone: on a few values, the functions of TensorFlow take several times as long.

_DIVIDED = frozenset([tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128])


def _sum(values: Any, axis: Any, keepdims: bool) -> Any:
    if not isinstance(values, tf.Tensor) or values.shape.rank is None:
        return tf.reduce_sum(values, axis, keepdims)
    return tf.raw_ops.Sum(input=values, axis=_axes(values, axis), keep_dims=keepdims)


def _any(mask: Any, axis: Any, keepdims: bool) -> Any:
    if not isinstance(mask, tf.Tensor) or mask.shape.rank is None:
        return tf.reduce_any(mask, axis, keepdims)
    return tf.raw_ops.Any(input=mask, axis=_axes(mask, axis), keep_dims=keepdims)


def _axes(values: tf.Tensor, axis: Any) -> Any:
    # Of a Python list, a kernel takes three times as long as of a tensor.
    axes = list(range(values.shape.rank)) if axis is None else axis
    return tf.convert_to_tensor(axes, tf.int32) if isinstance(axes, (int, list, tuple)) else axes


def _as(mask: Any, dtype: tf.DType) -> Any:
    if isinstance(mask, tf.Tensor):
        return tf.raw_ops.Cast(x=mask, DstT=dtype)
    return tf.cast(mask, dtype)


@implements(tf.argmax, tf.argmin, on=MaskedTensor)
def extreme(op: Any, input: Any, axis: Any = None, output_type: Any = tf.int64, *_: Any) -> Any:
    """Returns the index of the largest or smallest valid value along an axis."""
    if not _can(op, input):
        return NotImplemented
    mask = item.elements(input.values, input.mask)
    places = op(_filled(op, input, mask), axis, output_type)
    return MaskedTensor.of_parts(places, tf.reduce_any(mask, 0 if axis is None else axis))


@implements(tf.math.count_nonzero, on=MaskedTensor)
def count_nonzero(
    input: Any, axis: Any = None, keepdims: Any = None, dtype: Any = tf.int64, *_: Any
) -> Any:
    """Returns the number of valid values that are not zero, as a plain tensor."""
    if not _can(tf.math.count_nonzero, input) or not (input.dtype.is_integer or _is_real(input)):
        return NotImplemented
    mask = item.elements(input.values, input.mask)
    return tf.math.count_nonzero(
        _filled(tf.math.count_nonzero, input, mask), axis, bool(keepdims), dtype
    )


def _is_real(x: Any) -> bool:
    return x.dtype.is_floating or x.dtype.is_complex


@implements(tf.cumsum, tf.math.cumprod, on=MaskedTensor)
def cumulative(op: Any, x: Any, *args: Any) -> Any:
    """Returns cumulative sums or products of the valid values, with the same mask."""
    if not _can(op, x):
        return NotImplemented
    mask = item.elements(x.values, x.mask)
    return MaskedTensor.of_parts(op(_filled(op, x, mask), *args), mask)
