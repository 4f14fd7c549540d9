"""Elementwise operations on CSRSparseTensors that map zeros to zeros."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.csr import algebra
from extensor._types.csr.value import CSRSparseTensor
from extensor.dispatch import implements


@implements(tf.add, on=CSRSparseTensor)
def add(x: Any, y: Any, *_: Any) -> Any:
    """Returns the sum of a sparse tensor and a sparse or dense tensor."""
    return x.add(y) if isinstance(x, CSRSparseTensor) else y.add(x)


@implements(tf.subtract, on=CSRSparseTensor)
def subtract(x: Any, y: Any, *_: Any) -> Any:
    """Returns the difference of a sparse tensor and a sparse or dense tensor."""
    return tf.add(x, tf.negative(y))


@implements(tf.negative, on=CSRSparseTensor)
def negative(x: Any, *_: Any) -> Any:
    """Returns the negative of a sparse tensor."""
    return x.with_values(tf.negative(x.values))


@implements(tf.multiply, on=CSRSparseTensor)
def multiply(x: Any, y: Any, *_: Any) -> Any:
    """Returns a sparse tensor multiplied by a scalar."""
    matrix, factor = (x, y) if isinstance(x, CSRSparseTensor) else (y, x)
    return algebra.scaled(matrix, tf.multiply, factor)


@implements(tf.truediv, tf.divide, on=CSRSparseTensor)
def divide(x: Any, y: Any, *_: Any) -> Any:
    """Returns a sparse tensor divided by a scalar."""
    return algebra.scaled(x, tf.truediv, y) if isinstance(x, CSRSparseTensor) else NotImplemented


@implements(tf.cast, on=CSRSparseTensor)
def cast(x: Any, dtype: Any, *_: Any) -> Any:
    """Returns a sparse tensor with values of another dtype."""
    return x.with_values(tf.cast(x.values, dtype))
