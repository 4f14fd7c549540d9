"""Shuffling, shards, epochs, and datasets that go on where another process stopped."""

import importlib
import itertools
import json
import os
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from extensor._streams.source import Source
from tests.formats.test_parquet import folder

PLAN = importlib.import_module("extensor._data.plan")
SHUFFLE = xt.data.Shuffle(seed=5, window=20)


def written(name, sizes, group):
    """Files of so many records, numbered through, in row groups of so many."""
    paths, first = [], 0
    for i, size in enumerate(sizes):
        numbers = range(first, first + size)
        lists = pa.array([[k] * (k % 3) for k in numbers], pa.list_(pa.int64()))
        table = pa.table({"n": pa.array(numbers, pa.int64()), "l": lists})
        paths.append(f"{name}/{i}.parquet")
        pq.write_table(table, paths[-1], row_group_size=group)
        first += size
    return paths


@pytest.fixture
def paths(tmp_path):
    return written(tmp_path, [50, 0, 30, 21], 7)


def batches(dataset):
    return [batch["n"].numpy().tolist() for batch in dataset]


def flat(found):
    return [n for batch in found for n in batch]


@pytest.mark.whole("draws many values")
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=4),
    st.integers(1, 12),
    st.integers(1, 15),
    st.booleans(),
    st.integers(1, 40),
    st.integers(1, 3),
)
def test_a_shuffled_epoch_has_each_record_once_in_exact_batches(
    sizes, group, batch_size, drop_remainder, window, epochs
):
    count = sum(sizes)
    steps = count // batch_size if drop_remainder else -(-count // batch_size)
    shuffle = xt.data.Shuffle(1, window)
    options = {"drop_remainder": drop_remainder, "shuffle": shuffle, "epochs": epochs}
    with folder() as name:
        paths = written(name, sizes, group)
        dataset = xt.data.parquet(paths, batch_size, **options)
        states = [json.dumps(xt.data.state(dataset, step)) for step in range(steps * epochs)]
        found = batches(dataset)
        starts = range(0, len(found), max(1, len(found) // 3))
        rest = [
            batches(xt.data.parquet(paths, batch_size, **options, state=json.loads(states[start])))
            for start in starts
        ]
    assert len(dataset) == len(found) == steps * epochs
    for epoch in range(epochs):
        of_epoch = found[epoch * steps : (epoch + 1) * steps]
        assert all(len(batch) == batch_size for batch in of_epoch[:-1])
        seen = flat(of_epoch)
        assert len(set(seen)) == len(seen) == (steps * batch_size if drop_remainder else count)
    assert rest == [found[start:] for start in starts]


def test_each_epoch_has_a_new_order_and_a_seed_always_the_same(paths):
    one, other = (xt.data.parquet(paths, 8, shuffle=SHUFFLE) for _ in range(2))
    first, second = batches(one), batches(one)
    assert first != second
    assert sorted(flat(first)) == sorted(flat(second)) == list(range(101))
    assert [batches(other), batches(other)] == [first, second]
    assert batches(xt.data.parquet(paths, 8, shuffle=SHUFFLE, epochs=2)) == first + second
    assert batches(xt.data.parquet(paths, 8, shuffle=xt.data.Shuffle(6, 20))) != first


def test_records_of_different_row_groups_and_files_are_mixed(paths):
    found = batches(xt.data.parquet(paths, 8, shuffle=SHUFFLE))
    groups = [{n // 7 for n in batch} for batch in found]
    assert sum(len(group) > 1 for group in groups) > len(groups) / 2


@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_shards_have_each_record_once_and_read_their_row_groups_only(paths, shuffle, count):
    read = []
    plain = Source.read

    def counted(self, groups, *options):
        groups = list(groups)
        read.extend(map(self.place, groups))
        return plain(self, groups, *options)

    with mock.patch.object(Source, "read", counted):
        shards = [
            batches(xt.data.parquet(paths, 4, shuffle=shuffle, shard=(i, count)))
            for i in range(count)
        ]
    assert sorted(n for shard in shards for n in flat(shard)) == list(range(101))
    assert sorted(read) == sorted(set(read))
    sharded = xt.data.parquet(paths, 4, shard=(0, count))
    assert xt.data.steps_per_shard(sharded) == min(map(len, shards))


@pytest.mark.whole("starts a process")
def test_checkpoints_go_on_at_the_exact_batch_in_another_process(paths, tmp_path, run_python):
    cases, expected = [], {}
    for shuffle, steps in itertools.product([None, SHUFFLE], [0, 1, 4, 12, 13, 20]):
        with mock.patch.object(PLAN, "PART_ROWS", 16):
            dataset = xt.data.parquet(paths, 8, shuffle=shuffle, epochs=2).prefetch(2)
        iterator = iter(dataset)
        for _ in range(steps):
            next(iterator)
        name = f"{steps} {shuffle and 'shuffled'}"
        saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / name))
        cases.append((name, saved, shuffle and tuple(shuffle)))
        expected[name] = batches(iterator)
    code = f"""
import importlib, json, tensorflow as tf, extensor as xt
importlib.import_module("extensor._data.plan").PART_ROWS = 16
found = {{}}
for name, saved, shuffle in {cases!r}:
    shuffle = shuffle and xt.data.Shuffle(*shuffle)
    iterator = iter(xt.data.parquet({paths!r}, 8, shuffle=shuffle, epochs=2).prefetch(2))
    tf.train.Checkpoint(iterator=iterator).restore(saved)
    found[name] = [batch["n"].numpy().tolist() for batch in iterator]
print(json.dumps(found))
"""
    assert json.loads(run_python(code).stdout.splitlines()[-1]) == expected


@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
def test_resuming_reads_no_finished_part_but_one(tmp_path, shuffle):
    paths = written(tmp_path, [1000], 10)
    read = []
    plain = Source.read

    def counted(self, groups, *options):
        for group in groups:
            read.append(group)
            yield from plain(self, [group], *options)

    with mock.patch.object(PLAN, "PART_ROWS", 16):
        state = xt.data.state(xt.data.parquet(paths, 8, shuffle=shuffle), 60)
        dataset = xt.data.parquet(paths, 8, shuffle=shuffle, state=state)
        with mock.patch.object(Source, "read", counted):
            rest = batches(dataset)
    assert len(flat(rest)) == 1000 - 480
    assert len(read) <= 52 + 1 + (2 if shuffle else 0)  # a window has two row groups


def test_a_state_is_small_and_plain(paths):
    state = xt.data.state(xt.data.parquet(paths * 100, 8, shuffle=SHUFFLE), 3)
    assert len(json.dumps(state)) < 1024
    assert json.loads(json.dumps(state)) == state
    assert (state["epoch"], state["step"]) == (0, 3)


def test_after_a_state_the_next_passes_are_whole(paths):
    dataset = xt.data.parquet(paths, 8, shuffle=SHUFFLE)
    passes = [batches(dataset) for _ in range(3)]
    fresh = xt.data.parquet(paths, 8, shuffle=SHUFFLE)
    state = xt.data.state(fresh, 13 + 5)
    assert (state["epoch"], state["step"]) == (1, 5)
    resumed = xt.data.parquet(paths, 8, shuffle=SHUFFLE, state=state)
    assert [batches(resumed) for _ in range(2)] == [passes[1][5:], passes[2]]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"batch_size": 9}, "batch_size"),
        ({"shuffle": xt.data.Shuffle(6, 20)}, "seed"),
        ({"shuffle": None}, "seed"),
        ({"shard": (1, 2)}, "shard"),
        ({"drop_remainder": True}, "drop_remainder"),
        ({"columns": ["n"]}, "digest"),
    ],
)
def test_a_state_of_another_dataset_is_an_error_by_name(paths, change, name):
    arguments = {"paths": paths, "batch_size": 8, "shuffle": SHUFFLE}
    state = xt.data.state(xt.data.parquet(**arguments), 3)
    with pytest.raises(errors.StructureError, match=f"^state, {name}: "):
        xt.data.parquet(**arguments | change, state=state)


