"""The number of ops for small values: a batch of any size needs the same number."""

import pickle

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import authoring
from tests.samples.calls import calls_of

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
    "add": (lambda x: tf.add(x, x), 21),  # sums that are NaN are entries too
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


MASKED = xt.types.MaskedTensor(tf.range(8.0), tf.range(8) > 2)
MASKED_ROWS = xt.types.MaskedTensor(tf.zeros([4, 2]), tf.ones([4, 2], tf.bool))
LABELED = xt.types.LabeledTensor(tf.zeros([4, 2]), ["word", "feature"])
MATRIX = xt.types.CSRSparseTensor.from_dense(np.eye(8, dtype=np.float32))
EYE = tf.eye(8)
BATCH = Digraph.batch(graphs(64))
CALLS = {
    "fill": (lambda: MASKED.fill(0.0), 40),
    "mean": (lambda: tf.reduce_mean(MASKED), 400),
    "transpose": (lambda: tf.transpose(LABELED), 70),
    "add": (lambda: LABELED + LABELED, 120),
    "sum by name": (lambda: tf.reduce_sum(LABELED, "feature"), 60),
    "mean of rows": (lambda: tf.reduce_mean(MASKED_ROWS, 1), 350),
    "sparse add": (lambda: MATRIX + MATRIX, 320),
    "sparse product": (lambda: MATRIX @ EYE, 130),
    "sparse sum of rows": (lambda: tf.reduce_sum(MATRIX, 1), 130),
    "a graph": (lambda: BATCH[3], 700),
    "graphs": (lambda: BATCH[3:9], 700),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_eager_operation_on_a_small_value_takes_few_python_calls(call):
    function, most = CALLS[call]
    assert calls_of(function) < most


@pytest.mark.parametrize(
    "index", [0, 2, -1, slice(1, 3), slice(None), slice(2, 1), slice(-2, None), slice(5, 9)]
)
def test_a_part_of_a_batch_of_graphs_is_that_of_its_boxes(index, monkeypatch):
    batch = Digraph.batch(
        [
            Digraph([0] * n, [n - 1] * n, {"mass": tf.range(n)}, {"cost": ["a"] * n})
            for n in (1, 3, 2)
        ]
    )
    part = batch[index]
    monkeypatch.setattr(type(xt.spec_of(batch)), "part", lambda *_: None)
    expected = batch[index]
    assert xt.spec_of(part) == xt.spec_of(expected)
    pairs = zip(tf.nest.flatten(part, True), tf.nest.flatten(expected, True), strict=True)
    for own, boxed in pairs:
        np.testing.assert_array_equal(own, boxed)
        assert own.dtype == boxed.dtype


def test_gradients_reach_the_features_of_a_batch_through_its_parts():
    mass = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(mass)
        one = Digraph([0], [0], {"mass": mass[:1]}, num_nodes=1)
        two = Digraph([0], [1], {"mass": mass[1:]}, num_nodes=2)
        total = tf.reduce_sum(Digraph.batch([one, two])[1].nodes["mass"] ** 2)
    np.testing.assert_array_equal(tape.gradient(total, mass), [0.0, 4.0, 6.0])


@pytest.mark.parametrize("dtype", [tf.float16, tf.float64, tf.complex64, tf.int32])
@pytest.mark.parametrize("axis", [None, 0, -1, [0, 1], []])
def test_the_mean_of_valid_values_of_any_dtype_and_axis(dtype, axis):
    values = np.arange(6).reshape(2, 3)
    mask = np.array([[True, False, True], [False, False, False]])
    found = tf.reduce_mean(xt.types.MaskedTensor(tf.cast(values, dtype), mask), axis)
    axes = tuple(axis) if isinstance(axis, list) else axis
    count = mask.sum(axes)
    expected = np.where(mask, values, 0).sum(axes) // np.maximum(count, 1)
    np.testing.assert_array_equal(found.mask, count > 0)
    np.testing.assert_array_equal(tf.cast(found.values, tf.float32), expected)
    assert found.values.dtype == dtype
