"""`state=[...]`: with another number of shards, each record still comes exactly once."""

import importlib
import json
import multiprocessing
import os
import random
import signal
from collections import Counter
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
from extensor._data.earlier_runs import Batching, EarlierRun, rest_of, runs_from, runs_of, text_of
from extensor._data.feed import Pass
from extensor._data.state import feed_of
from extensor._data.stream import stream
from extensor._streams.source import Source
from tests.data.test_plan import written
from tests.formats.test_parquet import folder

PLAN = importlib.import_module("extensor._data.plan")
SHUFFLE = xt.data.Shuffle(seed=5, window=20)
EPOCHS = 4


def ids(batches):
    return [n for batch in batches for n in batch["n"].numpy().tolist()]


class Groups:
    """What a plan knows of files: which records a shard has, by their numbers."""

    def __init__(self, sizes):
        self._starts = np.cumsum([0, *sizes]).tolist()

    def of_shard(self, index, count):
        chosen = list(zip(self._starts[:-1], self._starts[1:], strict=True))[index::count]
        return [n for begin, end in chosen for n in range(begin, end)]

    def rows(self, count):
        return np.array([len(self.of_shard(i, count)) for i in range(count)])

    def batches(self, runs, epoch, index, count, batching):
        """Returns the batches of a shard in an epoch, as lists of records."""
        found = rest_of(runs, epoch, count, self.rows, batching)
        records = self.of_shard(index, count)
        most = batching.steps(len(records))
        if found is not None:
            first, spans = found
            records = [n for i, a, b in spans[index] for n in self.of_shard(i, first)[a:b]]
        steps = batching.steps(len(records))
        assert steps <= most
        return [records[k * batching.size :][: batching.size] for k in range(steps)]


@given(
    st.lists(st.integers(1, 12), max_size=8),
    st.builds(Batching, st.integers(1, 6), st.booleans()),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.data(),
)
def test_each_record_of_each_epoch_is_in_one_batch_of_one_run(sizes, batching, counts, draw):
    groups, runs, first = Groups(sizes), (), 0
    seen = {epoch: [] for epoch in range(EPOCHS)}
    for number, count in enumerate(counts):
        is_last = number == len(counts) - 1
        places = []
        for index in range(count):
            left = 10**6 if is_last else draw.draw(st.integers(0, 12), "batches")
            epoch, step = first, 0
            while epoch < EPOCHS:
                batches = groups.batches(runs, epoch, index, count, batching)
                taken = batches[step : step + left]
                seen[epoch] += [n for batch in taken for n in batch]
                step, left = step + len(taken), left - len(taken)
                if step < len(batches) or not left:
                    break
                epoch, step = epoch + 1, 0
            places.append((epoch, step))
        first = min(epoch for epoch, _ in places)
        runs = runs_from((*runs, EarlierRun(tuple(places))), first)
        assert not runs or runs_of(text_of(runs)) == runs
    for numbers in seen.values():
        assert len(numbers) == len(set(numbers))
        dropped = sum(sizes) - len(numbers)
        assert dropped <= (batching.size - 1) * (sum(counts) + len(counts)) * batching.drops


def run(make, counts, dice, state=None, first=0):
    """Returns the records that runs of so many shards have read; all but the last are stopped."""
    seen = []
    for number, count in enumerate(counts):
        is_last, most = number == len(counts) - 1, dice.choice([2, 20])
        states = []
        for index in range(count):
            dataset = make(shard=(index, count), state=state)
            left = 10**6 if is_last else dice.randrange(most)
            found, made = read(dataset, first, left)
            seen += found
            states.append(json.loads(json.dumps(made)))
        dice.shuffle(states)
        state, first = states, min(each["epoch"] for each in states)
    return seen


def read(dataset, first, left):
    """Returns the records of so many batches of the passes from one on, and the state after it."""
    seen, state = [], xt.data.state(dataset, 0)
    for _ in range(first, EPOCHS):
        iterator = iter(dataset)
        for step, batch in enumerate(iterator):
            if not left:
                break
            seen += batch["n"].numpy().tolist()
            state, left = xt.data.state(iterator, step + 1), left - 1
        if not left:
            break
    return seen, state


@pytest.mark.whole("draws many values")
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=3),
    st.integers(1, 12),
    st.integers(1, 15),
    st.sampled_from([None, SHUFFLE]),
    st.lists(st.integers(1, 6), min_size=2, max_size=3),
    st.randoms(use_true_random=False),
)
def test_each_record_of_each_epoch_comes_exactly_once(
    sizes, group, batch_size, shuffle, counts, dice
):
    with folder() as name, mock.patch.object(PLAN, "PART_ROWS", 16):
        paths = written(name, sizes, group)
        seen = run(
            lambda **options: xt.data.parquet(paths, batch_size, shuffle=shuffle, **options),
            counts,
            dice,
        )
    assert Counter(seen) == dict.fromkeys(range(sum(sizes)), EPOCHS)


