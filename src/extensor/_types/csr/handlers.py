"""Handlers of TensorFlow's operations for CSRSparseTensors; the import registers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from extensor._types.csr import algebra, entries
from extensor._types.csr.value import Axes, CSRSparseTensor, Op, Operand
from extensor.dispatch import implements, named_arguments
from extensor.typing import DTypeLike, TensorLike


@implements(tf.shape, on=CSRSparseTensor)
def shape(input: CSRSparseTensor, out_type: tf.DType | None = None, *_: object) -> tf.Tensor:
    """Returns the sizes of all dimensions."""
    return tf.cast(input.dense_shape, out_type or tf.int32)


@implements(tf.rank, on=CSRSparseTensor)
def rank(input: CSRSparseTensor, *_: object) -> tf.Tensor:
    """Returns the number of dimensions."""
    return tf.constant(input.shape.rank)


# Rows and entries.


@implements(tf.transpose, on=CSRSparseTensor)
def transpose(
    a: CSRSparseTensor, perm: TensorLike | None = None, conjugate: bool = False, *_: object
) -> CSRSparseTensor:
    """Returns a sparse tensor with its last two dimensions swapped; declines other orders."""
    rank = a.shape.rank
    order = list(range(rank))[::-1] if perm is None else tf.get_static_value(perm)
    if rank < 2 or order is None or list(order) != [*range(rank - 2), rank - 1, rank - 2]:
        return NotImplemented
    return _conjugate(a.transpose()) if conjugate else a.transpose()


@implements(tf.linalg.matrix_transpose, on=CSRSparseTensor)
def matrix_transpose(
    a: CSRSparseTensor, name: str | None = "matrix_transpose", conjugate: bool = False
) -> CSRSparseTensor:
    """Returns each sparse matrix with rows and columns swapped."""
    return _conjugate(a.transpose()) if conjugate else a.transpose()


def _conjugate(x: CSRSparseTensor) -> CSRSparseTensor:
    return x.with_values(tf.math.conj(x.values))


@implements(tf.gather, on=CSRSparseTensor)
def gather(params: CSRSparseTensor, indices: TensorLike, *args: Any) -> CSRSparseTensor:
    """Returns some rows of a sparse matrix, or matrices of a batch."""
    given = named_arguments(tf.gather, (params, indices, *args))
    is_of_rows = given.get("axis") in (None, 0) and not given.get("batch_dims")
    if not isinstance(params, CSRSparseTensor) or not is_of_rows:
        return NotImplemented
    return params.gather(indices)


@implements(tf.concat, on=CSRSparseTensor)
def concat(
    values: Sequence[CSRSparseTensor], axis: int | tf.Tensor | None, *_: object
) -> CSRSparseTensor:
    """Returns sparse tensors joined along their first or last axis."""
    known = tf.get_static_value(axis) if isinstance(axis, tf.Tensor) else axis
    if known is None or not all(isinstance(value, CSRSparseTensor) for value in values):
        return NotImplemented
    rank = values[0].shape.rank
    place = int(known) + rank if known < 0 else int(known)
    if place not in (0, rank - 1):
        return NotImplemented
    return entries.concat(list(values), place)


@implements(tf.sparse.to_dense, on=CSRSparseTensor)
def to_dense(sp_input: CSRSparseTensor, *args: object) -> tf.Tensor:
    """Returns the dense tensor of the same shape."""
    return tf.sparse.to_dense(sp_input.to_sparse(), *args)


# Elementwise operations that map zeros to zeros.


@implements(tf.add, on=CSRSparseTensor)
def add(x: Operand, y: Operand, *_: object) -> CSRSparseTensor | tf.Tensor:
    """Returns the sum of a sparse tensor and a sparse or dense tensor."""
    return x.add(y) if isinstance(x, CSRSparseTensor) else y.add(x)


@implements(tf.subtract, on=CSRSparseTensor)
def subtract(x: Operand, y: Operand, *_: object) -> CSRSparseTensor | tf.Tensor:
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
def each(op: Op, x: CSRSparseTensor, *args: object) -> CSRSparseTensor:
    """Returns a sparse tensor with each value transformed; zeros stay zeros."""
    return x.with_values(op(x.values, *args))


@implements(tf.multiply, on=CSRSparseTensor)
def multiply(x: Operand, y: Operand, *_: object) -> CSRSparseTensor:
    """Returns a sparse tensor multiplied by a number, a dense or a sparse tensor."""
    matrix, factor = (x, y) if isinstance(x, CSRSparseTensor) else (y, x)
    return entries.multiply(matrix, factor)


@implements(tf.truediv, tf.divide, on=CSRSparseTensor)
def divide(x: Operand, y: TensorLike, *_: object) -> CSRSparseTensor:
    """Returns a sparse tensor divided by a scalar."""
    if not isinstance(x, CSRSparseTensor):
        return NotImplemented
    divisor = algebra.dense_operand(x, y, "truediv")
    if divisor.shape.rank != 0:
        raise algebra.shape_error("truediv", "a scalar", f"shape {divisor.shape}")
    return x.with_values(x.values / divisor)


@implements(tf.cast, on=CSRSparseTensor)
def cast(x: CSRSparseTensor, dtype: DTypeLike, *_: object) -> CSRSparseTensor:
    """Returns a sparse tensor with values of another dtype."""
    return x.with_values(tf.cast(x.values, dtype))


# Matrix products.


@implements(tf.matmul, on=CSRSparseTensor)
def matmul(
    a: Operand,
    b: Operand,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    *_: object,
) -> CSRSparseTensor | tf.Tensor:
    """Returns the product of a sparse matrix and a dense one, or of two sparse ones."""
    a, b = _from_sparse(a), _from_sparse(b)
    if isinstance(a, CSRSparseTensor) and isinstance(b, CSRSparseTensor):
        a, b = _transpose(a, transpose_a, adjoint_a), _transpose(b, transpose_b, adjoint_b)
        return entries.sparse_product(a, b)
    if isinstance(a, CSRSparseTensor):
        return a.matmul(_transpose(b, transpose_b, adjoint_b), transpose_a, adjoint_a)
    return algebra.left_product(_transpose(a, transpose_a, adjoint_a), b, transpose_b, adjoint_b)


def _from_sparse(one: Operand) -> Operand:
    return CSRSparseTensor.from_sparse(one) if isinstance(one, tf.SparseTensor) else one


def _transpose(one: Operand, transpose: bool, adjoint: bool) -> CSRSparseTensor | tf.Tensor:
    if transpose or adjoint:
        return tf.linalg.matrix_transpose(one, conjugate=adjoint)
    return one


# Reductions to dense tensors.


@implements(tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, on=CSRSparseTensor)
def reduce(
    op: Op,
    input_tensor: CSRSparseTensor,
    axis: Axes = None,
    keepdims: bool | None = False,
    *_: object,
) -> tf.Tensor:
    """Returns the dense result of a reduction; zeros count."""
    method = getattr(input_tensor, op.__name__)
    known = tf.get_static_value(axis) if isinstance(axis, tf.Tensor) else axis
    return method(axis if known is None else known, bool(keepdims))
