"""`xt.data.mix`: weights hold over any window, and a mixture goes on at the exact batch."""

import functools
import itertools
import json
import math
from collections import Counter

import keras
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
import extensor.keras
from extensor import errors
from extensor._data.draws import Draws

SHUFFLE = xt.data.Shuffle(seed=3, window=9)
WEIGHTS = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9)


@given(WEIGHTS, st.integers(0, 2**40), st.integers(0, 10**6))
def test_the_weights_hold_over_any_window(weights, seed, begin):
    draws, count = Draws(weights, [seed]), 400
    sources = draws.sources(np.arange(begin, begin + count))
    drawn = np.cumsum(np.eye(len(weights))[sources], axis=0)
    wanted = np.arange(1, count + 1)[:, None] * np.array(weights) / sum(weights)
    beyond = np.concatenate([np.zeros((1, len(weights))), drawn - wanted])
    # Two windows that begin at the first draw differ by one that begins anywhere.
    most = max(beyond.max(0) - beyond.min(0))
    assert most < (1 if len(weights) <= 2 else 4) + 1e-6
    counts = np.subtract(draws.counts(begin + count), draws.counts(begin))
    assert counts.tolist() == np.bincount(sources, minlength=len(weights)).tolist()
    for source in range(len(weights)):
        last = draws.draws_until(source, 7)
        assert draws.counts(last)[source] == 7
        assert draws.counts(last - 1)[source] == 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mix")
    for name, rows in (("a", 60), ("b", 22), ("c", 9)):
        numbers = [ord(name) * 1000 + n for n in range(rows)]
        pq.write_table(pa.table({"n": numbers}), folder / f"{name}.parquet", row_group_size=4)
    return folder


def sources(folder, names="abc", **options):
    weights = {"a": 6, "b": 3.0, "c": 1}
    options = {"shuffle": SHUFFLE, **options}
    return {
        name: (xt.data.parquet(folder / f"{name}.parquet", 4, **options), weights[name])
        for name in names
    }


def mixture(folder, names="abc", at_end="stop", state=None, **options):
    made = sources(folder, names, **options)
    return xt.data.mix(made, seed=2, at_end=at_end, state=state)


def numbers(batches):
    return [batch["n"].numpy().tolist() for batch in batches]


