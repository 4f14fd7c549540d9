"""Matrix products of CSRSparseTensors with dense tensors and with each other."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.csr import algebra, entries
from extensor._types.csr.value import CSRSparseTensor
from extensor.dispatch import implements


@implements(tf.matmul, on=CSRSparseTensor)
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    *_: Any,
) -> Any:
    """Returns the product of a sparse matrix and a dense one, or of two sparse ones."""
    a, b = _compressed(a), _compressed(b)
    if isinstance(a, CSRSparseTensor) and isinstance(b, CSRSparseTensor):
        a, b = _transposed(a, transpose_a, adjoint_a), _transposed(b, transpose_b, adjoint_b)
        return entries.sparse_product(a, b)
    if isinstance(a, CSRSparseTensor):
        return a.matmul(_transposed(b, transpose_b, adjoint_b), transpose_a, adjoint_a)
    return algebra.left_product(_transposed(a, transpose_a, adjoint_a), b, transpose_b, adjoint_b)


def _compressed(one: Any) -> Any:
    return CSRSparseTensor.from_sparse(one) if isinstance(one, tf.SparseTensor) else one


def _transposed(one: Any, transpose: bool, adjoint: bool) -> Any:
    if transpose or adjoint:
        return tf.linalg.matrix_transpose(one, conjugate=adjoint)
    return one
