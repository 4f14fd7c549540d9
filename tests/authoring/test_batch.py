"""Batches of whole values: `batch_of` equals tf.stack of the components, `batch_item` indexing."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import extensor as xt
from extensor.authoring import batch_item, batch_of, expect_unstacks


@xt.extension_type
class Interval:
    low: tf.Tensor
    high: tf.Tensor

    @property
    def shape(self):
        return self.low.shape


@xt.extension_type
class Sentence:
    """A type whose components are ragged."""

    words: tf.RaggedTensor


def intervals(low):
    return Interval(tf.constant(low), tf.constant(low) + 1)


@given(
    st.integers(1, 4),
    array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3).flatmap(
        lambda shape: arrays(np.float32, shape, elements=st.integers(-9, 9))
    ),
)
def test_a_batch_equals_the_stacked_components(number, array):
    values = [intervals(array + i) for i in range(number)]
    batch = batch_of(Interval, values)
    expected = tf.stack([value.low for value in values])
    np.testing.assert_array_equal(batch.low, expected)
    np.testing.assert_array_equal(batch.high, expected + 1)
    for i in range(-number, number):
        np.testing.assert_array_equal(batch.low[i], values[i].low)


GRAPHS = {
    "digraph": lambda n: xt.types.TensorDigraph([0] * n, [n - 1] * n, num_nodes=n),
    "alignment": lambda n: xt.types.DimensionAlignment.from_index([0] * n, num_targets=2),
}


def parts(value):
    return [t.numpy().tolist() for t in tf.nest.flatten(value, expand_composites=True)]


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("index", [0, 1, -1, np.int64(2), tf.constant(1)], ids=repr)
def test_an_item_is_the_value_that_was_batched(kind, index):
    values = [GRAPHS[kind](n) for n in (2, 3, 1)]
    batch = batch_of(type(values[0]), values)
    assert parts(batch_item(batch, index)) == parts(values[int(index)])


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize(
    "index", [slice(None), slice(1, None), slice(-2, None), slice(0, 9, 2), slice(2, 2)], ids=repr
)
def test_a_slice_is_the_batch_of_those_values(kind, index):
    values = [GRAPHS[kind](n) for n in (2, 3, 1)]
    sliced = batch_item(batch_of(type(values[0]), values), index)
    chosen = values[index]
    assert sliced.shape.as_list() == [len(chosen)]
    if chosen:
        assert parts(sliced) == parts(batch_of(type(values[0]), chosen))


def test_batches_are_made_and_indexed_in_a_graph():
    @tf.function
    def items(first, second, index):
        batch = batch_of(type(first), [first, second])
        return batch_item(batch, index), batch_item(batch, 0), batch_item(batch, slice(1, None))[0]

    values = [GRAPHS["digraph"](n) for n in (2, 3)]
    for i in range(2):
        found = items(*values, tf.constant(i))
        assert [parts(each) for each in found] == [parts(values[k]) for k in (i, 0, 1)]


def test_a_batch_of_batches_has_both_dimensions():
    pairs = [batch_of(Interval, [intervals(i), intervals(i + 1)]) for i in (0.0, 5.0)]
    assert batch_of(Interval, pairs).low.numpy().tolist() == [[0.0, 1.0], [5.0, 6.0]]


def test_ragged_components_of_other_lengths_are_batched():
    sentences = [
        Sentence(tf.ragged.constant(rows, tf.int32)) for rows in ([[1], []], [[2, 3], [4]])
    ]
    assert batch_of(Sentence, sentences).words.to_list() == [[[1], []], [[2, 3], [4]]]


@pytest.mark.parametrize("index", [2, -3, np.int64(2), tf.constant(-3)], ids=repr)
def test_an_index_out_of_range_is_an_error(index):
    graphs = batch_of(xt.types.TensorDigraph, [GRAPHS["digraph"](n) for n in (2, 3)])
    with pytest.raises(xt.errors.RowError, match=rf"from -2 to 1, got {int(index)}\. .* is 2\."):
        batch_item(graphs, index)


def test_an_empty_batch_has_no_item():
    batch = batch_of(xt.types.TensorDigraph, [GRAPHS["digraph"](2)])
    with pytest.raises(xt.errors.RowError, match=r"expected no index, for 0 rows, got 0"):
        batch_item(batch_item(batch, slice(0, 0)), 0)


@pytest.mark.parametrize("index", [0, slice(1)], ids=repr)
def test_one_value_has_no_items(index):
    with pytest.raises(xt.errors.RowError, match="This is no batch"):
        batch_item(GRAPHS["digraph"](2), index)


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        ([], xt.errors.StructureError, "expected at least one value, got an empty list"),
        ([1.0], xt.errors.DTypeError, "expected values of type Interval, got float"),
        (
            [intervals(0.0), intervals(1)],
            xt.errors.StructureError,
            r"expected values of Interval\.Spec.*, got a value of Interval\.Spec",
        ),
    ],
    ids=["no value", "another type", "another dtype"],
)
def test_what_makes_no_batch_is_an_error(values, error, text):
    with pytest.raises(error, match=rf"Interval\.batch: {text}"):
        batch_of(Interval, values)


def test_a_value_that_unstacks_is_no_error():
    batch = batch_of(Interval, [intervals(0.0), intervals(1.0)])
    spec = xt.spec_of(batch)
    expect_unstacks(spec, batch, 0)
    expect_unstacks(spec, batch, 1)
    with pytest.raises(xt.errors.StructureError, match="dimension"):
        expect_unstacks(spec, batch, 2)
    with pytest.raises(xt.errors.DTypeError, match=r"expected a Interval, .* got a "):
        expect_unstacks(spec, tf.zeros([2]), 1)
