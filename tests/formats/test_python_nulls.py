"""Nulls and missing keys of Python data, under the policy `nulls=`."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal

import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt

constant = xt.struct.constant


@pytest.mark.parametrize(
    ("rows", "nulls", "expected"),
    [
        (
            [{"c": {"x": 1}}, {"c": {"y": 1}}],
            "mask",
            [{"c": {"x": 1, "y": None}}, {"c": {"x": None, "y": 1}}],
        ),
        ([{"a": 1}, {"a": None}], {"a": 7}, [{"a": 1}, {"a": 7}]),
        ([{"a": [1, None]}, {"a": None}], "mask", [{"a": [1, None]}, {"a": None}]),
        ([{"a": [{"b": 1}, None]}, {"a": []}], "mask", [{"a": [{"b": 1}, None]}, {"a": []}]),
    ],
)
def test_nulls_and_missing_keys_follow_the_policy(rows, nulls, expected):
    assert constant(rows, nulls=nulls).to_py() == expected


@dataclasses.dataclass
class Step:
    minutes: float
    tools: list[str]


@dataclasses.dataclass
class Nullable:
    a: int | None
    b: list[float | None]
    c: list[float] | None
    d: Step | None


def test_optional_fields_take_none_and_give_it_back():
    objects = [
        Nullable(1, [1.0, None], None, None),
        Nullable(None, [], [2.0], Step(1.0, ["pot"])),
    ]
    spec = xt.struct.spec_from(Nullable)
    for records in (constant(objects, spec), spec.cast(objects)):
        assert xt.spec_of(records).is_compatible_with(spec)
        assert records.to_objects(Nullable) == objects


SPEC = xt.spec_from_schema(
    pa.schema(
        {
            "a": pa.timestamp("s"),
            "b": pa.decimal128(5, 2),
            "r": pa.struct({"x": pa.int64()}),
            "l": pa.list_(pa.string()),
            "o": pa.bool_(),
            "f": pa.list_(pa.int8(), 2),
            "s": pa.list_(pa.struct({"m": pa.float32(), "t": pa.list_(pa.int32())})),
            "may": pa.int64(),
        }
    ),
    nulls={"may": "mask"},
)


def maybe(values):
    return st.one_of(st.none(), values)


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "a": maybe(st.just(dt.datetime(2020, 1, 1))),
            "b": maybe(st.just(decimal.Decimal("1.25"))),
            "r": maybe(st.fixed_dictionaries({"x": maybe(st.integers(0, 9))})),
            "l": maybe(st.lists(maybe(st.text(max_size=2)), max_size=2)),
            "o": maybe(st.booleans()),
            "f": maybe(st.tuples(maybe(st.just(1)), maybe(st.just(2))).map(list)),
            "s": maybe(
                st.lists(
                    st.fixed_dictionaries(
                        {"m": maybe(st.just(0.5)), "t": maybe(st.lists(st.just(1), max_size=2))}
                    ),
                    max_size=2,
                )
            ),
            "may": maybe(st.just(1)),
        }
    ),
    min_size=1,
    max_size=4,
)
MAY_BE_NULL = "may"


def nulls_of(value, path=""):
    """Yields the path of each null that is in no null, as the argument `nulls` names it."""
    if value is None:
        yield path
    elif isinstance(value, list):
        for item in value:
            yield from nulls_of(item, f"{path}[*]")
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from nulls_of(each, f"{path.removesuffix('[*]')}.{name}" if path else name)


def without_null(value, like):
    """Returns data with the zero of its type in place of each null."""
    if value is None:
        return like
    if isinstance(value, list):
        item = {"f": 0, "l": "", "t": 0}.get(like, {"m": 0.0, "t": []})
        return [without_null(each, item) for each in value]
    if isinstance(value, dict):
        zeros = {
            "a": dt.datetime(1970, 1, 1), "b": decimal.Decimal(0), "r": {"x": 0}, "x": 0, "m": 0.0,
            "l": [], "o": False, "f": [0, 0], "s": [], "t": [], "may": None,
        }  # fmt: skip
        return {
            name: (zeros[name] if each is None else without_null(each, name))
            for name, each in value.items()
        }
    return value


@given(ROWS)
def test_an_error_under_a_spec_lists_all_fields_with_nulls_and_a_line_that_mends_it(rows):
    counts = collections.Counter(
        path for row in rows for path in nulls_of(row) if path != MAY_BE_NULL
    )
    if not counts:
        assert SPEC.cast(rows).to_py() == rows
        return
    with pytest.raises(xt.errors.NullError) as caught:
        constant(rows, spec=SPEC)
    *_, text, line = str(caught.value).splitlines()
    listed = text.partition("Fields with nulls: ")[2].partition(". ")[0]
    assert sorted(listed.split(", ")) == sorted(f"{path} ({n})" for path, n in counts.items())
    nulls = eval(line.removeprefix("nulls="), {"xt": xt})
    assert set(nulls) == set(counts)
    assert constant(rows, spec=SPEC, nulls=nulls).to_py() == without_null(rows, None)


@pytest.mark.parametrize("arrow", [pa.uuid(), pa.string(), pa.timestamp("s"), pa.large_binary()])
@pytest.mark.parametrize("rows", [[{"x": None}], [{"x": {"v": None}}], []])
def test_a_field_of_null_records_has_the_arrow_type_of_the_spec(arrow, rows):
    schema = pa.schema({"x": pa.struct({"v": arrow})})
    made = xt.spec_from_schema(schema, nulls="mask").cast(rows)
    assert xt.to_arrow(made).schema == schema
    assert made.to_py() == rows


def test_the_error_for_nulls_lists_up_to_fifty_fields_and_masks_all_of_them():
    fields = [f"x{i}" for i in range(60)]
    for count in (12, 50, 60):
        records = [dict.fromkeys(fields[:count]), dict.fromkeys(fields[:count], 1)]
        with pytest.raises(xt.errors.NullError) as caught:
            xt.struct.constant(records)
        text, line = str(caught.value).rsplit("\n", 1)
        listed = text.partition("Fields with nulls: ")[2].partition(". ")[0]
        shown, _, others = listed.partition(" and ")
        assert shown.split(", ") == [f"{name} (1)" for name in fields[: min(count, 50)]]
        assert others == ("10 more" if count == 60 else "")
        nulls = eval(line.removeprefix("nulls="))
        rest = {"*": "auto"} if count == 60 else {}
        assert nulls == {**dict.fromkeys(fields[: min(count, 50)], "mask"), **rest}
        assert xt.struct.constant(records, nulls=nulls).to_py() == records


@pytest.mark.parametrize(
    ("lists", "value", "expected"),
    [
        ([[], None, [None], [1]], 0, [[], [], [0], [1]]),
        ([[[]], None, [None], [[None, 2]]], 0, [[[]], [], [[]], [[0, 2]]]),
        ([["a"], None, [None]], "", [["a"], [], [""]]),
    ],
)
def test_one_value_for_all_fields_makes_null_lists_empty_as_fill_does(lists, value, expected):
    records = [{"l": each} for each in lists]
    filled = xt.struct.constant(records, nulls=xt.fill(value))["l"]
    assert filled.to_list() == tf.ragged.constant(expected).to_list()
    masked = xt.struct.constant(records, nulls="mask")["l"]
    assert masked.fill(value).to_list() == filled.to_list()
    with pytest.raises(xt.errors.NullError):
        xt.struct.constant([{"l": None}, {"l": [{"x": 1}]}], nulls=xt.fill(0))


PAIRS = pa.list_(pa.int16(), 2)
RECORD = pa.struct([("a", pa.int8()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("arrow", "rows"),
    [
        (PAIRS, [[1, None], None, [3, 4]]),
        (PAIRS, [None, None]),
        (pa.list_(PAIRS, 1), [[[1, 2]], [None], None]),
        (pa.list_(PAIRS), [[[1, 2], None], None, []]),
        (pa.list_(pa.list_(pa.string()), 2), [None, [["a"], []], [None, ["b", None]]]),
        (pa.list_(pa.list_(pa.list_(pa.int8())), 3), [None, [None, None, [None]]]),
        (pa.list_(RECORD, 2), [[{"a": 1, "b": "x"}, None], None]),
        (pa.list_(pa.timestamp("s"), 1), [None, [None], [dt.datetime(2026, 1, 1)]]),
        (pa.struct([("f", PAIRS)]), [None, {"f": None}, {"f": [1, 2]}]),
        (pa.list_(pa.list_(RECORD), 2), [None, [[{"a": 1, "b": "x"}], None]]),
    ],
    ids=str,
)
def test_null_lists_of_a_fixed_size_come_back_as_arrow_has_them(arrow, rows):
    table = pa.table({"x": pa.array(rows, arrow)})
    spec = xt.spec_from_schema(table.schema, nulls="mask")
    records = spec.cast([{"x": row} for row in rows])
    assert pa.table(xt.to_arrow(records)).equals(table)
    assert records.to_py() == table.to_pylist()
    if arrow == PAIRS:
        with pytest.raises(xt.errors.StructureError, match="x, record 1: expected a list of 2"):
            spec.cast([{"x": None}, {"x": [1]}])


def test_times_in_dictionaries_in_lists_come_back():
    days = pa.array([dt.date(2026, 1, 1), None], pa.date32()).dictionary_encode()
    table = pa.table({"x": pa.ListArray.from_arrays(pa.array([0, None, 2], pa.int32()), days)})
    records = xt.from_arrow(table, nulls="mask")
    assert xt.spec_of(records).cast(records.to_py()).to_py() == table.to_pylist()
