"""Records of polars, DuckDB and nanoarrow, in and out by the Arrow PyCapsule interface."""

import duckdb
import nanoarrow as na
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from tests.samples.tables import tables

TABLE = pa.table(
    {
        "title": ["bread", "tea", "soup"],
        "minutes": [90, 5, 30],
        "steps": [[{"tool": "oven"}], [], [{"tool": "pot"}, {"tool": "spoon"}]],
        "origin": [{"country": "DE", "year": 1900}] * 3,
    }
)
ROWS = TABLE.to_pylist()


@given(tables(), st.integers(0, 3))
def test_frames_of_polars_come_in_and_go_out(table, start):
    frame = pl.from_arrow(table)[start:]
    expected = frame.to_dicts()
    records = xt.from_arrow(frame)
    assert records.to_py() == expected
    assert xt.read_arrow(frame).to_py() == expected
    assert pl.DataFrame(records).equals(frame)


def test_a_lazy_frame_of_polars_is_an_error_that_says_collect():
    with pytest.raises(xt.errors.DTypeError, match=r"got a LazyFrame, .*data\.collect\(\)"):
        xt.from_arrow(pl.LazyFrame({"a": [1]}))


def test_python_objects_of_polars_are_an_error():
    frame = pl.DataFrame({"x": [1], "a": pl.Series([object()], dtype=pl.Object)})
    for read in (xt.from_arrow, xt.read_arrow):
        with pytest.raises(xt.errors.UnsupportedTypeError, match=r"^a: .*Object of polars"):
            read(frame)
    assert xt.from_arrow(frame.drop("a")).to_py() == [{"x": 1}]


def test_kinds_of_polars():
    frame = pl.DataFrame(
        {
            "category": pl.Series(["a", "b"], dtype=pl.Categorical),
            "enum": pl.Series(["a", "b"], dtype=pl.Enum(["b", "a"])),
            "pairs": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2)),
            "time": pl.Series([1, 2]).cast(pl.Datetime("ns", "UTC")),
            "some": [None, 1],
        }
    )
    records = xt.from_arrow(frame, nulls={"some": "mask"})
    assert records["pairs"].shape == [2, 2]
    assert records["category"].numpy().tolist() == [b"a", b"b"]
    again = pl.DataFrame(records)
    assert again.to_dicts() == frame.to_dicts()
    assert again.schema["enum"] == frame.schema["enum"]
    assert again.schema["time"] == frame.schema["time"]
    with pytest.raises(xt.errors.UnsupportedTypeError, match="Int128 of polars"):
        xt.from_arrow(pl.DataFrame({"x": pl.Series([1]).cast(pl.Int128)}))


@pytest.fixture
def database():
    with duckdb.connect() as connection:
        connection.register("recipes", TABLE)
        yield connection


def test_relations_of_duckdb_come_in(database):
    assert xt.from_arrow(database.sql("select * from recipes")).to_py() == ROWS
    reader = database.sql("select * from recipes where minutes > 9").to_arrow_reader(1)
    assert xt.read_arrow(reader, columns=["title"]).to_py() == [
        {"title": "bread"},
        {"title": "soup"},
    ]


def test_kinds_of_duckdb(database):
    kinds = ["map {'a': 1} as m", "[1, 2]::int[2] as f", "'x'::enum('x') as e", "[[1], []] as l"]
    expected = {"m": [{"key": "a", "value": 1}], "f": [1, 2], "e": "x", "l": [[1], []]}
    assert xt.from_arrow(database.sql(f"select {', '.join(kinds)}")).to_py() == [expected]


def test_records_are_a_table_of_duckdb(database):
    records = xt.from_arrow(TABLE)
    found = database.sql("select title, steps[1].tool from records where minutes < 50")
    assert found.fetchall() == [("tea", None), ("soup", "pot")]
    assert database.from_arrow(records).fetchall() == [
        tuple(row.values()) for row in TABLE.to_pylist()
    ]


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_arrays_and_streams_of_nanoarrow_come_in(batch):
    batches = TABLE.to_batches(batch)
    assert xt.from_arrow(na.ArrayStream(pa.Table.from_batches(batches))).to_py() == ROWS
    assert xt.read_arrow([na.Array(each) for each in batches]).to_py() == ROWS
    assert xt.from_arrow(na.Array(batches[0])).to_py() == ROWS[:batch]


def test_nanoarrow_takes_records():
    records = xt.from_arrow(TABLE)
    assert na.Array(records).to_pylist() == TABLE.to_pylist()
    assert na.ArrayStream(records).read_all().to_pylist() == TABLE.to_pylist()
