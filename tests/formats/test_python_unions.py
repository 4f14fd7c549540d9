"""Python values of several types as unions: conflicts="union", and specs of unions."""

import datetime
import decimal
import uuid

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import DTypeError, FormatError, NullError, StructureError
from extensor.types import MaskedTensor, UnionTensor

constant = xt.struct.constant


def union_of(rows, **options):
    return constant(rows, conflicts="union", **options)


# The table of values that could not be encoded.


def test_fields_of_different_dtypes_are_a_union():
    records = union_of([{"a": 1}, {"a": "hello"}])
    assert records["a"].names == ("int", "string")
    assert records.to_py() == [{"a": 1}, {"a": "hello"}]


def test_fields_of_different_ranks_are_a_union_of_the_lists():
    rows = [{"b": [1, 2, 3]}, {"b": [[1, 2], [3, 4]]}]
    records = union_of(rows)
    assert records["b"].names == ("list", "list2")
    assert records["b"].variants["list2"].to_list() == [[[1, 2], [3, 4]]]
    assert records.to_py() == rows


def test_records_of_different_fields_are_masked():
    rows = [{"c": {"x": 1}}, {"c": {"y": 1}}]
    records = constant(rows, nulls="mask")
    assert records.to_py() == [{"c": {"x": 1, "y": None}}, {"c": {"x": None, "y": 1}}]
    assert records["c.x"].to_py() == [1, None]


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([{"a": 1}, {"a": True}, {"a": 2.5}], ("float", "bool")),
        ([{"a": 1}, {"a": [1]}, {"a": [[1]]}], ("int", "list", "list2")),
        ([{"a": [[1]]}, {"a": []}, {"a": [1]}], ("list2", "list")),
        ([{"a": [[]]}, {"a": [1]}, {"a": [[[1]]]}], ("list3", "list")),
        ([{"a": {"x": 1}}, {"a": "x"}], ("record", "string")),
        ([{"a": [{"x": 1}]}, {"a": {"x": 1}}], ("list", "record")),
        ([{"a": np.float32(1)}, {"a": b"x"}], ("float", "string")),
        ([{"a": [1, "x"]}, {"a": 1}], ("list", "int")),
        ([{"a": 2j}, {"a": "x"}, {"a": 1.5}], ("complex", "string")),
    ],
)
def test_variants_are_named_after_the_kinds_of_their_values(rows, names):
    records = union_of(rows)
    assert records["a"].names == names
    text = [row if not isinstance(row["a"], bytes) else {"a": row["a"].decode()} for row in rows]
    assert records.to_py(text=True) == text
    alone = UnionTensor.from_values([row["a"] for row in rows])
    assert alone.names == names
    assert xt.spec_of(alone) == xt.spec_of(records["a"])


@pytest.mark.parametrize(
    ("value", "name"),
    [
        *((1, "int"), (1.5, "float"), (2j, "complex"), ("a", "string"), (True, "bool")),
        *(([1], "list"), ([[1]], "list2"), ({"x": 1}, "record"), ([{"x": 1}], "list")),
        *((datetime.date(2020, 1, 1), "date"), (decimal.Decimal("1.5"), "decimal")),
        *((datetime.timedelta(1), "duration"), (uuid.UUID(int=5), "uuid")),
    ],
)
def test_values_of_one_kind_are_a_union_of_one_variant(value, name):
    assert UnionTensor.from_values([value, value]).names == (name,)
    assert UnionTensor.from_values([None, value]).names == (name, "null")
    assert UnionTensor.from_values([None]).names == ("null",)
    if value is not True:  # as beside a value of another kind
        assert UnionTensor.from_values([value, True]).names == (name, "bool")


def test_lists_with_items_of_several_depths_are_lists_of_unions():
    rows = [{"a": ["x", ["y", "z"]]}, {"a": ["x"]}]
    records = union_of(rows)
    assert records["a"].names == ("string", "list")
    assert records["a"].shape.as_list() == [2, None]
    assert records.to_py() == rows


@pytest.mark.parametrize(
    "rows",
    [
        {"a": [1, "x"], "b": [{"c": 1}, {"c": [1]}]},
        [{"r": [{"a": 1}, {"a": "x"}]}, {"r": []}],
        [[{"a": 1}], [{"a": "x"}, {"a": {"b": [{"c": 1}, {"c": "y"}]}}]],
        [{"a": {"x": {"y": 1}}}, {"a": {"x": {"y": "s"}}}, {"a": {"x": 3}}],
    ],
)
def test_unions_at_any_depth_go_through_arrow_and_the_spec(rows):
    records = union_of(rows)
    assert records.to_py() == rows
    again = xt.from_arrow(xt.to_arrow(records))
    assert xt.spec_of(again) == xt.spec_of(records)
    assert again.to_py() == rows
    spec = xt.spec_of(records)
    assert spec.cast(rows).to_py() == rows
    assert xt.spec_of(spec.cast(rows)) == spec


# Nulls.


