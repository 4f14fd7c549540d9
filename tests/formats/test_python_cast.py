"""Python data as records of a spec: spec.cast(data) and constant(data, spec)."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import DTypeError, FieldError, NullError, StructureError

T, R = tf.TensorSpec, tf.RaggedTensorSpec
Dense, Ragged = xt.DenseStructuredTensorSpec, xt.RaggedStructuredTensorSpec

STEP = Dense([None], {"minutes": T([None]), "tools": R([None, None], tf.string)})
RECIPE = Dense(
    [None],
    {
        "title": T([None], tf.string),
        "recipe": Dense([None], {"steps": Ragged([None, None], STEP)}),
        "pair": T([None, 2], tf.int64),
        "ok": T([None], tf.bool),
    },
)


MINUTES, STEPS = r"recipe\.steps\[\*\]\.minutes, record 7: ", r"recipe\.steps, record 7: "


def row(**changes):
    record = {"title": "a", "recipe": {"steps": []}, "pair": [1, 2], "ok": True}
    return {**record, **changes}


def steps(*minutes):
    return {"recipe": {"steps": [{"minutes": m, "tools": []} for m in minutes]}}


@pytest.mark.parametrize("make", [xt.struct.constant, lambda rows, spec: spec.cast(rows)])
def test_both_functions_give_the_same_records(make):
    rows = [row(), row(**steps(1, 2.5))]
    records = make(rows, RECIPE)
    assert xt.spec_of(records).is_subtype_of(RECIPE)
    assert records.to_py() == rows
    assert make([], RECIPE).to_py() == []
    assert make([], RECIPE)["pair"].shape == [0, 2]


@pytest.mark.parametrize(
    ("bad", "error", "says"),
    [
        (steps(1, None), NullError, f"^{MINUTES}expected float32, got null"),
        (steps("x"), DTypeError, f"^{MINUTES}expected float32, got str 'x'"),
        (steps(True), DTypeError, f"^{MINUTES}.*got bool True"),
        (steps([1]), StructureError, f"^{MINUTES}.*float32, got list"),
        (steps(1e300), DTypeError, r"minutes, record 7: expected a number that float32 can hold"),
        ({"recipe": {"steps": None}}, NullError, f"^{STEPS}expected a list, got null"),
        ({"recipe": {"steps": 3}}, StructureError, f"^{STEPS}expected a list, got int 3"),
        ({"recipe": None}, NullError, "^recipe, record 7: expected a record, as a dict, got null"),
        ({"recipe": {"step": []}}, FieldError, "^recipe, record 7: .* fields steps, got step"),
        ({"pair": [1, 2, 3]}, StructureError, "^pair, record 7: .* list of 2, got a list of 3"),
        ({"pair": [1, 2.5]}, DTypeError, r"^pair\[\*\], record 7: .*int64 can hold, got float"),
        ({"ok": 1}, DTypeError, "^ok, record 7: expected bool, got int 1"),
        ({"title": 1}, DTypeError, "^title, record 7: expected string, got int 1"),
        ({"more": 1}, FieldError, "^record 7: expected the fields title, recipe, pair, ok, got"),
    ],
)  # fmt: skip
def test_an_error_names_path_record_and_value(bad, error, says):
    rows = [row(**steps(1.0)) for _ in range(7)] + [row(**bad)]
    with pytest.raises(error, match=says):
        RECIPE.cast(rows)
    with pytest.raises(error, match=says):
        xt.struct.constant(rows, RECIPE)


def test_missing_fields_are_an_error():
    with pytest.raises(FieldError, match=r"^record 1: expected the fields title, .*got title"):
        RECIPE.cast([row(), {"title": "b"}])


def test_any_mapping_tuple_and_array_is_cast():
    spec = Dense([None], {"a": T([None, 2]), "b": R([None, None], tf.int64)})
    for value in ([1.0, 2.0], (1, 2), np.array([1, 2]), np.array([1.0, 2.0])):
        assert spec.cast([{"a": value, "b": range(2)}]).to_py() == [{"a": [1, 2], "b": [0, 1]}]
    columns = {"a": np.ones([2, 2], np.float32), "b": [[1], []]}
    assert spec.cast(columns).to_py() == [{"a": [1, 1], "b": [1]}, {"a": [1, 1], "b": []}]


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.complex64, tf.float16, tf.uint64, tf.int8])
def test_dtypes_that_arrow_does_not_have_are_cast_too(dtype):
    spec = Dense([None], {"x": T([None], dtype), "xs": R([None, None], dtype)})
    records = spec.cast([{"x": 1, "xs": [2, 3]}, {"x": 4, "xs": []}])
    assert records["x"].dtype == records["xs"].dtype == dtype
    assert tf.cast(records["xs"], tf.float32).to_list() == [[2.0, 3.0], []]
    with pytest.raises(DTypeError, match=r"^x, record 1: expected .*got str 'y'"):
        spec.cast([{"x": 1, "xs": []}, {"x": "y", "xs": []}])


@xt.extension_type
class Interval:
    low: tf.Tensor
    high: tf.Tensor


def test_python_values_in_fields_of_declared_types_are_cast():
    value = Interval(tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]))
    records = xt.DenseStructuredTensor([2], {"i": value, "n": [1, 2]})
    spec = xt.spec_of(records)
    rows = {"i": {"low": [5.0, 6.0], "high": [7.0, 8.0]}, "n": [3, 4]}
    assert spec.cast(rows)["i"].high.numpy().tolist() == [7.0, 8.0]
    one = Dense([], {"i": xt.spec_of(value), "r": Dense([], {"n": T([])})})
    record = one.cast({"i": {"low": [5.0, 6.0], "high": [7.0, 8.0]}, "r": {"n": 1}})
    assert record["i"].low.numpy().tolist() == [5.0, 6.0]
    kept = xt.struct.constant({"r": {"i": value}, "n": 1})
    assert kept["r.i"] is value


def test_a_masked_field_takes_columns():
    masked = xt.types.MaskedTensor([1.0, 2.0], [True, False])
    spec = xt.spec_of(xt.DenseStructuredTensor([2], {"m": masked}))
    assert spec.cast({"m": [1.0, 2.0]})["m"].to_py() == [1.0, 2.0]
