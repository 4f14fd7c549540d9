"""Elementwise operations on MaskedTensors.

The result is valid where all operands are valid. Values that are not valid may be NaN. If the
gradient of an operation depends on its operands, they are replaced by safe numbers there: zero
times NaN is NaN, and would spread to the gradients of valid values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._types.masked import item
from extensor._types.masked.check import Mask
from extensor._types.masked.value import MaskedTensor, Op, Operand
from extensor.dispatch import (
    implements,
    is_binary_elementwise_op,
    is_comparison_op,
    is_logical_op,
    is_unary_elementwise_op,
)
from extensor.typing import ShapeLike, TensorLike

# Their gradients do not depend on the values, or only select among upstream gradients.
_HARMLESS = frozenset(
    [
        *(tf.add, tf.subtract, tf.negative, tf.cast, tf.maximum, tf.minimum, tf.nn.relu),
        *(tf.floor, tf.math.ceil, tf.round, tf.math.rint, tf.sign, tf.zeros_like, tf.ones_like),
        *(tf.math.real, tf.math.imag, tf.math.conj, tf.math.is_nan, tf.math.is_inf),
        *(tf.math.is_finite, tf.identity, tf.stop_gradient),
    ]
)
# These fail if a divisor is zero or an exponent is negative.
_FAIL_ON_INTEGERS = frozenset(
    [*(tf.math.floordiv, tf.math.floormod, tf.truncatediv, tf.truncatemod, tf.pow)]
)
# 0.5 is in the domain of all operations but these.
_SAFE = 0.5
_SAFE_ELSEWHERE = {tf.acosh: 2, tf.math.zeta: 2, tf.math.polygamma: 2}
# These fail if a text is not what they read.
_SAFE_TEXT = {tf.strings.to_number: "0", tf.io.decode_base64: "", tf.strings.unicode_transcode: ""}


def _safe_item(op: Op, dtype: tf.DType, args: Sequence[Any] = ()) -> float | str | None:
    """Returns what replaces operands that are not valid; None for no replacement."""
    if dtype == tf.string:
        if op is not tf.strings.substr:
            return _SAFE_TEXT.get(op)
        positions = item.static_value(args[0])
        return None if positions is None else " " * int(np.max(np.abs(positions), initial=0))
    if dtype.is_floating or dtype.is_complex:
        if op in _HARMLESS or is_comparison_op(op) or is_logical_op(op):
            return None
        return _SAFE_ELSEWHERE.get(op, _SAFE)
    return 1 if op in _FAIL_ON_INTEGERS else None


@implements(is_unary_elementwise_op, on=MaskedTensor)
def unary(op: Op, x: MaskedTensor, *args: object) -> MaskedTensor:
    """Returns each value transformed, with the same mask."""
    if not isinstance(x, MaskedTensor) or any(isinstance(arg, MaskedTensor) for arg in args):
        return NotImplemented
    if isinstance(x.values, MaskedTensor):  # null lists of items that may be null
        return MaskedTensor.combined(op(x.values, *args), x.mask)
    if not item.is_tensor(x.values):
        return NotImplemented
    values, safe = x.values, _safe_item(op, x.dtype, args)
    if safe is not None:
        values = item.fill(x.mask, values, safe)
    return MaskedTensor._of_parts(op(values, *args), x.mask)


@implements(tf.ensure_shape, on=MaskedTensor)
def ensure_shape(x: MaskedTensor, shape: ShapeLike, *_: object) -> MaskedTensor:
    """Returns the same values and mask, with a more specific static shape."""
    if not isinstance(x.values, tf.Tensor) or x.mask.shape.rank is None:
        return NotImplemented
    mask = tf.ensure_shape(x.mask, tf.TensorShape(shape)[: x.mask.shape.rank])
    return MaskedTensor._of_parts(tf.ensure_shape(x.values, shape), mask)


@implements(is_binary_elementwise_op, on=MaskedTensor)
def binary(op: Op, x: Operand, y: Operand, *args: object) -> MaskedTensor:
    """Returns the result for two operands, valid where both are; plain tensors are valid."""
    operands = [operand for operand in (x, y) if isinstance(operand, MaskedTensor)]
    if not operands or any(isinstance(arg, MaskedTensor) for arg in args):
        return NotImplemented
    if any(isinstance(operand.values, MaskedTensor) for operand in operands):
        return _binary_of_lists(op, x, y, args)
    if not all(item.is_tensor(operand.values) for operand in operands):
        return NotImplemented
    kinds = {_kind(operand) for operand in (x, y)}
    if "ragged" in kinds:
        if "dense" in kinds or any(operand.shape.rank == 0 for operand in operands):
            return NotImplemented
        mask, fits = _ragged_mask(operands), True
    else:
        mask, fits = _combine_masks(operands, x, y)
    safe = None if _is_scaling(op, x, y) else _safe_item(op, operands[0].dtype)
    a, b = (_safe_values(operand, operands, mask, safe) for operand in (x, y))
    values = op(a, b, *args)
    return MaskedTensor._of_parts(values, mask if fits else item.broadcast_mask(mask, values))


def _binary_of_lists(op: Op, x: Operand, y: Operand, args: tuple[Any, ...]) -> MaskedTensor:
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


def _is_scaling(op: Op, x: Operand, y: Operand) -> bool:
    """Returns whether the operation scales an operand by a finite nonzero number."""
    number = y if isinstance(x, MaskedTensor) or op is not tf.multiply else x
    is_number = isinstance(number, (int, float)) or (
        isinstance(number, np.ndarray) and number.shape == () and number.dtype.kind == "f"
    )
    if op not in (tf.multiply, tf.truediv, tf.divide) or not is_number:
        return False
    return math.isfinite(number) and bool(number != 0)


def _kind(operand: Operand) -> str:
    if isinstance(operand, MaskedTensor):
        operand = operand.values
    if isinstance(operand, tf.RaggedTensor):
        return "ragged"
    return "scalar" if _shape(operand).rank == 0 else "dense"


def _shape(operand: Operand) -> tf.TensorShape:
    if isinstance(operand, (MaskedTensor, tf.Tensor, tf.Variable)):
        return operand.shape
    return tf.TensorShape(np.shape(operand))


def _combine_masks(operands: list[Any], x: Operand, y: Operand) -> tuple[Any, bool]:
    """Returns the combined mask, and whether it matches the result without broadcasting."""
    first = operands[0]
    if len(operands) == 1:
        other = y if first is x else x
        if _keeps_shape(first.shape, _shape(other)):
            return first.mask, True
        return item.element_mask(first.values, first.mask), False
    if x.mask is y.mask and x.shape.rank == y.shape.rank:
        return x.mask, True
    whole = all(item.masks_elements(operand.values, operand.mask) for operand in operands)
    alike = x.mask.shape.rank == y.mask.shape.rank and x.shape == y.shape
    if whole or (alike and x.shape.is_fully_defined()):
        return tf.logical_and(x.mask, y.mask), True
    return tf.logical_and(*(item.element_mask(one.values, one.mask) for one in (x, y))), True


def _keeps_shape(shape: tf.TensorShape, other: tf.TensorShape) -> bool:
    """Returns whether broadcasting with `other` statically keeps `shape`."""
    if other.rank == 0:
        return True
    if shape.rank is None or other.rank is None or other.rank > shape.rank:
        return False
    inner = shape[shape.rank - other.rank :]
    return all(b == 1 or (b is not None and a == b) for a, b in zip(inner, other, strict=True))


def _safe_values(
    operand: Operand, operands: list[Any], mask: Mask, safe: float | str | None
) -> TensorLike | tf.RaggedTensor:
    """Returns the values of an operand, with `safe` where the result is not valid."""
    is_masked = isinstance(operand, MaskedTensor)
    values = operand.values if is_masked else operand
    if safe is None:
        return values
    if isinstance(values, tf.RaggedTensor):
        return item.fill(mask, values, safe)
    if not is_masked:
        # Arrays have no gradient, but integers may be divisors.
        dtype = operands[0].dtype
        is_tensor = isinstance(operand, (tf.Tensor, tf.Variable))
        if _shape(operand).rank == 0 or not (is_tensor or dtype.is_integer):
            return operand
        values = tf.convert_to_tensor(operand, dtype_hint=dtype)
        operand = operands[0]
    return tf.where(item.expand_mask(operand.values, mask), values, tf.cast(safe, values.dtype))


def _ragged_mask(operands: list[MaskedTensor]) -> Mask:
    """Returns the combined mask of ragged operands with the same rows."""
    masks = [one.mask for one in operands]
    if len({mask.shape.rank for mask in masks}) > 1:
        masks = [item.element_mask(one.values, one.mask) for one in operands]
    return masks[0] if len(masks) == 1 else tf.logical_and(*masks)


@implements(tf.where, on=MaskedTensor)
def where(
    condition: Operand, x: Operand | None = None, y: Operand | None = None, name: str | None = None
) -> MaskedTensor | tf.Tensor:
    """Returns `x` where the condition is True and `y` elsewhere; valid where it and they are."""
    given = [one for one in (condition, x, y) if isinstance(one, MaskedTensor)]
    if any(not isinstance(one.values, tf.Tensor) for one in given):
        return NotImplemented
    if x is None or y is None:
        return NotImplemented if condition not in given else tf.where(condition.fill(False))
    parts = [_values_and_mask(one) for one in (condition, x, y)]
    values = tf.where(*(part[0] for part in parts), name)
    mask = tf.where(parts[0][0], parts[1][1], parts[2][1])
    if isinstance(condition, MaskedTensor):
        mask = tf.logical_and(mask, parts[0][1])
    return MaskedTensor._of_parts(values, item.broadcast_mask(mask, values))


def _values_and_mask(one: Operand) -> tuple[Any, Any]:
    if isinstance(one, MaskedTensor):
        return one.values, item.element_mask(one.values, one.mask)
    return one, True


@implements(tf.add_n, on=MaskedTensor)
def add_n(inputs: Sequence[Operand], name: str | None = None) -> MaskedTensor:
    """Returns the sum of tensors of the same shape, valid where all are valid."""
    parts = [_values_and_mask(one) for one in inputs]
    masks = [mask for _, mask in parts if mask is not True]
    own = [one.mask for one in inputs if isinstance(one, MaskedTensor)]
    if len({mask.shape.rank for mask in own}) == 1:
        masks = own  # an element mask would lose null lists
    values = tf.add_n([part[0] for part in parts], name)
    return MaskedTensor._of_parts(values, tf.reduce_all(tf.stack(masks), 0))


# The shape.


@implements(tf.shape, tf.size, tf.rank, on=MaskedTensor)
def measure(op: Op, input: MaskedTensor, *args: object) -> tf.Tensor:
    """Returns the shape, size or rank of the values, valid or not."""
    return op(input.values, *args) if item.is_tensor(input.values) else NotImplemented


@implements(tf.zeros_like, tf.ones_like, on=MaskedTensor)
def constant(op: Op, input: MaskedTensor, *args: object) -> MaskedTensor:
    """Returns zeros or ones with the same mask, also of records."""
    return MaskedTensor._of_parts(op(input.values, *args), input.mask)
