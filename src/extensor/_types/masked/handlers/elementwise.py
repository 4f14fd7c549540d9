"""Elementwise operations on MaskedTensors.

The result is valid where all operands are valid. Values that are not valid may be NaN. If the
gradient of an operation depends on its operands, they are replaced by safe numbers there: zero
times NaN is NaN, and would spread to the gradients of valid values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._types.masked import item
from extensor._types.masked.value import MaskedTensor
from extensor.dispatch import (
    implements,
    is_binary_elementwise_op,
    is_comparison_op,
    is_logical_op,
    is_unary_elementwise_op,
)

# Their gradients do not depend on the values, or only select among upstream gradients.
_HARMLESS = frozenset(
    [
        *(tf.add, tf.subtract, tf.negative, tf.cast, tf.maximum, tf.minimum, tf.nn.relu),
        *(tf.floor, tf.math.ceil, tf.round, tf.math.rint, tf.sign, tf.zeros_like, tf.ones_like),
        *(tf.math.real, tf.math.imag, tf.math.conj, tf.math.is_nan, tf.math.is_inf),
        *(tf.math.is_finite,),
    ]
)
# These fail if a divisor is zero or an exponent is negative.
_FAIL_ON_INTEGERS = frozenset(
    [
        *(tf.math.floordiv, tf.math.floormod, tf.truncatediv, tf.truncatemod, tf.pow),
    ]
)
# 0.5 is in the domain of all operations but these.
_SAFE = 0.5
_SAFE_ELSEWHERE = {tf.acosh: 2, tf.math.zeta: 2, tf.math.polygamma: 2}


def _safe(op: Any, dtype: tf.DType) -> Any:
    """Returns the number that replaces operands that are not valid; None for no replacement."""
    if dtype.is_floating or dtype.is_complex:
        if op in _HARMLESS or is_comparison_op(op) or is_logical_op(op):
            return None
        return _SAFE_ELSEWHERE.get(op, _SAFE)
    return 1 if op in _FAIL_ON_INTEGERS else None


@implements(is_unary_elementwise_op, on=MaskedTensor)
def unary(op: Any, x: Any, *args: Any) -> Any:
    """Returns each value transformed, with the same mask."""
    if not isinstance(x, MaskedTensor) or any(isinstance(arg, MaskedTensor) for arg in args):
        return NotImplemented
    if isinstance(x.values, MaskedTensor):  # null lists of items that may be null
        return MaskedTensor.combined(op(x.values, *args), x.mask)
    if not item.is_tensor(x.values):
        return NotImplemented
    values, safe = x.values, _safe(op, x.dtype)
    if safe is not None:
        values = item.choose(x.mask, values, safe)
    return MaskedTensor.of_parts(op(values, *args), x.mask)


@implements(tf.identity, tf.stop_gradient, on=MaskedTensor)
def same(op: Any, input: Any, *args: Any) -> Any:
    """Returns the same values, also records, with the same mask."""
    values = tf.nest.map_structure(lambda part: op(part), input.values, expand_composites=True)
    return MaskedTensor.of_parts(values, input.mask)


@implements(tf.ensure_shape, on=MaskedTensor)
def ensure_shape(x: Any, shape: Any, *_: Any) -> Any:
    """Returns the same values and mask, with a more specific static shape."""
    if not isinstance(x.values, tf.Tensor) or x.mask.shape.rank is None:
        return NotImplemented
    mask = tf.ensure_shape(x.mask, tf.TensorShape(shape)[: x.mask.shape.rank])
    return MaskedTensor.of_parts(tf.ensure_shape(x.values, shape), mask)


@implements(is_binary_elementwise_op, on=MaskedTensor)
def binary(op: Any, x: Any, y: Any, *args: Any) -> Any:
    """Returns the result for two operands, valid where both are; plain tensors are valid."""
    operands = [operand for operand in (x, y) if isinstance(operand, MaskedTensor)]
    if not operands or any(isinstance(arg, MaskedTensor) for arg in args):
        return NotImplemented
    if any(isinstance(operand.values, MaskedTensor) for operand in operands):
        return _of_null_lists(op, x, y, args)
    if not all(item.is_tensor(operand.values) for operand in operands):
        return NotImplemented
    is_scaling = _is_scaling(op, x, y)
    kinds = {_kind(operand) for operand in (x, y)}
    if "ragged" in kinds:
        return _ragged(op, x, y, args) if "dense" not in kinds else NotImplemented
    mask, fits = _combined(operands, x, y)
    safe = None if is_scaling else _safe(op, operands[0].dtype)
    a, b = (_guarded(operand, operands, mask, safe) for operand in (x, y))
    values = op(a, b, *args)
    return MaskedTensor.of_parts(values, mask if fits else item.spread(mask, values))


def _of_null_lists(op: Any, x: Any, y: Any, args: tuple[Any, ...]) -> Any:
    """Returns the result for operands of which some have a mask of lists and one of items."""
    ranks = {_shape(operand).rank for operand in (x, y)} - {0}
    if len(ranks) > 1:
        return NotImplemented
    inner: list[Any] = []
    masks: list[Any] = []
    for operand in (x, y):
        while isinstance(operand, MaskedTensor) and isinstance(operand.values, MaskedTensor):
            masks.append(operand.mask)
            operand = operand.values
        inner.append(operand)
    result = op(*inner, *args)
    for mask in sorted(masks, key=lambda mask: -mask.shape.rank):
        result = MaskedTensor.combined(result, mask)
    return result


def _is_scaling(op: Any, x: Any, y: Any) -> bool:
    """Returns whether the operation scales an operand by a finite nonzero number."""
    number = y if isinstance(x, MaskedTensor) or op is not tf.multiply else x
    is_number = isinstance(number, (int, float)) or (
        isinstance(number, np.ndarray) and number.shape == () and number.dtype.kind == "f"
    )
    if op not in (tf.multiply, tf.truediv, tf.divide) or not is_number:
        return False
    return math.isfinite(number) and bool(number != 0)


def _kind(operand: Any) -> str:
    if isinstance(operand, MaskedTensor):
        operand = operand.values
    if isinstance(operand, tf.RaggedTensor):
        return "ragged"
    return "scalar" if _shape(operand).rank == 0 else "dense"


def _shape(operand: Any) -> tf.TensorShape:
    if isinstance(operand, (MaskedTensor, tf.Tensor, tf.Variable)):
        return operand.shape
    return tf.TensorShape(np.shape(operand))


def _combined(operands: list[Any], x: Any, y: Any) -> tuple[Any, bool]:
    """Returns the combined mask, and whether it matches the result without broadcasting."""
    first = operands[0]
    if len(operands) == 1:
        other = y if first is x else x
        if _keeps_shape(first.shape, _shape(other)):
            return first.mask, True
        return item.elements(first.values, first.mask), False
    if x.mask is y.mask and x.shape.rank == y.shape.rank:
        return x.mask, True
    whole = all(item.is_whole(operand.values, operand.mask) for operand in operands)
    alike = x.mask.shape.rank == y.mask.shape.rank and x.shape == y.shape
    if whole or (alike and x.shape.is_fully_defined()):
        return tf.logical_and(x.mask, y.mask), True
    return tf.logical_and(*(item.elements(one.values, one.mask) for one in (x, y))), True


def _keeps_shape(shape: tf.TensorShape, other: tf.TensorShape) -> bool:
    """Returns whether broadcasting with `other` statically keeps `shape`."""
    if other.rank == 0:
        return True
    if shape.rank is None or other.rank is None or other.rank > shape.rank:
        return False
    inner = shape[shape.rank - other.rank :]
    return all(b == 1 or (b is not None and a == b) for a, b in zip(inner, other, strict=True))


def _guarded(operand: Any, operands: list[Any], mask: Any, safe: Any) -> Any:
    """Returns the values of an operand, with `safe` where the result is not valid."""
    is_masked = isinstance(operand, MaskedTensor)
    values = operand.values if is_masked else operand
    if safe is None:
        return values
    if not is_masked:
        # Numbers and arrays have no gradient.
        if not isinstance(operand, (tf.Tensor, tf.Variable)) or operand.shape.rank == 0:
            return operand
        operand = operands[0]
    return tf.where(item.aligned(operand.values, mask), values, tf.cast(safe, values.dtype))


def _ragged(op: Any, x: Any, y: Any, args: tuple[Any, ...]) -> Any:
    """Returns the result for ragged operands with the same rows, or for one and a number."""
    masked = [operand for operand in (x, y) if isinstance(operand, MaskedTensor)]
    if any(operand.shape.rank == 0 for operand in masked):
        return NotImplemented
    safe = _safe(op, masked[0].dtype)
    if len(masked) == 2 and x.mask.shape.rank != y.mask.shape.rank:
        masks = [item.elements(one.values, one.mask) for one in masked]
    else:
        masks = [one.mask for one in masked]
    mask = masks[0] if len(masks) == 1 else tf.logical_and(*masks)
    operands: list[Any] = []
    for operand in (x, y):
        values = operand.values if isinstance(operand, MaskedTensor) else operand
        if safe is not None and isinstance(values, tf.RaggedTensor):
            values = item.choose(mask, values, safe)
        operands.append(values)
    return MaskedTensor.of_parts(op(*operands, *args), mask)


@implements(tf.where, on=MaskedTensor)
def where(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Any:
    """Returns `x` where the condition is True and `y` elsewhere; valid where it and they are."""
    given = [one for one in (condition, x, y) if isinstance(one, MaskedTensor)]
    if any(not isinstance(one.values, tf.Tensor) for one in given):
        return NotImplemented
    if x is None or y is None:
        return NotImplemented if condition not in given else tf.where(condition.fill(False))
    parts = [_parts(one) for one in (condition, x, y)]
    values = tf.where(*(part[0] for part in parts), name)
    mask = tf.where(parts[0][0], parts[1][1], parts[2][1])
    if isinstance(condition, MaskedTensor):
        mask = tf.logical_and(mask, parts[0][1])
    return MaskedTensor.of_parts(values, item.spread(mask, values))


def _parts(one: Any) -> tuple[Any, Any]:
    if isinstance(one, MaskedTensor):
        return one.values, item.elements(one.values, one.mask)
    return one, True


@implements(tf.add_n, on=MaskedTensor)
def add_n(inputs: Any, name: Any = None) -> Any:
    """Returns the sum of tensors of the same shape, valid where all are valid."""
    parts = [_parts(one) for one in inputs]
    masks = [mask for _, mask in parts if mask is not True]
    values = tf.add_n([part[0] for part in parts], name)
    return MaskedTensor.of_parts(values, tf.reduce_all(tf.stack(masks), 0))
