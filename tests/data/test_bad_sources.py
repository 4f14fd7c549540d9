"""Files that change, and uses that nobody expects: each record once, or one clear error."""

import importlib
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors

SHUFFLE = xt.data.Shuffle(seed=2, window=6)
SCHEMA = pa.schema({"n": pa.int64()})


def write(path, numbers, group=4):
    pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), path, row_group_size=group)


def numbers(dataset):
    return [batch["n"].numpy().tolist() for batch in dataset]


def flat(batches):
    return [n for batch in batches for n in batch]


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        write(tmp_path / f"{number}.parquet", range(20 * number, 20 * number + 20))
    return tmp_path


REPLACED = {
    "fewer records": lambda path: write(path, range(3)),
    "more records": lambda path: write(path, range(50)),
    "other groups": lambda path: write(path, range(20), 7),
    "other types": lambda path: pq.write_table(pa.table({"n": ["a"] * 20}), path, row_group_size=4),
    "other columns": lambda path: pq.write_table(pa.table({"m": [1] * 20}), path, row_group_size=4),
    "another format": lambda path: path.write_text("n\n1\n"),
    "half of it": lambda path: path.write_bytes(path.read_bytes()[:200]),
    "nothing": os.remove,
}


@pytest.mark.parametrize("name", REPLACED)
@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
def test_a_file_that_changes_in_a_pass_is_named(folder, name, shuffle):
    # The first part is read, and perhaps the second.
    iterator = iter(xt.data.parquet(folder, 6, shuffle=shuffle, epochs=4))
    next(iterator)
    REPLACED[name](folder / "2.parquet")
    with pytest.raises(errors.ExtensorError, match=r"2\.parquet"):
        list(iterator)


def test_an_empty_file_among_many_and_files_of_one_record(tmp_path):
    write(tmp_path / "empty.parquet", [])
    for number in range(9):
        write(tmp_path / f"{number}.parquet", [number])
    for options in ({}, {"shuffle": SHUFFLE}, {"shard": (0, 1)}):
        dataset = xt.data.parquet(tmp_path, 4, **options)
        assert sorted(flat(numbers(dataset))) == list(range(9))
    shards = [flat(numbers(xt.data.parquet(tmp_path, 4, shard=(i, 4)))) for i in range(4)]
    assert sorted(flat(shards)) == list(range(9))
    assert numbers(xt.data.parquet(tmp_path / "empty.parquet", 4)) == []
    assert numbers(xt.data.parquet(tmp_path / "empty.parquet", 4, shuffle=SHUFFLE)) == []


def test_a_batch_may_be_larger_than_the_files_and_the_window(folder):
    assert [len(batch) for batch in numbers(xt.data.parquet(folder, 100))] == [60]
    small = xt.data.Shuffle(seed=1, window=2)
    assert sorted(flat(numbers(xt.data.parquet(folder, 25, shuffle=small)))) == list(range(60))
    assert numbers(xt.data.parquet(folder, 100, drop_remainder=True)) == []


def test_shards_that_drop_a_remainder_have_no_record_twice(folder):
    shards = [
        xt.data.parquet(folder, 6, shard=(i, 4), drop_remainder=True, shuffle=SHUFFLE)
        for i in range(4)
    ]
    found = [numbers(shard) for shard in shards]
    every = flat(flat(found))
    assert len(every) == len(set(every))
    assert all(len(batch) == 6 for shard in found for batch in shard)
    assert xt.data.steps_per_shard(shards[0]) == min(map(len, found))


@pytest.mark.parametrize(
    ("shard", "error"),
    [
        ((4, 4), errors.RowError),
        ((-1, 4), errors.RowError),
        ((0, 0), errors.RowError),
        (3, errors.DTypeError),
        ("all", errors.DTypeError),
    ],
)
def test_a_shard_that_does_not_exist_is_named(folder, shard, error):
    with pytest.raises(error, match="shard"):
        xt.data.parquet(folder, 4, shard=shard)


@pytest.mark.parametrize("epochs", [None, 0, -1, 1.5, True])
def test_epochs_are_a_positive_number(folder, epochs):
    with pytest.raises(errors.StructureError, match="epochs"):
        xt.data.parquet(folder, 4, epochs=epochs, shuffle=SHUFFLE)


