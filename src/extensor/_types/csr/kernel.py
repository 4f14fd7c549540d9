"""The product of a sparse and a dense matrix, computed by TensorFlow's CSR kernels.

The kernels take a matrix as a variant tensor, built from row and column indices. A variant is not a
component of the value, so values can be batched and saved; an eager matrix caches its variant for
the next product. TensorFlow's gradient of the product requires static shapes, so this module
defines its own gradient. Eager products of a few numbers run the kernel of `tf.sparse`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._types.csr.conversion import tall
from extensor.authoring import row_ids, sizes_of
from extensor.errors import DTypeError

if TYPE_CHECKING:
    from extensor._types.csr.value import CSRSparseTensor

_DTYPES = (tf.float32, tf.float64, tf.complex64, tf.complex128)
_KEPT = "_extensor_variants"

# Products of two numbers: for fewer, tf.custom_gradient takes longer than a slower kernel.
_FEW = 1 << 14


class _Matrix:
    """A sparse matrix in the form that the kernels need.

    Attributes:
        indices: The row and column of each entry: int64 `[entries, 2]`.
        sizes: The numbers of rows and columns: int64 `[2]`.
        static: The static numbers of rows and columns.
        variant: The cached variant tensor, or None.
        products: The functions that multiply by the matrix, and by its transpose, by `transpose`.
    """

    def __init__(self, matrix: CSRSparseTensor, blocks: bool) -> None:
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

    def variant_of(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the variant tensor of this matrix with the given values."""
        return tf.raw_ops.SparseTensorToCSRSparseMatrix(
            indices=self.indices, values=values, dense_shape=self.sizes
        )


def multiply(
    matrix: CSRSparseTensor, dense: tf.Tensor, blocks: bool, transpose: bool, adjoint: bool
) -> tf.Tensor:
    """Returns the product of one sparse and one dense matrix.

    Args:
        matrix: A CSRSparseTensor of rank 2 or more.
        dense: A matrix of the same dtype.
        blocks: Whether a batch becomes one block-diagonal matrix; otherwise its matrices are
            stacked vertically.
        transpose: Whether the sparse matrix is transposed first.
        adjoint: Whether the sparse matrix is conjugated first.

    Raises:
        DTypeError: If there is no kernel for the dtype (also a TypeError).
    """
    if matrix.dtype not in _DTYPES:
        expected = "float32, float64, complex64 or complex128, the dtypes of the kernels"
        fix = "Cast both sides: tensor.with_values(tf.cast(tensor.values, tf.float32))."
        raise DTypeError("CSRSparseTensor.matmul", expected, matrix.dtype.name, fix)
    values = matrix.values
    is_eager = hasattr(values, "numpy") and tf.executing_eagerly()
    is_real = is_eager and values.dtype.is_floating
    if is_real and not blocks and values.shape[0] * dense.shape[1] <= _FEW:
        return _multiply_few(tall(matrix), dense, transpose)
    conjugated = adjoint and matrix.dtype.is_complex
    if conjugated or not is_eager:
        prepared = _Matrix(matrix, blocks)
        return _times(prepared, tf.math.conj(values) if conjugated else values, dense, transpose)
    kept: dict[bool, _Matrix] = matrix.__dict__.setdefault(_KEPT, {})
    if blocks not in kept:
        prepared = _Matrix(matrix, blocks)
        prepared.variant = prepared.variant_of(values)
        kept[blocks] = prepared
    return _times(kept[blocks], values, dense, transpose)


def _multiply_few(matrix: tf.SparseTensor, dense: tf.Tensor, transpose: bool) -> tf.Tensor:
    """Returns the product by the kernel of `tf.sparse`, which has a gradient of its own."""
    return tf.raw_ops.SparseTensorDenseMatMul(
        a_indices=matrix.indices,
        a_values=matrix.values,
        a_shape=matrix.dense_shape,
        b=dense,
        adjoint_a=transpose,
    )


def _times(matrix: _Matrix, values: tf.Tensor, dense: tf.Tensor, transpose: bool) -> tf.Tensor:
    # Cached, because tf.custom_gradient takes longer than the product with a vector.
    if transpose not in matrix.products:
        matrix.products[transpose] = _product(matrix, transpose)
    return matrix.products[transpose](values, dense)


def _product(matrix: _Matrix, transpose: bool) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Returns a function of the values and the dense matrix that computes the product."""

    @tf.custom_gradient
    def multiply(
        values: tf.Tensor, dense: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            rows, columns = matrix.indices[:, 0], matrix.indices[:, 1]
            if transpose:
                rows, columns = columns, rows
            of_values = tf.gather(upstream, rows) * tf.math.conj(tf.gather(dense, columns))
            other = matrix
            if values.dtype.is_complex:  # the variant is of the values that are not conjugated
                other = object.__new__(_Matrix)
                other.__dict__.update(matrix.__dict__, variant=None, products={})
            of_dense = _times(other, tf.math.conj(values), upstream, not transpose)
            return tf.reduce_sum(of_values, 1), of_dense

        # stop_gradient, because forward-mode differentiation would use the kernel's own gradient.
        return _run(matrix, tf.stop_gradient(values), tf.stop_gradient(dense), transpose), gradient

    return multiply


def _run(matrix: _Matrix, values: tf.Tensor, dense: tf.Tensor, transpose: bool) -> tf.Tensor:
    """Runs the kernel, or returns zeros: it aborts on 0 rows, and fails on 0 columns."""
    outer = 1 if transpose else 0
    static = [*matrix.static, dense.shape[1]]

    def run() -> tf.Tensor:
        variant = matrix.variant if tf.executing_eagerly() else None
        if variant is None:  # also in a graph, which needs to know the shape inside a variant
            variant = matrix.variant_of(values)
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
