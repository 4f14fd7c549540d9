"""What reading does with nulls, at any depth, and how masked fields are written."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from hypothesis import given

import extensor as xt
from extensor.errors import DTypeError, FieldError, NullError, StructureError
from extensor.types import MaskedTensor
from tests.samples.arrow_strategies import (
    MANY,
    exactly,
    nullable_types,
    plain,
    python_of,
    schemas_and_records,
)

RECORD = pa.struct([("a", pa.int64()), ("s", pa.string())])
SCHEMA = pa.schema([
    ("n", pa.float32()), ("s", pa.string()), ("b", pa.bool_()), ("xs", pa.list_(pa.int64())),
    ("m", RECORD), ("steps", pa.large_list(RECORD)), ("f", pa.list_(pa.int32(), 2)),
    ("d", pa.dictionary(pa.int8(), pa.string())),
])  # fmt: skip
ROWS = [
    {"n": 1.0, "s": "a", "b": True, "xs": [1, None], "m": {"a": None, "s": "x"},
     "steps": [{"a": 1, "s": "q"}, None], "f": [1, 2], "d": "u"},
    {name: None for name in SCHEMA.names},
    {"n": 3.0, "s": "", "b": False, "xs": [], "m": {"a": 4, "s": None},
     "steps": [{"a": None, "s": None}], "f": [None, 5], "d": "v"},
]  # fmt: skip
TABLE = pa.Table.from_pylist(ROWS, SCHEMA)


@pytest.mark.whole("draws many values")
@MANY
@given(schemas_and_records(nulls=True, types=plain))
def test_masked_records_of_any_schema_come_and_go(case):
    schema, data = case
    records = xt.from_arrow(data, nulls="mask")
    plain = python_of(data)
    assert repr(records.to_py()) == repr(plain)
    spec = xt.spec_from_schema(schema, nulls="mask")
    assert spec.is_compatible_with(xt.spec_of(records))
    written = xt.to_arrow(records, schema)
    written.validate(full=True)
    assert repr(python_of(written)) == repr(plain)
    back = xt.from_arrow(written, nulls="mask")
    assert repr(back.to_py()) == repr(plain)


@pytest.mark.whole("draws many values")
@MANY
@given(schemas_and_records(nulls=True, types=nullable_types))
def test_nulls_of_every_type_come_back_as_they_were(case):
    schema, data = case
    records = xt.from_arrow(data, nulls="mask")
    assert xt.spec_from_schema(schema, nulls="mask").is_compatible_with(records)
    for wanted in (None, schema):
        written = xt.to_arrow(records, wanted)
        written.validate(full=True)
        assert written.schema == schema
        assert exactly(written) == exactly(data)


@pytest.mark.whole("draws many values")
@MANY
@given(schemas_and_records(nulls=True, types=plain))
def test_masked_records_of_any_schema_batch_and_unbatch(case):
    schema, data = case
    records = xt.from_arrow(data, nulls="mask")
    plain = python_of(data)
    if not plain or any(not size for size in _sizes(pa.struct(list(schema)))):
        return
    rows = tf.data.Dataset.from_tensor_slices(records)
    assert repr([row.to_py() for row in rows]) == repr(plain)
    assert repr([row for batch in rows.batch(2) for row in batch.to_py()]) == repr(plain)


def _sizes(arrow):
    """Yields the sizes of fixed-size lists, and of structs."""
    if pa.types.is_struct(arrow):
        yield arrow.num_fields
        for field in arrow.fields:
            yield from _sizes(field.type)
    elif pa.types.is_nested(arrow):
        yield arrow.list_size if pa.types.is_fixed_size_list(arrow) else 1
        yield from _sizes(arrow.value_type)


CHOSEN = {
    "n": 0, "s": xt.fill("?"), "b": False, "xs": "empty", "xs[*]": -1, "m": {"a": 0, "s": "none"},
    "m.a": 7, "m.s": "mask", "steps": [{"a": 9, "s": "z"}], "steps[*]": "mask", "steps[*].a": 0,
    "steps.s": xt.fill(""), "f": [1, 2], "f[*]": 0, "d": xt.fill("w"),
}  # fmt: skip
FILLED = [
    {"n": 1.0, "s": "a", "b": True, "xs": [1, -1], "m": {"a": 7, "s": "x"},
     "steps": [{"a": 1, "s": "q"}, None], "f": [1, 2], "d": "u"},
    {"n": 0.0, "s": "?", "b": False, "xs": [], "m": {"a": 0, "s": "none"},
     "steps": [{"a": 9, "s": "z"}], "f": [1, 2], "d": "w"},
    {"n": 3.0, "s": "", "b": False, "xs": [], "m": {"a": 4, "s": None},
     "steps": [{"a": 0, "s": ""}], "f": [0, 5], "d": "v"},
]  # fmt: skip


def _read(way, tmp_path, nulls):
    """Returns the rows of the table as a way in gives them."""
    if way == "from_arrow":
        return xt.from_arrow(TABLE, nulls=nulls).to_py()
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE, path)
    if way == "read_parquet":
        return xt.read_parquet(path, nulls=nulls).to_py()
    return [row for batch in xt.data.parquet(path, 2, nulls=nulls) for row in batch.to_py()]


NULLS_OF_FIXED_SIZE = pytest.mark.skipif(
    int(pa.__version__.split(".")[0]) < 26,
    reason="pyarrow before 26 reads no null lists of a fixed size from Parquet",
)
PARQUET = [
    pytest.param(way, marks=NULLS_OF_FIXED_SIZE) for way in ("read_parquet", "xt.data.parquet")
]
WAYS = ["from_arrow", *PARQUET]


@pytest.mark.parametrize("way", WAYS)
def test_each_path_has_its_policy_at_every_way_in(way, tmp_path):
    assert _read(way, tmp_path, CHOSEN) == FILLED
    assert _read(way, tmp_path, "mask") == ROWS


@pytest.mark.parametrize("way", WAYS)
def test_bad_policies_are_errors_at_every_way_in(way, tmp_path):
    with pytest.raises(FieldError, match=r"Did you mean steps\.a"):
        _read(way, tmp_path, {"stps.a": 0})


def test_a_policy_for_all_other_fields():
    records = xt.from_arrow(TABLE, nulls={"*": "mask", "n": 0.5})
    assert records["n"].numpy().tolist() == [1.0, 0.5, 3.0]
    assert records["xs"].to_py() == [[1, None], None, []]
    numbers = pa.table({"x": [1, None], "y": [None, 2.5], "s": ["a", "b"]})
    assert xt.from_arrow(numbers, nulls=0).to_py() == [
        {"x": 1, "y": 0.0, "s": "a"}, {"x": 0, "y": 2.5, "s": "b"}]  # fmt: skip
    with pytest.raises(NullError, match="s: expected a column without nulls"):
        xt.from_arrow(pa.table({"x": [1, None], "s": ["a", None]}), nulls=0)
    lists = pa.table({"xs": [[1], None], "y": [1, 2]})
    assert xt.from_arrow(lists, nulls="empty")["xs"].to_list() == [[1], []]
    star = pa.table({"*": [1, None], "y": [1, 2]})
    assert xt.from_arrow(star, nulls={("*",): 5})["*"].numpy().tolist() == [1, 5]


def test_the_spec_is_masked_whether_nulls_are_seen_or_not():
    whole = pa.table({"x": [1, 2]})
    records = xt.from_arrow(whole, nulls={"x": "mask"})
    assert isinstance(records["x"], MaskedTensor)
    assert xt.spec_of(records) == xt.spec_of(
        xt.from_arrow(pa.table({"x": [1, None]}), nulls="mask")
    )
    assert isinstance(xt.from_arrow(whole, nulls="error")["x"], tf.Tensor)


# Hidden values.


def _hidden():
    """Null lists over values, and null records over values and nulls."""
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 3, 4], pa.int32()), pa.array([1, None, 3, 4]),
        mask=pa.array([True, False, True]),
    )  # fmt: skip
    records = pa.StructArray.from_arrays(
        [pa.array(["a", None, "c"]), lists], names=["s", "l"], mask=pa.array([False, True, False])
    )
    return pa.table({"r": records, "l": lists})


@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_what_a_null_hides_is_no_null(first):
    table = _hidden().slice(first)
    records = xt.from_arrow(table, nulls={"r": "mask", "r.l": "mask", "l": "mask"})
    assert records.to_py() == table.to_pylist()
    assert records["l"].values.flat_values.shape[0] == (1 if first < 2 else 0)
    empty = xt.from_arrow(table, nulls={"r": "mask", "r.l": "empty", "l": "empty"})
    assert empty["l"].to_list() == [[], [3], []][first:]


def test_hidden_and_filled_string_views():
    views = pa.array(["a", "b", "a string of more than twelve bytes"], pa.string_view())
    mask = pa.array([True, False])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), views, mask=mask)
    table = pa.table({"x": lists})
    records = xt.from_arrow(table, nulls={"x": "mask"})
    assert records.to_py() == table.to_pylist()
    assert records["x"].values.flat_values.shape == [2]
    filled = xt.from_arrow(table, nulls={"x": ["c"]})
    assert filled["x"].to_list()[0] == [b"c"]


def test_hidden_nulls_of_fixed_size_lists():
    lists = pa.array([[1, None], None, [3, 4]], pa.list_(pa.int64(), 2))
    with pytest.raises(NullError, match=r"x\[\*\]: .* 1 null, the first in record 0"):
        xt.from_arrow(pa.table({"x": lists}), nulls={"x": "mask"})
    records = xt.from_arrow(pa.table({"x": lists.slice(1)}), nulls={"x": "mask"})
    assert records["x"].to_py() == [None, [3, 4]]


def test_nulls_in_dictionaries():
    words = pa.array(["a", None])
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), words)
    none = pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.string()))
    masked = xt.from_arrow(pa.table({"x": twice}), nulls="mask")
    assert masked.to_py() == [{"x": "a"}, {"x": None}, {"x": None}]
    assert masked.to_py(text=False) == [{"x": b"a"}, {"x": None}, {"x": None}]
    assert xt.from_arrow(pa.table({"x": none}), nulls="mask").to_py() == [{"x": None}]
    filled = xt.from_arrow(pa.table({"x": twice}), nulls={"x": xt.fill("z")})
    assert filled["x"].numpy().tolist() == [b"a", b"z", b"z"]


@pytest.mark.parametrize("count", [3, 2000])
def test_many_null_strings(count):
    words = [None if i % 3 else "salt" * (i % 5) for i in range(count)]
    records = xt.from_arrow(pa.table({"x": words}), nulls="mask")
    assert records.to_py() == [{"x": word} for word in words]
    assert xt.to_arrow(records).to_pylist() == records.to_py()


# Errors.


@pytest.mark.parametrize(
    ("nulls", "error", "match"),
    [
        ("maks", StructureError, "Did you mean 'mask'"),
        ({"s": "unknown"}, StructureError, r"xt\.fill\('unknown'\)"),
        ({"nope": 0}, FieldError, "expected one of the paths n, s, b"),
        ({"xs.a": 0}, FieldError, "Did you mean xs"),
        ({"stps.a": 0}, FieldError, r"Did you mean steps\.a"),
        ({"n": "empty"}, DTypeError, "nulls, n: expected a list"),
        ({"xs[*]": "empty"}, DTypeError, r"nulls, xs\[\*\]: expected a list"),
        ({"f": "empty"}, DTypeError, "nulls, f: expected a list, for"),
        ({"n": True}, DTypeError, "a value of Arrow type float, got True"),
        ({"b": 1}, DTypeError, "a value of Arrow type bool, got 1"),
        ({"s": 3}, DTypeError, "a value of Arrow type string, got 3"),
        ({"n": 1e300}, DTypeError, "a value of Arrow type float"),
        ({"xs[*]": 1.5}, DTypeError, "a value of Arrow type int64, got 1.5"),
        ({"xs[*]": 2**70}, DTypeError, "a value of Arrow type int64"),
        ({"xs": 3}, DTypeError, "nulls, xs: expected a list, got 3"),
        ({"f": [1]}, DTypeError, "a list of 2"),
        ({"m": 3}, DTypeError, "a dict with the fields a, s, got 3"),
        ({"m": {"a": 1}}, FieldError, "a dict with the fields a, s, got a dict with a"),
        ({"m": {"a": 1, "s": None}}, DTypeError, r"nulls, m\.s: expected a value"),
        ([1], DTypeError, "expected a field of its type"),
        (object(), DTypeError, "expected a field of its type"),
        ({"a..b": 0}, xt.errors.PathError, "expected a field name"),
    ],
)
def test_a_bad_policy_is_an_error(nulls, error, match):
    schema = SCHEMA.remove(SCHEMA.get_field_index("xs")) if nulls == [1] else SCHEMA
    table = TABLE.select(schema.names)
    if nulls == [1]:
        table = table.select(["n", "s"])
    with pytest.raises(error, match=match):
        xt.from_arrow(table, nulls=nulls)
    with pytest.raises(error, match=match):
        xt.spec_from_schema(table.schema, nulls=nulls)


@pytest.mark.parametrize(
    ("nulls", "path", "count"),
    [
        ("error", "n", 1),
        ({"*": "mask", "xs[*]": "error"}, "xs[*]", 1),
        ({"*": "mask", "steps.a": "error"}, "steps[*].a", 1),
        ({"*": "mask", "m.a": "error"}, "m.a", 1),
        ({"*": "mask", "f[*]": "error"}, "f[*]", 1),
    ],
)
def test_the_error_for_a_null_has_the_path_and_the_mend(nulls, path, count):
    with pytest.raises(NullError) as caught:
        xt.from_arrow(TABLE, nulls=nulls)
    assert caught.value.path == path
    assert f"{count} null, the first in record" in caught.value.received
    line = caught.value.fix.splitlines()[-1]
    mended = eval(line.removeprefix("nulls="), {"xt": xt})
    assert xt.from_arrow(TABLE, nulls=mended).to_py() == ROWS


# Times and decimals in place of nulls.

NOON = dt.datetime(2026, 5, 1, 12)
IN_UTC = NOON.replace(tzinfo=dt.timezone.utc)
FILLS = [
    (pa.timestamp("s"), NOON),
    (pa.timestamp("s"), dt.date(2026, 5, 1)),
    (pa.timestamp("s"), np.datetime64("2026-05-01")),
    (pa.timestamp("ns"), pd.Timestamp(2026, 5, 1, nanosecond=7)),
    (pa.timestamp("ms", "Europe/Paris"), IN_UTC),
    (pa.date32(), dt.date(2026, 5, 1)),
    (pa.time32("s"), dt.time(1, 2, 3)),
    (pa.duration("ms"), dt.timedelta(milliseconds=5)),
    (pa.duration("ms"), np.timedelta64(5, "s")),
    (pa.decimal128(9, 2), 2),
    (pa.decimal128(9, 2), 2.5),
    (pa.decimal128(9, 2), np.float32(2.5)),
    (pa.decimal128(30, 2), decimal.Decimal("2.5")),
]
LOSSES = [
    (pa.timestamp("s"), NOON.replace(microsecond=5)),
    (pa.timestamp("s"), IN_UTC),
    (pa.timestamp("s"), 1.5),
    (pa.timestamp("s"), "2026-05-01"),
    (pa.timestamp("ms", "Europe/Paris"), NOON),
    (pa.date32(), NOON),
    (pa.time32("s"), dt.time(1, 2, 3, 4)),
    (pa.time32("s"), NOON),
    (pa.duration("ms"), dt.timedelta(microseconds=5)),
    (pa.decimal128(9, 2), decimal.Decimal("2.505")),
    (pa.decimal128(9, 2), "2.5"),
]


@pytest.mark.parametrize("nest", [lambda t: (t, None), lambda t: (pa.list_(t), [])], ids="vl")
@pytest.mark.parametrize(("arrow", "value"), FILLS, ids=str)
def test_a_time_or_a_decimal_in_place_of_nulls_is_what_a_cast_makes_of_it(arrow, value, nest):
    arrow, lists = nest(arrow)
    value = value if lists is None else [value]
    filled = xt.from_arrow(pa.table({"x": pa.nulls(1, arrow)}), nulls={"x": xt.fill(value)})
    cast = xt.spec_from_schema(pa.schema({"x": arrow})).cast([{"x": value}])
    assert xt.to_arrow(filled) == xt.to_arrow(cast)


@pytest.mark.parametrize(("arrow", "value"), LOSSES, ids=str)
def test_a_time_that_would_lose_digits_or_its_zone_is_no_policy(arrow, value):
    with pytest.raises(DTypeError, match="nulls, x: expected a value of Arrow type") as caught:
        xt.from_arrow(pa.table({"x": pa.nulls(1, arrow)}), nulls={"x": xt.fill(value)})
    assert caught.value.received == repr(value)
    with pytest.raises(DTypeError):
        xt.spec_from_schema(pa.schema({"x": arrow})).cast([{"x": value}])


# Writing.


@NULLS_OF_FIXED_SIZE
def test_masked_fields_are_written_to_parquet(tmp_path):
    path = tmp_path / "rows.parquet"
    records = xt.from_arrow(TABLE, nulls="mask")
    xt.write_parquet(records, path)
    assert pq.read_table(path).to_pylist() == ROWS
    assert xt.read_parquet(path, nulls="mask").to_py() == ROWS
    assert pa.table(records).to_pylist() == ROWS
    lists = xt.from_arrow(_hidden(), nulls="mask")
    xt.write_parquet(lists, path)  # Parquet has no values in null lists
    assert pq.read_table(path).to_pylist() == _hidden().to_pylist()


def test_values_under_null_lists_are_not_written(tmp_path):
    lists = MaskedTensor(tf.ragged.constant([[1, 2], [3]]), [False, True])
    records = xt.DenseStructuredTensor([2], {"x": lists})
    array = xt.to_arrow(records)
    assert array.to_pylist() == [{"x": None}, {"x": [3]}]
    xt.write_parquet(records, tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == array.to_pylist()


def test_what_is_not_valid_need_not_fit_the_schema():
    records = xt.DenseStructuredTensor(
        [2],
        {
            "n": MaskedTensor([1000, 1], [False, True]),
            "s": MaskedTensor([b"\xff", b"ab"], [False, True]),
            "f": MaskedTensor([b"abc", b"ab"], [False, True]),
        },
    )
    schema = pa.schema([("n", pa.int8()), ("s", pa.string()), ("f", pa.binary(2))])
    assert xt.to_arrow(records, schema).to_pylist() == [
        {"n": None, "s": None, "f": None},
        {"n": 1, "s": "ab", "f": b"ab"},
    ]
    with pytest.raises(DTypeError, match="n: expected values that fit"):
        xt.to_arrow(xt.DenseStructuredTensor([1], {"n": [1000]}), pa.schema([("n", pa.int8())]))