STATES = {
    "no dict": ("3", errors.DTypeError),
    "part of one": ({"epoch": 0}, errors.DTypeError),
    "a negative step": ({"step": -1}, errors.StructureError),
    "a step after the end": ({"step": 999}, errors.StructureError),
    "a step that is no number": ({"step": "3"}, errors.StructureError),
    "a bool": ({"epoch": True}, errors.StructureError),
    "another version": ({"version": 99}, errors.FormatError),
    "another seed": ({"seed": 3}, errors.StructureError),
    "another shard": ({"shard": [1, 2]}, errors.StructureError),
    "another dataset": ({"digest": "0" * 32}, errors.StructureError),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_somebody_wrote_is_named(folder, name):
    changed, error = STATES[name]
    state = json.loads(json.dumps(xt.data.state(xt.data.parquet(folder, 7, shuffle=SHUFFLE), 2)))
    given = {**state, **changed} if isinstance(changed, dict) and len(changed) == 1 else changed
    given = {"epoch": 0} if name == "part of one" else given
    with pytest.raises(error, match="state"):
        xt.data.parquet(folder, 7, shuffle=SHUFFLE, state=given)


def test_two_iterators_at_once_have_each_record_once(folder):
    dataset = xt.data.parquet(folder, 7)
    first, second, found = iter(dataset), iter(dataset), ([], [])
    for one, other in zip(first, second, strict=True):
        found[0].extend(one["n"].numpy().tolist())
        found[1].extend(other["n"].numpy().tolist())
    assert found == (list(range(60)), list(range(60)))
    shuffled = xt.data.parquet(folder, 7, shuffle=SHUFFLE)
    pairs = list(zip(iter(shuffled), iter(shuffled), strict=True))
    for number in range(2):
        assert sorted(flat(pair[number]["n"].numpy().tolist() for pair in pairs)) == list(range(60))


# TensorFlow says that a type of ours is in what it saves.
@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue")
def test_methods_of_datasets_keep_the_records(folder, tmp_path_factory):
    dataset = xt.data.parquet(folder, 7, shuffle=SHUFFLE)
    assert len(flat(numbers(dataset.repeat().take(30)))) == 3 * 60 + 3 * 7
    assert sorted(flat(numbers(dataset.prefetch(2)))) == list(range(60))
    saved = str(tmp_path_factory.mktemp("saved") / "it")
    dataset.save(saved)
    assert sorted(flat(numbers(tf.data.Dataset.load(saved)))) == list(range(60))

    @tf.function
    def total():
        found = tf.constant(0, tf.int64)
        for batch in dataset:
            found += tf.reduce_sum(batch["n"])
        return found

    assert [int(total()) for _ in range(2)] == [sum(range(60))] * 2


def test_names_of_files_may_be_of_any_language(tmp_path):
    folder = tmp_path / "日本 données [1]"
    folder.mkdir()
    write(folder / "naïve *.parquet", range(5))
    assert flat(numbers(xt.data.parquet(folder, 2))) == list(range(5))
    assert flat(numbers(xt.data.parquet(folder / "naïve *.parquet", 2))) == list(range(5))
    (tmp_path / "a" / "b.parquet").mkdir(parents=True)  # a folder with the name of a file
    write(tmp_path / "a" / "c.parquet", [7])
    assert flat(numbers(xt.data.parquet(tmp_path / "a" / "*.parquet", 2))) == [7]
    with pytest.raises(errors.StructureError, match="at least one file"):
        xt.data.parquet(tmp_path / "a" / "*.nothing", 2)


def test_a_schema_that_evolved_is_named_or_filled_and_pruned(tmp_path):
    write(tmp_path / "0.parquet", range(4))
    new = pa.table({"n": pa.array([4, 5], pa.int64()), "added": pa.array([1.5, None])})
    pq.write_table(new, tmp_path / "1.parquet")
    with pytest.raises(errors.StructureError, match=r"1\.parquet"):
        xt.data.parquet(tmp_path, 3)
    nulls = {"added": xt.fill(-1.0)}
    dataset = xt.data.parquet(tmp_path, 3, schema=new.schema, nulls=nulls)
    assert [float(x) for batch in dataset for x in batch["added"]] == [-1, -1, -1, -1, 1.5, -1]
    prunable = importlib.import_module("extensor._data.prunable")
    every = importlib.import_module("tests.data.test_prunable").all_used
    found = prunable.prune(dataset.map(lambda r: r["added"]), every).dataset
    assert [float(x) for batch in found for x in batch] == [-1, -1, -1, -1, 1.5, -1]


READERS = {
    "read": xt.read_parquet,
    "stream": lambda path: numbers(xt.data.parquet(path, 5)),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_damaged_page_is_an_error_that_names_its_row_group(tmp_path, reader):
    path = tmp_path / "damaged.parquet"
    write(path, range(3000), group=1000)
    page = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    with path.open("r+b") as file:
        file.seek(page)
        file.write(b"\xff" * 20)
    with pytest.raises(errors.FormatError, match=r"damaged\.parquet.*row group 1\b"):
        READERS[reader](path)
