"""Sources that are read from their beginning, such as queries: one contract for all."""

import importlib
import itertools
import json

import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor._data import ordered
from tests.formats import emulators, postgres

ROWS = 30
SHUFFLE = xt.data.Shuffle(seed=5, window=8)
SCHEMA = pa.schema({"n": pa.int64(), "t": pa.string(), "l": pa.list_(pa.int64())})
RECORDS = [{"n": n, "t": f"text {n}", "l": [n] * (n % 3)} for n in range(ROWS)]
TABLE = pa.Table.from_pylist(RECORDS, SCHEMA)


def of_batches():
    pieces = TABLE.to_batches(max_chunksize=7)
    return lambda *args, **options: xt.data.batches(lambda: iter(pieces), SCHEMA, *args, **options)


def of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    xt.write_database(xt.from_arrow(TABLE), "records", connection)
    query, order = "select * from records", ["n"]
    return lambda *args, **options: xt.data.database(
        query, connection, *args, order_by=order, **options
    )


@pytest.fixture(scope="module")
def server():
    with postgres.server() as running:
        with running.connect() as connection:
            xt.write_database(xt.from_arrow(TABLE), "records", connection)
        yield running


def of_postgres(server):
    query, order = "select * from records", ["n"]
    return lambda *args, **options: xt.data.database(
        query, server.uri, *args, order_by=order, **options
    )


@pytest.fixture(scope="module")
def spanner_database():
    pytest.importorskip("google.cloud.spanner", reason="google-cloud-spanner is missing")
    made = importlib.import_module("tests.formats.test_spanner")
    columns = {"n": "INT64 NOT NULL", "t": "STRING(MAX)", "l": "ARRAY<INT64>"}
    database = made.new_database(emulators.spanner(), made.create("records", columns, "n"))
    xt.write_spanner(xt.from_arrow(TABLE), "records", database)
    return database


def of_spanner(database):
    query, order = "select n, t, l from records", ["n"]
    return lambda *args, **options: xt.data.spanner(
        database, query, *args, order_by=order, **options
    )


@pytest.fixture(scope="module")
def collection():
    pytest.importorskip("google.cloud.firestore", reason="google-cloud-firestore is not installed")
    made = importlib.import_module("tests.formats.test_firestore")
    found = made.client(emulators.firestore()).collection("ordered")
    made.add(found, *RECORDS)
    return found


def of_firestore(collection):
    def make(*args, schema=SCHEMA, **options):
        return xt.data.firestore(collection, *args, schema=schema, **options)

    return make


SERVERS = [
    pytest.param(name, marks=pytest.mark.whole("needs a server"))
    for name in ("postgres", "spanner", "firestore")
]


@pytest.fixture(params=["batches", "duckdb", *SERVERS])
def make(request, monkeypatch):
    """A function that makes a dataset of the records."""
    monkeypatch.setattr(importlib.import_module("extensor._data.ordered"), "PART_ROWS", 9)
    fixtures = {"postgres": "server", "spanner": "spanner_database", "firestore": "collection"}
    given = [request.getfixturevalue(fixtures[request.param])] if request.param in fixtures else []
    return globals()[f"of_{request.param}"](*given)


def numbers(dataset):
    return [batch["n"].numpy().tolist() for batch in dataset]


def flat(batches):
    return [n for batch in batches for n in batch]


@pytest.mark.whole("many cases")
def test_batches_are_the_records_in_order(make):
    dataset = make(7)
    expected = xt.from_arrow(TABLE).to_py()
    assert [row for batch in dataset for row in batch.to_py()] == expected
    assert [len(batch) for batch in numbers(dataset)] == [7, 7, 7, 7, 2]
    full = make(7, drop_remainder=True, epochs=2)
    assert full.element_spec.shape == [7]
    assert numbers(full) == numbers(dataset)[:4] * 2


@pytest.mark.whole("reads many files")
def test_columns_are_chosen(make):
    [batch] = make(ROWS, columns=["l"])
    assert batch.to_py() == [{"l": row["l"]} for row in RECORDS]
    spec = make(ROWS, row_splits_dtype=tf.int32).element_spec
    assert spec.field_specs["l"].row_splits_dtype == tf.int32


