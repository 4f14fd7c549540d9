"""Schemas and specs are converted to each other."""

import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._arrow.schema import masks_of_spec
from tests.samples.arrow_strategies import MANY, plain, schemas_and_records


@pytest.mark.whole("draws many values")
@MANY
@given(schemas_and_records(types=plain), st.sampled_from(["error", "mask"]))
def test_the_schema_of_a_spec_gives_the_spec_again(schema_and_data, nulls):
    schema, _ = schema_and_data
    spec = xt.spec_from_schema(schema, nulls=nulls)
    again = xt.spec_from_schema(xt.schema_from_spec(spec), nulls=masks_of_spec(spec))
    assert again == spec


@MANY
@given(schemas_and_records(types=plain))
def test_the_schema_of_a_spec_is_what_is_written(schema_and_data):
    _, data = schema_and_data
    records = xt.from_arrow(data)
    schema = xt.schema_from_spec(xt.spec_of(records))
    assert schema.equals(xt.to_arrow(records).schema)


def test_masks_inside_of_lists_records_and_unions_are_named_by_their_place():
    table = pa.table(
        {
            "a.b": [1, None],
            "m": [{"x": [1, None]}, None],
            "l": [[None, ["a", None]], None],
            "whole": [1, 2],
            "u": pa.UnionArray.from_sparse(
                pa.array([0, 1], pa.int8()), [pa.array([1, None]), pa.array(["a", "b"])], ["n", "s"]
            ),
        }
    )
    masked = ["a.b", "m", "m.x", "m.x[*]", "l", "l[*]", "l[*][*]", "u.n"]
    policy = {'"a.b"' if name == "a.b" else name: "mask" for name in masked}
    records = xt.from_arrow(table, nulls=policy)
    assert masks_of_spec(xt.spec_of(records)) == policy


def test_dense_dimensions_of_unknown_size_are_lists():
    spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None, None, 2])})
    assert xt.schema_from_spec(spec) == pa.schema({"x": pa.large_list(pa.list_(pa.float32(), 2))})


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        (tf.TensorSpec([None]), TypeError, "expected the spec of a StructuredTensor, got TensorSp"),
        (xt.DenseStructuredTensorSpec([], {"x": tf.TensorSpec([])}), ValueError, "got rank 0"),
        (
            xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None], tf.bfloat16)}),
            TypeError,
            "x: expected a dtype that Arrow supports, got bfloat16",
        ),
    ],
    ids=["not a spec", "rank 0", "bfloat16"],
)
def test_what_has_no_schema_is_an_error(spec, error, message):
    with pytest.raises(error, match=message) as caught:
        xt.schema_from_spec(spec)
    assert isinstance(caught.value, xt.ExtensorError)


@pytest.mark.parametrize("kind", ["tensors", "lists", "variants"])
def test_a_spec_of_masked_tensors_is_a_schema(kind):
    tensor = pa.fixed_shape_tensor(pa.float32(), [2, 1])
    numbers = pa.array([[1.0, 2.0], None, [5.0, 6.0]], pa.list_(pa.float32(), 2))
    column = pa.ExtensionArray.from_storage(tensor, numbers)
    if kind == "lists":
        column = pa.ListArray.from_arrays(pa.array([0, 1, None, 3], pa.int32()), column)
    if kind == "variants":
        column = pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [column])
    table = pa.table({"x": column})
    records = xt.from_arrow(table, nulls="mask")
    spec = xt.spec_of(records)
    for again in (xt.from_arrow(table, schema=spec), spec.cast(table)):
        assert xt.spec_of(again) == spec
        assert again.to_py() == records.to_py()
