"""Operations on CSRSparseTensors: products, sums, transposes, reductions, gathered rows.

A batch of matrices is computed as one matrix: either a tall one, in which the matrices are stacked
vertically, or a block-diagonal one.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from extensor._types.csr.conversion import row_numbers, tall
from extensor._types.csr.kernel import multiply
from extensor.authoring import (
    array_over,
    as_tensor,
    known_arrays,
    reduce_rows,
    row_splits_of,
    sizes_of,
    tensor_over,
)
from extensor.errors import DTypeError, StructureError

if TYPE_CHECKING:
    from extensor._types.csr.value import Axes, CSRSparseTensor, Operand


def product(matrix: CSRSparseTensor, dense: tf.Tensor, transpose: bool, adjoint: bool) -> tf.Tensor:
    """Returns the product of sparse matrices and dense ones; see CSRSparseTensor.matmul."""
    _expect_matrix(matrix, "matmul")
    dense = dense_operand(matrix, dense, "matmul")
    shape, rank = matrix.shape, dense.shape.rank
    if rank is None or rank < 2:
        raise shape_error("matmul", "a dense tensor of rank 2 or more", f"shape {dense.shape}")
    inner, outer = (-2, -1) if transpose else (-1, -2)
    if shape.rank == 2 == rank and shape[inner] is not None and shape[inner] == dense.shape[0]:
        return multiply(matrix, dense, blocks=False, transpose=transpose, adjoint=adjoint)
    leading = shape[:-2] if shape.rank > 2 else dense.shape[:-2]
    batch = dense.shape[:-2] if rank > 2 else leading
    if not (
        tf.TensorShape([shape[inner]]).is_compatible_with(dense.shape[-2:-1])
        and leading.is_compatible_with(batch)
    ):
        expected = leading.concatenate([shape[inner], None]) if rank > 2 else [shape[inner], None]
        raise shape_error("matmul", f"shape {tf.TensorShape(expected)}", f"{dense.shape}")
    if shape.rank == 2 == rank:
        return multiply(matrix, dense, blocks=False, transpose=transpose, adjoint=adjoint)
    result = _batch_product(matrix, dense, outer, transpose, adjoint)
    static = leading.merge_with(batch).concatenate([shape[outer], dense.shape[-1]])
    return tf.ensure_shape(result, static)


def _batch_product(
    matrix: CSRSparseTensor, dense: tf.Tensor, outer: int, transpose: bool, adjoint: bool
) -> tf.Tensor:
    """Returns the product if at least one side is a batch; `outer` is the axis that is kept."""
    sizes, rank = tf.shape(dense, tf.int64), dense.shape.rank
    tail = tf.stack([matrix.dense_shape[outer], sizes[-1]])
    if matrix.shape.rank == 2:
        # All dense matrices side by side.
        count = tf.reduce_prod(sizes[:-2])
        dense = tf.reshape(dense, tf.stack([count, sizes[-2], sizes[-1]]))
        wide = tf.reshape(tf.transpose(dense, [1, 0, 2]), tf.stack([sizes[-2], count * sizes[-1]]))
        result = multiply(matrix, wide, blocks=False, transpose=transpose, adjoint=adjoint)
        split = tf.reshape(result, tf.stack([tail[0], count, tail[1]]))
        return tf.reshape(tf.transpose(split, [1, 0, 2]), tf.concat([sizes[:-2], tail], 0))
    leading = matrix.dense_shape[:-2]
    blocks = transpose or rank > 2
    if transpose and rank == 2:
        dense = tf.broadcast_to(dense, tf.concat([leading, sizes], 0))
    count = tf.reduce_prod(leading) if blocks else 1
    high = tf.reshape(dense, tf.stack([count * sizes[-2], sizes[-1]]))
    result = multiply(matrix, high, blocks=blocks, transpose=transpose, adjoint=adjoint)
    return tf.reshape(result, tf.concat([leading, tail], 0))


def left_product(
    dense: tf.Tensor, matrix: CSRSparseTensor, transpose: bool, adjoint: bool
) -> tf.Tensor:
    """Returns the product of dense matrices (left) and sparse matrices (right).

    Args:
        dense: The dense matrices.
        matrix: The sparse matrices.
        transpose: Whether the sparse matrices are transposed first.
        adjoint: Whether the sparse matrices are transposed and conjugated first.
    """
    dense = dense_operand(matrix, dense, "matmul")
    if dense.shape.rank is None or dense.shape.rank < 2:
        raise shape_error("matmul", "a dense tensor of rank 2 or more", f"shape {dense.shape}")
    if adjoint:
        matrix = matrix.with_values(tf.math.conj(matrix.values))
    # (AB)^T = B^T A^T
    transposed_dense = tf.linalg.matrix_transpose(dense)
    return tf.linalg.matrix_transpose(
        product(matrix, transposed_dense, not (transpose or adjoint), False)
    )


def add(matrix: CSRSparseTensor, other: Operand) -> CSRSparseTensor | tf.Tensor:
    """Returns the sum; see CSRSparseTensor.add."""
    if isinstance(other, tf.SparseTensor):
        other = type(matrix).from_sparse(other)
    is_sparse = isinstance(other, type(matrix))
    if not is_sparse:
        other = dense_operand(matrix, other, "add")
    else:
        expect_same_dtype(matrix, other, "add")
    if not matrix.shape.is_compatible_with(other.shape):
        raise shape_error("add", f"shape {matrix.shape}", f"{other.shape}")
    if not is_sparse:
        entries = tall(matrix)
        high = tf.reshape(other, entries.dense_shape)
        result = tf.tensor_scatter_nd_add(high, entries.indices, entries.values)
        return tf.reshape(result, tf.shape(other))
    one, two = tall(matrix), tall(other)
    # Of small matrices, the functions of tf take several times as long as these kernels.
    raw, known = tf.raw_ops, known_arrays(one.values, two.values)
    sparse_add = functools.partial(
        raw.SparseAdd,
        a_indices=one.indices,
        a_shape=one.dense_shape,
        b_indices=two.indices,
        b_shape=two.dense_shape,
    )
    if known is not None and one.dtype in _SUMMED and all(np.isfinite(k).all() for k in known):
        zero = tf.constant(0, one.dtype.real_dtype)
        indices, values, _ = sparse_add(a_values=one.values, b_values=two.values, thresh=zero)
    else:
        # The kernel leaves out sums that are NaN, and has few dtypes: it finds who has an entry.
        marks = tf.constant(1, tf.int8), tf.constant(2, tf.int8)
        of_one, of_two = (
            raw.Fill(dims=raw.Shape(input=each.values), value=mark)
            for each, mark in zip((one, two), marks, strict=True)
        )
        indices, source, _ = sparse_add(a_values=of_one, b_values=of_two, thresh=marks[0])
        count = raw.Size(input=source, out_type=tf.int64)
        first, second = (
            raw.UnsortedSegmentSum(
                data=each.values,
                segment_ids=raw.Where(condition=raw.NotEqual(x=source, y=other))[:, 0],
                num_segments=count,
            )
            for each, other in zip((one, two), reversed(marks), strict=True)
        )
        values = raw.AddV2(x=first, y=second)
    splits, columns = rows_of(indices, matrix.row_splits)
    shape = matrix.shape.merge_with(other.shape)
    return matrix._of_parts(splits, columns, values, matrix.dense_shape, shape)


# The dtypes whose finite sums SparseAdd keeps: it leaves out the smallest int64.
_SUMMED = (tf.float32, tf.float64, tf.complex64, tf.complex128)


def rows_of(indices: tf.Tensor, like: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the row splits and the columns of sorted entries.

    Args:
        indices: The row and the column of each entry: int64 `[entries, 2]`.
        like: Row splits of a matrix with as many rows, and of the dtype of the result.
    """
    dtype = like.dtype
    if hasattr(indices, "numpy") and tf.executing_eagerly():
        found, count = array_over(indices), like.shape[0]
        splits = np.zeros(count, dtype.as_numpy_dtype)
        np.cumsum(np.bincount(found[:, 0], minlength=count - 1), out=splits[1:])
        return tensor_over(splits), tensor_over(found[:, 1].astype(dtype.as_numpy_dtype))
    numbers, columns = tf.unstack(indices, axis=1, num=2)
    rows = tf.range(tf.size(like, tf.int64))
    splits = tf.raw_ops.LowerBound(
        sorted_inputs=tf.expand_dims(numbers, 0), values=tf.expand_dims(rows, 0), out_type=dtype
    )
    return tf.squeeze(splits, 0), tf.cast(columns, dtype)


