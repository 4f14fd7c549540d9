"""Products of CSRSparseTensors and dense tensors."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.csr import algebra
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
    """Returns the product of a sparse matrix and a dense one, whichever comes first."""
    if isinstance(a, CSRSparseTensor):
        return a.matmul(_transposed(b, transpose_b, adjoint_b), transpose_a, adjoint_a)
    return algebra.left_product(_transposed(a, transpose_a, adjoint_a), b, transpose_b, adjoint_b)


def _transposed(dense: Any, transpose: bool, adjoint: bool) -> Any:
    if adjoint:
        return tf.linalg.adjoint(dense)
    return tf.linalg.matrix_transpose(dense) if transpose else dense