def names(batches):
    return "".join(chr(batch[0] // 1000) for batch in batches)


def test_the_batches_are_those_of_the_sources_in_their_order(folder):
    for at_end in ("stop", "rest"):
        found = numbers(mixture(folder, at_end=at_end))
        for name, (dataset, _) in sources(folder).items():
            own = [batch for batch in found if names([batch]) == name]
            whole = numbers(dataset)
            assert own == whole[: len(own)]
            assert at_end == "stop" or own == whole


def test_it_draws_as_tensorflow_draws_from_chosen_datasets(folder):
    found = numbers(mixture(folder))
    choices = tf.data.Dataset.from_tensor_slices(np.array(["abc".index(n) for n in names(found)]))
    datasets = [dataset for dataset, _ in sources(folder).values()]
    expected = tf.data.Dataset.choose_from_datasets(datasets, choices.map(lambda c: c))
    assert found == numbers(expected)


def test_a_pass_ends_with_the_source_that_ends_first(folder):
    dataset = mixture(folder)
    found = numbers(dataset)
    assert len(dataset) == len(found)
    counts = Counter(names(found))
    lengths = {"a": 15, "b": 6, "c": 3}
    assert any(counts[name] == length for name, length in lengths.items())
    last = found[-1]
    assert counts[names([last])] == lengths[names([last])]


def test_the_others_go_on_by_their_weights_until_all_have_ended(folder):
    dataset = mixture(folder, at_end="rest")
    found = numbers(dataset)
    assert len(dataset) == len(found) == 24
    everything = [n for batch in found for n in batch]
    assert Counter(everything) == Counter(
        ord(name) * 1000 + n for name, rows in (("a", 60), ("b", 22), ("c", 9)) for n in range(rows)
    )
    drawn = names(found)
    both = drawn[drawn.rindex("c") + 1 : drawn.rindex("b") + 1]
    assert abs(both.count("a") - len(both) * 6 / 9) <= 1


def test_sources_that_are_repeated_have_their_next_epochs(folder):
    dataset = mixture(folder, at_end="repeat")
    assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    found = numbers(dataset.take(400))
    for name, rows, part in (("a", 60, 0.6), ("b", 22, 0.3), ("c", 9, 0.1)):
        own = [batch for batch in found if names([batch]) == name]
        assert abs(len(own) - 400 * part) < 4
        [source, _] = sources(folder, name)[name]
        epochs = itertools.chain.from_iterable(numbers(source) for _ in range(20))
        assert own == list(itertools.islice(epochs, len(own)))
        assert len(own) > -(-rows // 4)


@pytest.mark.parametrize("how", ["the dataset", "mapped", "shards", "epochs", "in order"])
@pytest.mark.parametrize("at_end", ["stop", "rest", "repeat"])
def test_a_state_goes_on_at_the_exact_batch(folder, at_end, how):
    options = {
        "shards": {"shard": (1, 2)},
        "epochs": {"epochs": 2},
        "in order": {"shuffle": None},
    }.get(how, {})

    def made(state=None):
        found = mixture(folder, at_end=at_end, state=state, **options)
        return found.map(lambda records: records, 2).prefetch(3) if how == "mapped" else found

    whole = numbers(made().take(60))
    if at_end != "repeat":
        both = made()
        next_pass = [numbers(both), numbers(both)][1]
    steps = {1, 2, 5, min(9, len(whole) - 1), len(whole) // 2, len(whole) - 1}
    iterator, states = iter(made()), {}
    for step, batch in enumerate(itertools.islice(iterator, max(steps)), 1):
        assert numbers([batch]) == [whole[step - 1]]
        if step in steps:
            states[step] = json.loads(json.dumps(xt.data.state(iterator, step)))
    for step, state in states.items():
        resumed = made(state)
        again = iter(resumed)
        rest = numbers([next(again)])
        # A state within what was resumed, and the pass after it.
        later = xt.data.state(again, 1) if step < len(whole) - 2 else None
        rest += numbers(itertools.islice(again, 60 - step - 1))
        assert rest == whole[step:]
        if later is not None:
            assert numbers(made(later).take(60 - step - 1)) == rest[1:]
        if at_end != "repeat":
            assert xt.data.state(resumed, len(rest))["epoch"] == 1
            after = made(xt.data.state(resumed, len(rest)))
            assert numbers(resumed) == next_pass == numbers(after)
    assert set(states) == steps


@pytest.mark.parametrize("at_end", ["stop", "rest"])
def test_a_state_after_a_pass_is_in_the_next_one(folder, at_end):
    dataset = mixture(folder, at_end=at_end)
    passes = [numbers(dataset) for _ in range(3)]
    fresh = mixture(folder, at_end=at_end)
    state = xt.data.state(fresh, len(passes[0]) + 4)
    resumed = mixture(folder, at_end=at_end, state=state)
    assert state["epoch"] == 1
    assert [numbers(resumed), numbers(resumed)] == [passes[1][4:], passes[2]]


def test_the_state_is_that_of_the_unfinished_pass(folder):
    dataset = mixture(folder, at_end="rest")
    for number in range(3):
        iterator = iter(dataset)
        for step, _ in enumerate(itertools.islice(iterator, len(dataset))):
            assert xt.data.state(dataset, step + 1)["epoch"] == number + (step + 1 == len(dataset))
    state = xt.data.state(dataset, 3)
    assert len(json.dumps(state)) < 4 * 1024


@pytest.mark.parametrize("at_end", ["stop", "rest", "repeat"])
@pytest.mark.parametrize("steps", [0, 1, 7, 15])
def test_a_checkpoint_goes_on_at_the_exact_batch(folder, tmp_path, at_end, steps):
    iterator = iter(mixture(folder, at_end=at_end).prefetch(2))
    seen = numbers(itertools.islice(iterator, steps))
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    other = iter(mixture(folder, at_end=at_end).prefetch(2))
    tf.train.Checkpoint(iterator=other).restore(saved)
    rest = numbers(itertools.islice(other, 40))
    assert seen + rest == firsts(folder, at_end)[: steps + 40]


@pytest.mark.whole("starts a process")
def test_a_checkpoint_goes_on_in_another_process(folder, tmp_path, run_python):
    saved, expected = {}, {}
    for at_end in ("stop", "rest", "repeat"):
        iterator = iter(mixture(folder, at_end=at_end).prefetch(2))
        for _ in range(6):
            next(iterator)
        saved[at_end] = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / at_end))
        expected[at_end] = numbers(itertools.islice(iterator, 30))
    code = f"""
import itertools, json, pathlib, tensorflow as tf
from tests.data import test_mix
found = {{}}
for at_end, saved in {saved!r}.items():
    iterator = iter(test_mix.mixture(pathlib.Path({str(folder)!r}), at_end=at_end).prefetch(2))
    tf.train.Checkpoint(iterator=iterator).restore(saved)
    found[at_end] = test_mix.numbers(itertools.islice(iterator, 30))
print(json.dumps(found))
"""
    assert json.loads(run_python(code).stdout.splitlines()[-1]) == expected


@pytest.mark.parametrize("counts", [(3, 2), (2, 4, 1)])
def test_another_number_of_shards_has_each_batch_once(folder, counts):
    seen, state = [], None
    for number, count in enumerate(counts):
        states = []
        for index in range(count):
            dataset = mixture(folder, at_end="rest", state=state, shard=(index, count))
            iterator = iter(dataset)
            steps = None if number == len(counts) - 1 else 2
            found = numbers(itertools.islice(iterator, steps))
            seen += [n for batch in found for n in batch]
            if steps is not None:
                states.append(xt.data.state(iterator, steps))
        state = states
    assert len(seen) == len(set(seen)) == 91


def test_shards_draw_from_different_sources(folder):
    one, other = (
        names(numbers(mixture(folder, at_end="repeat", shard=(i, 2)).take(30))) for i in range(2)
    )
    assert one != other


@functools.cache
def firsts(folder, at_end):
    """The first 55 batches of a mixture."""
    return numbers(mixture(folder, at_end=at_end).take(55))


@pytest.mark.parametrize("at_end", ["stop", "repeat"])
def test_sources_that_are_read_in_order_are_mixed(at_end):
    table = pa.table({"n": range(40)})

    def made(state=None):
        datasets = [xt.data.batches([table], table.schema, 4) for _ in range(2)]
        given = {"a": (datasets[0], 0.7), "b": (datasets[1], 0.3)}
        return xt.data.mix(given, seed=1, at_end=at_end, state=state)

    whole = numbers(made().take(30))
    assert len(whole) == 30 or at_end == "stop"
    assert len(whole) >= 14
    dataset = made()
    iterator = iter(dataset)
    seen = numbers(itertools.islice(iterator, 9))
    assert seen + numbers(made(xt.data.state(dataset, 9)).take(21)) == whole
    given = {"a": (xt.data.batches([table], table.schema, 4), 1)}
    with pytest.raises(errors.StructureError, match=r"^xt\.data\.mix: a: expected a source of fi"):
        xt.data.mix(given, seed=1, at_end="rest")


@pytest.mark.parametrize("rows", [20, 60])
def test_a_pass_ends_where_a_source_of_unknown_length_ends(folder, rows):
    table = pa.table({"n": range(rows)})

    def made(state=None):
        ordered = xt.data.batches([table], table.schema, 4)
        given = {**sources(folder, "a"), "b": (ordered, 6)}
        return xt.data.mix(given, seed=1, state=state)

    dataset = made()
    assert dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY
    whole, later = numbers(dataset), numbers(dataset)
    assert len(whole) in (2 * min(rows, 60) // 4, 2 * min(rows, 60) // 4 + 1)
    assert len(later) == len(whole)
    for step in (0, 5, len(whole) - 1):
        used = made()
        numbers(itertools.islice(used, step))
        resumed = made(xt.data.state(used, step))
        assert [numbers(resumed), numbers(resumed)] == [whole[step:], later]


def test_one_source_is_that_source(folder):
    [dataset, weight] = sources(folder, "a")["a"]
    mixed = xt.data.mix({"a": (sources(folder, "a")["a"][0], weight)}, seed=0)
    assert numbers(mixed) == numbers(dataset)
    assert len(mixed) == len(dataset)


def test_a_shard_without_batches_of_a_source(folder):
    options = {"shard": (2, 3)}  # c has three groups, of which this shard has one
    assert len(numbers(mixture(folder, "ac", "rest", **options))) == 6
    options = {"shard": (4, 5)}
    assert numbers(mixture(folder, "ac", "stop", **options)) == []
    assert set(names(numbers(mixture(folder, "ac", "repeat", **options).take(20)))) == {"a"}
    assert set(names(numbers(mixture(folder, "ac", "rest", **options)))) == {"a"}


WRONG = {
    "no source": ({}, {}, r"^xt\.data\.mix: sources: expected at least one source, got none"),
    "a weight of 0": (
        {"b": 0},
        {},
        r"^xt\.data\.mix: b: expected a positive number as the we.*0\.",
    ),
    "NaN": ({"b": math.nan}, {}, r"^xt\.data\.mix: b: expected a positive number.*got nan"),
    "infinity": ({"b": math.inf}, {}, r"^xt\.data\.mix: b: expected a positive number.*got inf"),
    "negative": ({"b": -0.5}, {}, r"^xt\.data\.mix: b: expected a positive number.*got -0\.5"),
    "a bool": ({"b": True}, {}, r"^xt\.data\.mix: b: expected a positive number.*got True"),
    "a text": ({"b": "1"}, {}, r"^xt\.data\.mix: b: expected a positive number.*got '1'"),
    "a seed": ({}, {"seed": -1}, r"^xt\.data\.mix: seed: expected an integer that is not neg.*-1"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_argument_is_an_error_by_name(folder, wrong):
    weights, options, text = WRONG[wrong]
    given = sources(folder, "ab")
    given = {name: (dataset, weights.get(name, w)) for name, (dataset, w) in given.items()}
    if wrong == "no source":
        given = {}
    with pytest.raises(errors.StructureError, match=text):
        xt.data.mix(given, **{"seed": 1, **options})


def test_a_wrong_source_is_an_error_by_name(folder):
    good = sources(folder, "ab")
    [a, b] = [dataset for dataset, _ in good.values()]
    [served, _] = sources(folder, "b", shard="service")["b"]
    wrong = {
        r"mix: b: expected another dataset than that of a, got the same one": a.map(lambda r: r),
        r"mix: b: expected a dataset that is not repeated": b.repeat(),
        r"mix: b: expected a dataset of xt\.data.*got 0 of them": tf.data.Dataset.range(3),
        r"mix: b: expected a dataset of one source, got a mixture": mixture(folder),
        r"mix: b: expected a source without a service": served,
        r"mix: b: expected as many batches as are read, \d+, got a num": b.filter(lambda r: True),
        r"mix: b: expected as many batches as are read, \d+, got 1\. Use filter": b.take(1),
        r"mix: b: expected as many batches as are read, \d+, got \d+\. Use": b.repeat(2),
    }
    for text, dataset in wrong.items():
        with pytest.raises(errors.StructureError, match=text):
            xt.data.mix({"a": (a, 1), "b": (dataset, 1)}, seed=1)
    for pairs, text in (
        ([a, b], "expected a dict of datasets with their weights, got list"),
        ({"a": a}, "a: expected a name, and a pair"),
        ({"a": (3, 1)}, r"a: expected a tf\.data\.Dataset, got int"),
    ):
        with pytest.raises(errors.DTypeError, match=text):
            xt.data.mix(pairs, seed=1)
    with pytest.raises(
        errors.DTypeError, match=r"at_end: expected 'stop', 'repeat' or 'rest', got"
    ):
        xt.data.mix(good, seed=1, at_end="first")


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1.7e308])
def test_only_the_ratios_of_weights_matter(weight):
    plain, scaled = (Draws([w, w, w], [1]) for w in (1.0, weight))
    assert [plain.counts(n) for n in range(50)] == [scaled.counts(n) for n in range(50)]


def test_weights_that_differ_as_much_as_floats_can_are_drawn():
    draws = Draws([5e-324, 5e-324, 1.7e308], [1])
    assert draws.counts(1000) == [0, 0, 1000]


def test_element_specs_that_differ_are_an_error_that_names_the_field(folder, tmp_path):
    pq.write_table(pa.table({"n": ["x"] * 9}), tmp_path / "text.parquet")
    [a, _] = sources(folder, "a")["a"]
    for other, text in (
        (
            xt.data.parquet(tmp_path / "text.parquet", 4),
            r"mix: b: expected .*int64.* at n, as a, got",
        ),
        (xt.data.parquet(folder / "b.parquet", 4, drop_remainder=True), r"mix: b: expected .*None"),
        (sources(folder, "b")["b"][0].map(lambda r: (r, r["n"])), r"mix: b: expected the elements"),
    ):
        with pytest.raises(errors.DTypeError, match=text):
            xt.data.mix({"a": (a, 1), "b": (other, 1)}, seed=1)


def test_a_state_of_another_mixture_is_an_error_by_name(folder):
    iterator = iter(mixture(folder))
    next(iterator)
    state = xt.data.state(iterator, 1)
    for change, text in (
        ({"weights": {"a": 1.0}}, r"^state, weights: expected"),
        ({"seed": 3}, r"^state, seed: expected 2, which this mixture has, got 3"),
        ({"at_end": "rest"}, r"^state, at_end: "),
        ({"shard": [1, 2]}, r"^state, shard: "),
        ({"step": -1}, r"^state: expected an epoch, and a step of 0 on"),
    ):
        with pytest.raises(errors.StructureError, match=text):
            mixture(folder, state={**state, **change})
    with pytest.raises(errors.DTypeError, match=r"^state: expected a state of this mixture"):
        mixture(folder, state=state["sources"]["a"])
    with pytest.raises(
        errors.FormatError, match=r"^state: expected a state of version 1, got vers"
    ):
        mixture(folder, state={**state, "version": 9})
    with pytest.raises(errors.StructureError, match=r"^state: expected the states of all shards"):
        mixture(folder, state=[])
    with pytest.raises(errors.StructureError, match="other files, columns or arguments"):
        mixture(folder, state={**state, "sources": {n: state["sources"]["a"] for n in "abc"}})


WRONG_LISTS = {
    "one missing": (lambda s: s[::2], "expected the states of all 3 shards, got none of shard 1"),
    "one twice": (lambda s: [*s, s[1]], "shard: expected each shard once, got shard 1 twice"),
    "of other files": (
        lambda s: [*s[:2], {**s[2], "sources": dict.fromkeys("abc", s[2]["sources"]["a"])}],
        "digest: .*other files, columns",
    ),
    "of another mixture": (
        lambda s: [*s[:2], {**s[2], "seed": 9}],
        r"^state\[2\], seed: expected 2",
    ),
}


@pytest.mark.parametrize("wrong", WRONG_LISTS)
def test_a_wrong_list_of_states_is_an_error_by_name(folder, wrong):
    states = [xt.data.state(mixture(folder, at_end="rest", shard=(i, 3)), 1) for i in range(3)]
    change, text = WRONG_LISTS[wrong]
    with pytest.raises(errors.StructureError, match=text):
        mixture(folder, at_end="rest", shard=(0, 2), state=change(states))


class Stop(keras.callbacks.Callback):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def on_train_batch_end(self, batch, logs=None):
        self.steps -= 1
        if self.steps == 0:
            raise InterruptedError


class Trainings:
    """Trainings of one compiled model, each of which begins with its first weights."""

    def __init__(self, folder):
        self._folder = folder
        self._whole = {}
        keras.utils.set_random_seed(1)
        self._model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
        self._model.compile("sgd", "mse")
        self._model.optimizer.build(self._model.trainable_variables)
        self._first = [
            (each, each.numpy())
            for each in (*self._model.weights, *self._model.optimizer.variables)
        ]

    def whole(self, at_end, backup):
        """The result of a training that is not interrupted."""
        if at_end not in self._whole:
            self._whole[at_end] = self.result(at_end, backup)
        return self._whole[at_end]

    def result(self, at_end, backup, *stops):
        """Trains, and returns the weights and the number of steps."""
        keras.utils.set_random_seed(1)
        for variable, value in self._first:
            variable.assign(value)
        train = mixture(self._folder, at_end=at_end).map(
            lambda r: (tf.cast(r["n"], tf.float32)[:, None] / 1e5,) * 2
        )
        callbacks = [xt.keras.callbacks.BackupAndRestore(backup, train, 1), *map(Stop, stops)]
        length = 12 if at_end == "repeat" else None
        options = {"epochs": 3, "shuffle": False, "verbose": 0, "steps_per_epoch": length}
        self._model.fit(train, callbacks=callbacks, **options)
        return [w.tolist() for w in self._model.get_weights()], int(
            self._model.optimizer.iterations
        )


@pytest.fixture(scope="module")
def trainings(folder):
    return Trainings(folder)


@pytest.mark.whole("trains models that are interrupted")
@pytest.mark.parametrize("at_end", ["stop", "rest", "repeat"])
@pytest.mark.parametrize("steps", [3, 11, 30])
def test_a_training_goes_on_with_the_exact_batches(trainings, tmp_path, at_end, steps):
    whole = trainings.whole(at_end, tmp_path / "whole")
    with pytest.raises(InterruptedError):
        trainings.result(at_end, tmp_path / "backup", steps)
    assert trainings.result(at_end, tmp_path / "backup") == whole
