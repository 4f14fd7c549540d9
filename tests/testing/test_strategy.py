"""The Hypothesis strategies draw records with every kind of field that Arrow data has."""

import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from extensor import testing

STEP = pa.struct(
    {"at": pa.timestamp("us", "UTC"), "minutes": pa.float32(), "of_day": pa.time32("s")}
)
SCHEMA = pa.schema(
    {
        "when": pa.timestamp("ms"),
        "price": pa.decimal128(9, 2),
        "author": pa.struct({"name": pa.string(), "age": pa.int32()}),
        "words": pa.map_(pa.string(), pa.int32()),
        "stars": pa.list_(pa.int32()),
        "tags": pa.list_(pa.string()),
        "steps": pa.list_(STEP),
        "kind": pa.dictionary(pa.int8(), pa.string()),
        "amount": pa.dense_union([pa.field("number", pa.int32()), pa.field("text", pa.string())]),
        "amounts": pa.list_(
            pa.dense_union([pa.field("list", pa.list_(pa.int32())), pa.field("n", pa.int32())])
        ),
    }
)
NULLS = dict.fromkeys(
    ["price", "author", "author.age", "stars[*]", "tags", "steps[*].at", "steps[*].minutes"],
    "mask",
)
SPEC = xt.spec_from_schema(SCHEMA, nulls=NULLS)

MASKED_LISTS = xt.types.MaskedTensor.Spec(
    tf.RaggedTensorSpec([None, None, None], tf.int32, 2),
    tf.RaggedTensorSpec([None, None, None], tf.bool, 2),
)


@settings(max_examples=10)
@given(testing.values_of(SPEC))
def test_records_of_every_kind_of_field_are_drawn_and_go_through_arrow(records):
    back = xt.from_arrow(xt.to_arrow(records), nulls=NULLS)
    assert back.to_py() == records.to_py()
    assert SPEC.is_compatible_with(records)


@settings(max_examples=10)
@given(testing.values_of(SPEC))
def test_unions_are_drawn_with_a_row_for_each_code(records):
    for union in (records["amount"], records["amounts"]):
        flat = union.codes
        flat = flat.flat_values if isinstance(flat, tf.RaggedTensor) else flat
        xt.types.UnionTensor(flat, union.variants, union.names)  # checks the numbers of rows


@pytest.mark.parametrize("shape", [[], [2, None]])
@given(st.data())
def test_unions_of_every_rank_are_drawn(shape, data):
    spec = xt.types.UnionTensor.Spec(
        {"n": tf.TensorSpec([None, 2]), "t": tf.RaggedTensorSpec([None, None])}, shape=shape
    )
    union = data.draw(testing.values_of(spec))
    assert union.to_py() == xt.types.UnionTensor(union.codes, union.variants).to_py()
    assert spec.is_compatible_with(union)


@given(testing.values_of(MASKED_LISTS))
def test_ragged_values_and_their_mask_are_drawn_with_the_same_rows(masked):
    for ours, theirs in zip(
        masked.values.nested_row_splits, masked.mask.nested_row_splits, strict=True
    ):
        assert ours.numpy().tolist() == theirs.numpy().tolist()
    masked.to_py()


@pytest.mark.whole("checks all laws of several types")
def test_every_law_holds_for_records_of_every_kind_of_field():
    rows = [
        {"when": 5, "price": None, "author": None, "words": [("a", 1)], "stars": [1, None]},
        {"when": 6, "price": 7, "author": {"name": "b", "age": None}, "words": [], "stars": []},
    ]
    schema = pa.schema([SCHEMA.field(name) for name in rows[0]])
    nulls = {path: how for path, how in NULLS.items() if path.split(".")[0].strip("[*]") in rows[0]}
    records = xt.from_arrow(pa.Table.from_pylist(rows, schema), nulls=nulls)
    union = xt.types.UnionTensor.from_values([1, "a"])
    times = xt.from_arrow(pa.table({"at": pa.array([1, None], pa.timestamp("us"))}), nulls="mask")
    steps = xt.RaggedStructuredTensor.from_row_lengths(times.with_updates(amount=union), [2, 0])
    testing.check_extension_type(records.with_updates(amount=union, steps=steps))
