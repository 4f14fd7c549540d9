"""What every format has in common: the same words for reading and writing, the same records."""

import functools
import itertools

import pyarrow as pa
import pytest
import tensorflow as tf
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

import extensor as xt
from extensor._arrow.schema import masks_of_spec
from tests.formats import emulators, test_firestore, test_realtime_database, test_spanner
from tests.formats.test_realtime_database import app, server  # noqa: F401
from tests.samples.proto_types import add, file_of, message_class

NUMBERS = itertools.count()
STEP = pa.struct({"minutes": pa.int64(), "tool": pa.string()})
TABLE = pa.table(
    {
        "id": [1, 2, 3],
        "name": ["a", "é", "c"],
        "tags": [["x"], ["y", "z"], ["x"]],
        "steps": pa.array(
            [
                [{"minutes": 5, "tool": "pan"}],
                [{"minutes": 1, "tool": "pot"}, {"minutes": 2, "tool": ""}],
                [{"minutes": 2**40, "tool": "pan"}],
            ],
            pa.list_(STEP),
        ),
        "n": pa.array([1, None, 3], pa.int64()),
    }
)
ROWS = TABLE.to_pylist()
WHOLE = TABLE.drop_columns(["n"])
SPEC = xt.spec_of(xt.from_arrow(WHOLE))
NARROW = pa.schema(
    {
        "id": pa.int32(),
        "name": pa.large_string(),
        "tags": pa.list_(pa.string()),
        "steps": pa.list_(pa.struct({"minutes": pa.float64(), "tool": pa.string()})),
    }
)


@functools.cache
def message():
    file = file_of()
    step = file.message_type.add(name="Step")
    add(step, "minutes", Proto.TYPE_INT64)
    add(step, "tool", Proto.TYPE_STRING)
    recipe = file.message_type.add(name="Recipe")
    add(recipe, "id", Proto.TYPE_INT64)
    add(recipe, "name", Proto.TYPE_STRING)
    add(recipe, "tags", Proto.TYPE_STRING, repeated=True)
    add(recipe, "steps", ".t.Step", repeated=True)
    add(recipe, "n", Proto.TYPE_INT64, optional=True)
    return message_class(file, "t.Recipe")


def messages(rows):
    made = message()
    return [
        made(**{n: v for n, v in row.items() if v is not None}).SerializeToString() for row in rows
    ]


def examples(rows):
    """Returns messages of tf.Example, as TensorFlow users write them."""
    found = []
    for row in rows:
        one = tf.train.Example()
        lists = {
            "id": [row["id"]], "name": [row["name"]], "tags": row["tags"],
            "steps.minutes": [step["minutes"] for step in row["steps"]],
            "steps.tool": [step["tool"] for step in row["steps"]],
        }  # fmt: skip
        if row["n"] is not None:
            lists["n"] = [row["n"]]
        for name, values in lists.items():
            feature = one.features.feature[name]
            if values and isinstance(values[0], str):
                feature.bytes_list.value.extend(value.encode() for value in values)
            else:
                feature.int64_list.value.extend(values)
        found.append(one.SerializeToString())
    return found


def duckdb_reader(tmp_path, request):
    connection = pytest.importorskip("duckdb").connect()
    connection.register("view", TABLE)
    connection.execute("create table them as from view")
    return lambda **words: xt.read_database("from them order by id", connection, **words)


def delta_reader(tmp_path, request):
    pytest.importorskip("deltalake").write_deltalake(str(tmp_path / "delta"), TABLE)
    return lambda **words: xt.read_delta(tmp_path / "delta", **words)