def _product(sizes: list[Any]) -> tf.Tensor:
    if all(isinstance(size, int) for size in sizes):
        return tf.constant(math.prod(sizes), tf.int64)
    return tf.reduce_prod([tf.constant(1, tf.int64), *(tf.cast(s, tf.int64) for s in sizes)])


def transpose(matrix: CSRSparseTensor) -> CSRSparseTensor:
    """Returns each matrix with rows and columns swapped."""
    _expect_matrix(matrix, "transpose")
    *leading, height, width = sizes_of(matrix.shape, matrix.dense_shape)
    numbers = row_numbers(matrix)
    # The row of each entry in the result, counted through all matrices.
    places = numbers // height * width + tf.cast(matrix.columns, tf.int64)
    order = tf.argsort(places, stable=True)
    count = _product([*leading, width])
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(places), places, count)
    dtype = matrix.row_splits.dtype
    static = matrix.shape[:-2].concatenate([matrix.shape[-1], matrix.shape[-2]])
    return matrix._of_parts(
        tf.cast(row_splits_of(lengths), dtype),
        tf.cast(tf.gather(numbers % height, order), dtype),
        tf.gather(matrix.values, order),
        tf.concat([matrix.dense_shape[:-2], matrix.dense_shape[:-3:-1]], 0),
        static,
    )