FORMATS = {
    "arrow": (xt.write_arrow, xt.data.arrow),
    "csv": (xt.write_csv, xt.data.csv),
    "jsonl": (xt.write_json, xt.data.json),
    "parquet": (xt.write_parquet, xt.data.parquet),
    "tfrecord": (xt.write_tfrecord, xt.data.tfrecord),
}


@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
@pytest.mark.parametrize("counts", [(4, 3), (2, 3, 1), (1, 8)])
@pytest.mark.parametrize("format", FORMATS)
def test_files_of_each_format_go_on_with_another_number_of_shards(
    tmp_path, format, counts, shuffle
):
    write, stream = FORMATS[format]
    for number in range(6):
        numbers = tf.range(10 * number, 10 * number + 10, dtype=tf.int64)
        write(xt.DenseStructuredTensor([10], {"n": numbers}), f"{tmp_path}/{number}.{format}")
    schema = pa.schema({"n": pa.int64()})
    seen = run(
        lambda **options: stream(tmp_path, 4, schema=schema, shuffle=shuffle, **options),
        counts,
        random.Random(1),
    )
    assert Counter(seen) == dict.fromkeys(range(60), EPOCHS)


@pytest.fixture
def paths(tmp_path):
    return written(tmp_path, [50, 0, 30, 21], 7)


def stopped(paths, steps, **options):
    """Returns the states of shards after so many batches each, and the records of these."""
    states, seen = [], []
    for index, count in enumerate(steps):
        shard = index, len(steps)
        found, state = read(xt.data.parquet(paths, 4, shard=shard, **options), 0, count)
        states.append(state)
        seen += found
    return states, seen


@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
def test_a_shard_may_be_an_epoch_ahead(paths, shuffle):
    states, seen = stopped(paths, [2, 20, 11], shuffle=shuffle)
    assert {state["epoch"] for state in states} == {0, 1, 2}
    for count in (2, 3):
        rest = []
        for index in range(count):
            shard = index, count
            dataset = xt.data.parquet(paths, 4, shuffle=shuffle, shard=shard, state=states)
            rest += read(dataset, 0, 10**6)[0]
        assert Counter(seen + rest) == dict.fromkeys(range(101), EPOCHS)


