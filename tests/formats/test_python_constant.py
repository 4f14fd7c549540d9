"""xt.struct.constant: Python data as records."""

import collections
import datetime as dt
import enum
import uuid

import numpy as np
import pandas
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import (
    DTypeError,
    FieldError,
    FormatError,
    NullError,
    StructureError,
    UnsupportedTypeError,
)

constant = xt.struct.constant
T = tf.TensorSpec


# The examples of the reference text.

RECIPE = {
    "user_embedding": [0.8, 2.1, 0.3, 0.1, 9.2, 1.8],
    "recipe": {
        "title": "Snickerdoodle cookies",
        "est_time": 55.0,
        "ingredients": [
            {"amount": 3.0, "unit": "cup", "name": "flour"},
            {"amount": 1.0, "unit": "cup", "name": "white sugar"},
        ],
        "step": [{"description": "Preheat oven to 350 degrees F."}],
        "user_rating": [
            {"user_embedding": [0.7, 2.0, 0.3], "score": 0.8},
            {"user_embedding": [1.4, 0.0, 3.1], "score": 0.4},
        ],
    },
}
FOO = {"x": "foo", "y": [[1, 2], [3]]}
BAR = {"x": "bar", "y": [[4], [5, 6]]}
BAZ = {"x": "baz", "y": [[7, 8, 9]]}
RAZ = {"x": "raz", "y": []}


def test_the_recipe_is_a_single_record():
    struct = constant(RECIPE)
    assert struct.shape == []
    assert struct["recipe"].shape == []
    assert struct["user_embedding"].shape == [6]
    assert struct["user_embedding"].dtype == tf.float32
    assert [struct["recipe", n].shape for n in ("ingredients", "step", "user_rating")] == [
        [2],
        [1],
        [2],
    ]
    assert struct["recipe.title"].shape == struct["recipe.est_time"].shape == []
    assert isinstance(struct["recipe.user_rating.user_embedding"], tf.RaggedTensor)
    assert struct["recipe", "ingredients", 0, "name"].numpy() == b"flour"
    assert struct.to_py()["recipe"]["ingredients"] == RECIPE["recipe"]["ingredients"]


def test_a_scalar_a_vector_and_a_matrix_are_encoded_as_the_reference_shows():
    scalar = constant(FOO)
    assert scalar.shape == []
    assert scalar["x"].shape == []
    assert scalar["y"].to_list() == FOO["y"]
    assert scalar["y"].shape.as_list() == [2, None]
    vector = constant([FOO, BAR, BAZ])
    assert isinstance(vector, xt.DenseStructuredTensor)
    assert vector.shape == [3]
    assert vector["x"].numpy().tolist() == [b"foo", b"bar", b"baz"]
    assert vector["y"].to_list() == [FOO["y"], BAR["y"], BAZ["y"]]
    matrix = constant([[FOO, BAR], [BAZ, RAZ]])
    assert isinstance(matrix, xt.DenseStructuredTensor)
    assert matrix.shape == [2, 2]
    assert matrix["x"].numpy().tolist() == [[b"foo", b"bar"], [b"baz", b"raz"]]
    assert matrix["y"].to_list() == [[FOO["y"], BAR["y"]], [BAZ["y"], []]]


@pytest.mark.parametrize(
    ("rows", "error", "says"),
    [
        (
            [{"a": 1}, {"a": "hello"}],
            DTypeError,
            r"^a, record 1: expected a number, as in record 0 \(int 1\), got a string "
            r"\(str 'hello'\)\. .*conflicts=\"union\"; dtype= or spec=",
        ),
        (
            [{"b": [1, 2, 3]}, {"b": [[1, 2], [3, 4]]}],
            StructureError,
            r"^b\[\*\], record 1: expected a number, as in record 0 \(int 1\), got a list",
        ),
        (
            [{"c": {"x": 1}}, {"c": {"y": 1}}],
            NullError,
            r"^c\.y, record 0: expected a value, as record 1 has \(int 1\), got a record with the "
            r"keys 'x'; record 1 has the keys 'y'\.(?:.|\n)*nulls=",
        ),
    ],
)
def test_what_the_reference_cannot_encode_names_path_types_and_records(rows, error, says):
    with pytest.raises(error, match=says):
        constant(rows)
    pathless = rows[0]
    assert constant([pathless] * 2).to_py() == [pathless] * 2


