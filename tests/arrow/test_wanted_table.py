"""`columns`, `schema`, `nulls` and `row_splits_dtype` of all functions that read records."""

import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor._arrow.arrow_type import map_types
from extensor._arrow.wanted_table import WantedTable

TABLE = pa.table(
    {
        "id": [1, 2],
        "score": [1.0, None],
        "steps": [[{"minutes": 5, "tools": ["pot", "pan"]}], []],
        "dotted.name": ["a", "b"],
    }
)


def test_all_is_read_without_arguments():
    table = TABLE.drop_columns(["score"])
    assert WantedTable().records(table).to_py() == xt.from_arrow(table).to_py()


def test_columns_are_pruned_below_lists_and_come_in_their_order():
    wanted = WantedTable(["steps.minutes", "id", "dotted.name"])
    assert wanted.records(TABLE).to_py() == [
        {"steps": [{"minutes": 5}], "id": 1, "dotted.name": "a"},
        {"steps": [], "id": 2, "dotted.name": "b"},
    ]
    assert wanted.spec(TABLE.schema).is_compatible_with(wanted.records(TABLE))


def test_an_arrow_schema_casts_selects_and_orders():
    schema = pa.schema({"steps": pa.list_(pa.struct({"minutes": pa.int16()})), "id": pa.float32()})
    records = WantedTable(schema=schema).records(TABLE)
    assert records["steps.minutes"].dtype == tf.int16
    assert records.to_py() == [{"steps": [{"minutes": 5}], "id": 1.0}, {"steps": [], "id": 2.0}]
    assert WantedTable(schema=schema).spec() == WantedTable().spec(schema)


def test_a_spec_decides_masks_dtypes_and_row_splits():
    first = xt.from_arrow(TABLE, row_splits_dtype=tf.int32, nulls={"score": "mask"})
    spec = xt.spec_from_schema(TABLE.schema, None, tf.int32, {"score": "mask"})
    records = WantedTable(schema=spec).records(TABLE)
    assert xt.spec_of(records) == xt.spec_of(first)
    assert records.to_py() == first.to_py()
    assert WantedTable(schema=spec).spec() == spec
    with pytest.raises(errors.NullError, match="score"):
        WantedTable(schema=spec, nulls="error").records(TABLE)


def test_the_spec_of_records_fits_any_number_of_others():
    first = xt.from_arrow(TABLE, nulls={"score": "mask"})
    wanted = WantedTable(schema=xt.spec_of(first))
    assert wanted.records(TABLE.slice(1)).to_py() == first[1:].to_py()
    assert wanted.records(pa.concat_tables([TABLE] * 3)).shape == [3 * len(TABLE)]


