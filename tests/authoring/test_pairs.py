"""Pairs of positions: NumPy and a graph find the same mistakes, and an error names the first."""

import types

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

import extensor as xt
from extensor.authoring import Pairs, first_positions, row_splits_of

EDGES = Pairs("Graph", "graph", "edges", "nodes", "nodes")
LINKS = Pairs("Alignment", "alignment", "pairs", "sources", "targets", exist="in their ranges")
KINDS = {"one count of positions": EDGES, "two counts of positions": LINKS}


def value_of(pairs, source, target, counts, shape=None):
    counts = {f"num_{name}": counts[name] for name in pairs.counted}
    source, target = (tf.cast(each, tf.int64) for each in (source, target))
    return types.SimpleNamespace(
        source=source, target=target, shape=shape or counts[f"num_{pairs.pairs}"].shape, **counts
    )


VECTOR = tf.TensorSpec([None], tf.int64)


def check_in_a_graph(pairs):
    """Returns a function that raises an error unless the checks of a graph hold."""

    @tf.function(input_signature=[VECTOR] * 5)
    def check(source, target, first, second, num_pairs):
        counts = {pairs.source: first, pairs.target: second, pairs.pairs: num_pairs}
        with tf.control_dependencies(pairs.assertions(value_of(pairs, source, target, counts))):
            return tf.constant(True)

    return check


GRAPHS = {name: check_in_a_graph(pairs) for name, pairs in KINDS.items()}


@st.composite
def numbers(draw):
    """Draws counts and positions of pairs, most of which are valid."""
    size = draw(st.integers(1, 3))
    count = st.integers(0, 3) | st.integers(-1, 3)
    first, second = (draw(st.lists(count, min_size=size, max_size=size)) for _ in range(2))
    num_pairs = draw(st.lists(count, min_size=size, max_size=size))
    total = max(0, sum(num_pairs) + draw(st.sampled_from([0, 0, 0, 0, 1])))
    position = st.integers(0, 4) | st.integers(-1, 9)
    source, target = (draw(st.lists(position, min_size=total, max_size=total)) for _ in range(2))
    return source, target, first, second, num_pairs


@pytest.mark.parametrize("kind", KINDS)
@given(numbers())
@example(([0, 3, 4], [2, 3, 4], [3, 2], [3, 2], [1, 2]))
@example(([0, 3, 2], [2, 3, 4], [3, 2], [3, 2], [1, 2]))
@example(([], [], [0], [0], [0]))
def test_numpy_and_a_graph_find_the_same_mistakes(kind, drawn):
    pairs = KINDS[kind]
    source, target, first, second, num_pairs = drawn
    if pairs is EDGES:
        second = first
    counts = {pairs.source: first, pairs.target: second, pairs.pairs: num_pairs}
    try:
        pairs.check_numbers(source, target, **counts)
        is_valid = True
    except xt.errors.StructureError:
        is_valid = False
    try:
        GRAPHS[kind](source, target, first, second, num_pairs)
        is_valid_in_a_graph = True
    except tf.errors.InvalidArgumentError:
        is_valid_in_a_graph = False
    assert is_valid == is_valid_in_a_graph == holds(*drawn[:2], first, second, num_pairs)


def holds(source, target, first, second, num_pairs):
    """Returns whether all pairs are valid, part by part."""
    if min(first + second + num_pairs) < 0 or sum(num_pairs) != len(source):
        return False
    parts = [part for part, number in enumerate(num_pairs) for _ in range(number)]
    return all(
        sum(counts[:part]) <= position < sum(counts[: part + 1])
        for counts, positions in ((first, source), (second, target))
        for part, position in zip(parts, positions, strict=True)
    )


@pytest.mark.parametrize(
    ("source", "target", "counts", "text"),
    [
        (
            [0, 1],
            [1, 2],
            (2, 2),
            r"Graph\.target: expected positions from 0 to 1, got 2, of pair 1",
        ),
        ([0, 2], [1, 2], ([2, 1], [1, 0]), r"Graph\.num_edges: .* add up to 2, .* got 1"),
        (
            [0, 1],
            [1, 2],
            ([2, 1], [1, 1]),
            r"Graph\.source: .* from 2 to 2 of graph 1, got 1, of pair 1",
        ),
        ([0], [0], (-1, 1), r"Graph\.num_nodes: expected counts of at least 0, got -1"),
        ([0], [0], (0, 1), r"Graph\.source: expected no position, got 0, of pair 0"),
    ],
)
def test_an_error_names_the_first_mistake(source, target, counts, text):
    nodes, edges = counts
    with pytest.raises(xt.errors.StructureError, match=text):
        EDGES.check_numbers(source, target, nodes=nodes, edges=edges)


def test_a_subclass_may_add_details_to_the_error():
    class Named(Pairs):
        def outside(self, end, position, pair, there, part):
            error = super().outside(end, position, pair, there, part)
            return type(error)(f"{error} Part: {part}.")

    named = Named("Graph", "graph", "edges", "nodes", "nodes")
    with pytest.raises(xt.errors.StructureError, match=r"of pair 1\..* Part: 1\."):
        named.check_numbers([0, 5], [1, 2], nodes=[2, 1], edges=[1, 1])
    with pytest.raises(xt.errors.StructureError, match=r"Part: None\."):
        named.check_numbers([0, 5], [1, 2], nodes=3, edges=2)


@pytest.mark.parametrize(
    ("target", "nodes", "edges", "shape", "text"),
    [
        ([1], [2], [1], [1], r"Graph\.target: expected shape \(2,\), the shape of the source, got"),
        ([1, 1], [2, 1], [1], [1], r"Graph\.num_edges: expected shape \(2,\), .* num_nodes, got"),
        ([1, 1], [2], [2], None, r"Graph\.num_nodes: expected a tensor of known rank"),
    ],
)
def test_static_shapes_must_match(target, nodes, edges, shape, text):
    nodes, edges = tf.constant(nodes), tf.constant(edges)
    value = value_of(EDGES, [0, 1], target, {"nodes": nodes, "edges": edges})
    value.shape = tf.TensorShape(shape)
    if shape is None:
        value.num_nodes = types.SimpleNamespace(shape=tf.TensorShape(None))
    with pytest.raises(xt.errors.StructureError, match=text):
        EDGES.check_shapes(value)


def test_static_shapes_that_match_are_no_error():
    counts = {"nodes": tf.constant([2, 1]), "edges": tf.constant([1, 1])}
    EDGES.check_shapes(value_of(EDGES, [0, 2], [1, 2], counts))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4))
def test_first_positions_are_those_of_the_part_of_each_pair(parts):
    counts, num_pairs = np.array(parts, np.int64).T
    splits = row_splits_of(tf.constant(num_pairs))
    pairs = tf.zeros([num_pairs.sum()])
    first = first_positions(tf.TensorShape([len(parts)]), tf.constant(counts), splits, pairs)
    begins = np.cumsum(counts) - counts
    assert first.dtype == tf.int64
    assert first.numpy().tolist() == np.repeat(begins, num_pairs).tolist()


def test_without_a_batch_the_first_position_is_zero():
    splits = tf.constant([0, 2], tf.int64)
    first = first_positions(tf.TensorShape([]), tf.constant(3, tf.int64), splits, tf.zeros([2]))
    assert (first.dtype, first.numpy()) == (tf.int64, 0)
