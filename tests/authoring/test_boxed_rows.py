"""Rows in boxes come back, cut into rows or flat."""

import pytest
import tensorflow as tf

import extensor as xt
from extensor.authoring import box_rows, boxed_rows_specs, unbox_rows

ROWS = tf.ragged.constant([[7, 8], [], [9]], dtype=tf.int32, row_splits_dtype=tf.int64)
VALUES = {
    "numbers": (tf.TensorSpec([None], tf.int32), ROWS.values),
    "lists": (
        tf.RaggedTensorSpec([None, None], tf.int32, 1, tf.int64),
        tf.RaggedTensor.from_row_lengths(ROWS.values, [1, 0, 2]),
    ),
    "records": (
        xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None], tf.int32)}),
        xt.DenseStructuredTensor([3], {"x": ROWS.values}),
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_flat_values_come_back(name):
    spec, values = VALUES[name]
    boxes = box_rows(spec, values, ROWS.row_splits, [3], 1)
    assert len(boxes) == len(boxed_rows_specs(spec))
    again = unbox_rows(spec, tf.TensorShape([3]), iter(boxes), tf.int64)
    assert type(again) is type(values)
    flat = [tf.nest.flatten(value, expand_composites=True) for value in (again, values)]
    assert [t.numpy().tolist() for t in flat[0]] == [t.numpy().tolist() for t in flat[1]]


def test_tensors_come_back_as_rows_if_asked():
    spec, values = VALUES["numbers"]
    boxes = box_rows(spec, values, ROWS.row_splits, [3], 1)
    again = unbox_rows(spec, tf.TensorShape([3]), iter(boxes), tf.int64, cut=True)
    assert again.to_list() == [[7, 8], [], [9]]