def test_a_null_of_a_union_is_a_variant_under_mask():
    rows = [{"a": None}, {"a": 1}, {"a": "x"}, {}]
    records = union_of(rows, nulls="mask")
    assert records["a"].names == ("int", "string", "null")
    assert records.to_py() == [{"a": None}, {"a": 1}, {"a": "x"}, {"a": None}]
    full = union_of(rows[1:3], nulls="mask")
    assert xt.spec_of(full["a"]).variants == xt.spec_of(records["a"]).variants
    assert xt.from_arrow(xt.to_arrow(records)).to_py() == records.to_py()


def test_a_null_of_a_union_is_filled_with_a_value_of_a_variant():
    rows = [{"a": 1}, {"a": None}, {"a": "x"}]
    for value in (7, "none"):
        records = union_of(rows, nulls={"a": xt.fill(value)})
        assert records["a"].names == ("int", "string")
        assert records.to_py()[1] == {"a": value}
    lists = union_of([{"a": [1]}, {"a": None}, {"a": "x"}], nulls={"a": "empty"})
    assert lists.to_py()[1] == {"a": []}


@pytest.mark.parametrize("nulls", [None, "error", {"b": "mask"}, {"a": 2.5}])
def test_a_null_of_a_union_without_a_policy_for_it_is_an_error(nulls):
    rows = [{"a": "y", "b": 1}, {"a": None, "b": 1}, {"a": [1], "b": None}]
    with pytest.raises(
        NullError, match=r"^a, record 1: expected a value, such as str 'y', got nul"
    ):
        union_of(rows, nulls=nulls)


def test_nulls_inside_of_variants_are_masked():
    rows = [{"a": [1, None]}, {"a": {"x": None}}, {"a": {"x": 1}}]
    records = union_of(rows, nulls="mask")
    assert records["a"].names == ("list", "record", "null")
    assert records.to_py() == rows
    with pytest.raises(NullError, match=r"^a\.list\[\*\]: .*the first in record 0"):
        union_of(rows, nulls={"a.record.x": "mask"})


def test_arrow_unions_have_the_nulls_of_their_variants():
    union = pa.UnionArray.from_dense(
        pa.array([0, 1, 0], pa.int8()),
        pa.array([0, 0, 1], pa.int32()),
        [pa.array([None, 2], pa.int32()), pa.array(["x"])],
        ["int", "string"],
    )
    table = pa.table({"a": union})
    for nulls in ("mask", {"a": "mask"}, {"a.int": "mask"}):
        assert xt.from_arrow(table, nulls=nulls).to_py() == [
            *({"a": None}, {"a": "x"}, {"a": 2}),
        ]
    filled = xt.from_arrow(table, nulls={"a": 7})
    assert filled.to_py()[0] == {"a": 7}
    with pytest.raises(NullError, match=r"^a\.int: "):
        xt.from_arrow(table)
    with pytest.raises(DTypeError, match=r"^nulls, a: "):
        xt.from_arrow(table, nulls={"a": 7.5})


# Specs.


SPEC = UnionTensor.Spec(
    {
        "n": tf.TensorSpec([None], tf.int64),
        "x": tf.TensorSpec([None], tf.float64),
        "words": tf.RaggedTensorSpec([None, None], tf.string),
        "point": tf.TensorSpec([None, 2]),
        "deep": tf.RaggedTensorSpec([None, None, None], tf.int32),
        "circle": xt.DenseStructuredTensorSpec([None], {"r": tf.TensorSpec([None])}),
        "square": xt.DenseStructuredTensorSpec([None], {"side": tf.TensorSpec([None])}),
        "half": MaskedTensor.Spec(tf.TensorSpec([None], tf.bool)),
    }
)


def test_a_spec_chooses_the_variant_of_each_value():
    values = [1, 2.5, ["a"], [[1], []], {"r": 1}, {"side": 2}, None, True, 2**40]
    records = constant(
        [{"u": v} for v in values], xt.DenseStructuredTensorSpec([None], {"u": SPEC})
    )
    union = records["u"]
    kinds = [union.names[code] for code in union.codes.numpy()]
    assert kinds == [*("n", "x", "words", "deep", "circle", "square", "half", "half", "n")]
    assert [row["u"] for row in records.to_py()] == values
    assert SPEC.is_compatible_with(union)
    assert SPEC.is_compatible_with(SPEC.cast(values))


def test_a_value_of_no_variant_is_an_error_that_names_its_place():
    spec = xt.DenseStructuredTensorSpec([None], {"u": SPEC})
    says = "^u, record 1: expected a value of one of the variants n, x, words, .*got str 'x'"
    with pytest.raises(DTypeError, match=says):
        spec.cast([{"u": 1}, {"u": "x"}])
    with pytest.raises(DTypeError, match=r"^u\.words\[\*\], record 0: expected string, got int 1"):
        spec.cast([{"u": ["x", 1]}])


# Text.


def test_bytes_that_are_not_text_name_path_and_record():
    rows = [{"r": [{"a": 1}]}, {"r": [{"a": 2}, {"a": b"\xff"}]}]
    with pytest.raises(FormatError, match=r"^r\[\*\]\.a, record 1: expected text in UTF-8"):
        union_of(rows).to_py(text=True)
    with pytest.raises(FormatError, match=r"^a, record \[1, 0\]: .*got b'\\xff'"):
        constant([[{"a": b"x"}], [{"a": b"\xff"}]]).to_py(text=True)
    with pytest.raises(FormatError, match=r"^a\[\*\]: "):
        constant({"a": [b"\xff"]}).to_py(text=True)


