"""Datasets of Arrow, JSON, TFRecord and Parquet files: one contract for all."""

import gzip
import importlib
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors

ROWS = 60
SHUFFLE = xt.data.Shuffle(seed=5, window=15)
Name = descriptor_pb2.UninterpretedOption.NamePart


def rows_of(number):
    """The records of one file of three."""
    each = range(20 * number, 20 * number + 20)
    return [{"l": [k] * (k % 3), "n": k, "t": f"text {k}"} for k in each]


def table_of(number):
    types = {"l": pa.list_(pa.int64()), "n": pa.int64(), "t": pa.string()}
    return pa.Table.from_pylist(rows_of(number), pa.schema(types))


def write_ipc(make, path, number):
    table = table_of(number)
    with make(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=6)


def write_arrow(folder, number):
    write_ipc(pa.ipc.new_file, f"{folder}/{number}.arrow", number)


def write_arrows(folder, number):
    write_ipc(pa.ipc.new_stream, f"{folder}/{number}.arrows", number)


def write_jsonl(folder, number):
    lines = [json.dumps(row) + "\n" for row in rows_of(number)]
    with open(f"{folder}/{number}.jsonl", "w") as file:
        file.write("\n".join(lines))  # with empty lines


def write_json_gz(folder, number):
    with gzip.open(f"{folder}/{number}.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows_of(number))


def write_json_array(folder, number):
    with open(f"{folder}/{number}.json", "w") as file:
        json.dump(rows_of(number), file, indent=1)


def write_tfrecord(folder, number):
    xt.write_tfrecord(xt.struct.constant(rows_of(number)), f"{folder}/{number}.tfrecord")


def write_tfrecord_gz(folder, number):
    xt.write_tfrecord(xt.struct.constant(rows_of(number)), f"{folder}/{number}.tfrecord.gz")


def write_parquet(folder, number):
    pq.write_table(table_of(number), f"{folder}/{number}.parquet", row_group_size=6)


SOURCES = {
    "arrow": (write_arrow, xt.data.arrow, xt.read_arrow),
    "arrow stream": (write_arrows, xt.data.arrow, xt.read_arrow),
    "json": (write_jsonl, xt.data.json, xt.read_json),
    "json, compressed": (write_json_gz, xt.data.json, xt.read_json),
    "json, one array": (write_json_array, xt.data.json, xt.read_json),
    "tfrecord": (write_tfrecord, xt.data.tfrecord, xt.read_tfrecord),
    "tfrecord, compressed": (write_tfrecord_gz, xt.data.tfrecord, xt.read_tfrecord),
    "parquet": (write_parquet, xt.data.parquet, xt.read_parquet),
}
IN_ANY_ORDER = ["arrow", "json", "tfrecord"]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    for name in ("json", "serialized"):
        monkeypatch.setattr(importlib.import_module(f"extensor._streams.{name}"), "BLOCK", 250)


@pytest.fixture(params=SOURCES)
def source(request, tmp_path):
    """A function that makes a dataset, and one that reads the whole, of three files."""
    return opened(request.param, tmp_path)


def opened(name, folder):
    write, make, read = SOURCES[name]
    for number in range(3):
        write(folder, number)
    return lambda *args, **options: make(folder, *args, **options), lambda **o: read(folder, **o)


def numbers(dataset):
    return [batch["n"].numpy().tolist() for batch in dataset]


def flat(found):
    return [n for batch in found for n in batch]


SCHEMA = pa.schema({"n": pa.int32(), "l": pa.list_(pa.int64())})


@pytest.mark.whole("reads many files")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"columns": ["n"]},
        {"schema": SCHEMA},
        {"schema": SCHEMA, "columns": ["l"]},
        {"row_splits_dtype": tf.int32},
    ],
    ids=lambda options: " ".join(options) or "all",
)
def test_batches_are_those_of_the_whole(source, options):
    make, read = source
    whole = read(**options)
    dataset = make(7, **options)
    found = list(dataset)
    assert [len(batch.to_py()) for batch in found] == [7] * 8 + [4]
    assert [row for batch in found for row in batch.to_py()] == whole.to_py()
    assert len(dataset) == 9
    assert xt.spec_of(found[0]) == xt.spec_of(whole[:7])
    assert all(dataset.element_spec.is_compatible_with(batch) for batch in found)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=3), st.integers(1, 9), st.booleans())
