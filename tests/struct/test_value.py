"""StructuredTensorValue: records of NumPy arrays."""

import copy
import pickle

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import DTypeError, FieldError, ImmutableError, StructureError

Value = xt.StructuredTensorValue
ROWS = [
    {"n": 1, "name": "a", "xs": [[1.0], []], "steps": [{"m": 1}, {"m": 2}], "one": {"q": [1]}},
    {"n": 2, "name": "b", "xs": [], "steps": [], "one": {"q": []}},
]


@pytest.mark.parametrize("rows", [ROWS, ROWS[0], [ROWS, ROWS], [ROWS, ROWS[:1]], [{}], {}])
def test_values_are_those_of_the_tensor(rows):
    value, records = xt.struct.constant_value(rows), xt.struct.constant(rows)
    assert value.to_py() == rows
    assert value.shape.as_list() == records.shape.as_list()
    assert value.rank == records.rank
    assert value.field_names() == records.field_names()
    assert value == Value.from_tensor(records)
    if value.field_names() or value.rank < 2:
        assert xt.spec_of(value.to_tensor()).is_compatible_with(records)
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value


def test_fields_are_numpy_arrays_ragged_values_and_values():
    value = xt.struct.constant_value(ROWS)
    assert isinstance(value["n"], np.ndarray)
    assert value["n"].dtype == np.int32
    ragged = value["xs"]
    assert isinstance(ragged, tf.compat.v1.ragged.RaggedTensorValue)
    assert ragged.to_list() == [[[1.0], []], []]
    assert isinstance(value["steps"], Value)
    assert value["steps"].shape.as_list() == [2, None]
    assert value["one.q"].to_list() == [[1], []]
    assert value[0]["name"] == b"a"
    assert value[1:].to_py() == value.to_py()[1:]
    assert value["steps", 0, -1, "m"] == 2
    assert len(value) == 2


def test_equality_depends_on_dtypes_and_rows():
    value = Value([2], {"x": np.array([1, 2])})
    assert value == Value([2], {"x": [1, 2]})
    assert value != Value([2], {"x": np.array([1, 2], np.int8)})
    assert value != Value([2], {"y": np.array([1, 2])})
    assert value != Value([2], {"x": np.array([1, 3])})
    assert value != xt.struct.constant([{"x": 1}, {"x": 2}])
    assert Value([0], {"x": []}) != Value([0], {"y": []})
    masked = xt.struct.constant_value([{"x": 1}, {"x": None}], nulls="mask")
    assert masked == pickle.loads(pickle.dumps(masked))
    assert masked != xt.struct.constant_value([{"x": None}, {"x": 1}], nulls="mask")
    assert repr(value) == "StructuredTensorValue(shape=(2,), fields={'x': array([1, 2])})"


def test_bad_input_is_an_error():
    with pytest.raises(
        StructureError, match=r"^x: expected a value whose shape begins with \(2,\)"
    ):
        Value([2], {"x": np.ones(3)})
    with pytest.raises(DTypeError, match=r"^StructuredTensorValue.fields"):
        Value([2], [1])
    with pytest.raises(DTypeError, match=r"from_tensor: expected a StructuredTensor, got int"):
        Value.from_tensor(3)
    value = xt.struct.constant_value(ROWS)
    with pytest.raises(FieldError, match=r"^one\.nope: expected one of the fields q"):
        value["one.nope"]
    with pytest.raises(ImmutableError):
        value.x = 1
    with pytest.raises(DTypeError, match="a single record"):
        len(xt.struct.constant_value({}))


def test_a_graph_value_is_an_error_and_python_data_is_not():
    @tf.function
    def call(x):
        records = xt.DenseStructuredTensor([2], {"x": x})
        with pytest.raises(DTypeError, match=r"^from_tensor: x: .*of a graph"):
            Value.from_tensor(records)
        assert xt.struct.constant_value([{"x": 1}])["x"].tolist() == [1]
        return x

    call(tf.constant([1, 2]))
