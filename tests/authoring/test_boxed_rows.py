"""Boxed rows: `unbox_rows` returns what `box_rows` was given, for batches of every rank."""

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.authoring import box_rows, boxed_rows_specs, row_splits_of, unbox_rows

ROWS = tf.ragged.constant([[7, 8], [], [9]], dtype=tf.int32, row_splits_dtype=tf.int64)
SPARSE = xt.types.CSRSparseTensor.from_dense([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
VALUES = {
    "numbers": (tf.TensorSpec([None], tf.int32), ROWS.values),
    "vectors": (tf.TensorSpec([None, 2]), tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])),
    "lists": (
        tf.RaggedTensorSpec([None, None], tf.int32, 1, tf.int64),
        tf.RaggedTensor.from_row_lengths(ROWS.values, [1, 0, 2]),
    ),
    "records": (
        xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None], tf.int32)}),
        xt.DenseStructuredTensor([3], {"x": ROWS.values}),
    ),
    "a type of other components": (xt.types.CSRSparseTensor.Spec([None, 2]), SPARSE),
}


def parts(value):
    return [t.numpy().tolist() for t in tf.nest.flatten(value, expand_composites=True)]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("minimum_rank", [0, 1])
def test_flat_values_come_back(name, minimum_rank):
    spec, values = VALUES[name]
    boxes = box_rows(spec, values, ROWS.row_splits, [3], minimum_rank)
    specs = boxed_rows_specs(spec)
    assert len(boxes) == len(specs)
    assert all(one.is_compatible_with(box) for one, box in zip(specs, boxes, strict=True))
    again = unbox_rows(spec, tf.TensorShape([3]), iter(boxes), tf.int64)
    assert type(again) is type(values)
    assert parts(again) == parts(values)


@pytest.mark.parametrize("name", VALUES)
def test_boxes_of_chosen_rows_hold_the_values_of_these_rows(name):
    spec, values = VALUES[name]
    boxes = box_rows(spec, values, ROWS.row_splits, [3], 1)
    chosen = [tf.gather(box, [2, 0]) for box in boxes]
    again = unbox_rows(spec, tf.TensorShape([2]), iter(chosen), tf.int64)
    assert parts(again) == parts(xt.authoring.take_rows(values, [2, 0, 1]))


def test_tensors_come_back_as_rows_if_asked():
    spec, values = VALUES["numbers"]
    boxes = box_rows(spec, values, ROWS.row_splits, [3], 1)
    again = unbox_rows(spec, tf.TensorShape([3]), iter(boxes), tf.int64, cut=True)
    assert again.to_list() == [[7, 8], [], [9]]


@tf.function(input_signature=[tf.TensorSpec([None], tf.int64), tf.TensorSpec([3], tf.int64)])
def through_a_graph(lengths, sizes):
    """Returns values, and the same after they were boxed for 0 to 3 dimensions to unstack."""
    values, splits = tf.range(tf.reduce_sum(lengths)), row_splits_of(lengths)
    spec, shape = tf.TensorSpec([None], tf.int64), tf.TensorShape([None] * 3)
    again = []
    for minimum_rank in range(4):
        boxes = box_rows(spec, values, splits, tf.unstack(sizes), minimum_rank)
        again.append(unbox_rows(spec, shape, iter(boxes), tf.int64))
    return values, again


@given(st.tuples(*[st.integers(1, 2)] * 3), st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_batches_of_several_axes_come_back_from_a_graph(sizes, lengths):
    number = sizes[0] * sizes[1] * sizes[2]
    values, again = through_a_graph(lengths[:number], sizes)
    for each in again:
        assert each.numpy().tolist() == values.numpy().tolist()


@pytest.mark.parametrize("minimum_rank", [0, 1])
@pytest.mark.parametrize("name", ["numbers", "records", "a type of other components"])
def test_a_ragged_batch_comes_back(name, minimum_rank):
    spec, values = VALUES[name]
    batch = tf.RaggedTensor.from_row_lengths([0, 0, 0], tf.constant([2, 1], tf.int64))
    boxes = box_rows(spec, values, ROWS.row_splits, batch, minimum_rank)
    again = unbox_rows(spec, tf.TensorShape([2, None]), iter(boxes), tf.int64)
    assert parts(again) == parts(values)
    if minimum_rank == 1:
        second = [box[1] for box in boxes]
        again = unbox_rows(spec, tf.TensorShape([None]), iter(second), tf.int64)
        assert parts(again) == parts(xt.authoring.take_rows(values, [2]))


def test_a_type_that_boxes_into_matrices_of_variants_is_an_error():
    spec = tf.SparseTensorSpec([None, 2])
    with pytest.raises(xt.errors.ProtocolError, match=r"got variants of shape .*CSRSparseTensor"):
        box_rows(spec, tf.sparse.eye(3, 2), ROWS.row_splits, [3], 1)