def test_a_state_of_other_files_or_another_version_is_an_error(paths, tmp_path):
    state = xt.data.state(xt.data.parquet(paths, 8), 3)
    with pytest.raises(errors.StructureError, match="other files, columns or arguments"):
        xt.data.parquet(paths[:2], 8, state=state)
    with pytest.raises(errors.FormatError, match="expected a state of version 1, got version 2"):
        xt.data.parquet(paths, 8, state={**state, "version": 2})
    with pytest.raises(errors.StructureError, match="a step of 0 to 13, got epoch 0, step 14"):
        xt.data.parquet(paths, 8, state={**state, "step": 14})
    for wrong in (3, {"epoch": 1}):
        with pytest.raises(errors.DTypeError, match=r"^state: "):
            xt.data.parquet(paths, 8, state=wrong)


@pytest.mark.parametrize("shard", [(2, 2), (-1, 2), (0, 0)])
def test_a_shard_out_of_range_is_an_error(paths, shard):
    with pytest.raises(errors.RowError, match=r"^shard: expected"):
        xt.data.parquet(paths, 8, shard=shard)


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        ({"shard": 3}, errors.DTypeError),
        ({"shard": "02"}, errors.DTypeError),
        ({"shard": ("0", "2")}, errors.DTypeError),
        ({"shard": (0.5, 2)}, errors.DTypeError),
        ({"shard": (False, 2)}, errors.DTypeError),
        ({"shuffle": True}, errors.DTypeError),
        ({"shuffle": xt.data.Shuffle(-1)}, errors.StructureError),
        ({"shuffle": xt.data.Shuffle(1, 0)}, errors.StructureError),
        ({"epochs": 0}, errors.StructureError),
    ],
)
def test_wrong_arguments_are_errors_at_once(paths, argument, error):
    with pytest.raises(error, match=next(iter(argument))):
        xt.data.parquet(paths, 8, **argument)


