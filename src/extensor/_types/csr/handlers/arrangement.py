"""Operations that move, select or combine entries of CSRSparseTensors."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.csr import entries
from extensor._types.csr.value import CSRSparseTensor
from extensor.authoring import batch_of
from extensor.dispatch import implements


@implements(tf.transpose, on=CSRSparseTensor)
def transpose(a: Any, perm: Any = None, conjugate: bool = False, *_: Any) -> Any:
    """Returns a sparse tensor with its last two dimensions swapped; declines other orders."""
    rank = a.shape.rank
    order = list(range(rank))[::-1] if perm is None else tf.get_static_value(perm)
    if rank < 2 or order is None or list(order) != [*range(rank - 2), rank - 1, rank - 2]:
        return NotImplemented
    return _conjugated(a.transpose()) if conjugate else a.transpose()


@implements(tf.linalg.matrix_transpose, on=CSRSparseTensor)
def matrix_transpose(a: Any, name: Any = "matrix_transpose", conjugate: bool = False) -> Any:
    """Returns each sparse matrix with rows and columns swapped."""
    return _conjugated(a.transpose()) if conjugate else a.transpose()


def _conjugated(x: Any) -> Any:
    return x.with_values(tf.math.conj(x.values))


@implements(tf.gather, on=CSRSparseTensor)
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: Any = 0,
    *_: Any,
) -> Any:
    """Returns some rows of a sparse matrix, or matrices of a batch."""
    if not isinstance(params, CSRSparseTensor) or axis not in (None, 0) or batch_dims:
        return NotImplemented
    return params.gather(indices)


@implements(tf.stack, on=CSRSparseTensor)
def stack(values: Any, axis: int = 0, *_: Any) -> Any:
    """Returns a batch of sparse tensors of the same shape."""
    is_batch = axis == 0 and all(isinstance(value, CSRSparseTensor) for value in values)
    return batch_of(CSRSparseTensor, list(values)) if is_batch else NotImplemented


@implements(tf.concat, on=CSRSparseTensor)
def concat(values: Any, axis: Any, *_: Any) -> Any:
    """Returns sparse tensors joined along their first or last axis."""
    known = tf.get_static_value(axis) if isinstance(axis, tf.Tensor) else axis
    if known is None or not all(isinstance(value, CSRSparseTensor) for value in values):
        return NotImplemented
    rank = values[0].shape.rank
    place = int(known) + rank if known < 0 else int(known)
    if place not in (0, rank - 1):
        return NotImplemented
    return entries.concatenated(list(values), place)


@implements(tf.sparse.to_dense, on=CSRSparseTensor)
def to_dense(sp_input: Any, *args: Any) -> Any:
    """Returns the dense tensor of the same shape."""
    return tf.sparse.to_dense(sp_input.to_sparse(), *args)
