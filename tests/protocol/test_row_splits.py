"""Row splits are checked by the same rules in NumPy and in a graph."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from extensor._protocol.row_splits import check_row_splits
from extensor.errors import StructureError


@tf.function(
    input_signature=[tf.TensorSpec([None], tf.int64), tf.TensorSpec([], tf.int64)], autograph=False
)
def checked(splits, count):
    with tf.control_dependencies(check_row_splits(splits, count, "x.row_splits")):
        return tf.identity(splits)


def is_refused(check, error):
    try:
        check()
    except error:
        return True
    return False


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=5), st.integers(0, 4))
def test_a_graph_rejects_the_same_splits_as_numpy(numbers, count):
    splits = np.array(numbers, np.int64)
    is_valid = numbers[0] == 0 and numbers == sorted(numbers) and numbers[-1] == count
    in_numpy = is_refused(lambda: check_row_splits(splits, count, "x"), StructureError)
    in_graph = is_refused(lambda: checked(splits, count), tf.errors.InvalidArgumentError)
    assert in_numpy == in_graph == (not is_valid)


@pytest.mark.parametrize(
    ("numbers", "rule"),
    [
        ([1, 3], "splits that begin with 0"),
        ([0, 2, 1, 3], "splits that never decrease"),
        ([0, 2], "splits that end with 3, the number of values"),
    ],
)
def test_both_errors_have_one_text(numbers, rule):
    splits = np.array(numbers, np.int64)
    with pytest.raises(StructureError, match=f"^x.row_splits: expected {rule}") as eager:
        check_row_splits(splits, 3, "x.row_splits")
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        checked(splits, 3)
    assert str(eager.value) in caught.value.message.replace("] [", "")


@pytest.mark.parametrize("count", [0, None])
def test_an_empty_vector_is_an_error(count):
    with pytest.raises(StructureError, match="expected at least one split"):
        check_row_splits(np.zeros(0, np.int64), count, "x")
    with pytest.raises(tf.errors.InvalidArgumentError):
        checked(np.zeros(0, np.int64), 0)


def test_the_last_split_may_have_any_value_where_the_number_of_values_is_not_known():
    assert check_row_splits(np.array([0, 7]), None, "x") == []
