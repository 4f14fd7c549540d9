"""Conversion between CSRSparseTensors and dense tensors, `tf.SparseTensor` and SciPy arrays."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import tensorflow as tf

from extensor.authoring import (
    array_over,
    integers,
    lossless,
    row_ids,
    row_splits_of,
    sizes_of,
    tensor_over,
)
from extensor.errors import DTypeError, MissingDependencyError, StructureError


def from_dense(cls: Any, dense: Any, row_splits_dtype: tf.DType) -> Any:
    """Returns the nonzero entries of a dense tensor as a value of `cls`."""
    dense = tf.convert_to_tensor(lossless(dense, None, "CSRSparseTensor.from_dense"))
    _expect_dimensions(dense.shape, "from_dense")
    dense_shape = tf.shape(dense, tf.int64)
    tall = tf.reshape(dense, tf.stack([tf.reduce_prod(dense_shape[:-1]), dense_shape[-1]]))
    is_entry = tf.not_equal(tall, tf.zeros([], dense.dtype))
    places = tf.where(is_entry)
    splits = row_splits_of(tf.math.count_nonzero(is_entry, axis=1))
    return cls.of_parts(
        tf.cast(splits, row_splits_dtype),
        tf.cast(places[:, 1], row_splits_dtype),
        tf.gather_nd(tall, places),
        dense_shape,
        dense.shape,
    )


def from_sparse(
    cls: Any, sparse: tf.SparseTensor, row_splits_dtype: tf.DType, validate: bool
) -> Any:
    """Returns a `tf.SparseTensor` as a value of `cls`."""
    _expect_dimensions(sparse.shape, "from_sparse")
    indices, dense_shape = sparse.indices, sparse.dense_shape
    rank = sparse.shape.rank
    numbers = tf.zeros_like(indices[:, 0])
    for axis in range(rank - 1):
        numbers = numbers * dense_shape[axis] + indices[:, axis]
    if hasattr(indices, "numpy") and hasattr(dense_shape, "numpy"):
        _check_order(array_over(indices), array_over(numbers), array_over(dense_shape))
    elif validate:
        in_range = tf.reduce_all((indices >= 0) & (indices < dense_shape))
        checks = [
            tf.debugging.Assert(in_range, ["from_sparse: indices must be inside the shape"]),
            tf.debugging.assert_non_negative(
                numbers[1:] - numbers[:-1], "from_sparse: indices must be in order"
            ),
        ]
        with tf.control_dependencies(checks):
            numbers = tf.identity(numbers)
    count = tf.reduce_prod(dense_shape[:-1])
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(numbers), numbers, count)
    result = cls(
        tf.cast(row_splits_of(lengths), row_splits_dtype),
        tf.cast(indices[:, -1], row_splits_dtype),
        sparse.values,
        dense_shape,
        validate=validate,
    )
    return cls.of_parts(result.row_splits, result.columns, result.values, dense_shape, sparse.shape)


def _expect_dimensions(shape: tf.TensorShape, path: str) -> None:
    if not shape.rank:
        raise StructureError(
            f"CSRSparseTensor.{path}",
            "a known rank, 1 or more",
            f"shape {shape}",
            "Reshape it; the last dimension contains the columns.",
        )


def _check_order(indices: Any, numbers: Any, dense_shape: Any) -> None:
    outside = (indices < 0) | (indices >= dense_shape)
    if outside.any():
        entry, axis = np.argwhere(outside)[0]
        raise StructureError(
            "CSRSparseTensor.from_sparse",
            f"indices from 0 to {dense_shape[axis] - 1} in dimension {axis}",
            f"index {indices[entry, axis]} in entry {entry}",
            "dense_shape holds the size of each dimension.",
        )
    steps_down = numbers[1:] < numbers[:-1]
    if steps_down.any():
        raise StructureError(
            "CSRSparseTensor.from_sparse",
            "sorted indices",
            f"a smaller index after entry {int(steps_down.argmax())}",
            "Pass tf.sparse.reorder(sparse).",
        )


def to_sparse(matrix: Any) -> tf.SparseTensor:
    """Returns the entries as a `tf.SparseTensor`."""
    numbers = row_numbers(matrix)
    places = [tf.cast(matrix.columns, tf.int64)]
    for size in reversed(sizes_of(matrix.shape[:-1], matrix.dense_shape)):
        places.insert(0, numbers % size)
        numbers //= size
    return _sparse(tf.stack(places, 1), matrix.values, matrix.dense_shape, matrix.shape)


def row_numbers(matrix: Any) -> tf.Tensor:
    """Returns the row of each entry: int64, counted through all matrices.

    An eager matrix keeps them for the next operation.
    """
    kept = matrix.__dict__.get(_NUMBERS)
    if kept is not None:
        return kept
    made = row_ids(matrix.row_splits, matrix.columns)
    if hasattr(made, "numpy") and tf.executing_eagerly():
        matrix.__dict__[_NUMBERS] = made
    return made


def tall(matrix: Any) -> tf.SparseTensor:
    """Returns one sparse matrix in which all matrices are stacked vertically.

    An eager matrix keeps it for the next operation.
    """
    kept = matrix.__dict__.get(_KEPT)
    if kept is not None:
        return kept
    numbers = row_numbers(matrix)
    indices = tf.stack([numbers, tf.cast(matrix.columns, tf.int64)], 1)
    count = tf.size(matrix.row_splits, tf.int64) - 1
    static = tf.TensorShape([matrix.shape[:-1].num_elements(), matrix.shape[-1]])
    made = _sparse(indices, matrix.values, tf.stack([count, matrix.dense_shape[-1]]), static)
    if all(hasattr(x, "numpy") for x in (indices, matrix.values)) and tf.executing_eagerly():
        matrix.__dict__[_KEPT] = made
    return made


_KEPT, _NUMBERS = "_extensor_tall", "_extensor_row_numbers"


def _sparse(indices: Any, values: Any, dense_shape: Any, shape: tf.TensorShape) -> tf.SparseTensor:
    # tf.stack of the sizes keeps the static sizes.
    sizes = [tf.cast(size, tf.int64) for size in sizes_of(shape, dense_shape)]
    return tf.SparseTensor(indices, values, tf.stack(sizes))


def to_dense(matrix: Any) -> tf.Tensor:
    """Returns all values, zeros included."""
    # The entries are sorted already.
    dense = tf.sparse.to_dense(tall(matrix), validate_indices=False)
    if matrix.shape.rank == 2 and dense.shape == matrix.shape:
        return dense
    return tf.ensure_shape(tf.reshape(dense, matrix.dense_shape), matrix.shape)


# SciPy.

_KINDS = "biufc"


def from_scipy(cls: Any, array: Any, row_splits_dtype: tf.DType) -> Any:
    """Returns a sparse array of SciPy as a value of `cls`."""
    if not hasattr(array, "tocsr"):
        raise DTypeError(
            "CSRSparseTensor.from_scipy",
            "a sparse array or matrix of SciPy",
            type(array).__qualname__,
            "Use from_dense for dense arrays.",
        )
    if array.dtype.kind not in _KINDS or array.dtype.char in "gG":  # long double
        raise DTypeError(
            "CSRSparseTensor.from_scipy",
            "a dtype that TensorFlow has",
            f"dtype {array.dtype}",
            "Convert it with array.astype(...).",
        )
    csr = array.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy()  # tocsr may have returned the caller's own array
        csr.sum_duplicates()
    splits = integers(csr.indptr, "CSRSparseTensor.from_scipy", rank=1).dtype
    return cls(
        tensor_over(csr.indptr.astype(_fitting(csr, row_splits_dtype, splits), copy=False)),
        tensor_over(csr.indices.astype(row_splits_dtype.as_numpy_dtype, copy=False)),
        tensor_over(csr.data),
        csr.shape,
    )


def _fitting(csr: Any, dtype: tf.DType, own: tf.DType) -> Any:
    if dtype == tf.int32 and own == tf.int64 and max(csr.nnz, *csr.shape) >= 2**31:
        raise StructureError(
            "CSRSparseTensor.from_scipy",
            "fewer than 2**31 entries and columns for row_splits_dtype=tf.int32",
            f"{csr.nnz} entries, shape {csr.shape}",
            "Omit row_splits_dtype, for int64.",
        )
    return dtype.as_numpy_dtype


def to_scipy(matrix: Any) -> Any:
    """Returns a vector or matrix as a `scipy.sparse.csr_array`."""
    if matrix.shape.rank > 2:
        raise StructureError(
            "CSRSparseTensor.to_scipy",
            "a vector or a matrix",
            f"shape {matrix.shape}",
            "Convert each matrix: tensor[i].to_scipy().",
        )
    if np.dtype(matrix.dtype.as_numpy_dtype).kind not in _KINDS:
        raise DTypeError(
            "CSRSparseTensor.to_scipy",
            "a dtype that NumPy has",
            matrix.dtype.name,
            "Cast them: tensor.with_values(tf.cast(tensor.values, tf.float32)).",
        )
    try:
        sparse = importlib.import_module("scipy.sparse")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "CSRSparseTensor.to_scipy", "SciPy", "no module scipy", 'pip install "extensor[scipy]"'
        ) from error
    array = sparse.csr_array(tuple(matrix.dense_shape.numpy().tolist()), dtype="f4")
    # The constructor would copy these arrays, because it chooses the index dtype itself.
    array.data = array_over(matrix.values)
    array.indices = array_over(matrix.columns)
    array.indptr = array_over(matrix.row_splits)
    array.has_canonical_format = True
    return array