def test_batches_of_files_of_any_size_are_the_records_in_order(
    tmp_path_factory, sizes, size, drop_remainder
):
    folder, first = tmp_path_factory.mktemp("files"), 0
    for number, rows in enumerate(sizes):
        table = pa.table({"n": pa.array(range(first, first + rows), pa.int64())})
        with pa.ipc.new_file(f"{folder}/{number}.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
        first += rows
    dataset = xt.data.arrow(folder, size, drop_remainder=drop_remainder)
    stop = first - size + 1 if drop_remainder else first
    expected = [list(range(i, min(i + size, first))) for i in range(0, stop, size)]
    assert numbers(dataset) == expected
    assert len(dataset) == len(expected)


@pytest.mark.whole("many cases")
def test_a_remainder_is_dropped_and_epochs_are_counted(source):
    make, _ = source
    dataset = make(7, drop_remainder=True, epochs=2)
    assert len(dataset) == 16
    assert dataset.element_spec.shape == [7]
    assert numbers(dataset) == [list(range(i, i + 7)) for i in range(0, 56, 7)] * 2


@pytest.mark.whole("many cases")
def test_a_shuffled_epoch_has_each_record_once_in_a_new_order(source):
    make, _ = source
    dataset = make(7, shuffle=SHUFFLE)
    first, second = numbers(dataset), numbers(dataset)
    assert sorted(flat(first)) == sorted(flat(second)) == list(range(ROWS))
    assert first != second
    assert [len(batch) for batch in first] == [7] * 8 + [4]
    assert numbers(make(7, shuffle=SHUFFLE)) == first


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
@pytest.mark.parametrize("count", [2, 5])
def test_shards_have_each_record_once(source, shuffle, count):
    make, _ = source
    shards = [make(4, shuffle=shuffle, shard=(i, count)) for i in range(count)]
    found = [numbers(shard) for shard in shards]
    assert sorted(n for shard in found for n in flat(shard)) == list(range(ROWS))
    assert [len(shard) for shard in shards] == [len(each) for each in found]
    assert xt.data.steps_per_shard(shards[0]) == min(map(len, found))


@pytest.mark.whole("reads many files")
@pytest.mark.parametrize("name", IN_ANY_ORDER)
def test_the_records_of_a_file_are_divided_among_shards(name, tmp_path):
    make, _ = opened(name, tmp_path)
    found = flat(numbers(make(4, shard=(0, 2))))
    assert {n // 20 for n in found} == {0, 1, 2}
    assert 20 < len(found) < 40


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
def test_a_state_goes_on_at_the_exact_batch(source, shuffle):
    make, _ = source
    arguments = {"shuffle": shuffle, "epochs": 2}
    dataset = make(7, **arguments)
    states = {
        step: json.loads(json.dumps(xt.data.state(dataset, step))) for step in (0, 1, 5, 9, 11)
    }
    found = numbers(dataset)
    for step, state in states.items():
        assert numbers(make(7, **arguments, state=state)) == found[step:], step


@pytest.mark.whole("reads many files")
def test_a_state_of_other_columns_is_an_error(source):
    make, _ = source
    state = xt.data.state(make(7), 1)
    with pytest.raises(errors.StructureError, match=r"^state, digest: "):
        make(7, columns=["n"], state=state)


@pytest.mark.whole("saves and loads models")
@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
@pytest.mark.parametrize("steps", [3, 13])
def test_a_checkpoint_goes_on_at_the_exact_batch(source, tmp_path_factory, shuffle, steps):
    make, _ = source
    iterator = iter(make(7, shuffle=shuffle, epochs=2))
    for _ in range(steps):
        next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(
        str(tmp_path_factory.mktemp("saved") / "it")
    )
    again = iter(make(7, shuffle=shuffle, epochs=2))
    tf.train.Checkpoint(iterator=again).restore(saved)
    assert numbers(again) == numbers(iterator)


@pytest.mark.whole("starts a process")
def test_checkpoints_go_on_in_another_process(tmp_path, run_python):
    cases, expected = [], {}
    for name in (*IN_ANY_ORDER, "parquet"):
        files = tmp_path / name
        files.mkdir()
        make, _ = opened(name, files)
        for schema in (None, SCHEMA):
            iterator = iter(make(7, shuffle=SHUFFLE, schema=schema))
            for _ in range(4):
                next(iterator)
            case = f"{name}, {'a' if schema else 'no'} schema"
            saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / case))
            cases.append((case, name, str(files), saved, schema is not None))
            expected[case] = numbers(iterator)
    found = run_python(f"""
import importlib, json, pyarrow as pa, tensorflow as tf, extensor as xt
for module in ("json", "serialized"):
    importlib.import_module("extensor._streams." + module).BLOCK = 250
schema = pa.schema({{"n": pa.int32(), "l": pa.list_(pa.int64())}})
found = {{}}
for case, name, files, saved, has_schema in {cases!r}:
    make, given = getattr(xt.data, name), schema if has_schema else None
    iterator = iter(make(files, 7, shuffle=xt.data.Shuffle{tuple(SHUFFLE)}, schema=given))
    tf.train.Checkpoint(iterator=iterator).restore(saved)
    found[case] = [batch["n"].numpy().tolist() for batch in iterator]
print(json.dumps(found))
""")
    assert json.loads(found.stdout.splitlines()[-1]) == expected


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", [*IN_ANY_ORDER, "parquet"])
def test_another_process_makes_the_dataset_of_its_serialized_form(name, tmp_path):
    make, _ = opened(name, tmp_path)
    stream = importlib.import_module("extensor._data.stream")
    dataset = make(7, schema=SCHEMA, shuffle=SHUFFLE)
    made = stream._made_feed(stream.feeds[dataset].serialized)
    assert made.plan.digest == stream.feeds[dataset].plan.digest
    assert numbers(stream.stream(made)) == numbers(make(7, schema=SCHEMA, shuffle=SHUFFLE))