def test_columns_of_a_schema_are_chosen():
    wanted = WantedTable(["id"], TABLE.schema)
    assert wanted.schema == pa.schema({"id": pa.int64()})
    assert wanted.records(TABLE).to_py() == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"schema": {"id": int}}, TypeError, "schema: expected the spec of a StructuredTensor, or"),
        ({"schema": pa.schema({"x": pa.int8()})}, KeyError, "x: expected one column of this name"),
        (
            {"schema": pa.schema({"id": pa.list_(pa.int8())})},
            TypeError,
            "id: expected values of Arrow type list<item: int8>, as schema= says, got",
        ),
        ({"columns": ["x"]}, KeyError, "x: expected one of the columns id, score"),
        ({"columns": "id"}, TypeError, "columns: expected a list of paths"),
        ({"nulls": "skip"}, ValueError, "nulls"),
        ({"row_splits_dtype": tf.float32}, TypeError, "row_splits_dtype"),
    ],
)
def test_bad_arguments_are_errors(arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        WantedTable(**arguments).records(TABLE)
    assert isinstance(caught.value, errors.ExtensorError)


def test_a_spec_of_some_records_reads_any_number():
    table = TABLE.drop_columns(["score"])
    spec = xt.spec_of(WantedTable().records(table.slice(0, 1)))
    records = WantedTable(schema=spec).records(table)
    assert records.to_py() == xt.from_arrow(table).to_py()


@pytest.mark.parametrize(
    ("wide", "rows"),
    [
        (pa.float64(), [1e39, None]),
        (pa.list_(pa.float64()), [[0.5, 1e39], None]),
        (pa.struct([("a", pa.float64())]), [None, {"a": -1e39}]),
        (pa.map_(pa.string(), pa.float64()), [None, [("a", 1e39)]]),
    ],
    ids=str,
)
def test_a_number_that_a_cast_would_make_infinite_is_an_error(wide, rows):
    narrow = map_types(wide, {pa.float64(): pa.float32()}.get)
    table = pa.table({"x": pa.array(rows, wide)})
    schema = pa.schema({"x": narrow})
    with pytest.raises(xt.errors.DTypeError, match=r"x: .*\(a number is too large\)"):
        xt.from_arrow(table, schema=schema, nulls="mask")


def test_infinite_numbers_stay_infinite():
    table = pa.table({"x": pa.chunked_array([[], [float("inf")], [1.5]], pa.float64())})
    records = xt.from_arrow(table, schema=pa.schema({"x": pa.float32()}))
    assert records.to_py() == table.to_pylist()


S, MS = pa.timestamp("s"), pa.timestamp("ms")
AGO = pa.MonthDayNano([1, -2, 3])
JSON = pa.ExtensionArray.from_storage(
    pa.json_(pa.large_string()), pa.array(["1", None], pa.large_string())
)
UNION = pa.UnionArray.from_sparse(
    pa.array([1, 0, 1], pa.int8()), [pa.array([0, 7000, 0], MS), pa.array([1.5, 2.5, None])]
)


@pytest.mark.parametrize(
    ("column", "arrow"),
    [
        (pa.array([7000, None, 7000], MS), pa.dictionary(pa.int8(), S, ordered=True)),
        (pa.array([5, None, 5]), pa.run_end_encoded(pa.int16(), pa.int8())),
        (pa.array([[7000, None], None, []], pa.list_(MS)), pa.list_view(S)),
        (pa.array([[1], None, [2, 3]], pa.list_view(pa.int64()))[1:], pa.large_list(pa.int8())),
        (pa.array([None, [[1], [2, 3]]], pa.list_(pa.list_(pa.int64()), 2)),
         pa.list_(pa.list_view(pa.int8()), 2)),
        (pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
         pa.map_(pa.string(), pa.dictionary(pa.int8(), pa.int8()))),
        (pa.array([{"x": [None]}, None], pa.struct({"x": pa.list_(pa.null())})),
         pa.struct({"x": pa.list_view(pa.float32())})),
        (pa.StructArray.from_arrays([JSON], ["j"]), pa.struct({"j": pa.json_()})),
        (pa.StructArray.from_arrays([pa.array([AGO]), pa.array([1])], ["i", "n"]),
         pa.struct({"i": pa.month_day_nano_interval(), "n": pa.int8()})),
        (UNION, pa.sparse_union([pa.field("0", S), pa.field("1", pa.float32())], [0, 1])),
    ],
    ids=lambda value: str(value.type if isinstance(value, pa.Array) else value),
)  # fmt: skip
def test_types_that_arrow_has_no_cast_to(column, arrow):
    table = pa.table({"x": column})
    records = xt.from_arrow(table, schema=pa.schema({"x": arrow}), nulls="mask")
    assert xt.to_arrow(records)["x"].type == arrow
    assert xt.to_arrow(records)["x"].to_pylist() == column.to_pylist()
    written = xt.to_arrow(xt.from_arrow(table, nulls="mask"), pa.schema({"x": arrow}))
    assert written["x"].to_pylist() == column.to_pylist()


def test_lists_of_pairs_are_maps():
    """In awkward and in Parquet of other programs, a map is a list of records."""
    pairs = [[{"key": "a", "value": 1}, {"key": "b", "value": None}], None, []]
    arrow = pa.map_(pa.large_string(), pa.int8())
    schema = pa.schema({"x": arrow})
    records = xt.from_arrow(pa.table({"x": pairs}), schema=schema, nulls="mask")
    assert xt.to_arrow(records)["x"].type == arrow
    assert xt.to_arrow(records)["x"].to_pylist() == [[("a", 1), ("b", None)], None, []]
    for other in ([[{"key": None, "value": 1}]], [[{"x": "a", "value": 1}]]):
        with pytest.raises(errors.DTypeError, match="x: expected values of Arrow type"):
            xt.from_arrow(pa.table({"x": other}), schema=schema, nulls="mask")


def test_types_of_other_structure_stay_errors():
    names = [pa.field("1", S), pa.field("0", pa.float64())]
    for column, arrow in [(UNION, pa.sparse_union(names, [0, 1])),
                          (pa.array([[1, 2]]), pa.map_(pa.string(), pa.int64())),
                          (pa.array([300]), pa.dictionary(pa.int8(), pa.int8())),
                          (pa.array([1e39]), pa.dictionary(pa.int8(), pa.float32()))]:  # fmt: skip
        with pytest.raises(errors.DTypeError, match="x: expected values of Arrow type"):
            xt.from_arrow(pa.table({"x": column}), schema=pa.schema({"x": arrow}), nulls="mask")