# Shapes.


def test_levels_of_lists_are_dense_below_the_last_ragged_one():
    a = {"a": 1}
    for rows, shape, dense in [
        ([[a, a], [a]], [2, None], False),
        ([[a], [a]], [2, 1], True),
        ([[[a, a]], [[a, a], [a, a]]], [2, None, 2], False),
        ([[[a], [a, a]], [[a], []]], [2, None, None], False),
        ([[[a]] * 3] * 2, [2, 3, 1], True),
    ]:
        records = constant(rows)
        assert records.shape.as_list() == shape
        assert isinstance(records, xt.DenseStructuredTensor) is dense
        assert records.to_py() == rows


@pytest.mark.parametrize(
    ("rows", "shape"),
    [([], [0]), ({}, []), ([{}, {}], [2]), ([[], []], [2, 0]), ([[{}, {}]], [1, 2])],
)
def test_records_without_fields_keep_their_number(rows, shape):
    assert constant(rows).shape == shape
    assert constant(rows).to_py() == rows


@pytest.mark.whole("makes very large values")
def test_records_of_depth_64_and_10_000_fields():
    deep = {"leaf": 1}
    for _ in range(64):
        deep = {"r": deep}
    assert constant([deep]).to_py() == [deep]
    lists = [{"leaf": 1}]
    for _ in range(64):
        lists = [{"r": lists}]
    assert constant(lists).to_py() == lists
    wide = {f"f{i}": i for i in range(10_000)}
    assert constant([wide, wide]).to_py() == [wide, wide]


def test_deeper_nesting_than_python_allows_is_an_error():
    deep = {}
    for _ in range(5000):
        deep = {"r": deep}
    with pytest.raises(StructureError, match="recursion limit"):
        constant([deep])
    endless = {}
    endless["r"] = endless
    with pytest.raises(StructureError, match="recursion limit"):
        constant(endless)


# Dtypes.


@pytest.mark.parametrize(
    "values",
    [[1, 2], [1.5], [1, 2.5], [2.5, 1], ["a"], [b"a", "b"], [True], [2**40, 1], [], [1j]],
)
def test_dtypes_are_those_of_ragged_constant(values):
    expected = tf.ragged.constant([values])
    field = constant([{"x": values}])["x"]
    assert field.dtype == expected.dtype
    assert field.to_list() == expected.to_list()


def test_a_list_that_is_always_empty_is_float():
    for rows in ([{"a": []}], [{"a": [[], []]}], [{"a": [{"b": []}]}]):
        assert constant(rows).to_py() == rows
        assert next(spec for _, spec in xt.spec_of(constant(rows)).leaves()).dtype == tf.float32


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int64", "uint64", "float16", "float64", "bool", "complex64"]
)
def test_numpy_values_keep_their_dtype(dtype):
    value = np.ones([], dtype)[()]
    rows = [{"s": value, "v": np.ones([2], dtype), "m": np.ones([2, 3], dtype), "l": [value]}] * 2
    records = constant(rows)
    assert {str(records[n].dtype.name) for n in "svml"} == {dtype}
    assert records["m"].to_list() == [[[1, 1, 1]] * 2] * 2
    assert constant([{"x": np.array(value)}])["x"].dtype == dtype


def test_numpy_joins_python_numbers_as_numpy_does():
    assert constant([{"x": np.float64(1)}, {"x": 2.5}])["x"].dtype == tf.float64
    assert constant([{"x": np.int8(1)}, {"x": 2}])["x"].dtype == tf.int8
    assert constant([{"x": np.int8(1)}, {"x": np.int64(2)}])["x"].dtype == tf.int64
    late = [{"x": 1.5}] * 500 + [{"x": np.float64(1)}]
    assert constant(late)["x"].dtype == tf.float64


