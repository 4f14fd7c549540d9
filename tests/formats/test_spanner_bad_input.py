"""Spanner: queries that fail, servers that end, credentials that do not work."""

import grpc
import numpy as np
import pyarrow as pa
import pytest

import extensor as xt
from tests.formats import emulators
from tests.formats.test_spanner import client, create, new_database

pytestmark = [
    pytest.mark.whole("needs a server"),
    pytest.mark.together("servers"),
]

spanner = pytest.importorskip("google.cloud.spanner", reason="google-cloud-spanner is missing")

COUNT = 6_000


@pytest.fixture(scope="module")
def database():
    made = new_database(
        emulators.spanner(), create("rows_", {"k": "INT64 NOT NULL", "x": "STRING(MAX)"})
    )
    table = pa.table({"k": np.arange(COUNT), "x": [f"row {i} " + "x" * 300 for i in range(COUNT)]})
    xt.write_spanner(xt.from_arrow(table), "rows_", made)
    return made


@pytest.fixture
def behind_a_proxy(database):
    """The database by way of a proxy, and the proxy."""
    proxy = emulators.Proxy(emulators.spanner())
    instance = client(proxy.address).instance("instance")
    yield instance.database(database.database_id), proxy
    proxy.close()


ALL = "SELECT k, x FROM rows_ ORDER BY k"


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("SELEC 1", xt.errors.QueryError, "Syntax error"),
        ("", xt.errors.QueryError, "Syntax error"),
        ("SELECT * FROM nowhere", xt.errors.QueryError, "Table not found: nowhere"),
        ("SELECT nothing FROM rows_", xt.errors.QueryError, "Unrecognized name: nothing"),
        ("SELECT ERROR('the reason') AS x", xt.errors.QueryError, "the reason"),
        ("SELECT IF(k < 5000, 1, ERROR('late')) AS x FROM rows_", xt.errors.QueryError, "late"),
        ("SELECT @missing AS x", xt.errors.QueryError, "missing"),
        ("SELECT 1 AS a, 2 AS a", xt.errors.StructureError, "2 columns with the name 'a'"),
        ("SELECT 1", xt.errors.StructureError, "no name for column 1"),
        ("SELECT STRUCT(1 AS a) AS s", xt.errors.QueryError, "struct value cannot be returned"),
        ("SELECT [STRUCT(1)] AS a", xt.errors.StructureError, "no name for column 1"),
        ("INSERT INTO rows_ (k) VALUES (-1)", xt.errors.QueryError, "DML"),
    ],
)
def test_a_query_that_fails(database, query, error, message):
    with pytest.raises(error, match=f"(?s)^(read_spanner|a): .*{message}"):
        xt.read_spanner(database, query)


def test_a_statement_without_rows(database):
    def insert(transaction):
        with pytest.raises(xt.errors.QueryError, match="returns no rows"):
            xt.read_spanner(transaction, "INSERT INTO rows_ (k) VALUES (-1)")
        transaction.rollback()

    with pytest.raises(Exception, match=r"(?i)rolled back|committed"):
        database.run_in_transaction(insert)


def test_columns_and_schemas_that_the_result_does_not_have(database):
    with pytest.raises(xt.errors.FieldError, match="nothing"):
        xt.read_spanner(database, "SELECT 1 AS x", columns=["nothing"])
    with pytest.raises(xt.errors.FieldError, match=r"y: .*the columns x"):
        xt.read_spanner(database, "SELECT 1 AS x", schema=pa.schema({"y": pa.int64()}))
    with pytest.raises(xt.errors.DTypeError, match=r"x: .*int8"):
        xt.read_spanner(database, "SELECT 300 AS x", schema=pa.schema({"x": pa.int8()}))


def test_what_is_no_database():
    with pytest.raises(xt.errors.DTypeError, match=r"Database, Snapshot.*got str"):
        xt.read_spanner("projects/a/databases/b", "SELECT 1 AS x")


def test_a_database_that_does_not_exist(database):
    other = client(emulators.spanner()).instance("instance").database("no-database")
    with pytest.raises(xt.errors.QueryError, match="Database not found"):
        xt.read_spanner(other, "SELECT 1 AS x")