def test_another_dataset_has_no_state():
    with pytest.raises(errors.StructureError, match=r"expected a dataset of xt\.data"):
        xt.data.state(tf.data.Dataset.range(3), 1)


def test_folders_and_patterns_are_read_in_order(paths, tmp_path):
    (tmp_path / "empty").mkdir()
    assert flat(batches(xt.data.parquet(tmp_path, 8))) == list(range(101))
    assert flat(batches(xt.data.parquet(f"{tmp_path}/[02].parquet", 8))) == list(range(80))
    with pytest.raises(errors.StructureError, match="at least one file"):
        xt.data.parquet(tmp_path / "empty", 8)


@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
def test_a_file_that_vanishes_in_mid_epoch_is_an_error_by_name(paths, shuffle):
    with mock.patch.object(PLAN, "PART_ROWS", 8):
        dataset = xt.data.parquet(paths, 8, shuffle=shuffle)
    iterator = iter(dataset)
    seen = [next(iterator)]
    os.remove(paths[3])
    with pytest.raises(errors.MissingFileError, match=rf"^{paths[3]}: "):
        seen.extend(iterator)
    numbers = flat(batches(seen))
    assert len(numbers) == len(set(numbers))


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("iterate", ["loop", "function", "fit", "predict", "mapped"])
def test_an_error_reaches_python_as_it_was(tmp_path, iterate):
    import keras

    table = pa.table({"x": [[1.0]] * 20 + [[None]] + [[1.0]] * 3})
    pq.write_table(table, tmp_path / "it.parquet", row_group_size=6)
    dataset = xt.data.parquet(tmp_path / "it.parquet", 4)
    pairs = dataset.map(lambda r: (r["x"].to_tensor(shape=[None, 1]),) * 2)
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    @tf.function
    def total():
        return dataset.reduce(0, lambda n, r: n + 1)

    run = {
        "loop": lambda: list(dataset),
        "mapped": lambda: list(pairs.prefetch(3)),
        "function": total,
        "fit": lambda: model.fit(pairs, shuffle=False, verbose=0),
        "predict": lambda: model.predict(pairs.map(lambda x, y: x), verbose=0),
    }[iterate]
    if iterate in ("function", "fit"):
        # TensorFlow runs the function; its error has the text of ours.
        with pytest.raises(tf.errors.OpError, match=r"x.*: expected .*null"):
            run()
        return
    with pytest.raises(errors.NullError) as raised:
        run()
    assert f"({tmp_path}/it.parquet, row group 3, record 2)" in str(raised.value)
    assert raised.value.path == "x[*]"


