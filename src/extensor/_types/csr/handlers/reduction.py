"""Reductions of CSRSparseTensors to dense tensors."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.csr.value import CSRSparseTensor
from extensor.dispatch import implements


@implements(tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, on=CSRSparseTensor)
def reduce(op: Any, input_tensor: Any, axis: Any = None, keepdims: Any = False, *_: Any) -> Any:
    """Returns the dense result of a reduction; zeros count."""
    method = getattr(input_tensor, op.__name__)
    known = tf.get_static_value(axis) if isinstance(axis, tf.Tensor) else axis
    return method(axis if known is None else known, bool(keepdims))
