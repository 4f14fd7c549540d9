"""The cost of the types of xt.types, compared to the ops that they call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

import extensor as xt
from bench.measure import Call
from bench.row import Faster, NoLimit, Row, Within

_SIZE = 10_000
_PER_ROW = 10  # entries: 0.1%
_WIDTH = 64


def rows() -> list[Row]:
    what = "CSR 10k x 10k, 0.1%, times dense 10k x 64"
    return [
        Row(f"{what} in a tf.function, vs tf.raw_ops", Within(1.1), _in_a_function),
        Row(f"{what}, vs tf.raw_ops", Within(1.1), _outside),
        Row(f"{what}, vs tf.raw_ops with the variant kept", NoLimit(), _variant_kept),
        Row(f"{what} in a tf.function, vs sparse_dense_matmul", Faster(1), _sparse_in_a_function),
        Row(f"{what}, vs sparse_dense_matmul", Faster(1), _sparse_outside),
        Row(f"{what} and its gradients, vs sparse_dense_matmul", NoLimit(), _gradients),
    ]


def _matrix() -> tuple[xt.types.CSRSparseTensor, tf.Tensor]:
    random = np.random.default_rng(0)
    columns = np.sort(np.argsort(random.random((_SIZE, 100)), axis=1)[:, :_PER_ROW], axis=1)
    columns = columns * 100 + random.integers(0, 100, columns.shape)  # one column in each hundred
    splits = np.arange(_SIZE + 1) * _PER_ROW
    values = random.standard_normal(columns.size, np.float32)
    dense = random.standard_normal((_SIZE, _WIDTH), np.float32)
    matrix = xt.types.CSRSparseTensor(splits, columns.reshape(-1), values, [_SIZE, _SIZE])
    return matrix, tf.constant(dense)


def _indices(row_splits: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    ragged = tf.raw_ops.RaggedTensorToSparse(rt_nested_splits=[row_splits], rt_dense_values=columns)
    return tf.stack([ragged.sparse_indices[:, 0], columns], 1)


def _variant(row_splits: tf.Tensor, columns: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    return tf.raw_ops.SparseTensorToCSRSparseMatrix(
        indices=_indices(row_splits, columns), values=values, dense_shape=[_SIZE, _SIZE]
    )


def _checked(ours: Call, peer: Call) -> tuple[Call, Call]:
    np.testing.assert_allclose(ours(), peer(), atol=1e-4)
    return ours, peer


def _in_a_function(folder: Path) -> tuple[Call, Call]:
    matrix, dense = _matrix()
    parts = (matrix.row_splits, matrix.columns, matrix.values)
    ours = tf.function(lambda matrix, dense: matrix @ dense)
    by_hand = tf.function(
        lambda parts, dense: tf.raw_ops.SparseMatrixMatMul(a=_variant(*parts), b=dense)
    )
    return _checked(lambda: ours(matrix, dense), lambda: by_hand(parts, dense))


def _outside(folder: Path) -> tuple[Call, Call]:
    matrix, dense = _matrix()
    parts = (matrix.row_splits, matrix.columns, matrix.values)
    return _checked(
        lambda: matrix @ dense,
        lambda: tf.raw_ops.SparseMatrixMatMul(a=_variant(*parts), b=dense),
    )


def _variant_kept(folder: Path) -> tuple[Call, Call]:
    matrix, dense = _matrix()
    variant = _variant(matrix.row_splits, matrix.columns, matrix.values)
    return _checked(
        lambda: matrix @ dense, lambda: tf.raw_ops.SparseMatrixMatMul(a=variant, b=dense)
    )


def _sparse_outside(folder: Path) -> tuple[Call, Call]:
    matrix, dense = _matrix()
    sparse = matrix.to_sparse()
    return _checked(lambda: matrix @ dense, lambda: tf.sparse.sparse_dense_matmul(sparse, dense))


def _sparse_in_a_function(folder: Path) -> tuple[Call, Call]:
    matrix, dense = _matrix()
    sparse = matrix.to_sparse()
    ours = tf.function(lambda matrix, dense: matrix @ dense)
    theirs = tf.function(tf.sparse.sparse_dense_matmul)
    return _checked(lambda: ours(matrix, dense), lambda: theirs(sparse, dense))


def _gradients(folder: Path) -> tuple[Call, Call]:
    matrix, dense = _matrix()
    sparse = matrix.to_sparse()

    @tf.function
    def ours(values: tf.Tensor, dense: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch([values, dense])
            product = matrix.with_values(values) @ dense
        return tape.gradient(product, [values, dense])

    @tf.function
    def theirs(values: tf.Tensor, dense: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch([values, dense])
            product = tf.sparse.sparse_dense_matmul(
                tf.SparseTensor(sparse.indices, values, sparse.dense_shape), dense
            )
        return tape.gradient(product, [values, dense])

    return (lambda: ours(matrix.values, dense)), (lambda: theirs(matrix.values, dense))