def test_a_late_value_joins_the_dtype_of_the_first_ones():
    assert constant([{"x": 1}] * 500 + [{"x": 0.5}])["x"].dtype == tf.float32
    assert constant([{"x": 1}] * 500 + [{"x": 2**40}])["x"].dtype == tf.int64
    assert constant([{"x": []}] * 500 + [{"x": [7]}])["x"].dtype == tf.int32
    with pytest.raises(NullError, match=r"^y, record 0: .*record 500 has"):
        constant([{"x": 1}] * 500 + [{"x": 1, "y": 2}])
    with pytest.raises(DTypeError, match=r"^x, record 500: expected a number, as in record 0"):
        constant([{"x": 1}] * 500 + [{"x": True}])


def test_dtype_is_for_all_numbers_or_by_path():
    rows = [{"a": 1, "s": "w", "b": [{"c": [1]}]}]
    records = constant(rows, dtype=tf.float64)
    assert records["a"].dtype == records["b.c"].dtype == tf.float64
    records = constant(rows, dtype={"b.c": tf.uint8})
    assert records["a"].dtype == tf.int32
    assert records["b.c"].dtype == tf.uint8
    assert constant(rows, dtype={"b[*].c[*]": "int64"})["b.c"].dtype == tf.int64
    assert constant([{"a": 1.5}], dtype=tf.bfloat16)["a"].dtype == tf.bfloat16
    assert constant([{"a": 2**63}], dtype=tf.uint64).to_py() == [{"a": 2**63}]


@pytest.mark.parametrize(
    ("rows", "dtype", "error", "says"),
    [
        ([{"a": 1}, {"a": 2**70}], None, DTypeError, "^a, record 1: .*int64 can hold, got int"),
        (
            [{"a": 1.0}, {"a": 1e300}],
            None,
            DTypeError,
            r"^a, record 1: .*1e\+300\..*dtype=",
        ),
        ([{"a": 1}, {"a": 1.5}], tf.int32, DTypeError, "^a, record 1: .*int32 can hold, got float"),
        ([{"a": 300}], tf.int8, DTypeError, "^a, record 0: .*int8 can hold, got int 300"),
        ([{"a": -1}], tf.uint64, DTypeError, "^a, record 0: .*uint64 can hold, got int -1"),
        ([{"a": "x"}], {"a": tf.int8}, DTypeError, "^a, record 0: expected int8, as dtype= says"),
        ([{"a": 1}], {"b": tf.int8}, FieldError, "got b, where there are none"),
        ([{"a": 1}], tf.string, DTypeError, "a dtype of numbers"),
        ([{"a": 1}], "wide", DTypeError, "^dtype: expected a dtype such as"),
    ],
)
def test_a_number_that_does_not_fit_is_an_error(rows, dtype, error, says):
    with pytest.raises(error, match=says):
        constant(rows, dtype=dtype)


def test_row_splits_have_the_chosen_dtype():
    records = constant([[{"a": [1]}], []], row_splits_dtype=tf.int32)
    assert records.row_splits.dtype == records["a"].values.row_splits.dtype == tf.int32


# Kinds of values.


def test_strings_are_text_or_bytes_also_without_utf_8():
    rows = [{"a": b"\xff"}, {"a": "ä"}, {"a": bytearray(b"c")}, {"a": memoryview(b"d")}]
    assert [r["a"] for r in constant(rows).to_py()] == [b"\xff", "ä".encode(), b"c", b"d"]
    with pytest.raises(FormatError, match=r"^r\[\*\]\.a, record 1: .*UTF-8 can encode, got str"):
        constant([{"r": []}, {"r": [{"a": "fine"}, {"a": "\ud800"}]}])


def test_a_single_record_may_have_a_tensor_and_a_list_of_tensors():
    record = constant({"a": [tf.constant(1), tf.constant(2)], "b": tf.constant([3, 4])})
    assert record.to_py() == {"a": [1, 2], "b": [3, 4]}


def test_tensors_are_leaves_with_their_gradients():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        records = constant([{"n": {"v": x * 2}, "s": x[0]}, {"n": {"v": x[:1]}, "s": x[1]}])
        total = tf.reduce_sum(records["n.v"]) + tf.reduce_sum(records["s"])
    assert records["n.v"].to_list() == [[2.0, 4.0], [1.0]]
    assert tape.gradient(total, x).numpy().tolist() == [4.0, 3.0]
    assert constant({"v": tf.constant([[1, 2]])})["v"].numpy().tolist() == [[1, 2]]
    assert constant([{"r": tf.ragged.constant([[1], []])}])["r"].to_list() == [[[1], []]]

    @tf.function
    def call(x):
        return constant([[{"x": x, "k": 1}], []])

    assert call(tf.constant(3.0)).to_py() == [[{"x": 3.0, "k": 1}], []]
    with pytest.raises(StructureError, match=r"^x: expected tensors of one dtype and rank"):
        constant([{"x": tf.constant(1)}, {"x": tf.constant([1.0])}])


