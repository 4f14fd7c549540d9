"""Elementwise operations on CSRSparseTensors that map zeros to zeros."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.csr import algebra, entries
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


_ZERO_STAYS_ZERO = [
    *(tf.negative, tf.abs, tf.sign, tf.square, tf.sqrt, tf.math.expm1, tf.math.log1p),
    *(tf.sin, tf.tan, tf.asin, tf.atan, tf.sinh, tf.tanh, tf.asinh, tf.atanh, tf.math.erf),
    *(tf.floor, tf.math.ceil, tf.round, tf.math.rint, tf.math.real, tf.math.imag, tf.math.conj),
    *(tf.nn.relu, tf.nn.relu6, tf.nn.leaky_relu, tf.nn.elu, tf.nn.selu, tf.nn.softsign),
    *(tf.identity, tf.stop_gradient),
]


@implements(*_ZERO_STAYS_ZERO, on=CSRSparseTensor)
def each(op: Any, x: Any, *args: Any) -> Any:
    """Returns a sparse tensor with each value transformed; zeros stay zeros."""
    return x.with_values(op(x.values, *args))


@implements(tf.multiply, on=CSRSparseTensor)
def multiply(x: Any, y: Any, *_: Any) -> Any:
    """Returns a sparse tensor multiplied by a number, a dense or a sparse tensor."""
    matrix, factor = (x, y) if isinstance(x, CSRSparseTensor) else (y, x)
    return entries.multiplied(matrix, factor)


@implements(tf.truediv, tf.divide, on=CSRSparseTensor)
def divide(x: Any, y: Any, *_: Any) -> Any:
    """Returns a sparse tensor divided by a scalar."""
    return algebra.scaled(x, tf.truediv, y) if isinstance(x, CSRSparseTensor) else NotImplemented


@implements(tf.cast, on=CSRSparseTensor)
def cast(x: Any, dtype: Any, *_: Any) -> Any:
    """Returns a sparse tensor with values of another dtype."""
    return x.with_values(tf.cast(x.values, dtype))