def raises_while_read(make):
    with pytest.raises(errors.ExtensorError) as caught:
        list(make())
    return caught.value


@pytest.mark.parametrize("name", SOURCES)
def test_a_file_that_is_cut_is_named(name, tmp_path):
    make, _ = opened(name, tmp_path)
    [path] = tmp_path.glob("1.*")
    path.write_bytes(path.read_bytes()[:-7])
    error = raises_while_read(lambda: make(7))
    assert isinstance(error, errors.FormatError)
    assert str(path) in str(error)


@pytest.mark.whole("reads many files")
@pytest.mark.parametrize("name", SOURCES)
def test_a_file_that_vanishes_is_named_during_iteration(name, tmp_path):
    make, _ = opened(name, tmp_path)
    dataset = make(7)
    [path] = tmp_path.glob("1.*")
    os.remove(path)
    error = raises_while_read(lambda: dataset)
    assert isinstance(error, errors.MissingFileError)
    assert str(path) in str(error)


@pytest.mark.whole("reads many files")
@pytest.mark.parametrize("name", [name for name in SOURCES if name != "parquet"])
def test_a_file_that_gets_other_records_is_named_during_iteration(name, tmp_path):
    make, _ = opened(name, tmp_path)
    dataset = make(7)
    [path] = tmp_path.glob("1.*")
    (tmp_path / "other").mkdir()
    rows = globals()["rows_of"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "rows_of", lambda number: rows(number)[:3])
        SOURCES[name][0](tmp_path / "other", 1)
    os.replace(tmp_path / "other" / path.name, path)
    error = raises_while_read(lambda: dataset)
    assert isinstance(error, errors.FormatError)
    assert str(path) in str(error)


def test_no_file_is_an_error_at_once(tmp_path):
    for make in (xt.data.arrow, xt.data.json, xt.data.tfrecord, xt.data.parquet):
        with pytest.raises(errors.StructureError, match="at least one file"):
            make(tmp_path, 7)


