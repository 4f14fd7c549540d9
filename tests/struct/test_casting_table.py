"""The table of docs/casting.md for fields of records, for values, signatures and Python data."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors

Dense, Spec, Masked = xt.DenseStructuredTensor, xt.DenseStructuredTensorSpec, xt.types.MaskedTensor
NUMBERS = [
    tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.float16, tf.float32,
    tf.float64,
]  # fmt: skip
# How records reach a spec. A new way joins by one line.
WAYS = {
    "cast": lambda spec, records: spec.cast(records),
    "signature": lambda spec, records: tf.function(lambda x: x, input_signature=[spec])(records),
    "nested": lambda spec, records: Spec([None], {"r": spec}).cast(Dense([2], {"r": records}))["r"],
    "in lists": lambda spec, records: (
        xt.RaggedStructuredTensorSpec([None, None], spec)
        .cast(xt.RaggedStructuredTensor.from_row_lengths(records, [2]))
        .values
    ),
}


def spec_of(dtype):
    return Spec([None], {"x": tf.TensorSpec([None], dtype)})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("want", NUMBERS, ids=lambda d: d.name)
@pytest.mark.parametrize("have", NUMBERS, ids=lambda d: d.name)
def test_dtypes_are_cast_as_numpys_safe_cast(have, want, way):
    records = Dense([2], {"x": tf.constant([1, 100], have)})
    if not np.can_cast(have.as_numpy_dtype, want.as_numpy_dtype):
        with pytest.raises(TypeError, match=rf"x.*{want.name}"):
            WAYS[way](spec_of(want), records)
        return
    result = WAYS[way](spec_of(want), records)["x"]
    assert result.dtype == want
    assert result.numpy().tolist() == [1, 100]


@pytest.mark.parametrize("way", WAYS)
def test_a_field_that_may_be_null_may_be_missing_or_without_a_mask(way):
    spec = Spec(
        [None],
        {
            "plain": tf.TensorSpec([None], tf.int64),
            "number": Masked.Spec(tf.TensorSpec([None], tf.float64)),
            "list": Masked.Spec(
                tf.RaggedTensorSpec([None, None], tf.string), tf.TensorSpec([None], tf.bool)
            ),
            "records": Masked.Spec(spec_of(tf.float32)),
        },
    )
    few = Dense([2], {"plain": tf.constant([1, 2], tf.int64)})
    absent = {"number": None, "list": None, "records": None}
    assert WAYS[way](spec, few).to_py() == [{"plain": 1, **absent}, {"plain": 2, **absent}]
    whole = few.with_updates(
        number=tf.constant([1, 2], tf.int32),
        list=tf.ragged.constant([["a"], []]),
        records=Dense([2], {"x": tf.constant([3, 4], tf.float32)}),
    )
    assert WAYS[way](spec, whole).to_py() == [
        {"plain": 1, "number": 1.0, "list": [b"a"], "records": {"x": 3.0}},
        {"plain": 2, "number": 2.0, "list": [], "records": {"x": 4.0}},
    ]
    assert spec.cast(whole.to_py()).to_py() == WAYS[way](spec, whole).to_py()


def test_fields_that_are_not_wanted_are_left_out_at_any_depth_if_asked():
    rows = [{"a": 1, "r": {"b": 2, "x": 0}, "l": [{"c": 3, "x": [1]}], "x": "y"}]
    spec = xt.spec_of(xt.struct.constant([{"a": 1, "r": {"b": 2}, "l": [{"c": 3}]}]))
    spec = spec.unstacked().stacked(None)
    want = [{"a": 1, "r": {"b": 2}, "l": [{"c": 3}]}]
    for given_ in (rows, xt.struct.constant(rows)):
        assert spec.cast(given_, extra="ignore").to_py() == want
        with pytest.raises(errors.ExtensorError, match=r'extra="ignore"'):
            spec.cast(given_)
    with pytest.raises(errors.DTypeError, match="cast: extra"):
        spec.cast(rows, extra="drop")


def test_an_error_lists_all_differences_as_a_table():
    spec = Spec([None], {"a": tf.TensorSpec([None], tf.int32), "b": tf.TensorSpec([None])})
    records = Dense([1], {"a": ["x"], "c": [1.0]})
    with pytest.raises(errors.DTypeError) as caught:
        spec.cast(records)
    lines = str(caught.value).splitlines()
    assert "3 differences" in lines[0]
    assert [line.split()[0] for line in lines[1:5]] == ["path", "a", "b", "c"]
    only = Spec([None], {"a": tf.TensorSpec([None], tf.string)})
    mended = eval(lines[4][lines[4].index("spec.cast") :], {"spec": only, "records": records})
    assert mended.to_py() == [{"a": b"x"}]


def test_dicts_become_maps():
    spec = xt.spec_from_schema(pa.schema({"m": pa.map_(pa.string(), pa.int64())}))
    array = pa.array([[("a", 1), ("b", 2)], []], pa.map_(pa.string(), pa.int64()))
    made = spec.cast([{"m": {"a": 1, "b": 2}}, {"m": {}}])
    assert made.to_py() == xt.from_arrow(pa.table({"m": array})).to_py()
    assert xt.to_arrow(made)["m"].to_pylist() == array.to_pylist()


@given(st.integers(-(2**62), 2**62), st.sampled_from([tf.float32, tf.float64]))
def test_an_integer_that_floats_do_not_hold_is_an_error(number, dtype):
    exact = int(dtype.as_numpy_dtype(number)) == number
    rows = [{"x": 0.5}, {"x": number}]
    for make in (
        lambda: spec_of(dtype).cast(rows),
        *([lambda: xt.struct.constant(rows)] if dtype == tf.float32 else []),
    ):
        if exact:
            assert make()["x"].numpy().tolist() == [0.5, number]
        else:
            with pytest.raises(errors.DTypeError, match=rf"x, record 1: .*{number}.*dtype="):
                make()
    chosen = xt.struct.constant(rows, dtype=dtype)  # who chooses the dtype accepts its precision
    assert chosen["x"].numpy().tolist() == [0.5, dtype.as_numpy_dtype(number)]


@pytest.mark.parametrize("items", [pa.list_(pa.int64(), 2), pa.list_(pa.list_(pa.int32(), 2))])
def test_lists_of_vectors_meet_those_with_masks(items):
    vectors = [[1, 2], [3, 4]] if pa.types.is_fixed_size_list(items) else [[[1, 2]], []]
    table = pa.table({"x": pa.array([vectors, []], pa.list_(items))})
    plain, masked = xt.from_arrow(table), xt.from_arrow(table, nulls="mask")
    open_spec = xt.spec_from_schema(table.schema, nulls="mask")
    assert open_spec.cast(plain).to_py() == open_spec.cast(plain.to_py()).to_py() == plain.to_py()
    for pair in ([plain, masked], [masked, plain]):
        assert tf.concat(pair, 0).to_py() == plain.to_py() * 2
