"""Operations that return the shape of a CSRSparseTensor."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.csr.value import CSRSparseTensor
from extensor.dispatch import implements


@implements(tf.shape, on=CSRSparseTensor)
def shape(input: Any, out_type: Any = None, *_: Any) -> Any:
    """Returns the sizes of all dimensions."""
    return tf.cast(input.dense_shape, out_type or tf.int32)


@implements(tf.rank, on=CSRSparseTensor)
def rank(input: Any, *_: Any) -> Any:
    """Returns the number of dimensions."""
    return tf.constant(input.shape.rank)