def iceberg_reader(tmp_path, request):
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = sql.SqlCatalog("local", uri=uri, warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("shop")
    made = catalog.create_table("shop.it", schema=TABLE.schema)
    made.append(TABLE)
    request.addfinalizer(catalog.engine.dispose)
    return lambda **words: xt.read_iceberg(made, **words)


def spanner_reader(tmp_path, request):
    database = test_spanner.new_database(emulators.spanner())
    query = " UNION ALL ".join(
        f"SELECT {row['id']} AS id, '{row['name']}' AS name, {row['tags']} AS tags, ["
        + ", ".join(
            f"STRUCT({s['minutes']} AS minutes, '{s['tool']}' AS tool)" for s in row["steps"]
        )
        + f"] AS steps, {row['n'] or 'NULL'} AS n"
        for row in ROWS
    )
    return lambda **words: xt.read_spanner(
        database, f"SELECT * FROM ({query}) ORDER BY id", **words
    )


def firestore_reader(tmp_path, request):
    name = f"doors-{next(NUMBERS)}"
    collection = test_firestore.client(emulators.firestore()).collection(name)
    test_firestore.add(collection, *ROWS)
    return lambda **words: xt.read_firestore(collection.order_by("id"), **words)


def realtime_database_reader(tmp_path, request):
    address = request.getfixturevalue("server").address
    name = f"doors-{next(NUMBERS)}"
    node = test_realtime_database.reference_of(request.getfixturevalue("app"), address, name)
    node.set([{n: v for n, v in row.items() if v is not None} for row in ROWS])
    return lambda **words: xt.read_realtime_database(node, **words)


def file_reader(read, write, name, tmp_path, request):
    path = tmp_path / name
    write(xt.from_arrow(TABLE, nulls={"n": "mask"}), path)
    return lambda **words: read(path, **words)


def huggingface_reader(tmp_path, request):
    dataset = pytest.importorskip("datasets").Dataset(TABLE)
    return lambda **words: xt.from_huggingface(dataset, **words)


def awkward_reader(tmp_path, request):
    array = pytest.importorskip("awkward").from_arrow(TABLE)
    return lambda **words: xt.from_awkward(array, **words)


def pandas_reader(tmp_path, request):
    frame = pytest.importorskip("pandas").DataFrame(ROWS).astype({"n": "Int64"})
    return lambda **words: xt.from_pandas(frame, **words)


DOORS = {
    "arrow": lambda *a: lambda **words: xt.from_arrow(TABLE, **words),
    "arrow file": functools.partial(file_reader, xt.read_arrow, xt.write_arrow, "it.arrow"),
    "parquet": functools.partial(file_reader, xt.read_parquet, xt.write_parquet, "it.parquet"),
    "json": functools.partial(file_reader, xt.read_json, xt.write_json, "it.jsonl"),
    "pandas": pandas_reader,
    "awkward": awkward_reader,
    "huggingface": huggingface_reader,
    "proto": lambda *a: lambda **words: xt.from_proto(messages(ROWS), message(), **words),
    "duckdb": duckdb_reader,
    "delta": delta_reader,
    "iceberg": iceberg_reader,
    "spanner": spanner_reader,
    "firestore": firestore_reader,
    "realtime database": realtime_database_reader,
}
WITH_CONFLICTS = {"json", "pandas", "firestore", "realtime database"}


SERVERS = ("spanner", "firestore", "realtime database")
NEEDS_A_SERVER = pytest.mark.whole("needs a server")


@pytest.fixture(
    params=[pytest.param(door, marks=NEEDS_A_SERVER) if door in SERVERS else door for door in DOORS]
)
def door(request, tmp_path):
    read = DOORS[request.param](tmp_path, request)
    read.name = request.param
    return read


def plain(records):
    return records.to_py(text=True)


@pytest.mark.whole("many cases")
def test_records_are_the_same(door):
    found = door(nulls={"n": "mask"})
    assert plain(found.with_only(*TABLE.column_names)) == ROWS
    assert found["id"].dtype == tf.int64
    assert found["steps.minutes"].dtype == tf.int64


def test_nulls_are_an_error_or_what_was_asked_for(door):
    if door.name == "proto":  # no value is a list without one
        assert door(columns=["n"])["n"].to_list() == [[1], [], [3]]
    else:
        with pytest.raises(xt.errors.NullError, match=r"\bn\b"):
            door()
    assert plain(door(columns=["n"], nulls={"n": 7})) == [{"n": 1}, {"n": 7}, {"n": 3}]
    assert plain(door(columns=["n"], nulls="mask")) == [{"n": 1}, {"n": None}, {"n": 3}]


def test_auto_masks_the_fields_that_have_nulls(door):
    found = door(nulls="auto").with_only(*TABLE.column_names)
    assert masks_of_spec(xt.spec_of(found)) == {"n": "mask"}
    assert plain(found) == ROWS
    few = door(columns=["id", "name"], nulls="auto")
    assert masks_of_spec(xt.spec_of(few)) == {}
    # The spec can be pinned, also for records without nulls.
    spec = xt.spec_of(found)
    for words in ({}, {"nulls": "auto"}, {"nulls": {"n": "auto"}}):
        again = door(schema=spec, **words)
        assert xt.spec_of(again) == spec
        assert plain(again) == ROWS
    every = xt.spec_of(door(columns=["id", "name"], nulls="mask"))
    assert xt.spec_of(door(schema=every, nulls="auto")) == every
    # A field that the spec does not mask has no nulls.
    with pytest.raises((xt.errors.NullError, xt.errors.FieldError)):
        door(schema=xt.spec_of(xt.from_arrow(TABLE, nulls={"n": 0})), nulls="auto")


def test_an_error_ends_in_an_argument_that_mends_it(door):
    if door.name == "proto":  # no value is a list without one
        return
    with pytest.raises(xt.errors.NullError) as caught:
        door()
    line = str(caught.value).splitlines()[-1]
    assert line == 'nulls={"n": "mask"}'
    found = door(nulls=eval(line.removeprefix("nulls="))).with_only(*TABLE.column_names)
    assert plain(found) == ROWS


def test_columns_are_paths(door):
    found = door(columns=["steps.minutes", "id"])
    assert plain(found) == [
        {"steps": [{"minutes": s["minutes"]} for s in row["steps"]], "id": row["id"]}
        for row in ROWS
    ]
    assert list(found.field_names()) == ["steps", "id"]
    with pytest.raises(xt.errors.FieldError, match="nothing"):
        door(columns=["nothing"], nulls="mask")


def test_what_was_inferred_can_be_pinned(door):
    found = door(columns=["id", "name", "tags", "steps"])
    spec = xt.spec_of(found)
    again = door(schema=spec)
    assert plain(again) == plain(found)
    assert xt.spec_of(again).is_compatible_with(again)
    assert again["steps.minutes"].dtype == tf.int64


def test_a_schema_chooses_types(door):
    found = door(schema=NARROW)
    assert found["id"].dtype == tf.int32
    assert found["steps.minutes"].dtype == tf.float64
    assert [row["steps"] for row in plain(found)] == [row["steps"] for row in ROWS]
    assert sorted(found.field_names()) == sorted(NARROW.names)
    bad = pa.schema({"steps": pa.list_(pa.struct({"minutes": pa.int32()}))})
    with pytest.raises(xt.errors.ExtensorError, match=r"steps.*minutes"):
        door(schema=bad)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_row_splits_have_the_dtype(door, dtype):
    found = door(columns=["tags", "steps"], row_splits_dtype=dtype)
    assert found["tags"].row_splits.dtype == dtype
    assert found["steps"].row_splits.dtype == dtype


def test_conflicts_are_an_error_or_a_union(door):
    if door.name not in WITH_CONFLICTS:
        with pytest.raises(TypeError, match="conflicts"):  # its values have declared types
            door(conflicts="union")
    else:
        assert plain(door(columns=["id"], conflicts="union")) == [{"id": i} for i in (1, 2, 3)]
        with pytest.raises(xt.errors.DTypeError, match="conflicts"):
            door(conflicts="whatever")


FILES = {
    "arrow": (xt.read_arrow, xt.write_arrow, "it.arrow"),
    "arrow stream": (xt.read_arrow, xt.write_arrow, "it.arrows"),
    "feather": (xt.read_arrow, xt.write_arrow, "it.feather"),
    "parquet": (xt.read_parquet, xt.write_parquet, "it.parquet"),
    "json": (xt.read_json, xt.write_json, "it.jsonl"),
    "json, gzip": (xt.read_json, xt.write_json, "it.jsonl.gz"),
    "json, zstd": (xt.read_json, xt.write_json, "it.jsonl.zst"),
    "tfrecord": (xt.read_tfrecord, xt.write_tfrecord, "it.tfrecord"),
    "tfrecord, gzip": (xt.read_tfrecord, xt.write_tfrecord, "it.tfrecord.gz"),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("place", ["pathlib", "str", "file", "memory"])
def test_files_are_where_the_url_says(kind, place, tmp_path):
    read, write, name = FILES[kind]
    path = {
        "pathlib": tmp_path / name,
        "str": str(tmp_path / name),
        "file": f"file://{tmp_path}/{name}",
        "memory": f"memory://doors-{next(NUMBERS)}/{name}",
    }[place]
    records = xt.from_arrow(WHOLE)
    write(records, path)
    assert plain(read(path, schema=SPEC)) == WHOLE.to_pylist()
    write(records[:1], path)  # replaced
    assert plain(read([path], schema=SPEC)) == WHOLE.to_pylist()[:1]
    assert (tmp_path / name).exists() == (place != "memory")


@pytest.mark.parametrize("kind", FILES)
def test_files_are_written_by_a_schema(kind, tmp_path):
    read, write, name = FILES[kind]
    path, schema = tmp_path / name, NARROW
    if "tfrecord" in kind:  # which has no float64
        schema = WHOLE.schema.set(0, pa.field("id", pa.int32()))
    write(xt.from_arrow(WHOLE), path, schema=schema)
    found = read(path, schema=schema)
    assert found["id"].dtype == tf.int32
    assert [row["steps"] for row in plain(found)] == [row["steps"] for row in ROWS]
    with pytest.raises(xt.errors.ExtensorError, match=r"missing|\bid\b"):
        write(xt.from_arrow(WHOLE), path, schema=pa.schema({"missing": pa.int32()}))


@pytest.mark.parametrize("kind", ["from_tf_example", "read_tfrecord"])
def test_messages_of_tensorflow(kind, tmp_path):
    """Their lists are of no records before a schema says so."""
    serialized = examples(ROWS)
    with tf.io.TFRecordWriter(str(tmp_path / "it.tfrecord")) as writer:
        for one in serialized:
            writer.write(one)

    def read(**words):
        if kind == "read_tfrecord":
            return xt.read_tfrecord(tmp_path / "it.tfrecord", **words)
        return xt.from_tf_example(serialized, **words)

    assert plain(read(schema=TABLE.schema, nulls={"n": "mask"})) == ROWS
    for nulls in ("auto", {"n": "auto"}):
        found = read(schema=TABLE.schema, nulls=nulls)
        assert masks_of_spec(xt.spec_of(found)) == {"n": "mask"}
        assert plain(found) == ROWS
    few = read(schema=TABLE.schema, columns=["id"], nulls="auto")
    assert masks_of_spec(xt.spec_of(few)) == {}
    spec = xt.spec_of(xt.from_arrow(TABLE, nulls={"n": 0}))
    assert plain(read(schema=spec, nulls={"n": 7}, columns=["n"])) == [{"n": i} for i in (1, 7, 3)]
    with pytest.raises(xt.errors.NullError, match=r"\bn\b"):
        read(schema=spec)
    few = read(schema=spec, columns=["steps.minutes"], row_splits_dtype=tf.int32)
    assert few["steps"].row_splits.dtype == tf.int32
    assert plain(few) == [{"steps": [{"minutes": s["minutes"]} for s in r["steps"]]} for r in ROWS]