@pytest.mark.whole("many cases")
def test_an_epoch_is_mixed_in_windows_and_in_a_new_order(make):
    dataset = make(7, shuffle=SHUFFLE)
    first, second = numbers(dataset), numbers(dataset)
    assert first != second
    assert first == numbers(make(7, shuffle=SHUFFLE))
    for epoch in (first, second):
        assert [len(batch) for batch in epoch] == [7, 7, 7, 7, 2]
        found = flat(epoch)
        windows = [found[at : at + 8] for at in range(0, ROWS, 8)]
        assert flat(map(sorted, windows)) == list(range(ROWS))


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
def test_shards_have_each_record_once(make, shuffle):
    shards = [flat(numbers(make(4, shuffle=shuffle, shard=(i, 4)))) for i in range(4)]
    assert [sorted(shard) for shard in shards] == [list(range(i, ROWS, 4)) for i in range(4)]


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
def test_a_state_goes_on_at_the_exact_batch(make, shuffle):
    arguments, steps = {"shuffle": shuffle, "epochs": 2}, (0, 1, 4, 5, 7, 10)
    dataset = make(7, **arguments)
    unread = {step: xt.data.state(dataset, step) for step in steps}
    found = numbers(dataset)
    for step in steps:
        read = json.loads(json.dumps(xt.data.state(dataset, step)))
        assert len(json.dumps(read)) < 1000
        # Equal states make equal datasets.
        for state in (unread[step],) if read == unread[step] else (unread[step], read):
            if state["epoch"] < 2:
                assert numbers(make(7, **arguments, state=state)) == found[step:], step


@pytest.mark.whole("saves and loads models")
def test_a_checkpoint_goes_on_at_the_exact_batch(make, tmp_path):
    iterator = iter(make(7, shuffle=SHUFFLE))
    for _ in range(2):
        next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    expected = numbers(iterator)
    again = iter(make(7, shuffle=SHUFFLE))
    tf.train.Checkpoint(iterator=again).restore(saved)
    assert numbers(again) == expected


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("read", [5, 12, 15], ids=["same part", "later part", "to the end"])
@pytest.mark.parametrize("is_same", [True, False])
def test_a_checkpoint_is_read_while_its_pass_exists(tmp_path, monkeypatch, read, is_same):
    monkeypatch.setattr(ordered, "PART_ROWS", 12)
    dataset = of_batches()(2)
    iterator = iter(dataset)
    seen = numbers(itertools.islice(iterator, 3))
    saved = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "it"))
    numbers(itertools.islice(iterator, read - 3))
    other = iterator if is_same else iter(dataset)
    tf.train.Checkpoint(iterator=other).read(saved)
    assert seen + numbers(other) == [[n, n + 1] for n in range(0, ROWS, 2)]


def test_a_pass_may_be_left_at_any_time(make):
    dataset = make(7)
    for _ in range(5):
        iterator = iter(dataset)
        next(iterator)
        del iterator
    assert flat(numbers(dataset)) == list(range(ROWS))
    assert flat(numbers(dataset.take(2).repeat(2).prefetch(1))) == list(range(14)) * 2


def test_states_of_others_are_errors(make):
    state = xt.data.state(make(7), 1)
    with pytest.raises(errors.StructureError, match="state, batch_size"):
        make(8, state=state)
    with pytest.raises(errors.StructureError, match="state, digest"):
        make(7, columns=["n"], state=state)
    with pytest.raises(errors.FormatError, match="version"):
        make(7, state={**state, "version": 0})
    with pytest.raises(errors.StructureError, match=r"at least 9 batches.*got one of 5"):
        list(make(7, state={**state, "step": 9}))
    with pytest.raises(errors.RowError, match="shard"):
        make(7, shard=(2, 2))


def test_the_number_of_steps_is_not_known(make):
    assert make(7).cardinality() == tf.data.UNKNOWN_CARDINALITY
    with pytest.raises(errors.StructureError, match="read from its beginning"):
        xt.data.steps_per_shard(make(7))


def test_a_null_is_an_error_after_the_batches_before_it():
    table = pa.table({"n": [*range(8), None]})
    dataset = xt.data.batches(table.to_batches(), table.schema, 3)
    seen = []
    with pytest.raises(errors.NullError, match=r"n: .*record 2 of the batch.* with record 6"):
        seen.extend(dataset)
    assert numbers(seen) == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("options", [{"shard": (0, 2)}, {"state": {}}])
@pytest.mark.parametrize(
    "query",
    [
        "select n from range(9) t(n)",
        "select n, row_number() over (order by n) as k from range(9) t(n)",
        "select n, 'order by' as t from range(9) t(n) -- order by n",
    ],
)
def test_a_query_without_an_order_has_no_shards_and_states(options, query):
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(errors.StructureError, match="query without order_by="):
        xt.data.database(query, duckdb.connect(), 2, **options)
    dataset = xt.data.database(query, duckdb.connect(), 2, shuffle=SHUFFLE)
    assert sorted(flat(numbers(dataset))) == list(range(9))
    with pytest.raises(errors.StructureError, match="query without order_by="):
        xt.data.state(dataset, 1)


