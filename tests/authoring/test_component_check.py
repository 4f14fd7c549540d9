"""Checks of components: the same in NumPy and in a graph, with errors that name the component."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.authoring import assertions, integers, known_arrays, required


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([0, 2], tf.int64),
        ((0, 2), tf.int64),
        (range(2), tf.int64),
        (3, tf.int64),
        ([], tf.int64),
        ([[0], [1]], tf.int64),
        (np.array([0, 2], np.int32), tf.int32),
        (np.array([0, 2], np.int64), tf.int64),
        (np.int32(3), tf.int64),
        (tf.constant([0, 2]), tf.int32),
        (tf.constant([0, 2], tf.int64), tf.int64),
        (tf.Variable([0, 2]), tf.int32),
        ([tf.constant(0), tf.constant(2)], tf.int64),
    ],
    ids=repr,
)
def test_integers_become_a_tensor_of_int64_unless_int32_is_given(value, dtype):
    tensor = integers(value, "Recipe.splits")
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(tensor, np.asarray(value))


def test_integers_may_be_computed_in_a_graph():
    @tf.function
    def splits(n):
        return integers([0, n, 2 * n], "Recipe.splits", rank=1)

    assert splits(tf.constant(3, tf.int64)).numpy().tolist() == [0, 3, 6]


@pytest.mark.parametrize(
    ("value", "received"),
    [
        ([0.5], "float64"),
        ([True], "bool"),
        (["1"], "str"),
        (tf.constant([1], tf.uint8), "uint8"),
        (np.array([1], np.uint64), "uint64"),
        (tf.constant([1.0]), "float32"),
        ([2**63], "uint64"),
        ([2**64], "object"),
        (tf.ragged.constant([[1], [2, 3]]), ""),
    ],
    ids=repr,
)
def test_what_is_not_an_integer_is_an_error(value, received):
    with pytest.raises(
        xt.errors.DTypeError, match=f"Recipe.splits: .*int64 or int32, got {received}"
    ):
        integers(value, "Recipe.splits")


@pytest.mark.parametrize(
    ("value", "rank", "text"),
    [
        ([[0], [1, 2]], None, "expected integers, got lists of different lengths"),
        ([[0, 1]], 1, r"expected a vector, got shape \(1, 2\)"),
        (3, 1, r"expected a vector, got shape \(\)"),
        ([0], 2, r"expected 2 dimension\(s\), got shape \(1,\)"),
    ],
)
def test_integers_of_another_shape_are_an_error(value, rank, text):
    with pytest.raises(xt.errors.StructureError, match=rf"Recipe\.splits: {text}"):
        integers(value, "Recipe.splits", rank)


def test_a_tensor_of_unknown_rank_may_have_the_rank():
    @tf.function(input_signature=[tf.TensorSpec(None, tf.int64)])
    def splits(value):
        return integers(value, "Recipe.splits", 1)

    assert splits([0, 2]).numpy().tolist() == [0, 2]


def test_known_arrays_share_the_memory_of_tensors():
    first, second = tf.constant([1.5, 2.0]), tf.constant([[3]], tf.int64)
    arrays = known_arrays(first, second)
    assert [array.tolist() for array in arrays] == [[1.5, 2.0], [[3]]]
    assert not any(array.flags.writeable for array in arrays)
    assert np.shares_memory(arrays[0], np.asarray(memoryview(first)))


def test_no_array_is_known_if_one_tensor_is_not():
    known = tf.constant([1])

    @tf.function
    def check(x):
        assert known_arrays(known, x) is None
        assert known_arrays(x) is None
        assert known_arrays() == []
        return x

    check(known)


@tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
def positive(x):
    checks = [
        (tf.reduce_all(x > 0), "amounts must be positive"),
        (tf.reduce_all(x < 9), "amounts must be below 9"),
    ]
    with tf.control_dependencies(assertions("Recipe", checks)):
        return tf.identity(x)


def test_assertions_that_hold_change_nothing():
    assert positive([1, 2]).numpy().tolist() == [1, 2]


@pytest.mark.parametrize(("x", "text"), [([1, 0], "positive"), ([1, 9], "below 9")])
def test_an_assertion_that_does_not_hold_is_an_error_with_its_text(x, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"Recipe: amounts must be {text}"):
        positive(x)


ERROR = xt.errors.StructureError(
    path="Recipe.amounts", expected="amounts above 0", received="0", fix="Leave it out."
)


def test_what_is_required_is_an_error_at_once_where_it_is_known():
    assert required(tf.constant(True), ERROR) == []
    with pytest.raises(
        xt.errors.StructureError, match=r"Recipe\.amounts: expected amounts above 0"
    ):
        required(tf.constant(False), ERROR)


def test_what_is_required_is_an_assertion_in_a_graph():
    @tf.function
    def checked(x):
        with tf.control_dependencies(required(x > 0, ERROR)):
            return tf.identity(x)

    assert checked(tf.constant(2)) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Recipe\.amounts: expected amounts"):
        checked(tf.constant(0))
