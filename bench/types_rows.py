"""The cost of the types of xt.types, compared to the ops that they call."""

from __future__ import annotations

import functools
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
        Row("TensorDigraph.batch of 64 graphs, vs tf.concat by hand", Within(2), _graphs),
        Row("a graph of a batch of 64, vs slices by hand", Within(1.5), _graph),
        Row("DimensionAlignment.batch of 64, vs tf.concat by hand", Within(2), _alignments),
        *(
            Row(f"{name}, eager, vs {peer}", Within(limit), functools.partial(_csr, call, size))
            for size, shape, limit in ((8, "8 x 8", 3), (_SIZE, "10k x 10k", 1.5))
            for call, (name, peer) in {
                "sum": (f"CSR {shape}: reduce_sum", "tf.sparse.reduce_sum"),
                "sum of rows": (f"CSR {shape}: reduce_sum of rows", "tf.sparse.reduce_sum"),
                "add": (f"CSR {shape}: add", "tf.sparse.add"),
                "dense": (f"CSR {shape}: to_dense", "tf.sparse.to_dense"),
                "product": (f"CSR {shape}: matmul", "tf.sparse.sparse_dense_matmul"),
            }.items()
            if call != "dense" or size < _SIZE  # the dense tensor would take 400 MB
        ),
    ]


def _few_graphs() -> list[xt.types.TensorDigraph]:
    nodes, edges = {"mass": [1.0, 2.0, 3.0], "kind": [1, 2, 3]}, {"cost": [1.0, 2.0, 3.0]}
    return [xt.types.TensorDigraph([0, 1, 2], [1, 2, 0], nodes, edges) for _ in range(64)]


def _graphs(folder: Path) -> tuple[Call, Call]:
    graphs = _few_graphs()

    def by_hand() -> None:
        firsts = np.cumsum([0] + [graph.nodes["mass"].shape[0] for graph in graphs])
        for end in ("source", "target"):
            tf.concat([getattr(g, end) + first for g, first in zip(graphs, firsts)], 0)  # noqa: B905
        for name in ("mass", "kind"):
            tf.concat([graph.nodes[name] for graph in graphs], 0)
        tf.concat([graph.edges["cost"] for graph in graphs], 0)
        for name in ("num_nodes", "num_edges"):
            tf.stack([getattr(graph, name) for graph in graphs])

    return lambda: xt.types.TensorDigraph.batch(graphs), by_hand


def _graph(folder: Path) -> tuple[Call, Call]:
    batch = xt.types.TensorDigraph.batch(_few_graphs())

    def by_hand() -> None:
        nodes, edges = batch.num_nodes.numpy(), batch.num_edges.numpy()
        first, begin = nodes[:3].sum(), edges[:3].sum()
        last, end = first + nodes[3], begin + edges[3]
        for name in ("source", "target"):
            getattr(batch, name)[begin:end] - first
        for name in ("mass", "kind"):
            batch.nodes[name][first:last]
        batch.edges["cost"][begin:end]
        batch.num_nodes[3], batch.num_edges[3]

    return lambda: batch[3], by_hand


def _alignments(folder: Path) -> tuple[Call, Call]:
    alignments = [xt.types.DimensionAlignment([0, 1], [1, 0], 2, 2) for _ in range(64)]

    def by_hand() -> None:
        firsts = [2 * i for i in range(64)]
        for end in ("source", "target"):
            tf.concat([getattr(a, end) + first for a, first in zip(alignments, firsts)], 0)  # noqa: B905
        for name in ("num_sources", "num_targets", "num_pairs"):
            tf.stack([getattr(alignment, name) for alignment in alignments])

    return lambda: xt.types.DimensionAlignment.batch(alignments), by_hand


def _csr(call: str, size: int, folder: Path) -> tuple[Call, Call]:
    eye = xt.types.CSRSparseTensor.from_dense(tf.eye(size)) if size < _SIZE else _matrix()[0]
    sparse, dense = eye.to_sparse(), tf.ones([size, min(size, _WIDTH)])
    return {
        "sum": (lambda: tf.reduce_sum(eye), lambda: tf.sparse.reduce_sum(sparse)),
        "sum of rows": (lambda: tf.reduce_sum(eye, 1), lambda: tf.sparse.reduce_sum(sparse, 1)),
        "add": (lambda: eye + eye, lambda: tf.sparse.add(sparse, sparse)),
        "dense": (eye.to_dense, lambda: tf.sparse.to_dense(sparse)),
        "product": (
            lambda: eye @ dense,
            lambda: tf.sparse.sparse_dense_matmul(sparse, dense),
        ),
    }[call]


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
