"""xt.keras.callbacks.BackupAndRestore: batches are counted, and wrong uses are named."""

import contextlib
import functools
import itertools
import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import keras
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
import extensor.keras
from extensor import errors
from tests.keras.kinds import reused

pytestmark = pytest.mark.whole("trains models that are interrupted")


@pytest.fixture
def train(tmp_path):
    pq.write_table(pa.table({"x": [[float(i)] for i in range(10)]}), tmp_path / "it.parquet")
    return xt.data.parquet(tmp_path / "it.parquet", 3).map(
        lambda r: (r["x"].to_tensor(shape=[None, 1]),) * 2
    )


def model():
    made = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


class Stop(keras.callbacks.Callback):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def on_train_batch_end(self, batch, logs=None):
        self.steps -= 1
        if self.steps == 0:
            raise InterruptedError


def interrupted(train, backup, steps, **options):
    callback = xt.keras.callbacks.BackupAndRestore(backup, train, **options)
    with pytest.raises(InterruptedError):
        model().fit(
            train.prefetch(4), epochs=3, callbacks=[callback, Stop(steps)], shuffle=False, verbose=0
        )


@pytest.mark.parametrize(
    ("steps", "save_freq", "saved"),
    [(6, 1, (1, 2)), (6, 4, (1, 0)), (7, 3, (1, 2)), (7, "epoch", (1, 0)), (8, 4, (2, 0))],
)
def test_it_counts_the_batches_that_were_used(train, tmp_path, steps, save_freq, saved):
    interrupted(train, tmp_path / "backup", steps, save_freq=save_freq)
    backup = json.loads((tmp_path / "backup" / "backup.json").read_text())
    assert (backup["state"]["epoch"], backup["state"]["step"]) == saved
    assert len(json.dumps(backup["state"])) < 1024
    assert len(list((tmp_path / "backup").iterdir())) == 2


