"""Records from and to a real PostgreSQL server."""

import datetime
import decimal
import json
from importlib.metadata import version

import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from demo import cities
from extensor import errors
from tests.formats import postgres

OLD_DRIVER = tuple(map(int, version("adbc-driver-postgresql").split(".")[:2])) < (1, 13)

pytestmark = pytest.mark.whole("needs a server")


@pytest.fixture(scope="module")
def server():
    with postgres.server() as running:
        yield running


@pytest.fixture
def connection(server):
    with server.connect() as connection:
        yield connection


def test_columns_of_all_types_are_read(connection):
    query = """
        select i, i::int8 as long, i::float4 as f, i = 1 as b, 'naïve' || i as t,
               '\\x00ff'::bytea as y,
               array[i, i + 1] as a, timestamp '2020-01-01' as ts, date '1970-01-03' as d,
               1.50::numeric as n, case when i = 1 then 'x' end as z
        from generate_series(1, 2) i"""
    found = xt.read_database(query, connection, nulls={"z": "mask"})
    assert found["i"].dtype == tf.int32
    assert found["f"].dtype == tf.float32
    assert found.to_py()[1] == {
        "i": 2, "long": 2, "f": 2.0, "b": False, "t": "naïve2", "y": b"\x00\xff",
        "a": [2, 3], "ts": datetime.datetime(2020, 1, 1), "d": datetime.date(1970, 1, 3),
        "n": "1.50", "z": None,
    }  # fmt: skip
    with pytest.raises(errors.NullError, match=r"z: .*record 1"):
        xt.read_database(query, connection)
    few = xt.read_database(query, connection, ["a", "i"], nulls={"i": 0})
    assert few.to_py() == [{"a": [1, 2], "i": 1}, {"a": [2, 3], "i": 2}]


def test_parameters_are_bound(connection):
    found = xt.read_database("select $1::text as t", connection, params=["'; drop"])
    assert found.to_py() == [{"t": "'; drop"}]


def test_arrays_of_several_dimensions_are_not_flattened(connection):
    query = "select i, case when i = 3 then array[[1, 2], [3, 4]] else array[1] end as a "
    query += "from generate_series(1, 4) i;"
    given = query.replace("i;", "i where i > $1")
    for each, params in [
        (query, None), (f"-- all\n /* of\n them */ ({query[:-1]})", None), (given, [0]),
    ]:  # fmt: skip
        with pytest.raises(errors.UnsupportedTypeError, match=r"a: .*2 dimensions in record 2"):
            xt.read_database(each, connection, params=params)
    assert xt.read_database(given, connection, params=[3]).to_py() == [{"i": 4, "a": [1]}]
    found = xt.read_database(query.replace("i;", "i where i < 3 -- few"), connection)
    assert found.to_py() == [{"i": 1, "a": [1]}, {"i": 2, "a": [1]}]


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_infinite_times_are_no_early_ones(connection, kind):
    first = f"'4714-11-24 BC'::{kind}"
    query = f"select {first} as t union all select '{{}}'::{kind}"
    assert len(xt.read_database(f"select {first} as t", connection)) == 1
    for infinite in ("infinity", "-infinity"):
        with pytest.raises(errors.UnsupportedTypeError, match=r"t: .*infinity in record 1"):
            xt.read_database(query.format(infinite), connection)
    query = f"select array[]::{kind}[] as t union all select array[{first}, null, 'infinity']"
    with pytest.raises(errors.UnsupportedTypeError, match=r"t: .*infinity in record 1"):
        xt.read_database(query, connection, nulls="mask")


def test_records_come_back_in_order_in_batches(connection):
    query = "select i, repeat('x', i % 7) as s from generate_series(1, 100000) i order by i"
    batches = list(xt.read_database(query, connection, batch_size=30_000))
    assert [len(batch) for batch in batches] == [30_000, 30_000, 30_000, 10_000]
    found = tf.concat([batch["i"] for batch in batches], 0)
    assert found.numpy().tolist() == list(range(1, 100_001))


def test_a_query_that_fails_is_a_named_error(connection):
    with pytest.raises(errors.DatabaseError, match=r'query: .*column "nope" does not exist'):
        xt.read_database("select nope", connection)
    connection.rollback()
    late = "select 1 / (100000 - i) as x from generate_series(1, 200000) i"
    with pytest.raises(errors.DatabaseError, match="division by zero"):
        xt.read_database(late, connection)
    connection.rollback()
    with pytest.raises(errors.DatabaseError, match="division by zero"):
        list(xt.read_database(late, connection, batch_size=10))
    connection.rollback()
    assert xt.read_database("select 1 as x", connection).to_py() == [{"x": 1}]


def test_wrong_credentials_are_a_named_error_without_the_password(server):
    uri = server.uri.replace(postgres.PASSWORD, "wrong-password")
    with pytest.raises(errors.DatabaseError, match="authentication failed") as caught:
        xt.read_database("select 1", uri)
    assert "wrong-password" not in str(caught.value)


def test_permission_denied_is_a_named_error(connection):
    xt.read_database("select 1 as x", connection)
    with connection.cursor() as cursor:
        cursor.execute("create role reader")
        cursor.execute("create table hidden as select 1 as x")
        cursor.execute("set role reader")
    with pytest.raises(errors.DatabaseError, match="permission denied"):
        xt.read_database("select * from hidden", connection)
    connection.rollback()


