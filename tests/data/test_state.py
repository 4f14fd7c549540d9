"""xt.data.state is that of one pass: of an iterator, or the only unfinished one of a dataset."""

import json

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

ROWS, BATCH = 40, 4
STEPS = ROWS // BATCH
SHUFFLE = xt.data.Shuffle(seed=3, window=9)


@pytest.fixture
def make(tmp_path):
    pq.write_table(pa.table({"n": range(ROWS)}), tmp_path / "0.parquet", row_group_size=3)
    return lambda **options: xt.data.parquet(tmp_path, BATCH, **options)


def numbers(batches):
    return [batch["n"].numpy().tolist() for batch in batches]


def taken(iterator, count):
    return numbers(next(iterator) for _ in range(count))


MADE = {
    "the dataset": lambda dataset: dataset,
    "map": lambda dataset: dataset.map(lambda records: records),
    "map in parallel": lambda dataset: dataset.map(lambda records: records, 2).prefetch(3),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize("step", [1, 3, 5])
@pytest.mark.parametrize(
    "options", [{}, {"shuffle": SHUFFLE}, {"epochs": 2, "shuffle": SHUFFLE}], ids=str
)
def test_the_state_of_an_iterator_is_that_of_its_pass(make, made, step, options):
    expected = numbers(make(**options))
    dataset = made(make(**options))
    iterator = iter(dataset)
    seen = taken(iterator, step)
    peeked = iter(dataset)  # another pass, which is left
    next(peeked)
    state = xt.data.state(iterator, step)
    assert seen + numbers(make(**options, state=state)) == expected
    assert xt.data.state(peeked, 1)["epoch"] > 0


@pytest.mark.whole("draws many values")
@given(draw=st.data())
def test_the_state_does_not_depend_on_other_passes(tmp_path_factory, draw):
    """Passes begin, go on and are left in any order; one of them is resumed."""
    folder = tmp_path_factory.mktemp("drawn")
    pq.write_table(pa.table({"n": range(ROWS)}), folder / "0.parquet", row_group_size=3)
    options = draw.draw(st.sampled_from([{}, {"shuffle": SHUFFLE}]))
    made = MADE[draw.draw(st.sampled_from(sorted(MADE)))]
    dataset = made(xt.data.parquet(folder, BATCH, **options))
    passes = []
    for number in draw.draw(st.lists(st.integers(0, 3), min_size=1, max_size=8)):
        if number >= len(passes):
            passes.append((iter(dataset), []))
        iterator, seen = passes[min(number, len(passes) - 1)]
        if len(seen) < STEPS // 2:
            seen.extend(taken(iterator, 1))
    whole = xt.data.parquet(folder, BATCH, **options)
    orders = [numbers(whole) for _ in passes]  # each pass has an order of its own
    number = draw.draw(st.integers(0, len(passes) - 1))
    iterator, seen = passes[number]
    state = xt.data.state(iterator, len(seen))
    resumed = numbers(xt.data.parquet(folder, BATCH, **options, state=state))
    assert seen + resumed == orders[number]


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize("is_peeked", [False, True])
def test_the_state_near_the_end_is_right_or_an_error(make, made, is_peeked):
    """What reads ahead has forgotten the pass then."""
    dataset = made(make())
    list(dataset)
    iterator = iter(dataset)
    taken(iterator, STEPS - 1)
    if is_peeked:
        next(iter(dataset))
    try:
        state = xt.data.state(iterator, STEPS - 1)
    except errors.StructureError:
        assert is_peeked
    else:
        assert (state["epoch"], state["step"]) == (1, STEPS - 1)


@pytest.mark.parametrize("times", [2, None])
def test_a_dataset_that_is_repeated_has_no_state(make, times):
    dataset = make().repeat(times)
    iterator = iter(dataset)
    next(iterator)
    for source in (dataset, iterator):
        with pytest.raises(errors.StructureError, match=r"Give epochs= to the function"):
            xt.data.state(source, 1)


OTHERS = {
    "skip": lambda dataset: dataset.skip(1),
    "shard": lambda dataset: dataset.shard(2, 1).prefetch(1),
    "filter": lambda dataset: dataset.filter(lambda records: records["n"][0] > 3),
    "unbatch": lambda dataset: dataset.unbatch(),
    "batch": lambda dataset: dataset.unbatch().batch(3).map(lambda records: records),
    "rebatch": lambda dataset: dataset.rebatch(3),
    "shuffle": lambda dataset: dataset.shuffle(9),
    "cache": lambda dataset: dataset.cache().prefetch(1),
    "flat_map": lambda dataset: dataset.flat_map(tf.data.Dataset.from_tensor_slices),
    "interleave": lambda dataset: dataset.interleave(tf.data.Dataset.from_tensor_slices, 2),
    "ignore_errors": lambda dataset: dataset.ignore_errors(),
    "concatenate": lambda dataset: tf.data.Dataset.from_tensors(next(iter(dataset))).concatenate(
        dataset
    ),
}


def with_lists(records):
    lists = tf.RaggedTensor.from_row_lengths(records["n"], tf.ones_like(records["n"]))
    return records.with_updates({"l": lists})


# Of sources that have another order each time.
OTHERS["mixture"] = lambda dataset: xt.data.mix({"a": (dataset.shuffle(9), 1)}, seed=1)
OTHERS["pack"] = lambda dataset: xt.data.pack(dataset.map(with_lists).shuffle(9), {"l": 5})


@pytest.mark.parametrize("made", OTHERS.values(), ids=OTHERS)
def test_a_dataset_with_other_batches_has_no_state(make, tmp_path, made):
    """Its steps were taken for those of the source: others were left out, or came again."""
    dataset = made(make())
    iterator = iter(dataset)
    next(iterator)
    for state in (
        lambda: xt.data.state(iterator, 1),
        lambda: xt.data.state(dataset, 1),
        lambda: xt.keras.callbacks.BackupAndRestore(tmp_path / "backup", dataset),
    ):
        with pytest.raises(errors.StructureError, match=r"dataset: .* with the batches that are"):
            state()


def test_the_state_of_a_dataset_with_several_unfinished_passes_is_an_error(make):
    dataset = make()
    iterator = iter(dataset)
    taken(iterator, 3)
    assert xt.data.state(dataset, 3)["step"] == 3
    next(iter(dataset))
    with pytest.raises(errors.StructureError, match=r"one pass is not finished.*Give the pass"):
        xt.data.state(dataset, 3)
    assert xt.data.state(iterator, 3)["epoch"] == 0


def test_a_whole_pass_after_one_that_was_left_has_no_state(make):
    dataset = make()
    next(iter(dataset))
    list(dataset)
    with pytest.raises(errors.StructureError, match="one pass is not finished"):
        xt.data.state(dataset, STEPS)


@pytest.mark.parametrize("count", [STEPS, None])
@pytest.mark.parametrize(
    ("options", "epochs"),
    [
        ({}, 1),
        ({"shuffle": SHUFFLE}, 1),
        ({"epochs": 2}, 2),
        ({"epochs": 2, "shuffle": SHUFFLE}, 2),
        ({"shard": (1, 2), "drop_remainder": True}, 1),
    ],
    ids=str,
)
def test_a_pass_is_finished_with_its_last_batch(make, options, epochs, count):
    """Whether or not a batch after the last one was asked for."""
    dataset = make(**options)
    for number in range(3):
        for _ in dataset if count is None else dataset.take(len(dataset)):
            pass
        assert xt.data.state(dataset, 0)["epoch"] == number * epochs


def test_an_iterator_that_has_not_begun_has_no_state(make):
    dataset = make()
    list(dataset)
    with pytest.raises(
        errors.StructureError, match=r"^iterator: expected an iterator that is with"
    ):
        xt.data.state(iter(dataset), 0)


def test_the_iterator_of_two_datasets_is_an_error(make):
    iterator = iter(tf.data.Dataset.zip(make(), make()))
    next(iterator)
    with pytest.raises(errors.StructureError, match="got 2 of them"):
        xt.data.state(iterator, 1)


@pytest.mark.whole("trains a model")
def test_a_callback_of_fit_has_the_state_in_each_epoch(make):
    train = make().map(lambda r: (tf.cast(r["n"], tf.float32), tf.cast(r["n"], tf.float32)))
    model = keras.Sequential([keras.Input([]), keras.layers.Reshape([1]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    found = []

    class Saves(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            state = xt.data.state(train, batch + 1)
            found.append((state["epoch"], state["step"]))

    model.fit(train, epochs=3, shuffle=False, verbose=0, callbacks=[Saves()])
    places = [divmod(number + 1, STEPS) for number in range(3 * STEPS)]
    assert np.array_equal(found, places)


@pytest.mark.parametrize("step", [np.int64(2), np.uint8(2), tf.constant(2)], ids=repr)
def test_a_step_may_be_any_integer(make, step):
    state = xt.data.state(make(), step)
    assert json.loads(json.dumps(state)) == xt.data.state(make(), 2)


@pytest.mark.parametrize("step", [-1, 1.5, None, "1"])
def test_a_step_that_is_no_number_of_batches_is_an_error(make, step):
    with pytest.raises((errors.DTypeError, errors.StructureError), match=r"^xt\.data\.state: step"):
        xt.data.state(make(), step)