def test_epochs_end_where_they_would_have_ended(train, tmp_path):
    interrupted(train, tmp_path / "backup", 6, save_freq=1)
    steps = []

    class Count(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            steps.append((epoch, int(self.model.optimizer.iterations.numpy())))

    callback = xt.keras.callbacks.BackupAndRestore(tmp_path / "backup", train, save_freq=1)
    made = model()
    history = made.fit(train, epochs=3, callbacks=[callback, Count()], shuffle=False, verbose=0)
    assert steps == [(1, 8), (2, 12)]
    assert history.epoch == [1, 2]
    assert not (tmp_path / "backup").exists()
    # The next training is one of its own.
    assert made.fit(train, epochs=2, shuffle=False, verbose=0).epoch == [0, 1]


def numbers(folder, is_ordered):
    """Returns a dataset that gives the same batches each time that it is made."""
    table = pa.table({"x": [[float(i)] for i in range(10)]})
    if is_ordered:
        train = xt.data.batches([table], table.schema, 3)
        train = train.apply(tf.data.experimental.assert_cardinality(4))
    else:
        path = folder / "it.parquet"
        if not path.exists():
            pq.write_table(table, path, row_group_size=2)
        train = xt.data.parquet(path, 3, shuffle=xt.data.Shuffle(seed=1, window=6))
    return train.map(lambda r: (r["x"].to_tensor(shape=[None, 1]),) * 2)


def new_model():
    """Returns a model with the weights that each training begins with."""
    keras.utils.set_random_seed(1)
    return model()


def weights(fitted, train, *callbacks):
    """Returns the weights of a trained model, and the number of its steps."""
    fitted.fit(train, epochs=3, callbacks=callbacks, shuffle=False, verbose=0)
    return [w.tolist() for w in fitted.get_weights()], int(fitted.optimizer.iterations.numpy())


@functools.cache
def weights_without_an_interruption(is_ordered):
    with tempfile.TemporaryDirectory() as folder:
        return weights(new_model(), numbers(Path(folder), is_ordered))


class StopWithCopies(Stop):
    """Stops after the last of some steps. Copies the backup that a stop after each would leave."""

    def __init__(self, backup, steps):
        super().__init__(max(steps))
        self.backup, self.all_steps = backup, steps

    def on_train_batch_end(self, batch, logs=None):
        done = max(self.all_steps) - self.steps + 1
        if done in self.all_steps and self.backup.exists():
            shutil.copytree(self.backup, self.backup.with_name(f"after-{done}"))
        super().on_train_batch_end(batch, logs)


STEPS = (3, 4, 5, 8, 11)


@pytest.fixture(scope="module")
def backup_after(tmp_path_factory):
    """Returns a function of the folder and the backup that an interrupted training leaves there."""

    @functools.cache
    def interrupted_folder(save_freq, is_ordered):
        folder = tmp_path_factory.mktemp("interrupted")
        train = numbers(folder, is_ordered)
        backup = xt.keras.callbacks.BackupAndRestore(folder / "backup", train, save_freq)
        with pytest.raises(InterruptedError):
            weights(new_model(), train, backup, StopWithCopies(folder / "backup", STEPS))
        return folder

    def folder_and_backup(steps, save_freq, is_ordered):
        folder = interrupted_folder(save_freq, is_ordered)
        return folder, folder / ("backup" if steps == max(STEPS) else f"after-{steps}")

    return folder_and_backup


@pytest.mark.parametrize("is_ordered", [False, True])
@pytest.mark.parametrize("save_freq", [1, 3, 4, "epoch"])
@pytest.mark.parametrize("steps", STEPS)
def test_batches_are_those_of_a_training_without_the_interruption(
    backup_after, steps, save_freq, is_ordered
):
    folder, left = backup_after(steps, save_freq, is_ordered)
    assert left.exists() == (steps >= (5 if save_freq == "epoch" else save_freq))
    train = numbers(folder, is_ordered)
    backup = xt.keras.callbacks.BackupAndRestore(left, train, save_freq)
    # Where the training was really stopped, a new process goes on: with a model that is new.
    fitted = new_model() if steps == max(STEPS) else reused(new_model)
    assert weights(fitted, train, backup) == weights_without_an_interruption(is_ordered)


@pytest.mark.parametrize("is_ordered", [False, True])
@pytest.mark.parametrize("steps", [2, 3, 5])
def test_passes_that_take_ends_go_on_with_the_next_epoch(tmp_path, steps, is_ordered):
    """The rest of a pass, which no epoch has, came in the next epoch of `fit`."""
    whole = weights(reused(new_model), numbers(tmp_path, is_ordered).take(3))

    def trained(*stops):
        train = numbers(tmp_path, is_ordered).take(3)
        backup = xt.keras.callbacks.BackupAndRestore(tmp_path / "backup", train, 1)
        return weights(reused(new_model), train, backup, *stops)

    with pytest.raises(InterruptedError):
        trained(Stop(steps))
    assert trained() == whole


def static(folder, how):
    """Returns a dataset of static batches, whose free rows have the weight 0."""
    path = folder / "lists.parquet"
    if not path.exists():
        rows = [{"id": float(i), "x": [1] * (i % 4)} for i in range(20)]
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=5)
    rows = xt.data.parquet(path, 3, shuffle=xt.data.Shuffle(seed=1, window=6))
    if how == "pack":
        made = xt.data.pack(rows, {"x": 5}, 3)
    else:  # 4 batches of each bucket
        made = xt.data.bucket(rows, "x", [1, 3], 3)
        made = made.apply(tf.data.experimental.assert_cardinality(8))
    return made.map(
        lambda r: (*[r["id"].fill(0.0)[:, tf.newaxis] / 20] * 2, tf.cast(r["id"].mask, tf.float32))
    )


@pytest.mark.filterwarnings("ignore:.*ran out of data")
@pytest.mark.parametrize(
    ("how", "save_freq"), [("bucket", 3), ("bucket", "epoch"), ("pack", "epoch")]
)
def test_static_batches_are_those_of_a_training_without_the_interruption(tmp_path, how, save_freq):
    def trained(*stops):
        train = static(tmp_path, how)
        backup = xt.keras.callbacks.BackupAndRestore(tmp_path / "backup", train, save_freq)
        return weights(reused(new_model), train, backup, *stops)

    with pytest.raises(InterruptedError):
        trained(Stop(13))
    assert trained() == weights(reused(new_model), static(tmp_path, how))
    train = static(tmp_path, how).repeat()
    backup = xt.keras.callbacks.BackupAndRestore(tmp_path / "backup", train)
    with pytest.raises(errors.StructureError, match="expected epochs that are whole passes, for"):
        model().fit(train, steps_per_epoch=2, callbacks=[backup], shuffle=False, verbose=0)


