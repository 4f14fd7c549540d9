"""The product of a sparse matrix and a dense one, by TensorFlow's own CSR kernels.

The kernels take matrices as variants, made from row and column numbers. A variant never leaves the
computation that it is made in, so that values can be batched and saved; outside a graph a matrix
keeps its own for the next product. TensorFlow's gradient of the product needs all shapes to be
known statically, so the gradient here is another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor.authoring import row_ids, sizes_of
from extensor.errors import DTypeError

_DTYPES = (tf.float32, tf.float64, tf.complex64, tf.complex128)
_KEPT = "_extensor_variants"


class _Matrix:
    """A matrix that kernels can be given.

    Attributes:
        indices: The row and column of each entry: int64 `[entries, 2]`.
        sizes: How many rows and columns there are: int64 `[2]`.
        static: The same, as far as they are known.
        variant: What a kernel made of it, where that is kept.
        products: What multiplies with it, and with its transpose.
    """

    def __init__(self, matrix: Any, blocks: bool) -> None:
        numbers = row_ids(matrix.row_splits, matrix.columns)
        columns = tf.cast(matrix.columns, tf.int64)
        height, width = sizes_of(matrix.shape[-2:], matrix.dense_shape[-2:])
        self.static = (matrix.shape[:-1].num_elements(), matrix.shape[-1])
        if blocks:
            columns += numbers // height * width
            static = matrix.shape[:-2].concatenate(matrix.shape[-1:]).num_elements()
            self.static = (self.static[0], static)
            width = tf.reduce_prod(matrix.dense_shape[:-2]) * width
        count = tf.size(matrix.row_splits, tf.int64) - 1
        self.indices = tf.stack([numbers, columns], 1)
        self.sizes = tf.stack([count, tf.cast(width, tf.int64)])
        self.variant: Any = None
        self.products: dict[bool, Any] = {}

    def made(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the variant of this matrix with the given values."""
        return tf.raw_ops.SparseTensorToCSRSparseMatrix(
            indices=self.indices, values=values, dense_shape=self.sizes
        )


def times(matrix: Any, dense: tf.Tensor, blocks: bool, transpose: bool, adjoint: bool) -> tf.Tensor:
    """Returns the product of one sparse matrix and one dense one.

    Args:
        matrix: A CSRSparseTensor of two dimensions or more.
        dense: A matrix of the same dtype.
        blocks: Whether the matrices of a batch stand along the diagonal of one, rather than above
            each other.
        transpose: Whether the sparse matrix is transposed first.
        adjoint: Whether it is conjugated, too.

    Raises:
        DTypeError: If there is no kernel for the dtype (also a TypeError).
    """
    if matrix.dtype not in _DTYPES:
        raise DTypeError(
            path="CSRSparseTensor.matmul",
            expected="float32, float64, complex64 or complex128, for which there are kernels",
            received=matrix.dtype.name,
            mend="Cast both sides: tensor.with_values(tf.cast(tensor.values, tf.float32)).",
        )
    values = matrix.values
    conjugated = adjoint and values.dtype.is_complex
    if conjugated or not hasattr(values, "numpy") or not tf.executing_eagerly():
        prepared = _Matrix(matrix, blocks)
        return _times(prepared, tf.math.conj(values) if conjugated else values, dense, transpose)
    kept: dict[bool, _Matrix] = matrix.__dict__.setdefault(_KEPT, {})
    if blocks not in kept:
        prepared = _Matrix(matrix, blocks)
        prepared.variant = prepared.made(values)
        kept[blocks] = prepared
    return _times(kept[blocks], values, dense, transpose)


def _times(matrix: _Matrix, values: tf.Tensor, dense: tf.Tensor, transpose: bool) -> tf.Tensor:
    # TensorFlow takes longer to wrap a function than to multiply with a vector.
    if transpose not in matrix.products:
        matrix.products[transpose] = _product(matrix, transpose)
    return matrix.products[transpose](values, dense)


def _product(matrix: _Matrix, transpose: bool) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Returns the product with a matrix as a function of its values and the dense side."""

    @tf.custom_gradient
    def multiplied(values: tf.Tensor, dense: tf.Tensor) -> Any:
        def gradient(upstream: tf.Tensor) -> Any:
            ours, theirs = matrix.indices[:, 0], matrix.indices[:, 1]
            if transpose:
                ours, theirs = theirs, ours
            of_values = tf.gather(upstream, ours) * tf.math.conj(tf.gather(dense, theirs))
            other = matrix if not values.dtype.is_complex else _without_variant(matrix)
            of_dense = _times(other, tf.math.conj(values), upstream, not transpose)
            return tf.reduce_sum(of_values, 1), of_dense

        # Else forward-mode differentiation would ask the kernel for its own gradient.
        return _run(matrix, tf.stop_gradient(values), tf.stop_gradient(dense), transpose), gradient

    return multiplied


def _without_variant(matrix: _Matrix) -> _Matrix:
    copy = object.__new__(_Matrix)
    copy.__dict__.update(matrix.__dict__, variant=None, products={})
    return copy


def _run(matrix: _Matrix, values: tf.Tensor, dense: tf.Tensor, transpose: bool) -> tf.Tensor:
    """Runs the kernel, which ends the process where there are no rows, and fails on no columns."""
    outer = 1 if transpose else 0
    static = [*matrix.static, dense.shape[1]]

    def run() -> tf.Tensor:
        variant = matrix.made(values) if matrix.variant is None else matrix.variant
        return tf.raw_ops.SparseMatrixMatMul(a=variant, b=dense, transpose_a=transpose)

    def zeros() -> tf.Tensor:
        return tf.zeros(tf.stack([matrix.sizes[outer], tf.shape(dense, tf.int64)[1]]), dense.dtype)

    if 0 in static:
        result = zeros()
    elif None in static:
        sizes = tf.concat([matrix.sizes, tf.shape(dense, tf.int64)], 0)
        result = tf.cond(tf.reduce_any(tf.equal(sizes, 0)), zeros, run)
    else:
        result = run()
    result.set_shape([matrix.static[outer], dense.shape[1]])
    return result