@pytest.mark.parametrize("name", ["arrow", "parquet"])
def test_an_added_nullable_column_is_filled_when_asked(name, tmp_path):
    make, _ = opened(name, tmp_path)
    table = table_of(1).append_column("added", pa.array(range(20), pa.int64()))
    if name == "arrow":
        with pa.ipc.new_file(f"{tmp_path}/1.arrow", table.schema) as writer:
            writer.write_table(table)
    else:
        pq.write_table(table, f"{tmp_path}/1.parquet")
    with pytest.raises(errors.StructureError, match=r"1\.(arrow|parquet)"):
        make(7)
    nulls = {"added": xt.fill(-1)}
    dataset = make(7, schema=table.schema, nulls=nulls)
    added = [n for batch in dataset for n in batch["added"].numpy().tolist()]
    assert added == [-1] * 20 + list(range(20)) + [-1] * 20
    required = table.schema.set(3, pa.field("added", pa.int64(), nullable=False))
    with pytest.raises(errors.ExtensorError, match="added"):
        list(make(7, schema=required))


@pytest.mark.parametrize("options", [{}, {"columns": ["name_part"]}, {"shuffle": SHUFFLE}])
def test_messages_of_a_class_are_read_as_from_proto_reads_them(tmp_path, options):
    messages = [Name(name_part=str(i), is_extension=i % 2 == 0) for i in range(30)]
    serialized = [message.SerializeToString() for message in messages]
    path = str(tmp_path / "names.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for one in serialized:
            writer.write(one)
    dataset = xt.data.proto(path, Name, 7, **options)
    expected = xt.from_proto(serialized, Name, columns=options.get("columns")).to_py()
    found = [row for batch in dataset for row in batch.to_py()]
    assert len(dataset) == 5
    assert sorted(found, key=str) == sorted(expected, key=str)
    if not options.get("shuffle"):
        assert found == expected


def test_damage_inside_a_record_is_found(tmp_path):
    write_tfrecord(tmp_path, 0)
    path = tmp_path / "0.tfrecord"
    dataset = xt.data.tfrecord(path, 7)
    content = bytearray(path.read_bytes())
    content[-8] ^= 1  # in the last record
    path.write_bytes(content)
    error = raises_while_read(lambda: dataset)
    assert isinstance(error, errors.FormatError)
    assert str(path) in str(error)


def test_an_error_of_json_names_the_line_of_the_file(tmp_path):
    lines = [json.dumps(row) for row in rows_of(0)]
    lines[15] = '{"n": "many", "l": []}'
    (tmp_path / "0.jsonl").write_text("\n".join(lines))
    error = raises_while_read(lambda: xt.data.json(tmp_path, 7, schema=SCHEMA))
    assert "line 16" in str(error)


def test_a_source_of_binary_is_no_text_after_one_of_text(tmp_path):
    """Their specs are equal, so they share a graph."""
    values = {"arrow": [], "tfrecord": []}
    for name, found in values.items():
        (tmp_path / name).mkdir()
        make, read = opened(name, tmp_path / name)
        for columns in (["t", "n"],) * 3:  # the graph is traced for the third
            found += [row["t"] for batch in make(7, columns=columns) for row in batch.to_py()]
        assert found == [row["t"] for row in read().to_py()] * 3
    assert values["arrow"][0] == values["tfrecord"][0].decode()


@pytest.mark.parametrize("name", SOURCES)
def test_integers_that_a_float_does_not_hold_are_exact(name, tmp_path, monkeypatch):
    small = rows_of

    def large(number):
        return [{**row, "n": row["n"] + 2**53, "l": [2**62 + 1] * 2} for row in small(number)]

    monkeypatch.setitem(globals(), "rows_of", large)
    make, read = opened(name, tmp_path)
    wanted = [row for number in range(3) for row in large(number)]
    for found in (read().to_py(), [row for batch in make(7) for row in batch.to_py()]):
        for field in ("n", "l"):
            assert [row[field] for row in found] == [row[field] for row in wanted]