def test_an_execution_of_more_steps_than_are_left_counts_those_that_ran(tmp_path):
    def trained(*stops):
        fitted = new_model()
        fitted.compile("sgd", "mse", steps_per_execution=3)
        train = numbers(tmp_path, False)
        backup = xt.keras.callbacks.BackupAndRestore(tmp_path / "backup", train)
        return weights(fitted, train, backup, *stops)

    with pytest.raises(InterruptedError):
        trained(Stop(4))
    assert trained() == weights_without_an_interruption(False)


def test_epochs_that_cannot_go_on_are_an_error(train, tmp_path):
    callback = xt.keras.callbacks.BackupAndRestore(tmp_path / "backup", train, 1)
    options = {"callbacks": [callback], "shuffle": False, "verbose": 0}
    with pytest.raises(errors.StructureError, match=r"got 3 epochs of 3 batches\. Give epochs= to"):
        model().fit(train.repeat(), epochs=3, steps_per_epoch=3, **options)
    made = model()
    made.compile("sgd", "mse", steps_per_execution=3)
    with pytest.raises(errors.StructureError, match=r"that steps_per_execution=3 divides, got 4\."):
        made.fit(train, **options)


def test_backups_within_an_epoch_need_the_number_of_batches(tmp_path):
    table = pa.table({"x": [1.0, 2.0]})
    train = xt.data.batches([table], table.schema, 1).map(lambda r: (r["x"], r["x"]))
    callback = xt.keras.callbacks.BackupAndRestore(tmp_path / "backup", train, save_freq=1)
    with pytest.raises(errors.StructureError, match="assert_cardinality"):
        model().fit(train, callbacks=[callback], shuffle=False, verbose=0)


def test_a_backup_of_other_files_is_an_error(train, tmp_path):
    interrupted(train, tmp_path / "backup", 2, save_freq=1)
    pq.write_table(pa.table({"x": [[1.0]] * 9}), tmp_path / "other.parquet")
    other = xt.data.parquet(tmp_path / "other.parquet", 3).map(lambda r: (r["x"], r["x"]))
    callback = xt.keras.callbacks.BackupAndRestore(tmp_path / "backup", other)
    with pytest.raises(errors.StructureError, match="other files, columns"):
        model().fit(other, callbacks=[callback], shuffle=False, verbose=0)


def test_wrong_uses_are_errors(train, tmp_path):
    with pytest.raises(errors.StructureError, match=r"expected a dataset of xt\.data"):
        xt.keras.callbacks.BackupAndRestore(tmp_path, tf.data.Dataset.range(3))
    with pytest.raises(errors.StructureError, match="save_freq"):
        xt.keras.callbacks.BackupAndRestore(tmp_path, train, save_freq=0)
    interrupted(train, tmp_path / "backup", 2, save_freq=1)
    unbuilt = keras.Sequential([keras.layers.Dense(1)])
    unbuilt.compile("sgd", "mse")
    callback = xt.keras.callbacks.BackupAndRestore(tmp_path / "backup", train)
    with pytest.raises(errors.StructureError, match="Call the model on a batch before fit"):
        unbuilt.fit(train, callbacks=[callback], shuffle=False, verbose=0)


class Recorder(keras.Sequential):
    """Remembers the records with which it was trained."""

    def train_step(self, data):
        self.trained.extend(int(x) for x in data[0].numpy().ravel())
        return super().train_step(data)


def worker(path, backup, index, count, steps=None, epochs=2, **options):
    """Returns a model that one of several workers trained, until it was interrupted."""
    train = xt.data.parquet(path, 3, shuffle=xt.data.Shuffle(2, 12), shard=(index, count))
    train = train.map(lambda r: (r["x"][:, None], r["x"][:, None]))
    made = Recorder([keras.Input([1]), keras.layers.Dense(1, kernel_initializer="zeros")])
    made.compile(keras.optimizers.SGD(1e-7), "mse", run_eagerly=True)
    made.trained = []
    callbacks = [xt.keras.callbacks.BackupAndRestore(backup, train, 1, **options)]
    if steps is not None:
        callbacks.append(Stop(steps))
    with contextlib.suppress(InterruptedError):
        made.fit(train, epochs=epochs, shuffle=False, verbose=0, callbacks=callbacks)
    return made