def test_tuples_enums_and_other_mappings():
    class Size(enum.Enum):
        SMALL = "s"

    Point = collections.namedtuple("Point", "x y")
    rows = [{"p": Point(1, 2.5), "t": (1, 2), "e": Size.SMALL, "d": collections.OrderedDict(q=1)}]
    assert constant(rows).to_py() == [
        {"p": {"x": 1, "y": 2.5}, "t": [1, 2], "e": "s", "d": {"q": 1}}
    ]
    assert constant([{"p": Point(1, 2)}] * 2).to_py() == [{"p": {"x": 1, "y": 2}}] * 2


@pytest.mark.parametrize(
    ("value", "error", "says"),
    [
        (3, StructureError, "^constant: expected records: .*got int 3"),
        ([1], StructureError, r"^record 0: .*Name the values of a plain list: \{\"x\": values\}"),
        ([{"a": 1}, [{"a": 1}]], StructureError, "^record 1: .*the same number of lists"),
        (None, StructureError, "^constant: expected records: .*got null"),
        ([{1: 2}], DTypeError, "^record 0: expected keys of type str, .*got the key int 1"),
        ([{b"a": "x"}], DTypeError, "^record 0: expected keys of type str"),
        ([{"a": 1}, {"a": None}], NullError, "^a, record 1: .*such as int 1, got null"),
        ([{"a": 1}, None], NullError, "^record 1: expected a value"),
        ([[{"a": 1}], [{"a": 1}, {"a": None}]], NullError, r"^a, record \[1, 1\]: "),
        ([{"a": [{"b": 1}, {"c": 1}]}], NullError, r"^a\[\*\]\.c, record 0: .*another item has"),
        ([{"a": {1, 2}}], UnsupportedTypeError, "^a, record 0: .*got set"),
        ([{"a": {"x"}}], UnsupportedTypeError, "^a, record 0: .*got set"),
        ([{"a": object()}], UnsupportedTypeError, "^a, record 0: .*got object"),
        ([{"a": [1, [2]]}], StructureError, r"^a\[\*\], record 0: .*\(int 1\), got a list"),
        ({"steps": [{"m": 1}, {"m": "x"}]}, DTypeError, r"^steps\[\*\]\.m: expected a number"),
    ],
)  # fmt: skip
def test_bad_input_is_an_error_that_names_its_place(value, error, says):
    with pytest.raises(error, match=says):
        constant(value)


def test_bad_arguments_are_errors():
    for arguments, says in [
        ({"conflicts": "merge"}, "^constant: conflicts: .*got 'merge'"),
        ({"spec": T([])}, "^constant: spec: .*got TensorSpec"),
        ({"spec": xt.spec_of(constant({"a": 1})), "dtype": tf.int8}, "^constant: dtype"),
        ({"row_splits_dtype": tf.int8}, "^row_splits_dtype"),
    ]:
        with pytest.raises(DTypeError, match=says):
            constant({"a": 1}, **arguments)


# Generated records.

_PATTERNS = st.recursive(
    st.sampled_from(["int", "bool", "text", "float"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=1),
        st.dictionaries(st.sampled_from(["a", "b", "a b", "c.d"]), inner, max_size=3),
    ),
    max_leaves=5,
)
_VALUES = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "bool": st.booleans(),
    "text": st.text(st.characters(codec="utf-8"), max_size=3),
    "float": st.floats(width=32, allow_nan=False),
}


def _values(pattern):
    if isinstance(pattern, str):
        return _VALUES[pattern]
    if isinstance(pattern, list):
        return st.lists(_values(pattern[0]), max_size=3)
    return st.fixed_dictionaries({name: _values(inner) for name, inner in pattern.items()})


