"""A server that is killed while it sends: an error after the repetitions, never a short result.

PostgreSQL is in test_sql_postgres.py, and connections that are cut in the tests of each server.
"""

import pyarrow as pa
import pytest

import extensor as xt
from tests.formats import emulators, test_firestore, test_realtime_database, test_spanner
from tests.formats.test_realtime_database import app, make_server  # noqa: F401

pytestmark = pytest.mark.whole("starts servers and kills them")

COUNT = 15_000  # rows of 2,000 bytes: more than is on the way at a time
ERRORS = (xt.errors.ServerError, xt.errors.QueryError)


@pytest.fixture(params=[1, 2_000_000])
def sent(request):
    return request.param


def keys(found):
    return found["k"].numpy().tolist()


def check_killed(read, server, proxy, sent):
    proxy.kill_after(sent, server)
    try:
        with pytest.raises(ERRORS) as caught:
            read()
        assert server.process.poll() is not None
        assert proxy.cuts == 1
        with pytest.raises(ERRORS):
            read()
    finally:
        proxy.close()
    return str(caught.value)


ROWS = f"FROM UNNEST(GENERATE_ARRAY(0, {COUNT - 1})) AS k ORDER BY k"


@pytest.fixture
def spanner():
    server = emulators.spanner_process()
    proxy = emulators.Proxy(server.address)
    name = test_spanner.new_database(server.address, test_spanner.create("t", {"k": "INT64"}))
    instance = test_spanner.client(proxy.address).instance("instance")
    yield instance.database(name.database_id), server, proxy
    server.stop()


@pytest.mark.parametrize("kind", ["database", "snapshot", "stream"])
def test_a_killed_spanner(spanner, sent, kind):
    database, server, proxy = spanner
    query = f"SELECT k, REPEAT('x', 2000) AS x {ROWS}"
    assert keys(xt.read_spanner(database, f"SELECT k {ROWS}")) == list(range(COUNT))

    def read():
        if kind == "database":
            return xt.read_spanner(database, query, timeout=1.0)
        if kind == "stream":
            return list(xt.data.spanner(database, query, 1_000, timeout=1.0))
        with database.snapshot() as snapshot:
            return xt.read_spanner(snapshot, query, timeout=1.0)

    message = check_killed(read, server, proxy, sent)
    assert "spanner: " in message


@pytest.fixture
def collection():
    server = emulators.firestore_process()
    direct = test_firestore.client(server.address).collection("them")
    count = COUNT // 6
    ids = [f"{i:06}" for i in range(count)]
    table = pa.table({"k": range(count), "x": ["x" * 6_000] * count, "id": ids})
    xt.write_firestore(xt.from_arrow(table), direct, id_field="id")
    proxy = emulators.Proxy(server.address)
    yield test_firestore.client(proxy.address).collection("them"), server, proxy
    server.stop()


@pytest.mark.parametrize("kind", ["collection", "query"])
def test_a_killed_firestore(collection, sent, kind):
    collection, server, proxy = collection
    assert keys(xt.read_firestore(collection, ["k"])) == list(range(COUNT // 6))
    source = collection if kind == "collection" else collection.order_by("k")
    read = lambda: xt.read_firestore(source, timeout=1.0)  # noqa: E731
    assert check_killed(read, server, proxy, sent).startswith("read_firestore: ")


def test_a_killed_realtime_database(app, sent):  # noqa: F811
    server = make_server()
    try:
        node = test_realtime_database.reference_of(app, server.address)
        for start in range(0, COUNT // 2, 100):  # the server limits a request
            rows = {str(i): {"k": i, "x": "x" * 2_000} for i in range(start, start + 100)}
            node.update(rows)
        assert keys(xt.read_realtime_database(node, ["k"])) == list(range(COUNT // 2))
        proxy = emulators.Proxy(server.address)
        behind = test_realtime_database.reference_of(app, proxy.address)
        read = lambda: xt.read_realtime_database(behind)  # noqa: E731
        assert check_killed(read, server, proxy, sent).startswith("/it: ")
    finally:
        server.stop()