def test_a_server_that_is_killed_is_an_error_not_a_short_result():
    with postgres.server() as running, running.connect() as connection:
        query = "select i, repeat('x', 1000) as s from generate_series(1, 300000) i"
        batches = xt.read_database(query, connection, batch_size=1000)
        assert next(batches)["i"].numpy().tolist() == list(range(1, 1001))
        running.kill()
        with pytest.raises(errors.DatabaseError, match=r"query: .*(server|connection)"):
            list(batches)


def test_records_are_written_and_come_back(connection):
    rows = xt.struct.constant(
        [{"i": 1, "t": "a", "f": 0.5, "l": [1, 2], "n": None},
         {"i": 2, "t": "b", "f": 1.5, "l": [], "n": 3}],
        nulls="mask",
    )  # fmt: skip
    table = '"Odd "" name"'.replace('""', '\\"')
    xt.write_database(rows, table, connection)
    query = 'select * from "Odd "" name" order by i'
    found = xt.read_database(query, connection, nulls={"n": "mask"})
    assert found.to_py() == rows.to_py()
    with pytest.raises(errors.DatabaseError, match="exists"):
        xt.write_database(rows, table, connection)
    xt.write_database([rows, rows], table, connection, if_exists="append")
    assert len(xt.read_database(query, connection, ["i"])) == 6
    xt.write_database(rows[:1], table, connection, if_exists="replace")
    assert xt.read_database(query, connection, ["i"]).to_py() == [{"i": 1}]


@pytest.mark.parametrize(
    ("array", "column", "wanted"),
    [
        (pa.array([5]), "float8", 5.0),
        (pa.array([2**53 + 1]), "float8", None),
        (pa.array([5], pa.int32()), "float4", 5.0),
        (pa.array([2.0]), "bigint", 2),
        (pa.array([1.5]), "bigint", None),
        (pa.array([[5]]), "float8[]", [5.0]),
        (pa.array([5], pa.int8()), "integer", 5),
        (pa.array([2**64 - 1], pa.uint64()), None, None),
        (pa.array([2**63 - 1], pa.uint64()), None, 2**63 - 1),
        (pa.array([5], pa.timestamp("ns")), None, None),
        (pa.array([[5]], pa.list_(pa.timestamp("ns"))), None, None),
        (pa.array([5], pa.time64("ns")), None, None),
        (pa.array([5], pa.duration("ns")), None, None),
        (pa.array([5], pa.timestamp("s")), "timestamptz", None),
        (pa.array([5], pa.timestamp("s")), "date", None),
        (pa.array([5], pa.timestamp("s")), "timestamp", datetime.datetime(1970, 1, 1, 0, 0, 5)),
        (pa.array([5], pa.date32()), "integer", None),
        (pa.array([5]), "timestamp", None),
        (pa.array([5]), "bytea", None),
        (pa.array([5]), "numeric", "5"),
        (pa.array([decimal.Decimal("1.5")]), "numeric", "1.5"),
        (pa.array([decimal.Decimal("1.5")]), "float8", 1.5),
        (pa.array(["é"]), "varchar", "é"),
        (pa.array(["{}"]), "json", "{}"),
        (pa.array([b"a"]), "text", "a"),
        (pa.array([True]), "boolean", True),
        (pa.array([1]), "boolean", None),
    ],
)
def test_a_column_has_the_value_or_there_is_an_error(connection, array, column, wanted):
    with connection.cursor() as cursor:
        cursor.execute("drop table if exists it")
        if column is not None:
            cursor.execute(f"create table it(v {column})")
    connection.commit()
    rows = xt.from_arrow(pa.table({"v": array}))
    if wanted is None:
        error, text = errors.DTypeError, "^v: expected "
        if array.type == pa.time64("ns") and OLD_DRIVER:  # makes no table for it
            error, text = errors.DatabaseError, "InitFieldWriters"
        with pytest.raises(error, match=text):
            xt.write_database(rows, "it", connection, if_exists="append")
        wanted = []
    else:
        xt.write_database(rows, "it", connection, if_exists="append")
        wanted = [wanted]
    if column is None and not wanted:
        with pytest.raises(errors.DatabaseError, match="does not exist"):
            xt.read_database("select * from it", connection)
        connection.rollback()
        return
    found = xt.to_arrow(xt.read_database("select * from it", connection))["v"].to_pylist()
    assert found == wanted


def test_an_error_writes_nothing(connection):
    rows = xt.struct.constant([{"i": 1}])
    with pytest.raises(errors.StructureError, match="one schema"):
        xt.write_database([rows, xt.struct.constant([{"j": 1}])], "partial", connection)
    with pytest.raises(errors.DatabaseError, match="does not exist"):
        xt.read_database("select * from partial", connection)
    connection.rollback()
    nested = xt.struct.constant([{"i": 1, "r": {"x": 1}}])
    with pytest.raises(errors.DatabaseError, match="table partial"):
        xt.write_database(nested, "partial", connection)


def test_cities_are_written_and_read_back(connection):
    rows = list(json.loads(cities.source().read_bytes()).values())[:3000]
    records = xt.struct.constant(rows)
    xt.write_database(records, "public.cities", connection)
    found = xt.read_database("select * from cities", connection, schema=xt.spec_of(records))
    assert found.to_py() == records.to_py()
    with connection.cursor() as cursor:
        cursor.execute("select sum(population) as people from cities")
        assert cursor.fetchone()[0] == sum(row["population"] for row in rows)
    schema = pa.schema({"geonameid": pa.int64(), "name": pa.binary()})
    wide = xt.read_database("select * from cities", connection, schema=schema)
    assert wide["geonameid"].numpy().tolist() == [row["geonameid"] for row in rows]
