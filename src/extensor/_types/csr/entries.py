"""Operations on the entries of CSRSparseTensors by their places.

The place of an entry is its row-major number: the row, counted through all matrices of a batch,
times the number of columns, plus the column. The entries of a tensor are in the order of their
places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from extensor._types.csr.algebra import dense_operand, expect_same_dtype, rows_of, shape_error
from extensor._types.csr.conversion import row_numbers

if TYPE_CHECKING:
    from extensor._types.csr.value import CSRSparseTensor, Operand


def sparse_product(a: CSRSparseTensor, b: CSRSparseTensor) -> CSRSparseTensor:
    """Returns the sparse product of two sparse matrices, or of two batches of the same shape."""
    expect_same_dtype(a, b, "matmul")
    leading = a.shape[:-2]
    if a.shape.rank < 2 or not (
        a.shape.rank == b.shape.rank
        and leading.is_compatible_with(b.shape[:-2])
        and a.shape[-1:].is_compatible_with(b.shape[-2:-1])
    ):
        expected = leading.concatenate([a.shape[-1], None])
        raise shape_error("matmul", f"shape {expected}", f"{b.shape}")
    numbers = row_numbers(a)
    rows = tf.cast(a.columns, tf.int64)
    if leading.rank:
        rows += numbers // tf.maximum(a.dense_shape[-2], 1) * b.dense_shape[-2]
    splits = tf.cast(b.row_splits, tf.int64)
    # For each entry of `a`, the entries of the row of `b` by which it is multiplied.
    met = tf.ragged.range(tf.gather(splits, rows), tf.gather(splits, rows + 1))
    first, second = met.value_rowids(), met.values
    values = tf.gather(a.values, first) * tf.gather(b.values, second)
    width = b.dense_shape[-1]
    places = tf.gather(numbers, first) * width + tf.cast(tf.gather(b.columns, second), tf.int64)
    found, ids = tf.unique(places)
    sums = tf.math.unsorted_segment_sum(values, ids, tf.size(found))
    shape = leading.merge_with(b.shape[:-2]).concatenate([a.shape[-2], b.shape[-1]])
    sizes = tf.concat([a.dense_shape[:-1], b.dense_shape[-1:]], 0)
    return _from_places(a, found, sums, sizes, shape)


def multiply(matrix: CSRSparseTensor, other: Operand) -> CSRSparseTensor:
    """Returns the product of the entries with those of a sparse tensor, or with dense numbers."""
    if isinstance(other, tf.SparseTensor):
        other = type(matrix).from_sparse(other)
    if isinstance(other, type(matrix)):
        return _common(matrix, other)
    other = dense_operand(matrix, other, "multiply")
    if other.shape.rank == 0:
        return matrix.with_values(matrix.values * other)
    try:
        shape: Any = tf.broadcast_static_shape(matrix.shape, other.shape)
    except ValueError:
        shape = None
    if shape is None or not matrix.shape.is_compatible_with(shape):
        expected = f"a shape that broadcasts to {matrix.shape}"
        raise shape_error("multiply", expected, f"{other.shape}")
    flat = tf.reshape(tf.broadcast_to(other, matrix.dense_shape), [-1])
    return matrix.with_values(matrix.values * tf.gather(flat, _places(matrix)))


def _common(a: CSRSparseTensor, b: CSRSparseTensor) -> CSRSparseTensor:
    """Returns the products of the entries that both tensors have."""
    expect_same_dtype(a, b, "multiply")
    if not a.shape.is_compatible_with(b.shape):
        raise shape_error("multiply", f"shape {a.shape}", f"{b.shape}")
    places, others = _places(a), _places(b)
    found = tf.searchsorted(others, places, out_type=tf.int64)
    # The place after the last one is that of no entry.
    same = tf.equal(tf.gather(tf.concat([others, [-1]], 0), found), places)
    kept = tf.where(same)[:, 0]
    values = tf.gather(a.values, kept) * tf.gather(b.values, tf.gather(found, kept))
    shape = a.shape.merge_with(b.shape)
    return _from_places(a, tf.gather(places, kept), values, a.dense_shape, shape)


def concat(tensors: list[Any], axis: int) -> CSRSparseTensor:
    """Returns tensors joined along their first or last axis.

    Args:
        tensors: Tensors of one rank, at least one.
        axis: 0, or the last axis.
    """
    first, *others = tensors
    rest = _without_size(first.shape, axis)
    for other in others:
        expect_same_dtype(first, other, "concat")
        if not rest.is_compatible_with(other.shape):
            raise shape_error("concat", f"shape {rest}", f"{other.shape}")
        rest = rest.merge_with(_without_size(other.shape, axis))
    known = [tensor.shape[axis] for tensor in tensors]
    shape = rest[:axis].concatenate([None if None in known else sum(known)])
    shape = shape.concatenate(rest[axis + 1 :])
    along = tf.add_n([tensor.dense_shape[axis] for tensor in tensors])
    whole = tf.concat([first.dense_shape[:axis], [along], first.dense_shape[axis + 1 :]], 0)
    values = tf.concat([tensor.values for tensor in tensors], 0)
    if axis == shape.rank - 1:
        places: list[tf.Tensor] = []
        before = tf.constant(0, tf.int64)
        for tensor in tensors:
            columns = tf.cast(tensor.columns, tf.int64) + before
            places.append(row_numbers(tensor) * whole[-1] + columns)
            before += tensor.dense_shape[-1]
        return _from_places(first, tf.concat(places, 0), values, whole, shape)
    dtype = first.row_splits.dtype
    ends = [tf.cast(tensor.row_splits[1:], dtype) for tensor in tensors]
    counts = [tf.size(tensor.columns, dtype) for tensor in tensors]
    befores = tf.unstack(tf.cumsum(tf.stack(counts), exclusive=True))
    splits = [first.row_splits[:1], *(end + n for end, n in zip(ends, befores, strict=True))]
    columns = tf.concat([tf.cast(tensor.columns, dtype) for tensor in tensors], 0)
    return first._of_parts(tf.concat(splits, 0), columns, values, whole, shape)


def _without_size(shape: tf.TensorShape, axis: int) -> tf.TensorShape:
    return tf.TensorShape([None if i == axis else size for i, size in enumerate(shape)])


def columns_at(
    tensor: CSRSparseTensor, key: int | slice | tf.Tensor
) -> CSRSparseTensor | tf.Tensor:
    """Returns some columns of a matrix or vector.

    Args:
        tensor: A tensor of rank 1 or 2.
        key: A slice, or the number of one column, which is then no dimension of the result.

    Returns:
        A tensor of the rank of `tensor` for a slice. For a number: a vector, and for a vector a
        scalar tensor.
    """
    width = tensor.shape[-1]
    every = tf.range(tensor.dense_shape[-1] if width is None else tf.constant(width, tf.int64))
    chosen = every[key]
    is_slice = isinstance(key, slice)
    wanted = chosen if is_slice else tf.reshape(chosen, [1])
    # The new number of each column; -1 for those that are not chosen.
    numbers = tf.tensor_scatter_nd_update(
        tf.fill(tf.shape(every), tf.constant(-1, tf.int64)),
        wanted[:, tf.newaxis],
        tf.range(tf.size(wanted, tf.int64)),
    )
    found = tf.gather(numbers, tensor.columns)
    kept = tf.where(found >= 0)[:, 0]
    values = tf.gather(tensor.values, kept)
    rows, columns = tf.gather(row_numbers(tensor), kept), tf.gather(found, kept)
    if is_slice:
        count = tf.size(wanted, tf.int64)
        sizes = tf.concat([tensor.dense_shape[:-1], [count]], 0)
        shape = tensor.shape[:-1].concatenate(wanted.shape)
        return _from_places(tensor, rows * count + columns, values, sizes, shape)
    if tensor.shape.rank == 1:
        zero = tf.fill([1], "" if values.dtype == tf.string else tf.zeros([], values.dtype))
        return tf.concat([values, zero], 0)[0]
    dtype = tensor.row_splits.dtype
    splits = tf.stack([tf.constant(0, dtype), tf.size(rows, dtype)])
    of_rows = tensor.dense_shape[:-1], tensor.shape[:-1]
    return tensor._of_parts(splits, tf.cast(rows, dtype), values, *of_rows)


def _places(tensor: CSRSparseTensor) -> tf.Tensor:
    return row_numbers(tensor) * tensor.dense_shape[-1] + tf.cast(tensor.columns, tf.int64)


def _from_places(
    like: CSRSparseTensor,
    places: tf.Tensor,
    values: tf.Tensor,
    sizes: tf.Tensor,
    shape: tf.TensorShape,
) -> CSRSparseTensor:
    """Returns a tensor of entries at places, which may be in any order.

    Args:
        like: A tensor with as many rows.
        places: The place of each entry; all differ.
        values: The value of each entry.
        sizes: The sizes of all dimensions.
        shape: The static shape.
    """
    order = tf.argsort(places)
    places = tf.gather(places, order)
    width = tf.maximum(sizes[-1], 1)
    splits, columns = rows_of(tf.stack([places // width, places % width], 1), like.row_splits)
    return like._of_parts(splits, columns, tf.gather(values, order), sizes, shape)


def is_index(key: Any) -> bool:
    """Returns whether a key is a number or a slice."""
    if isinstance(key, tf.Tensor):
        return key.dtype.is_integer and key.shape.rank == 0
    return isinstance(key, (int, np.integer, slice)) and not isinstance(key, bool)
