"""A read whose connection ends at any byte gives all rows, or a named error."""

import random

import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from tests.formats import (
    emulators,
    postgres,
    test_firestore,
    test_realtime_database,
    test_spanner,
)
from tests.formats.test_realtime_database import app, server  # noqa: F401
from tests.fuzz import cases

COUNT = 1_000


@pytest.fixture(scope="module")
def spanner_database():
    made = test_spanner.new_database(
        emulators.spanner(), test_spanner.create("t", {"k": "INT64 NOT NULL", "x": "STRING(MAX)"})
    )
    xt.write_spanner(_records().without("id"), "t", made)
    return made


@pytest.fixture(scope="module")
def firestore_name():
    collection = test_firestore.client(emulators.firestore()).collection("streams")
    xt.write_firestore(_records(), collection, id_field="id")
    return "streams"


@pytest.fixture(scope="module")
def postgresql():
    with postgres.server() as running:
        xt.write_database(_records(), "streams", running.uri)
        yield running


def _records():
    ids = [f"{i:06}" for i in range(COUNT)]
    table = pa.table({"k": range(COUNT), "x": ["x" * 300] * COUNT, "id": ids})
    return xt.from_arrow(table)


@pytest.mark.parametrize("seed", cases.seeds(1000))
def test_spanner_stream(spanner_database, seed):
    dice = random.Random(seed)
    proxy = emulators.Proxy(emulators.spanner())
    instance = test_spanner.client(proxy.address).instance("instance")
    database = instance.database(spanner_database.database_id)
    xt.read_spanner(database, "SELECT 1 AS x")
    read = lambda: xt.read_spanner(database, "SELECT k FROM t ORDER BY k", timeout=0.5)  # noqa: E731
    check(proxy, dice, read, 40_000)
    database.spanner_api.transport.close()  # else it tries to connect for ever


@pytest.mark.parametrize("seed", cases.seeds(1000))
def test_firestore_stream(firestore_name, seed):
    dice = random.Random(seed)
    proxy = emulators.Proxy(emulators.firestore())
    collection = test_firestore.client(proxy.address).collection(firestore_name)
    collection.document("none").get()
    check(proxy, dice, lambda: xt.read_firestore(collection, timeout=0.5), 500_000)
    collection._client.close()


@pytest.mark.parametrize("seed", cases.seeds(1000))
def test_postgresql_stream(postgresql, seed):
    dice = random.Random(seed)
    proxy = emulators.Proxy(f"127.0.0.1:{postgresql.port}")
    uri = postgresql.uri.replace(str(postgresql.port), proxy.address.rpartition(":")[2])
    query, size = "select k, x from streams order by k", dice.choice([None, 7, 400])

    def read():
        found = xt.read_database(query, uri, batch_size=size)
        return found if size is None else tf.concat(list(found), 0)

    check(proxy, dice, read, 340_000)


@pytest.fixture(scope="module")
def firebase(server, app):  # noqa: F811
    node = test_realtime_database.reference_of(app, server.address, "streams")
    xt.write_realtime_database(_records().without("id"), node)
    return server


@pytest.mark.parametrize("seed", cases.seeds(1000))
def test_realtime_database_stream(firebase, app, seed):  # noqa: F811
    dice = random.Random(seed)
    proxy = emulators.Proxy(firebase.address)
    node = test_realtime_database.reference_of(app, proxy.address, "streams")
    check(proxy, dice, lambda: xt.read_realtime_database(node), 330_000)


def check(proxy, dice, read, size):
    proxy.cut_after(dice.randrange(1, size), for_ever=dice.random() < 0.5)
    try:
        records = read()
    except (xt.errors.ServerError, xt.errors.DatabaseError):
        assert proxy.cuts == 1
    else:
        assert records["k"].numpy().tolist() == list(range(COUNT))
    finally:
        proxy.close()