def test_the_graph_of_a_dataset_names_its_functions_and_is_serialized(paths):
    dataset = xt.data.parquet(paths, 8)
    graph = dataset._as_serialized_graph(
        external_state_policy=tf.data.experimental.ExternalStatePolicy.IGNORE
    )
    text = graph.numpy()
    assert b"extensor.data.load" in text
    assert b"pyfunc" not in text
    assert np.frombuffer(text, np.uint8).size > 0


@pytest.mark.parametrize("steps", [3, 12, 13])
def test_the_passes_after_a_checkpoint_are_those_of_the_next_epochs(paths, tmp_path, steps):
    dataset = xt.data.parquet(paths, 8, shuffle=SHUFFLE)
    iterator = iter(dataset)
    for _ in range(steps):
        next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    other = xt.data.parquet(paths, 8, shuffle=SHUFFLE)
    restored = iter(other)
    tf.train.Checkpoint(iterator=restored).restore(saved)
    assert batches(restored) == batches(iterator)
    assert batches(other) == batches(dataset)


_TEXTS = pa.array(["a text of more bytes than a view has", None, "b", "c"], pa.string_view())
_RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3, 4], pa.int32()), pa.array([5, 6, 7]))
_WORDS = pa.dictionary(pa.int8(), pa.string())


@pytest.mark.parametrize(
    "column",
    [
        _TEXTS,
        pa.array([b"x", b"", None, b"y"], pa.binary_view()),
        pa.array([["a", "b"], None, [], [None]], pa.list_(pa.string_view())),
        pa.array(
            [{"x": ["a"]}, None, {"x": None}, {"x": []}], pa.struct({"x": pa.list_view(_WORDS)})
        ),
        pa.array([["a"], ["b"], None, []], pa.list_view(pa.string_view())),
        pa.array([["a"], ["b"], None, []], pa.list_(_WORDS)),
        _RUNS,
        pa.StructArray.from_arrays([_RUNS, _TEXTS], ["runs", "texts"]),
        pa.UnionArray.from_sparse(pa.array([0, 1, 0, 1], pa.int8()), [_TEXTS, _TEXTS]),
    ],
    ids=lambda column: str(column.type)[:40],
)
@given(st.lists(st.integers(0, 5), max_size=9), st.integers(0, 2))
def test_any_column_is_put_into_an_order(column, order, start):
    plain = pa.table({"x": column, "texts": _TEXTS})
    table = pa.concat_tables([plain, plain]).slice(start)  # two chunks, of which one is a slice
    taken = PLAN.take_rows(table, np.array(order, np.int64))
    records = table.to_pylist()
    assert taken.to_pylist() == [records[place] for place in order]


def test_views_and_runs_are_shuffled(tmp_path):
    table = pa.table({"n": range(4), "texts": _TEXTS, "runs": _RUNS})
    with pa.ipc.new_file(tmp_path / "0.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=3)
    dataset = xt.data.arrow(tmp_path, 2, None, nulls="auto", shuffle=SHUFFLE)
    found = [record for batch in dataset for record in batch.to_py()]
    assert [each["n"] for each in found] != [0, 1, 2, 3]
    assert sorted(found, key=lambda each: each["n"]) == table.to_pylist()
