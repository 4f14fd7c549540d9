"""What TensorFlow's operations do with CSRSparseTensors.

An operation that is not here is not overridden, and its own error says so: it would fill in the
zeros.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.csr import algebra
from extensor._types.csr.tensor import CSRSparseTensor
from extensor.authoring import batch_of
from extensor.dispatch import implements


def _handles(*ops: Any) -> Any:
    return implements(*ops, on=CSRSparseTensor)


@_handles(tf.matmul)
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    *others: Any,
) -> Any:
    """Returns the product of a sparse matrix and a dense one, whichever comes first."""
    if isinstance(a, CSRSparseTensor):
        return a.matmul(_turned(b, transpose_b, adjoint_b), transpose_a, adjoint_a)
    return algebra.left_product(_turned(a, transpose_a, adjoint_a), b, transpose_b, adjoint_b)


def _turned(dense: Any, transpose: bool, adjoint: bool) -> Any:
    if adjoint:
        return tf.linalg.adjoint(dense)
    return tf.linalg.matrix_transpose(dense) if transpose else dense


@_handles(tf.add)
def add(x: Any, y: Any, *others: Any) -> Any:
    """Returns the sum of a sparse tensor and another, or a dense one."""
    return x.add(y) if isinstance(x, CSRSparseTensor) else y.add(x)


@_handles(tf.subtract)
def subtract(x: Any, y: Any, *others: Any) -> Any:
    """Returns the difference of a sparse tensor and another, or a dense one."""
    return tf.add(x, tf.negative(y))


@_handles(tf.negative)
def negative(x: Any, *others: Any) -> Any:
    """Returns a sparse tensor with its signs changed."""
    return x.with_values(tf.negative(x.values))


@_handles(tf.multiply)
def multiply(x: Any, y: Any, *others: Any) -> Any:
    """Returns a sparse tensor times a number."""
    matrix, factor = (x, y) if isinstance(x, CSRSparseTensor) else (y, x)
    return algebra.scaled(matrix, tf.multiply, factor)


@_handles(tf.truediv, tf.divide)
def divide(x: Any, y: Any, *others: Any) -> Any:
    """Returns a sparse tensor divided by a number."""
    return algebra.scaled(x, tf.truediv, y) if isinstance(x, CSRSparseTensor) else NotImplemented


@_handles(tf.transpose)
def transpose(a: Any, perm: Any = None, conjugate: bool = False, *others: Any) -> Any:
    """Returns a sparse tensor with its last two dimensions swapped; other orders are not there."""
    rank = a.shape.rank
    order = list(range(rank))[::-1] if perm is None else tf.get_static_value(perm)
    if rank < 2 or order is None or list(order) != [*range(rank - 2), rank - 1, rank - 2]:
        return NotImplemented
    turned = a.transpose()
    return turned.with_values(tf.math.conj(turned.values)) if conjugate else turned


@_handles(tf.linalg.matrix_transpose)
def matrix_transpose(a: Any, name: Any = "matrix_transpose", conjugate: bool = False) -> Any:
    """Returns each sparse matrix with rows and columns swapped."""
    turned = a.transpose()
    return turned.with_values(tf.math.conj(turned.values)) if conjugate else turned


@_handles(tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min)
def reduce(op: Any, input_tensor: Any, axis: Any = None, keepdims: Any = False, *_: Any) -> Any:
    """Returns a dense tensor of what the rows, columns or matrices amount to, zeros included."""
    method = getattr(input_tensor, op.__name__)
    return method(axis if axis is None else tf.get_static_value(axis), bool(keepdims))


@_handles(tf.gather)
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: Any = None,
) -> Any:
    """Returns some rows of a sparse matrix, or matrices of a batch."""
    if not isinstance(params, CSRSparseTensor) or axis not in (None, 0) or batch_dims:
        return NotImplemented
    return params.gather(indices)


@_handles(tf.cast)
def cast(x: Any, dtype: Any, name: Any = None) -> Any:
    """Returns a sparse tensor with values of another dtype."""
    return x.with_values(tf.cast(x.values, dtype))


@_handles(tf.shape)
def shape(input: Any, out_type: Any = None, name: Any = None) -> Any:
    """Returns the sizes of all dimensions."""
    return tf.cast(input.dense_shape, out_type or tf.int32)


@_handles(tf.rank)
def rank(input: Any, name: Any = None) -> Any:
    """Returns the number of dimensions."""
    return tf.constant(input.shape.rank)


@_handles(tf.stack)
def stack(values: Any, axis: int = 0, name: Any = None) -> Any:
    """Returns a batch of sparse tensors of one shape."""
    is_batch = axis == 0 and all(isinstance(value, CSRSparseTensor) for value in values)
    return batch_of(CSRSparseTensor, list(values)) if is_batch else NotImplemented
