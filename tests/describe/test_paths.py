"""The statistics of each path, against a walk over the Python objects."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._describe.paths import Statistics, number_text

RECORD = pa.struct(
    [
        ("word", pa.string()),
        ("number", pa.float64()),
        ("steps", pa.list_(pa.struct([("minutes", pa.int32()), ("tags", pa.list_(pa.string()))]))),
        ("geo", pa.struct([("lat", pa.float32())])),
    ]
)


def optional(values):
    return st.none() | values


STEPS = st.fixed_dictionaries(
    {
        "minutes": optional(st.integers(-5, 5)),
        "tags": optional(st.lists(optional(st.sampled_from("ab")), max_size=3)),
    }
)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "word": optional(st.text(max_size=2)),
            "number": optional(st.floats(-10, 10)),
            "steps": optional(st.lists(optional(STEPS), max_size=3)),
            "geo": optional(st.fixed_dictionaries({"lat": optional(st.floats(0, 1, width=32))})),
        }
    ),
    max_size=30,
)


def walk(path, arrow, values, found):
    """Collects the values of each path in Python; fields of a null record are null."""
    found[path] = found.get(path, []) + values
    if pa.types.is_struct(arrow):
        for field in arrow.fields:
            inner = [None if each is None else each[field.name] for each in values]
            walk(f"{path}.{field.name}", field.type, inner, found)
    elif pa.types.is_list(arrow):
        items = [item for each in values if each is not None for item in each]
        walk(f"{path}[*]", arrow.value_type, items, found)


def expected_of(records):
    found = {}
    for field in RECORD.fields:
        walk(field.name, field.type, [record[field.name] for record in records], found)
    return found


@given(RECORDS, st.integers(1, 7), st.integers(0, 3))
def test_counts_nulls_and_lengths_are_those_of_a_walk_over_the_objects(records, size, skip):
    # Slices have offsets, which every kind of array handles in its own way.
    whole = pa.RecordBatch.from_struct_array(pa.array(records[:1] * skip + records, RECORD))
    batch = whole.slice(skip if records else 0)
    tree = Statistics()
    for start in range(0, max(1, batch.num_rows), size):
        tree.add(batch.slice(start, size))
    expected = expected_of(records)
    assert list(tree.paths) == list(expected)
    for path, values in expected.items():
        found, present = tree.paths[path], [value for value in values if value is not None]
        assert (found.count, found.nulls) == (len(present), len(values) - len(present)), path
        if found.kind == "list":
            lengths = [len(value) for value in present]
            assert found.lengths.count == len(lengths)
            if lengths:
                assert found.lengths.quantile(0.5) == np.quantile(
                    lengths, 0.5, method="inverted_cdf"
                )
        if found.numbers is not None and present:
            assert (found.numbers.min, found.numbers.max) == (min(present), max(present))


@given(RECORDS, RECORDS)
def test_merged_trees_are_the_tree_of_the_whole(one, other):
    trees = []
    for records in (one, other, one + other):
        trees.append(Statistics())
        trees[-1].add(pa.RecordBatch.from_struct_array(pa.array(records, RECORD)))
    merged, second, whole = trees
    merged.merge(second)
    for path, expected in whole.paths.items():
        found = merged.paths[path]
        assert (found.count, found.nulls, found.kind) == (
            expected.count,
            expected.nulls,
            expected.kind,
        )
        if expected.words is not None:
            assert found.words.top() == expected.words.top()


KINDS = {
    "large list": (pa.large_list(pa.int8()), [[1, 2], None, []], "list"),
    "list view": (pa.list_view(pa.int8()), [[1, 2], None, []], "list"),
    "fixed list": (pa.list_(pa.int8(), 2), [[1, 2], None, [3, 4]], "list"),
    "map": (pa.map_(pa.string(), pa.int8()), [[("a", 1), ("b", 2)], None, []], "list"),
    "bool": (pa.bool_(), [True, None, True], "string"),
    "fixed bytes": (pa.binary(2), [b"ab", None, b"ab"], "string"),
    "string view": (pa.string_view(), ["ab", None, "ab"], "string"),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["ab", None, "ab"], "string"),
    "decimal": (pa.decimal128(5, 2), [decimal.Decimal("1.25"), None, 2], "number"),
    "half": (pa.float16(), [np.float16(1.5), None, np.float16(2)], "number"),
    "date": (pa.date32(), [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 2)], "number"),
    "time": (pa.time32("s"), [datetime.time(1), None, datetime.time(2)], "number"),
    "duration": (pa.duration("s"), [datetime.timedelta(1), None, datetime.timedelta(2)], "number"),
    "null": (pa.null(), [None, None, None], "other"),
    "interval": (pa.month_day_nano_interval(), [(1, 2, 3), None, (1, 2, 3)], "other"),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_type_of_arrow_is_described(name):
    arrow, values, kind = KINDS[name]
    for array in (pa.array(values, arrow), pa.array([*values, *values], arrow).slice(3)):
        found = xt.data.describe(pa.table({"x": array}))["x"]
        assert found.kind == kind
        assert found.nulls == sum(value is None for value in values)
        assert found.count == len(values) - found.nulls


def test_maps_are_lists_of_keys_and_values_also_in_a_slice():
    maps = pa.array([[("a", 1)], [("b", 2), ("c", 3)], None], pa.map_(pa.string(), pa.int8()))
    found = xt.data.describe(pa.table({"x": maps.slice(1)}))
    assert found["x[*].key"].words.top() == [("b", 1), ("c", 1)]
    assert found["x[*].value"].numbers.min == 2


def test_times_are_shown_as_times():
    when = pa.array([0, 86_400], pa.timestamp("s", "UTC"))
    found = xt.data.describe(pa.table({"when": when, "day": when.cast(pa.date32())}))
    assert found["when"].text_of(found["when"].numbers.max) == "1970-01-02 00:00:00Z"
    assert found["day"].text_of(found["day"].numbers.max) == "1970-01-02"
    assert found["when"].text_of(2**62) == f"{2**62:,}"  # a year that no calendar here has


@pytest.mark.parametrize("mode", ["dense", "sparse"])
def test_the_variants_of_a_union_are_counted(mode):
    codes = pa.array([0, 1, 0], pa.int8())
    if mode == "dense":
        union = pa.UnionArray.from_dense(
            codes, pa.array([0, 0, 1], pa.int32()), [pa.array([1, 2]), pa.array(["a"])], ["i", "s"]
        )
    else:
        children = [pa.array([1, 0, 2]), pa.array(["", "a", ""])]
        union = pa.UnionArray.from_sparse(codes, children, ["i", "s"])
    for array, count in ((union, 2), (union.slice(1), 1)):
        smallest = 3 - count
        found = xt.data.describe(pa.table({"x": array}))
        assert dict(found["x"].words.top()) == {"i": count, "s": 1}
        assert (found["x.i"].count, found["x.i"].numbers.min) == (count, smallest)
        assert found["x.s"].words.top() == [("a", 1)]


def test_a_union_below_a_null_record_is_described(run_python):
    # pyarrow's flatten ends the process there.
    run_python(
        """
        import pyarrow as pa
        import extensor as xt
        union = pa.UnionArray.from_sparse(
            pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])], ["i", "s"]
        )
        records = pa.StructArray.from_arrays([union], ["u"], mask=pa.array([True, False]))
        found = xt.data.describe(pa.table({"x": records}))
        assert found["x"].nulls == 1
        assert dict(found["x.u"].words.top()) == {"s": 1}
        """
    )


def test_a_type_that_changes_between_batches_is_an_error_and_null_is_not():
    nulls, numbers = pa.table({"x": pa.nulls(2)}), pa.table({"x": [1, 2, 3]})
    for parts in ([nulls, numbers], [numbers, nulls]):
        found = xt.data.describe(parts)["x"]
        assert (found.count, found.nulls, found.kind) == (3, 2, "number")
    with pytest.raises(xt.errors.DTypeError, match=r"x: expected values of type int64.*string"):
        xt.data.describe([numbers, pa.table({"x": ["a"]})])


@given(st.integers(-(2**53), 2**53), st.sampled_from(["s", "ms", "us", "ns"]))
def test_durations_are_shown_as_python_shows_them(number, unit):
    size = {"s": 10**6, "ms": 10**3, "us": 1, "ns": None}[unit]
    try:
        length = datetime.timedelta(microseconds=number // 1000 if size is None else number * size)
        wanted = f"{number:,} ns" if size is None and number % 1000 else str(length)
    except OverflowError:
        wanted = f"{number:,} {unit}"
    assert number_text(number, pa.duration(unit)) == wanted