_REDUCIBLE = {
    "sum": "values that are numbers",
    "mean": "floating point or complex values",
    "max": "values that are real numbers",
    "min": "values that are real numbers",
}


def reduce(matrix: CSRSparseTensor, reduction: str, axis: Axes, keepdims: bool) -> tf.Tensor:
    """Returns the dense sum, mean, maximum or minimum along `axis`; zeros count."""
    path = f"reduce_{reduction}"
    axes = _axes(axis, matrix.shape.rank, path)
    values = matrix.values
    dtype = values.dtype
    is_real = dtype.is_floating or (dtype.is_integer and reduction != "mean")
    if not (is_real or (dtype.is_complex and reduction in ("sum", "mean"))):
        fix = "Cast them: tensor.with_values(tf.cast(tensor.values, tf.float32))."
        raise DTypeError(f"CSRSparseTensor.{path}", _REDUCIBLE[reduction], dtype.name, fix)
    kept = [d for d in range(matrix.shape.rank) if d not in axes]
    if reduction == "sum" and not kept and not keepdims:
        return tf.reduce_sum(values)
    if reduction == "sum" and kept == [0] and matrix.shape.rank == 2 and not keepdims:
        count = matrix.shape[0]
        if count is not None:
            return tf.raw_ops.UnsortedSegmentSum(
                data=values,
                segment_ids=row_numbers(matrix),
                num_segments=tf.constant(count, tf.int64),
            )
    sizes = sizes_of(matrix.shape, matrix.dense_shape)
    count = _product([sizes[d] for d in kept])
    if reduction in ("sum", "mean"):
        # TensorFlow adds up a whole vector more precisely than a segment.
        result = (
            tf.math.unsorted_segment_sum(values, _places(matrix, sizes, kept), count)
            if kept
            else tf.reduce_sum(values)
        )
        if reduction == "mean":
            result /= tf.cast(_product([sizes[d] for d in axes]), values.dtype)
        if len(kept) == 1 and not keepdims and result.shape == matrix.shape[kept[0] : kept[0] + 1]:
            return result
    else:
        places = _places(matrix, sizes, kept)
        cells = _product([sizes[d] for d in axes])
        extreme = reduce_rows(values, places, count, reduction)
        bound = tf.maximum if reduction == "max" else tf.minimum
        entries = tf.math.unsorted_segment_sum(tf.ones_like(places), places, count)
        result = tf.where(entries < cells, bound(extreme, tf.zeros_like(extreme)), extreme)
    shape = [1 if d in axes else s for d, s in enumerate(sizes) if keepdims or d in kept]
    result = tf.reshape(result, tf.stack([tf.cast(s, tf.int64) for s in shape]) if shape else [])
    static = [s if s is None or isinstance(s, int) else None for s in shape]
    return tf.ensure_shape(result, static)