COUNT = 65  # in 13 row groups, which no number of workers divides


@pytest.fixture
def floats(tmp_path):
    table = pa.table({"x": pa.array(range(COUNT), pa.float32())})
    pq.write_table(table, tmp_path / "it.parquet", row_group_size=5)
    return tmp_path / "it.parquet"


# Some of four workers stop at the end of an epoch in the second case, all after it in the third.
@pytest.mark.parametrize("steps", [(2, 2), (5, 1), (8, 3)])
@pytest.mark.parametrize("counts", [(4, 3, 2), (1, 3, 4), (3, 1, 5)])
def test_another_number_of_workers_trains_with_each_record_once(floats, tmp_path, counts, steps):
    backup, trained = tmp_path / "backup", []
    for count, stop in zip(counts, (*steps, None), strict=True):
        for index in range(count):
            trained += worker(floats, backup, index, count, stop).trained
    assert Counter(trained) == dict.fromkeys(range(COUNT), 2)
    assert not backup.exists()


def test_the_workers_begin_with_the_weights_of_worker_0(floats, tmp_path):
    models = [worker(floats, tmp_path / "backup", i, 3, 4) for i in range(3)]
    assert models[0].get_weights() != models[1].get_weights()
    for index in range(2):
        made = worker(floats, tmp_path / "backup", index, 2, epochs=0)
        assert made.get_weights() == models[0].get_weights()


def test_workers_go_on_from_the_last_step_that_all_have_saved(floats, tmp_path):
    backup = tmp_path / "backup"
    stopped = [worker(floats, backup, i, 3, stop).trained for i, stop in enumerate((4, 3, 4))]
    kept = [trained[: 3 * 3] for trained in stopped]
    for count in (3, 2):
        trained = Counter(itertools.chain(*kept))
        for index in range(count):  # as if all began at once
            copied = tmp_path / f"copy{index}-of-{count}"
            shutil.copytree(backup, copied)
            trained += Counter(worker(floats, copied, index, count).trained)
        assert trained == dict.fromkeys(range(COUNT), 2)


def test_a_worker_that_is_done_waits_for_the_others(floats, tmp_path):
    backup = tmp_path / "backup"
    trained = worker(floats, backup, 1, 2, 7).trained + worker(floats, backup, 0, 2).trained
    for index in range(3):
        trained += worker(floats, backup, index, 3).trained
    assert Counter(trained) == dict.fromkeys(range(COUNT), 2)
    assert not backup.exists()


def test_the_backups_of_a_run_stay_until_all_workers_of_the_next_have_saved(floats, tmp_path):
    backup = tmp_path / "backup"
    before = [worker(floats, backup, i, 2, 3).trained for i in range(2)]
    worker(floats, backup, 0, 3, 2)  # the others die before they save
    rest = [worker(floats, backup, i, 4).trained for i in range(4)]
    assert Counter(itertools.chain(*before, *rest)) == dict.fromkeys(range(COUNT), 2)


def test_a_missing_backup_of_a_worker_is_an_error(floats, tmp_path):
    for index in (0, 2):
        worker(floats, tmp_path / "backup", index, 4, 2)
    text = "backups of all 4 workers.*none of worker 1, 3"
    with pytest.raises(errors.StructureError, match=text):
        worker(floats, tmp_path / "backup", 0, 3)
    worker(floats, tmp_path / "backup", 1, 4, 1)  # the first time that it begins


def test_each_worker_may_have_a_folder_of_its_own(floats, tmp_path):
    trained = []
    for index in range(2):
        for steps in (4, None):
            trained += worker(floats, tmp_path / f"{index}", index, 2, steps).trained
        assert not (tmp_path / f"{index}").exists()
    assert Counter(trained) == dict.fromkeys(range(COUNT), 2)