@pytest.mark.parametrize(
    "query",
    [
        "select n, t from records",
        "from records select n, t;",
        "select n, t from records order by t limit 100 -- any",
        "with r as (select * from records) select n, t from r",
    ],
)
@pytest.mark.parametrize("order", [["n"], ("t", "n"), ['a "b"']], ids=str)
def test_a_result_has_the_order_of_its_columns(query, order):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    records = [(n * 7 % 30, f"text {n % 4}") for n in range(30)]
    connection.execute("create table records(n int, t varchar)")
    connection.executemany("insert into records values (?, ?)", records)
    if order == ['a "b"']:
        query = 'select n, t, -n as "a ""b""" from records'
    keys = {"n": lambda r: r[0], "t": lambda r: r[1], 'a "b"': lambda r: -r[0]}
    expected = sorted(records, key=lambda r: [keys[name](r) for name in order])
    dataset = xt.data.database(query, connection, 4, order_by=order)
    assert flat(numbers(dataset)) == [n for n, _ in expected]
    state = xt.data.state(dataset, 2)
    resumed = xt.data.database(query, connection, 4, order_by=order, state=state)
    assert flat(numbers(resumed)) == [n for n, _ in expected[8:]]
    shards = [xt.data.database(query, connection, 4, order_by=order, shard=(i, 2)) for i in (0, 1)]
    assert [flat(numbers(each)) for each in shards] == [
        [n for n, _ in expected[i::2]] for i in (0, 1)
    ]


@pytest.mark.parametrize("order", ["n", [], [3], 7])
def test_an_order_is_a_list_of_columns(order):
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(errors.DTypeError, match=r"^order_by: expected a list of names"):
        xt.data.database("select 1 as n", duckdb.connect(), 2, order_by=order)


def test_two_passes_over_one_connection_at_once_are_an_error():
    duckdb = pytest.importorskip("duckdb")
    query = "select n from range(200000) t(n)"
    dataset = xt.data.database(query, duckdb.connect(), 1000)
    first, second = iter(dataset), iter(dataset)
    next(first)
    with pytest.raises(errors.DatabaseError, match=r"a connection that no other pass reads.*URI"):
        next(second)
    assert len(list(first)) == 199
    assert len(list(dataset)) == 200


def test_a_pass_may_follow_one_that_was_left():
    duckdb = pytest.importorskip("duckdb")
    query = "select n from range(200000) t(n)"
    dataset = xt.data.database(query, duckdb.connect(), 1000)
    for _ in range(3):
        for _ in dataset:
            break
    assert len(list(dataset)) == 200


def test_a_failing_query_is_an_error_at_once_without_a_schema():
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(errors.DatabaseError, match="nothing"):
        xt.data.database("select * from nothing", duckdb.connect(), 2)
    dataset = xt.data.database("select * from nothing", duckdb.connect(), 2, schema=SCHEMA)
    with pytest.raises(errors.DatabaseError, match="nothing"):
        list(dataset)


@pytest.mark.whole("reads many files")
def test_a_database_that_ends_in_a_pass_is_an_error():
    with postgres.server() as running:
        query = "select n, repeat('x', 1000) as t from generate_series(1, 200000) n"
        iterator = iter(xt.data.database(query, running.uri, 1000))
        next(iterator)
        running.kill()
        with pytest.raises(errors.DatabaseError, match="query: expected a database that answers"):
            list(iterator)


@pytest.mark.whole("needs a server")
def test_a_collection_needs_a_schema(collection):
    with pytest.raises(errors.DTypeError, match=r"schema: .*spec_of\(xt.read_firestore"):
        xt.data.firestore(collection, 7)


@pytest.mark.whole("needs a server")
def test_a_snapshot_for_one_read_is_an_error(spanner_database):
    with (
        spanner_database.snapshot() as snapshot,
        pytest.raises(errors.DTypeError, match="multi_use=True"),
    ):
        xt.data.spanner(snapshot, "select n from records", 7)
    with spanner_database.snapshot(multi_use=True) as snapshot:
        dataset = xt.data.spanner(snapshot, "select n from records order by n", 7, epochs=2)
        assert flat(numbers(dataset)) == list(range(ROWS)) * 2