def _axes(axis: Axes, rank: int, path: str) -> list[int]:
    if axis is None:
        return list(range(rank))
    try:
        given = [operator.index(a) for a in np.atleast_1d(axis).tolist()]
    except (TypeError, NotImplementedError) as error:  # no integers; a tensor without a value
        expected = "integers, known when the graph is made"
        fix = "Give a Python int, or a list of these."
        raise DTypeError(f"CSRSparseTensor.{path}: axis", expected, repr(axis)[:80], fix) from error
    for a in given:
        if not -rank <= a < rank:
            expected = f"an axis from {-rank} to {rank - 1}"
            fix = f"The rank of the tensor is {rank}."
            raise StructureError(f"CSRSparseTensor.{path}: axis", expected, str(a), fix)
    return sorted({a % rank for a in given})


def _places(matrix: CSRSparseTensor, sizes: list[Any], kept: list[int]) -> tf.Tensor:
    """Returns the row-major index of each entry among the kept dimensions."""
    numbers = row_numbers(matrix)
    last = len(sizes) - 1
    if kept == list(range(last)):
        return numbers
    places, stride = tf.zeros_like(numbers), tf.constant(1, tf.int64)
    for axis in range(last, -1, -1):
        place = numbers % sizes[axis] if axis < last else tf.cast(matrix.columns, tf.int64)
        if axis < last:
            numbers //= sizes[axis]
        if axis in kept:
            places += place * stride
            stride *= sizes[axis]
    return places


def dense_operand(matrix: CSRSparseTensor, dense: tf.Tensor, path: str) -> tf.Tensor:
    """Returns the dense operand of an operation as a tensor; it must have the dtype of the matrix.

    Raises:
        DTypeError: If it is sparse, or has another dtype.
    """
    if isinstance(dense, type(matrix)):
        fix = "Convert one of the two with to_dense()."
        raise DTypeError(f"CSRSparseTensor.{path}", "a dense tensor", "a CSRSparseTensor", fix)
    if not isinstance(dense, (tf.Tensor, tf.Variable)):
        return as_tensor(dense, f"CSRSparseTensor.{path}", matrix.dtype)
    if dense.dtype != matrix.dtype:
        raise _dtype_error(matrix, dense, path)
    return dense if isinstance(dense, tf.Tensor) else tf.convert_to_tensor(dense)


def expect_same_dtype(
    matrix: CSRSparseTensor, other: CSRSparseTensor | tf.Tensor, path: str
) -> None:
    """Raises DTypeError unless two tensors have one dtype."""
    if other.dtype != matrix.dtype:
        raise _dtype_error(matrix, other, path)


def _dtype_error(
    matrix: CSRSparseTensor, other: CSRSparseTensor | tf.Tensor, path: str
) -> DTypeError:
    expected, received = f"{matrix.dtype.name}, the dtype of this tensor", other.dtype.name
    return DTypeError(f"CSRSparseTensor.{path}", expected, received, "Cast one of the two tensors.")


def _expect_matrix(matrix: CSRSparseTensor, path: str) -> None:
    if matrix.shape.rank == 1:
        raise shape_error(path, "a tensor of rank 2 or more", f"shape {matrix.shape}")


def shape_error(path: str, expected: str, received: str) -> StructureError:
    """Returns the error for a tensor whose shape does not fit."""
    fix = "Check the shapes of both tensors."
    return StructureError(f"CSRSparseTensor.{path}", expected, received, fix)
