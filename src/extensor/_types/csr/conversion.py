"""Conversion between CSRSparseTensors and dense tensors, `tf.SparseTensor` and SciPy arrays."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from extensor.authoring import array_over, integers, row_ids, sizes_of, tensor_over
from extensor.errors import DTypeError, MissingDependencyError, StructureError

if TYPE_CHECKING:
    import scipy.sparse as sp

    from extensor._types.csr.value import CSRSparseTensor

Array = np.ndarray[Any, Any]


def expect_dimensions(shape: tf.TensorShape, path: str) -> None:
    """Raises StructureError for a scalar, or a shape of unknown rank."""
    if not shape.rank:
        expected = "a known rank, 1 or more"
        fix = "Reshape it; the last dimension contains the columns."
        raise StructureError(f"CSRSparseTensor.{path}", expected, f"shape {shape}", fix)


def expect_order(indices: Array, numbers: Array, dense_shape: Array) -> None:
    """Raises StructureError unless indices are sorted, and inside of the shape."""
    outside = (indices < 0) | (indices >= dense_shape)
    if outside.any():
        entry, axis = np.argwhere(outside)[0]
        expected = f"indices from 0 to {dense_shape[axis] - 1} in dimension {axis}"
        received = f"index {indices[entry, axis]} in entry {entry}"
        fix = "dense_shape holds the size of each dimension."
        raise StructureError("CSRSparseTensor.from_sparse", expected, received, fix)
    steps_down = numbers[1:] < numbers[:-1]
    if steps_down.any():
        received = f"a smaller index after entry {int(steps_down.argmax())}"
        fix = "Pass tf.sparse.reorder(sparse)."
        raise StructureError("CSRSparseTensor.from_sparse", "sorted indices", received, fix)


def row_numbers(matrix: CSRSparseTensor) -> tf.Tensor:
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


def tall(matrix: CSRSparseTensor) -> tf.SparseTensor:
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
    made = sparse_tensor(indices, matrix.values, tf.stack([count, matrix.dense_shape[-1]]), static)
    if all(hasattr(x, "numpy") for x in (indices, matrix.values)) and tf.executing_eagerly():
        matrix.__dict__[_KEPT] = made
    return made


_KEPT, _NUMBERS = "_extensor_tall", "_extensor_row_numbers"


def sparse_tensor(
    indices: tf.Tensor, values: tf.Tensor, dense_shape: tf.Tensor, shape: tf.TensorShape
) -> tf.SparseTensor:
    """Returns a SparseTensor that keeps the static sizes of a shape."""
    # tf.stack of the sizes keeps the static sizes.
    sizes = [tf.cast(size, tf.int64) for size in sizes_of(shape, dense_shape)]
    return tf.SparseTensor(indices, values, tf.stack(sizes))


# SciPy.

_KINDS = "biufc"


def from_scipy(
    cls: type[CSRSparseTensor], array: Any, row_splits_dtype: tf.DType
) -> CSRSparseTensor:
    """Returns a sparse array of SciPy as a value of `cls`."""
    if not hasattr(array, "tocsr"):
        expected, fix = "a sparse array or matrix of SciPy", "Use from_dense for dense arrays."
        raise DTypeError("CSRSparseTensor.from_scipy", expected, type(array).__qualname__, fix)
    if array.dtype.kind not in _KINDS or array.dtype.char in "gG":  # long double
        expected, fix = "a dtype that TensorFlow has", "Convert it with array.astype(...)."
        raise DTypeError("CSRSparseTensor.from_scipy", expected, f"dtype {array.dtype}", fix)
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


def _fitting(csr: Any, dtype: tf.DType, own: tf.DType) -> type[np.generic]:
    if dtype == tf.int32 and own == tf.int64 and max(csr.nnz, *csr.shape) >= 2**31:
        expected = "fewer than 2**31 entries and columns for row_splits_dtype=tf.int32"
        received, fix = f"{csr.nnz} entries, shape {csr.shape}", "Omit row_splits_dtype, for int64."
        raise StructureError("CSRSparseTensor.from_scipy", expected, received, fix)
    return dtype.as_numpy_dtype


def to_scipy(matrix: CSRSparseTensor) -> sp.csr_array:
    """Returns a vector or matrix as a `scipy.sparse.csr_array`."""
    if matrix.shape.rank > 2:
        expected, fix = "a vector or a matrix", "Convert each matrix: tensor[i].to_scipy()."
        raise StructureError("CSRSparseTensor.to_scipy", expected, f"shape {matrix.shape}", fix)
    if np.dtype(matrix.dtype.as_numpy_dtype).kind not in _KINDS:
        expected = "a dtype that NumPy has"
        fix = "Cast them: tensor.with_values(tf.cast(tensor.values, tf.float32))."
        raise DTypeError("CSRSparseTensor.to_scipy", expected, matrix.dtype.name, fix)
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
