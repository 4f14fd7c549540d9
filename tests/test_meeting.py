"""Where TensorFlow joins values: what several branches, datasets and functions give is one type."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.sample_types import MaskedTensor


@xt.extension_type
class Rows:
    """Holds ragged and sparse parts, whose static shapes tell how many rows there are."""

    ragged: tf.RaggedTensor
    sparse: tf.SparseTensor
    name: str = "rows"


def ragged(size):
    return tf.ragged.constant([[float(n)] * (n % 3) for n in range(size)], ragged_rank=1)


def sparse(size):
    return tf.sparse.from_dense([[1.0, 0.0]] * size)


def masked(size):
    return MaskedTensor(tf.ones([size]), tf.ones([size], tf.bool))


OF_SIZE = {
    "ragged": ragged,
    "sparse": sparse,
    "a ragged field": lambda n: xt.DenseStructuredTensor([n], {"x": ragged(n), "y": tf.range(n)}),
    "ragged and sparse parts": lambda n: Rows(ragged(n), sparse(n)),
    "masked": masked,
}


def assert_equal(value, expected):
    assert type(value) is type(expected)
    assert tf.type_spec_from_value(value) == tf.type_spec_from_value(expected)
    flat = [tf.nest.flatten(x, expand_composites=True) for x in (value, expected)]
    for a, b in zip(*flat, strict=True):
        np.testing.assert_array_equal(a, b)


# tf.switch_case


@pytest.mark.parametrize("make", OF_SIZE.values(), ids=list(OF_SIZE))
@pytest.mark.parametrize("sizes", [(2, 3), (3, 2, 4), (2, 2)], ids=str)
def test_branches_of_a_switch_case_differ_in_their_number_of_rows(make, sizes):
    values = [make(size) for size in sizes]

    @tf.function
    def choose(i, values):
        branches = [lambda v=v, n=n: {"it": v, "n": n} for n, v in enumerate(values)]
        return tf.switch_case(i, branches)

    for i, value in enumerate(values):
        result = choose(tf.constant(i), values)
        assert_equal(result["it"], value)
        assert result["n"] == i
    index = tf.TensorSpec([], tf.int32)
    shown = choose.get_concrete_function(index, values).structured_outputs["it"]
    met = tf.type_spec_from_value(values[0]).most_specific_common_supertype(
        [tf.type_spec_from_value(value) for value in values[1:]]
    )
    assert tf.type_spec_from_value(shown).is_compatible_with(met)


def test_indexed_slices_stand_beside_parts_of_different_sizes():
    def branch(rows, dtype):
        slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0], dtype), tf.constant([5, 2]))
        return {"a": Rows(ragged(rows), sparse(rows)), "b": slices}

    @tf.function
    def choose(i):
        return tf.switch_case(i, [lambda: branch(2, tf.int32), lambda: branch(3, tf.int64)])

    result = choose(tf.constant(1))
    assert_equal(result["a"], Rows(ragged(3), sparse(3)))
    assert result["b"].indices.dtype == tf.int64


def test_gradients_flow_through_branches_of_different_sizes():
    @tf.function
    def total(i, numbers):
        def branch(n):
            splits = [0, n, 4]
            return lambda: Rows(tf.RaggedTensor.from_row_splits(numbers * n, splits), sparse(n))

        rows = tf.switch_case(i, [branch(1), lambda: Rows(ragged(3), sparse(3)), branch(3)])
        return tf.reduce_sum(rows.ragged.flat_values)

    numbers = tf.ones([4])
    for i, expected in enumerate([1.0, 0.0, 3.0]):
        with tf.GradientTape() as tape:
            tape.watch(numbers)
            result = total(tf.constant(i), numbers)
        found = tape.gradient(result, numbers, unconnected_gradients="zero")
        assert found.numpy().tolist() == [expected] * 4


def test_static_data_that_differs_is_still_an_error_of_switch_case():
    @tf.function
    def choose(i):
        return tf.switch_case(
            i, [lambda: Rows(ragged(2), sparse(2)), lambda: Rows(ragged(2), sparse(2), "other")]
        )

    with pytest.raises((TypeError, ValueError)):
        choose(tf.constant(0))


def test_what_others_made_is_packed_as_tensorflow_packs_it():
    class Pair(tf.experimental.ExtensionType):
        left: tf.Tensor
        right: tf.RaggedTensor

    def choose(i, a, b):
        return tf.function(lambda i: tf.switch_case(i, [lambda: a, lambda: b]))(tf.constant(i))

    values = [Pair(tf.ones([n]), ragged(2)) for n in (2, 3)]
    for i, value in enumerate(values):
        assert_equal(choose(i, *values), value)
    with pytest.raises(ValueError, match="not compatible with supplied shape"):
        choose(1, values[0], Pair(tf.ones([3]), ragged(3)))
