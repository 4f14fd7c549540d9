"""Data without any record, of each Arrow type, is read at each door."""

import pyarrow as pa
import pytest

import extensor as xt
from extensor._arrow.nulls import empty_batch, nulls_of

RUNS = pa.run_end_encoded(pa.int32(), pa.int64())
UNION = pa.dense_union([pa.field("a", pa.int64()), pa.field("b", pa.list_(RUNS))])
TYPES = [
    pa.int64(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
    RUNS,
    UNION,
    pa.sparse_union([pa.field("a", RUNS), pa.field("b", pa.string())]),
    pa.union([pa.field("a", pa.int64()), pa.field("b", pa.string())], "dense", [3, 5]),
    pa.list_(RUNS),
    pa.large_list(UNION),
    pa.list_(RUNS, 2),
    pa.list_view(RUNS),
    pa.map_(pa.string(), UNION),
    pa.struct([("u", UNION), ("r", RUNS)]),
    pa.run_end_encoded(pa.int32(), pa.list_(pa.int64())),
    pa.list_(pa.dictionary(pa.int32(), pa.string())),
    pa.fixed_shape_tensor(pa.int32(), [2, 2]),
]


@pytest.mark.parametrize(
    "arrow", [*TYPES, pa.list_(pa.uuid()), pa.struct([]), pa.map_(pa.string(), RUNS)], ids=str
)
def test_an_empty_array_has_its_type(arrow):
    array = nulls_of(arrow, 0)
    array.validate(full=True)
    assert (array.type, len(array), len(pa.concat_arrays([array, array]))) == (arrow, 0, 0)


def of_file(schema, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema):
        pass
    return xt.read_arrow(path)


DOORS = {
    "a table": lambda schema, _: xt.from_arrow(pa.Table.from_batches([], schema)),
    "a reader": lambda schema, _: xt.from_arrow(pa.RecordBatchReader.from_batches(schema, [])),
    "a batch": lambda schema, _: xt.from_arrow(empty_batch(schema)),
    "a file": of_file,
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("arrow", TYPES, ids=str)
def test_no_batches_are_no_records(arrow, door, tmp_path):
    schema = pa.schema({"v": arrow})
    records = door(schema, tmp_path / "x.arrow")
    assert records.shape == (0,)
    assert xt.to_arrow(records, schema).equals(empty_batch(schema))


@pytest.mark.parametrize("arrow", TYPES, ids=str)
def test_datasets_of_no_batches_are_empty(arrow, tmp_path):
    schema, path = pa.schema({"v": arrow}), tmp_path / "x.arrow"
    of_file(schema, path)
    assert list(xt.data.arrow(path, 2)) == list(xt.data.batches([], schema, 2)) == []


def test_an_empty_result_of_a_query_with_a_union_is_read():
    duckdb = pytest.importorskip("duckdb")
    records = xt.read_database("select union_value(a := 1) as u where false", duckdb.connect())
    assert records.shape == (0,)
