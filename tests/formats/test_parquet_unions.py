"""Unions through Parquet, which has none: they come back as they were, wherever they are."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings

import extensor as xt
from tests.samples.arrow_strategies import exactly, schemas_and_records, storable_types

ROWS = [
    {"id": 1, "u": "text", "us": [1, "a"], "r": {"n": {"x": 1}}, "steps": [{"k": [1]}, {"k": "z"}]},
    {"id": 2, "u": True, "us": [], "r": {"n": 2}, "steps": []},
    {"id": 3, "u": None, "us": ["b", None], "r": {"n": None}, "steps": [{"k": [2, 3]}]},
    {"id": 4, "u": False, "us": None, "r": None, "steps": None},
]


def records(rows=tuple(ROWS)):
    return xt.struct.constant(list(rows), nulls="mask", conflicts="union")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rows.parquet"
    xt.write_parquet(records(), path)
    return path


def test_unions_come_back_everywhere(path):
    again = xt.read_parquet(path, nulls="mask")
    assert again.to_py() == ROWS
    assert xt.spec_of(again) == xt.spec_of(records())
    assert xt.to_arrow(again).schema == xt.to_arrow(records()).schema
    by_spec = xt.read_parquet(path, schema=xt.spec_of(records()))
    assert by_spec.to_py() == ROWS
    assert xt.spec_of(by_spec) == xt.spec_of(records())


def test_other_readers_see_records_with_the_variant_and_its_value(path):
    rows = pq.read_table(path).to_pylist()
    assert [row["u"] for row in rows] == [
        {"variant": 0, "string": "text", "bool": None, "null": None},
        {"variant": 1, "string": None, "bool": True, "null": None},
        {"variant": 2, "string": None, "bool": None, "null": None},
        {"variant": 1, "string": None, "bool": False, "null": None},
    ]


@pytest.mark.parametrize("columns", [None, ["u"], ["id", "steps"], ["us", "r.n"], ["steps.k"]])
def test_columns_with_unions_are_chosen(path, columns):
    read = xt.read_parquet(path, columns, nulls="mask")
    expected = records() if columns is None else records().with_only(*columns)
    assert read.to_py() == expected.to_py()


def test_records_beside_unions_are_filtered(path):
    read = xt.read_parquet(path, filters=[("id", ">", 2)], nulls="mask")
    assert read.to_py() == ROWS[2:]


def test_streams_have_the_same_unions(tmp_path):
    path = tmp_path / "many.parquet"
    xt.write_parquet((records(ROWS[i : i + 1] * 3 + ROWS) for i in range(1)), path)
    rows = ROWS[:1] * 3 + ROWS
    batches = xt.data.parquet(path, 2, nulls="mask")
    assert [row for batch in batches for row in batch.to_py()] == rows
    files = xt.data.parquet([path, path], 4, nulls="mask", columns=["u", "us"])
    assert [row["u"] for batch in files for row in batch.to_py()] == [row["u"] for row in rows * 2]


def test_partitioned_folders_have_unions(tmp_path):
    one = records(ROWS[:2]).with_updates(kind=["a", "b"])
    kept = one.without("steps")
    xt.write_parquet(kept, tmp_path / "folder", partition_by=["kind"])
    again = xt.read_parquet(tmp_path / "folder", nulls="mask")
    assert again["u"].to_py() == one["u"].to_py()


def test_files_that_are_damaged_name_the_file(tmp_path):
    path = tmp_path / "rows.parquet"
    xt.write_parquet(records(ROWS[:2])[["u"]], path)
    table = pq.read_table(path)
    rows = table.to_pylist()
    rows[0]["u"]["variant"] = 9
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
    with pytest.raises(xt.errors.FormatError, match=r"rows\.parquet.*variant 9 of 3"):
        xt.read_parquet(path, nulls="mask")


@pytest.mark.whole("draws many values")
@settings(suppress_health_check=[*settings.default.suppress_health_check,
                                 HealthCheck.function_scoped_fixture])  # fmt: skip
@given(schemas_and_records(nulls=True, types=storable_types))
def test_unions_of_any_schema_come_back(tmp_path, case):
    schema, data = case
    assume(schema.names)
    masked = xt.from_arrow(data, nulls="mask")
    path = tmp_path / "any.parquet"
    xt.write_parquet(masked, path)
    again = xt.read_parquet(path, nulls="mask")
    assert again.to_py() == masked.to_py() or exactly(pa.table(again)) == exactly(pa.table(masked))
