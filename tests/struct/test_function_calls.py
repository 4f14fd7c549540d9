"""What a call of a tf.function computes for each tensor of its arguments."""

import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given

import extensor as xt
from tests.samples.arrow_strategies import schemas_and_records

CHECKS = {"cast", "to_tensors"}
"""The methods of a TensorSpec that compare a tensor."""


def checks_in(function):
    """How many tensors a call compares with a TensorSpec; the first calls fill the caches."""
    for _ in range(2):
        function()
    found = 0

    def count(frame, event, argument):
        nonlocal found
        if event == "call" and frame.f_code.co_name in CHECKS:
            found += type(frame.f_locals["self"]) is tf.TensorSpec

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found


def records(count, size=2):
    return xt.DenseStructuredTensor([size], {f"f{i}": tf.ones([size]) for i in range(count)})


OPEN = xt.DenseStructuredTensorSpec([None], {f"f{i}": tf.TensorSpec([None]) for i in range(9)})


@pytest.mark.parametrize("signature", [None, [OPEN]], ids=["traced", "signature"])
def test_a_call_compares_no_tensor_of_a_value_whose_spec_fits(signature):
    function = tf.function(lambda value: value["f0"] + 1, input_signature=signature)
    value = records(9)
    assert checks_in(lambda: function(value)) == 0
    one = tf.function(lambda tensor: tensor + 1)
    assert checks_in(lambda: one(value["f0"])) == 2  # TensorFlow still has these names


def test_values_of_other_sizes_and_orders_of_fields_get_their_own_tensors():
    @tf.function(input_signature=[OPEN])
    def total(value):
        return tf.stack([tf.reduce_sum(value[f"f{i}"]) for i in range(9)])

    for size in (2, 3):
        fields = {f"f{i}": tf.fill([size], float(i)) for i in reversed(range(9))}
        result = total(xt.DenseStructuredTensor([size], fields))
        np.testing.assert_array_equal(result, np.arange(9.0) * size)


def test_variables_and_ragged_fields_are_arguments_as_before():
    variable, ragged = tf.Variable([1.0, 2.0]), tf.ragged.constant([[1.0], [2.0, 3.0]])
    value = xt.DenseStructuredTensor([2], {"v": variable, "r": ragged, "t": [1.0, 1.0]})

    @tf.function
    def add(value):
        value["v"].assign_add(value["t"])
        return tf.reduce_sum(value["r"], axis=1) + value["v"]

    for expected in ([3.0, 8.0], [4.0, 9.0]):
        assert add(value).numpy().tolist() == expected


@given(schemas_and_records(max_rows=2, nulls=True))
def test_the_tensors_of_an_argument_are_those_of_tensorflow(schema_and_data):
    _, data = schema_and_data
    records = xt.from_arrow(data, nulls="auto")
    found = records.__tf_type_spec__().to_tensors(records)
    expected = tf.nest.flatten(records, expand_composites=True)
    assert list(map(id, found)) == list(map(id, expected))


def test_a_concrete_function_refuses_a_value_of_another_dtype():
    concrete = tf.function(lambda value: value["f0"]).get_concrete_function(records(1))
    other = xt.DenseStructuredTensor([2], {"f0": [1, 2]})
    with pytest.raises(TypeError, match="float32"):
        concrete(other)


ORDERS = {
    "lists of records": lambda n: [{"items": [{"price": 1.0}] * n}, {"items": []}],
    "lists in lists": lambda n: [{"days": [{"items": [{"price": 1.0}] * n}] * n}, {"days": []}],
    "nulls": lambda n: [{"items": [{"price": None, "tags": ["a"] * n}] * n}, {"items": None}],
    "unions": lambda n: [{"items": [{"price": 1.0}, {"price": "free"}] * n}, {"items": []}],
}


@pytest.mark.parametrize("orders", ORDERS.values(), ids=ORDERS)
def test_batches_of_lists_of_other_lengths_are_traced_once(orders):
    """As with ragged tensors: the number of all items is not part of the spec."""
    traced = []

    @tf.function
    def function(batch):
        traced.append(batch)
        return batch

    for count in (1, 2, 5):
        batch = xt.struct.constant(orders(count), nulls="mask", conflicts="union")
        assert function(batch).to_py() == batch.to_py()
    assert len(traced) == 1