def test_a_query_that_has_no_partitions(database):
    snapshot = database.batch_snapshot()
    with pytest.raises(xt.errors.QueryError, match="partition"):
        xt.read_spanner(snapshot, ALL)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([{"k": 1, "other": 2}], xt.errors.QueryError, "Column not found in table rows_: other"),
        ([{"x": "a"}], xt.errors.QueryError, "NOT NULL column: k"),
        ([{"k": 1.5}], xt.errors.DTypeError, "k: .*int64"),
        ([{"k": 1, "x": [1]}], xt.errors.DTypeError, "x: .*string"),
        ([{"k": 5, "x": "a"}], xt.errors.QueryError, "already exists"),
        ([{"k": -5, "x": "a" * 3_000_000}], xt.errors.QueryError, "size|length|limit"),
    ],
    ids=["column", "key", "float", "list", "exists", "large"],
)
def test_rows_that_the_table_does_not_take(database, rows, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        xt.write_spanner(xt.struct.constant(rows), "rows_", database)


def test_what_is_no_batch_and_no_mode(database):
    with pytest.raises(xt.errors.DTypeError, match="rank 1"):
        xt.write_spanner(xt.struct.constant({"k": 1}), "rows_", database)
    with pytest.raises(xt.errors.DTypeError, match="int"):
        xt.write_spanner(7, "rows_", database)
    with pytest.raises(xt.errors.DTypeError, match="mode"):
        xt.write_spanner(xt.struct.constant([{"k": 1}]), "rows_", database, mode="upsert")


def test_rows_of_any_size_fit_into_the_commits(database, monkeypatch):
    """Spanner refuses more than 100 MB. Many short rows must not hide a few long ones."""
    monkeypatch.setattr("extensor._formats.spanner.write._BYTES", 1_000_000)
    sizes, send = [], type(database.spanner_api).commit

    def commit(self, request, **options):
        sizes.append(type(request).pb(request).ByteSize())
        return send(self, request=request, **options)

    monkeypatch.setattr(type(database.spanner_api), "commit", commit)
    keys = [10_000 + i for i in range(2_020)]
    rows = [{"k": k, "x": "a" * (300_000 if k >= 12_000 else 1)} for k in keys]
    xt.write_spanner(xt.struct.constant(rows), "rows_", database)
    assert max(sizes) < 1_010_000
    found = xt.read_spanner(database, "SELECT k, x FROM rows_ WHERE k >= 10000 ORDER BY k")
    assert found.to_py() == rows
    with database.batch() as batch:
        batch.delete("rows_", spanner.KeySet(keys=[[k] for k in keys]))


@pytest.mark.parametrize("sent", [3_000, 200_000, 1_000_000])
def test_an_interrupted_read_gives_each_row_once(behind_a_proxy, sent):
    database, proxy = behind_a_proxy
    xt.read_spanner(database, "SELECT 1 AS x")  # opens the session
    proxy.cut_after(sent)
    read = xt.read_spanner(database, ALL)
    assert proxy.cuts == 1
    assert read["k"].numpy().tolist() == list(range(COUNT))


@pytest.mark.parametrize("sent", [1, 200_000, 1_000_000])
def test_a_server_that_ends_in_mid_stream_is_an_error(behind_a_proxy, sent):
    database, proxy = behind_a_proxy
    xt.read_spanner(database, "SELECT 1 AS x")
    proxy.cut_after(sent, for_ever=True)
    with pytest.raises(xt.errors.ServerError, match=r"^read_spanner: .*(?i:unavailable|connect)"):
        xt.read_spanner(database, ALL, timeout=1.0)
    assert proxy.cuts == 1


def test_a_server_that_ends_while_partitions_are_read(behind_a_proxy):
    database, proxy = behind_a_proxy
    snapshot = database.batch_snapshot()
    xt.read_spanner(snapshot, "SELECT k FROM rows_ WHERE k < 10")
    proxy.cut_after(100_000, for_ever=True)
    with pytest.raises(xt.errors.ServerError):
        xt.read_spanner(snapshot, "SELECT k, x FROM rows_", timeout=1.0)


def test_a_killed_server():
    """The whole process ends, between two reads of one database."""
    emulators.spanner()
    server = emulators.spanner_process()
    database = new_database(server.address, create("t", {"k": "INT64"}))
    assert xt.read_spanner(database, "SELECT 1 AS x").to_py() == [{"x": 1}]
    server.stop()
    with pytest.raises(xt.errors.ServerError):
        xt.read_spanner(database, "SELECT k FROM t", timeout=1.0)
    with pytest.raises(xt.errors.ServerError):
        xt.write_spanner(xt.struct.constant([{"k": 1}]), "t", database, timeout=1.0)


class Refusing:
    """A snapshot whose server answers with a status, in mid-stream."""

    def __init__(self, snapshot, error):
        self._snapshot, self._error = snapshot, error

    def execute_sql(self, *args, **options):
        return _Refused(self._snapshot.execute_sql(*args, **options), self._error)


class _Refused:
    def __init__(self, results, error):
        self._results, self._error = results, error

    def __getattr__(self, name):
        return getattr(self._results, name)

    def __iter__(self):
        for number, row in enumerate(self._results):
            if number == 5_000:
                raise self._error
            yield row


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, xt.errors.AccessError),
        (grpc.StatusCode.UNAUTHENTICATED, xt.errors.AccessError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, xt.errors.QueryError),
        (grpc.StatusCode.ABORTED, xt.errors.QueryError),
        (grpc.StatusCode.INTERNAL, xt.errors.ServerError),
        (grpc.StatusCode.DATA_LOSS, xt.errors.ServerError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, xt.errors.ServerError),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_each_status_of_a_server_is_a_named_error(database, status, error):
    from google.api_core.exceptions import from_grpc_status

    with (
        database.snapshot() as snapshot,
        pytest.raises(error, match=r"read_spanner: .*the reason") as raised,
    ):
        xt.read_spanner(Refusing(snapshot, from_grpc_status(status, "the reason")), ALL)
    assert raised.value.__cause__.grpc_status_code == status


def test_credentials_that_give_no_token(database):
    """The client asks for a token before it sends anything."""
    from google.auth.exceptions import RefreshError

    class Expired:
        def execute_sql(self, *args, **options):
            raise RefreshError("the token has expired")

    with pytest.raises(xt.errors.AccessError, match="the token has expired"):
        xt.read_spanner(Expired(), "SELECT 1 AS x")
    with pytest.raises(PermissionError):
        xt.read_spanner(Expired(), "SELECT 1 AS x")
