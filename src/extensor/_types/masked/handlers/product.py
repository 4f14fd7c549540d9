"""Products of MaskedTensors, in which values that are not valid count as zero."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.masked import item
from extensor._types.masked.value import MaskedTensor
from extensor.dispatch import implements


@implements(tf.matmul, on=MaskedTensor)
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    *others: Any,
) -> Any:
    """Returns the product, with zero for invalid values; valid if any pair of factors is valid."""
    for one in (a, b):
        if isinstance(one, MaskedTensor) and not isinstance(one.values, tf.Tensor):
            return NotImplemented
    values = tf.matmul(
        _or_zero(a), _or_zero(b), transpose_a, transpose_b, adjoint_a, adjoint_b, *others
    )
    transposed = (transpose_a or adjoint_a, transpose_b or adjoint_b)
    if isinstance(a, MaskedTensor) and isinstance(b, MaskedTensor):
        valid = [tf.cast(item.elements(one.values, one.mask), tf.float32) for one in (a, b)]
        return MaskedTensor.of_parts(values, tf.matmul(*valid, *transposed) > 0)
    if isinstance(a, MaskedTensor):
        any_valid = tf.reduce_any(item.elements(a.values, a.mask), -2 if transposed[0] else -1)
        mask = any_valid[..., tf.newaxis]
    else:
        any_valid = tf.reduce_any(item.elements(b.values, b.mask), -1 if transposed[1] else -2)
        mask = any_valid[..., tf.newaxis, :]
    return MaskedTensor.of_parts(values, item.spread(mask, values))


def _or_zero(one: Any) -> Any:
    return item.choose(one.mask, one.values, 0) if isinstance(one, MaskedTensor) else one