# Dates, decimals and others.

DATE, DATETIME = datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5, 6)
UTC = DATETIME.replace(tzinfo=datetime.timezone.utc)
MEASURES = [
    (DATE, tf.int32, 18263),
    (DATETIME, tf.int64, 1577934245000006),
    (UTC, tf.int64, 1577934245000006),
    (datetime.time(1, 2, 3), tf.int64, 3723000000),
    (datetime.timedelta(days=1, microseconds=3), tf.int64, 86400000003),
    (decimal.Decimal("1.25"), tf.int64, 125),
    (uuid.UUID(int=5), tf.string, bytes(15) + b"\5"),
    (np.datetime64("2020-01-02T03:04:05"), tf.int64, 1577934245),
    (np.timedelta64(3, "s"), tf.int64, 3),
]


@pytest.mark.parametrize(("value", "dtype", "plain"), MEASURES)
def test_values_that_arrow_converts_are_its_numbers_and_come_back(value, dtype, plain):
    rows = [{"a": value, "r": [{"b": value}], "l": [value], "m": value}, None]
    rows[1] = {"a": value, "r": [], "l": [value, value], "m": None}
    records = constant(rows, nulls={"m": "mask"})
    assert records["a"].dtype == records["r.b"].dtype == records["l"].dtype == dtype
    assert records["a"].numpy().tolist() == [plain, plain]
    assert records["r.b"].to_list() == [[plain], []]
    assert records["l"].to_list() == [[plain], [plain, plain]]
    assert records["m"].to_py() == [plain, None]
    value = value.item() if isinstance(value, np.generic) else value
    rows = [{"a": value, "r": [{"b": value}], "l": [value], "m": value}, rows[1]]
    rows[1] = {"a": value, "r": [], "l": [value, value], "m": None}
    assert records.to_py() == xt.to_arrow(records).to_pylist() == rows
    again = xt.spec_of(records).cast(rows)
    assert again.to_py() == xt.to_arrow(again).to_pylist() == rows


@pytest.mark.parametrize(
    ("first", "second", "error", "says"),
    [
        (DATE, DATETIME, DTypeError, r"^a, record 1: expected a date, as in .* got a datetime"),
        (DATETIME, DATE, DTypeError, "^a, record 1: expected a datetime, as in .* got a date"),
        (DATETIME, UTC, DTypeError, "^a, record 1: expected a datetime without a zone"),
        (UTC, DATETIME, DTypeError, "^a, record 1: expected a datetime with a zone"),
        (DATE, 3, DTypeError, "^a, record 1: expected a date"),
    ],
)
def test_nothing_of_a_date_is_lost(first, second, error, says):
    with pytest.raises(error, match=says):
        constant([{"a": first}, {"a": second}])


def test_dates_and_text_are_a_union():
    records = union_of([{"a": DATE}, {"a": "soon"}, {"a": DATETIME}])
    assert records["a"].names == ("date", "string", "datetime")
    assert records.to_py() == [{"a": DATE}, {"a": "soon"}, {"a": DATETIME}]
    assert xt.to_arrow(records).to_pylist() == records.to_py()
    spec = xt.spec_of(records)
    rows = [{"a": DATETIME}, {"a": DATE}, {"a": "x"}]
    assert xt.to_arrow(spec.cast(rows)).to_pylist() == rows


def test_a_spec_of_dates_takes_no_datetimes():
    spec = xt.spec_of(constant([{"a": DATE}]))
    with pytest.raises(DTypeError, match=r"^a, record 0: expected date32\[day\], got datetime"):
        spec.cast([{"a": DATETIME}])
    with pytest.raises(StructureError, match=r"^a, record 0: expected date32\[day\], got list"):
        spec.cast([{"a": [DATE]}])


@pytest.mark.parametrize(
    ("first", "second", "values", "codes"),
    [
        (pa.float32(), pa.float64(), [0.5, 0.1, 1e300, float("nan")], [0, 1, 1, 0]),
        (pa.float16(), pa.float32(), [0.5, 1e-20, 0.1], [0, 1, 1]),
        (pa.int8(), pa.int64(), [5, 300], [0, 1]),
        (pa.int64(), pa.float64(), [2**60 + 1, 2**70, 0.5], [0, 1, 1]),
    ],
    ids=str,
)
def test_a_number_is_of_the_first_variant_that_holds_it(first, second, values, codes):
    union = pa.dense_union([pa.field("a", first), pa.field("b", second)])
    spec = xt.spec_from_schema(pa.schema({"x": union}))
    found = spec.cast([{"x": value} for value in values])
    assert found["x"].codes.numpy().tolist() == codes
    kept = [row["x"] for row in found.to_py()]
    assert kept == pytest.approx(values, rel=1e-7, abs=0.0, nan_ok=True)