_RECORDS = st.dictionaries(st.sampled_from(["x", "y", "z"]), _PATTERNS, max_size=3).flatmap(
    lambda pattern: st.one_of(
        _values(pattern), _values([pattern]), _values([[pattern]]), _values([[[pattern]]])
    )
)


@given(_RECORDS)
def test_records_come_back_equal(rows):
    records = constant(rows)
    assert records.to_py() == rows
    spec = xt.spec_of(records)
    assert spec.cast(rows).to_py() == rows
    assert eval(repr(spec), {"tf": tf, "xt": xt}) == spec


@given(_RECORDS.filter(lambda rows: rows and isinstance(rows, list) and isinstance(rows[0], dict)))
def test_values_are_those_of_arrow(rows):
    assert constant(rows).to_py() == pa.array(rows).to_pylist()


# Integers that the floats of their field do not hold: in a dtype that the caller did not choose.
FLOAT64, FLOAT32 = 9007199254740993, 123456789


def _of_floats(dtype):
    return lambda rows: xt.DenseStructuredTensorSpec([None], {"x": T([None], dtype)}).cast(rows)


@pytest.mark.parametrize(
    ("make", "number"),
    [
        (constant, FLOAT64),
        (constant, FLOAT32),
        (_of_floats(tf.float64), FLOAT64),
        (_of_floats(tf.float32), FLOAT32),
    ],
)
@pytest.mark.parametrize("others", [[1.5], [0.5, -2.0], [3.0]])
def test_an_integer_that_the_floats_of_its_column_do_not_hold_is_an_error(make, number, others):
    rows = [{"x": other} for other in others]
    for value in (number, -number):
        with pytest.raises(DTypeError, match=rf"x, record {len(rows)}: .*{value}.*dtype="):
            make([*rows, {"x": value}])
    held = number - number % 8
    assert make([*rows, {"x": held}]).to_py()[-1] == {"x": held}
    fine = constant([*rows, {"x": FLOAT32}], dtype=tf.float64)
    assert fine.to_py() == [*rows, {"x": FLOAT32}]


def test_the_first_lines_of_the_docs_say_how_floats_are_stored():
    first = constant.__doc__.splitlines()[0]
    assert "float32" in first
    assert "dtype=tf.float64" in first


ZONE = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (pandas.Timestamp("2020-01-01T00:00:00.000000005"), None),
        (pandas.Timestamp("2020-01-01T03:00:00.000000005", tz="UTC"), None),
        (pandas.Timedelta("5ns"), None),
        (pandas.NaT, ...),
        (np.datetime64("NaT", "s"), ...),
        (np.timedelta64("NaT", "s"), ...),
        (np.datetime64("2020-01-02"), dt.date(2020, 1, 2)),
        (np.datetime64("2020-02"), dt.date(2020, 2, 1)),
        (np.datetime64("2020-01-01T05", "h"), dt.datetime(2020, 1, 1, 5)),
        (np.timedelta64(5, "D"), dt.timedelta(5)),
        (np.timedelta64(5, "m"), dt.timedelta(minutes=5)),
    ],
    ids=str,
)
def test_times_of_pandas_and_numpy_keep_all_digits_and_nat_is_null(value, want):
    want = value if want is None else None if want is ... else want
    for rows in ([value], [value, None], [None, value]):
        records = constant([{"x": each} for each in rows], nulls="mask")
        assert [row["x"] for row in records.to_py()] == [
            None if each is None else want for each in rows
        ]


def test_what_an_arrow_type_cannot_hold_is_an_error_that_names_the_record():
    late = [{"x": dt.time(1)}, {"x": dt.time(1, tzinfo=ZONE)}]
    uuids = xt.spec_from_schema(pa.schema({"x": pa.uuid()}))
    times = xt.spec_from_schema(pa.schema({"x": pa.time64("us")}))
    for make in (constant, times.cast):
        with pytest.raises(DTypeError, match=r"x, record 1: expected a time of day without a zone"):
            make(late)
    text = "00000000-0000-0000-0000-000000000007"
    assert uuids.cast([{"x": text}, {"x": b"\0" * 16}]).to_py()[0]["x"] == uuid.UUID(text)
    with pytest.raises(DTypeError, match=r"x, record 1: expected a UUID, or its text, got str"):
        uuids.cast([{"x": text}, {"x": "0000"}])
