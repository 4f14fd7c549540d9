"""The number of ops for small values: a batch of any size needs the same number."""

import pickle

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import authoring

Digraph, Alignment = xt.types.TensorDigraph, xt.types.DimensionAlignment


def ops_of(function):
    """Returns how many ops a function runs, without constants."""
    graph = tf.function(function).get_concrete_function().graph
    return sum(op.type not in ("Const", "Placeholder", "Identity") for op in graph.get_operations())


def graphs(count):
    nodes, edges = {"mass": [1.0, 2.0, 3.0], "kind": ["a", "b", "c"]}, {"cost": [4, 5]}
    return [Digraph([0, 2], [1, 1], nodes, edges) for _ in range(count)]


def alignments(count):
    return [Alignment([0, 1], [2, 0], 2, 3) for _ in range(count)]


def test_a_batch_of_graphs_needs_the_same_ops_for_any_number():
    few, many = graphs(2), graphs(64)
    assert ops_of(lambda: Digraph.batch(few)) == ops_of(lambda: Digraph.batch(many))


def test_a_batch_of_alignments_needs_the_same_ops_for_any_number():
    few, many = alignments(2), alignments(64)
    assert ops_of(lambda: Alignment.batch(few)) == ops_of(lambda: Alignment.batch(many))


def test_a_batch_of_joined_values_is_that_of_their_boxes():
    for values in (graphs(3), alignments(3)):
        spec = xt.spec_of(values[0])
        columns = zip(*(authoring.box(spec, value) for value in values), strict=True)
        boxed = authoring.unbox(spec.stacked(3), [tf.stack(column) for column in columns])
        batch = type(values[0]).batch(values)
        assert xt.spec_of(batch) == xt.spec_of(boxed)
        parts = zip(tf.nest.flatten(batch, True), tf.nest.flatten(boxed, True), strict=True)
        for part, expected in parts:
            np.testing.assert_array_equal(part, expected)


def test_gradients_reach_the_features_of_joined_graphs():
    mass = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(mass)
        graph = Digraph([0], [1], {"mass": mass})
        total = tf.reduce_sum(Digraph.batch([graph, graph]).nodes["mass"] ** 2)
    np.testing.assert_array_equal(tape.gradient(total, mass), [4.0, 8.0])


SPARSE = {
    "sum": (tf.reduce_sum, 1),
    "sum of rows": (lambda x: tf.reduce_sum(x, 1), 1),
    "add": (lambda x: tf.add(x, x), 16),
    "to_dense": (lambda x: x.to_dense(), 1),
}


@pytest.mark.parametrize("call", SPARSE)
def test_an_operation_on_a_sparse_matrix_runs_few_ops(call):
    function, most = SPARSE[call]
    matrix = xt.types.CSRSparseTensor.from_dense(np.eye(8, dtype=np.float32))
    function(matrix)  # the first operation keeps the rows of the entries
    assert ops_of(lambda: function(matrix)) <= most
    with tf.GradientTape() as tape:
        tape.watch(matrix.values)
        total = tf.reduce_sum(function(matrix))
    np.testing.assert_array_equal(tape.gradient(total, matrix.values), [1.0 + (call == "add")] * 8)
    again = pickle.loads(pickle.dumps(matrix))
    np.testing.assert_array_equal(again.to_dense(), np.eye(8))