@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
@pytest.mark.parametrize("epochs", [2, 4])
def test_epochs_in_one_pass_are_each_complete(paths, epochs, shuffle):
    options = {"shuffle": shuffle, "epochs": epochs}
    states, seen = stopped(paths, [3, 12, 5], **options)
    shards = [xt.data.parquet(paths, 4, shard=(i, 2), state=states, **options) for i in range(2)]
    for _ in range(EPOCHS // epochs):
        for shard in shards:
            seen += ids(shard)
    assert Counter(seen) == dict.fromkeys(range(101), EPOCHS)


def test_as_many_shards_go_on_with_their_own_batches(paths):
    states, _ = stopped(paths, [3, 5, 2], shuffle=SHUFFLE)
    for index, own in enumerate(states):
        options = {"shuffle": SHUFFLE, "shard": (index, 3)}
        [one, all_of_them] = (
            xt.data.parquet(paths, 4, state=state, **options) for state in (own, states[::-1])
        )
        assert ids(one) == ids(all_of_them)


def test_the_rest_is_divided_evenly_and_read_once_but_for_its_seams(tmp_path):
    paths = written(tmp_path, [1200], 10)
    states, seen = stopped(paths, [15] * 4)
    read_groups, lengths = [], []
    plain = Source.read

    def counted(self, groups, *options):
        for group in groups:
            read_groups.append(group)
            yield from plain(self, [group], *options)

    with mock.patch.object(Source, "read", counted):
        for index in range(3):
            rest = ids(xt.data.parquet(paths, 4, shard=(index, 3), state=states))
            lengths.append(len(rest))
            seen += rest
    assert sorted(seen) == list(range(1200))
    assert max(lengths) - min(lengths) <= 4
    assert len(read_groups) <= (1200 - 15 * 4 * 4) // 10 + 4 + 2


@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
def test_the_rest_may_be_read_with_fewer_fields(paths, shuffle):
    states, _ = stopped(paths, [3, 5, 2], shuffle=shuffle)
    options = {"shuffle": shuffle, "shard": (0, 2), "state": states}
    dataset = xt.data.parquet(paths, 4, **options)
    fields = xt.data.fields_used(lambda r: r["n"], dataset.element_spec)
    narrow = list(stream(feed_of(dataset).with_fields(fields)))
    assert [sorted(batch.to_py()[0]) for batch in narrow[:1]] == [["n"]]
    assert ids(narrow) == ids(xt.data.parquet(paths, 4, **options)) != []


def test_the_first_pass_is_the_rest_and_the_next_ones_are_whole(paths):
    states, seen = stopped(paths, [3, 5, 2], shuffle=SHUFFLE)
    options = {"shuffle": SHUFFLE, "state": states}
    shards = [xt.data.parquet(paths, 4, shard=(i, 2), **options) for i in range(2)]
    assert [int(shard.cardinality()) for shard in shards] == [tf.data.UNKNOWN_CARDINALITY] * 2
    rest = [n for shard in shards for n in ids(shard)]
    assert sorted(seen + rest) == list(range(101))
    for index, shard in enumerate(shards):
        plain = xt.data.parquet(paths, 4, shuffle=SHUFFLE, shard=(index, 2))
        ids(plain)
        assert ids(plain) == ids(shard)


def test_a_checkpoint_lies_within_the_rest(paths, tmp_path):
    states, _ = stopped(paths, [3, 5, 2], shuffle=SHUFFLE)

    def made():
        return xt.data.parquet(paths, 4, shuffle=SHUFFLE, shard=(1, 2), state=states).prefetch(2)

    iterator = iter(made())
    next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    restored = iter(made())
    tf.train.Checkpoint(iterator=restored).restore(saved)
    assert ids(restored) == ids(iterator) != []


def test_an_error_in_the_rest_names_its_record(tmp_path):
    table = pa.table({"n": [*range(33), None, *range(34, 60)]})
    pq.write_table(table, tmp_path / "0.parquet", row_group_size=6)
    states, _ = stopped(str(tmp_path / "0.parquet"), [1, 1])
    path = tmp_path / "0.parquet"
    shards = [xt.data.parquet(path, 4, shard=(i, 3), state=states) for i in range(3)]
    text = r"0\.parquet, row group 5, record 3\)"
    with pytest.raises(errors.NullError, match=text):
        list(map(ids, shards))


@pytest.mark.parametrize("changes", [1, 4])
def test_a_state_has_less_than_1_kb_for_16_shards_and_then_some_bytes_a_shard(paths, changes):
    dice = random.Random(3)
    [state], _ = stopped(paths, [3])

    def size(count):
        runs = tuple(
            EarlierRun(tuple((7, dice.randrange(10**6)) for _ in range(count)))
            for _ in range(changes)
        )
        return len(json.dumps({**state, "earlier_runs": text_of(runs)}))

    assert size(16) < 1024
    assert size(1016) - size(16) < 6 * 1000 * changes


WRONG = {
    "one missing": (
        lambda s: s[:1] + s[2:],
        r"^state: expected the states of all 3 shards, got none of shard 1",
    ),
    "one twice": (
        lambda s: [*s, s[1]],
        r"^state\[3\], shard: expected each shard once, got shard 1 twice",
    ),
    "none": (
        lambda s: [],
        r"^state: expected the states of all shards of a run, got an empty list",
    ),
    "other files": (
        lambda s: [s[0], {**s[1], "digest": "0"}, s[2]],
        r"^state\[1\], digest: .*other files, columns",
    ),
    "another batch size": (
        lambda s: [{**each, "batch_size": 9} for each in s],
        r"^state\[0\], batch_size: expected 4",
    ),
    "another seed": (lambda s: [{**each, "seed": 9} for each in s], r"^state\[0\], seed: "),
    "two counts": (
        lambda s: [*s[:2], {**s[2], "shard": [2, 4]}],
        r"^state\[2\], shard: expected a shard of 3, as state\[0\], got shard 2 of 4",
    ),
    "a step too many": (
        lambda s: [s[0], {**s[1], "step": 99}, s[2]],
        r"^state of shard 1: expected an epoch, and a step of 0 to 8, got epoch 0, step 99",
    ),
    "two runs": (
        lambda s: [
            s[0],
            {**s[1], "version": 2, "earlier_runs": text_of((EarlierRun(((0, 1), (0, 2))),))},
            s[2],
        ],
        r"^state: expected the states of one run, got those of shards 0 and 1 of two runs",
    ),
    "a negative shard": (
        lambda s: [{**s[0], "shard": [-1, 3]}, *s[1:]],
        r"^state\[0\], shard: expected a number from 0 to 2",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_list_of_states_is_an_error_by_name(paths, wrong):
    states, _ = stopped(paths, [2, 3, 1], shuffle=SHUFFLE)
    change, text = WRONG[wrong]
    with pytest.raises(errors.StructureError, match=text):
        xt.data.parquet(paths, 4, shuffle=SHUFFLE, shard=(0, 2), state=change(states))


def test_what_is_no_state_is_an_error_by_its_number(paths):
    states, _ = stopped(paths, [2, 3])
    for wrong in (None, 3, "state", {"epoch": 1}, {**states[1], "shard": 3}):
        with pytest.raises(
            errors.DTypeError, match=r"^state\[1\]: expected a state of this dataset, which `xt"
        ):
            xt.data.parquet(paths, 4, state=[states[0], wrong])
    for text in ("", 3, text_of(()), "AAAA", text_of((EarlierRun(((-1, 0),)),))):
        broken = {**states[1], "version": 2, "earlier_runs": text}
        with pytest.raises(errors.StructureError, match=r"^state, earlier_runs: expected the text"):
            xt.data.parquet(paths, 4, shard=(1, 2), state=broken)
    with pytest.raises(errors.StructureError, match=r"^state, shard: .*of all as a list"):
        xt.data.parquet(paths, 4, shard=(0, 3), state=states[0])
    with pytest.raises(errors.FormatError, match="expected a state of version 2, got version 1"):
        xt.data.parquet(paths, 4, shard=(0, 2), state={**states[0], "earlier_runs": ""})


def test_a_source_that_is_no_file_takes_as_many_shards_as_before():
    table = pa.table({"n": range(20)})

    def made(shard, state=None):
        return xt.data.batches([table], table.schema, 3, shard=shard, state=state)

    states = [read(made((i, 2)), 0, 1)[1] for i in range(2)]
    assert ids(made((1, 2), states)) == list(range(7, 20, 2))
    with pytest.raises(errors.StructureError, match="only files are divided anew"):
        made((0, 3), states)


def _killed(paths, folder, index, count, state, steps):
    """Reads batches, writes after each what it read and its state, and dies."""
    dataset = xt.data.parquet(paths, 4, shuffle=SHUFFLE, shard=(index, count), state=state)
    iterator, seen = iter(dataset.prefetch(2)), []
    path = f"{folder}/{count}-{index}.json"
    for step in range(steps + 1):
        made = xt.data.state(iterator, step) if step else xt.data.state(dataset, 0)
        with open(f"{path}.new", "w") as file:
            json.dump({"seen": seen, "state": made}, file)
        os.replace(f"{path}.new", path)
        batch = next(iterator, None)
        if batch is None:
            break
        seen += batch["n"].numpy().tolist()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.whole("starts processes and kills them")
def test_workers_that_are_killed_go_on_as_fewer_and_as_more(tmp_path):
    paths = written(tmp_path, [150, 60, 21], 7)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["extensor", "pyarrow.parquet", "tests.data.test_elastic"])
    seen, state, dice = [], None, random.Random(2)
    for count in (4, 2, 5):
        workers = [
            context.Process(
                target=_killed,
                args=(paths, str(tmp_path), i, count, state, dice.randrange(6)),
            )
            for i in range(count)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(120)
            assert worker.exitcode == -signal.SIGKILL
        found = [json.loads((tmp_path / f"{count}-{i}.json").read_text()) for i in range(count)]
        seen += [n for each in found for n in each["seen"]]
        state = [each["state"] for each in found]
    assert all(each["epoch"] == 0 for each in state)
    for index in range(3):
        shard = xt.data.parquet(paths, 4, shuffle=SHUFFLE, shard=(index, 3), state=state)
        seen += ids(shard)
    assert sorted(seen) == list(range(231))


def test_another_number_of_shards_reads_the_windows_of_the_rest_as_they_are(tmp_path, monkeypatch):
    path = tmp_path / "groups.parquet"
    pq.write_table(pa.table({"x": np.arange(64 * 8)}), path, 8)

    def shards(count, state=None):
        shuffle = xt.data.Shuffle(0, 16)
        return [
            xt.data.parquet(path, 4, shuffle=shuffle, shard=(i, count), state=state)
            for i in range(count)
        ]

    states = [xt.data.state(shard, 10) for shard in shards(4)]
    windows, window = [], PLAN.Plan.window
    monkeypatch.setattr(PLAN.Plan, "window", lambda *args: windows.append(args) or window(*args))
    parts, taken = [], Pass._taken
    monkeypatch.setattr(Pass, "_taken", lambda *args: parts.append(args) or taken(*args))
    rest = [x for shard in shards(3, states) for x in np.concatenate([r["x"] for r in shard])]
    assert len(rest) == len(set(rest)) == 64 * 8 - 4 * 10 * 4
    # Each shard of 4 left half of a window, and 5 more. Two are read by two shards.
    assert len(windows) <= 4 * 6 + 2
    assert len(parts) <= len(windows)  # the last batch of a shard is read with those before it
