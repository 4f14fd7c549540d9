"""A shuffled training that is killed anywhere ends with the weights of one that was not."""

import multiprocessing
import os
import random
import signal
import threading

import keras
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import extensor as xt
import extensor.keras
from tests.fuzz import cases

pytestmark = pytest.mark.first

EPOCHS, STEPS, BATCH = 3, 8, 16


@pytest.fixture
def path(tmp_path):
    dice = np.random.default_rng(0)
    count = STEPS * BATCH - 3  # the last batch of an epoch is not full
    x = pa.FixedSizeListArray.from_arrays(dice.random(count * 4), 4).cast(pa.list_(pa.float32(), 4))
    y = pa.array(dice.random(count), pa.float32())
    pq.write_table(pa.table({"x": x, "y": y}), tmp_path / "it.parquet", row_group_size=10)
    return str(tmp_path / "it.parquet")


def test_a_killed_training_ends_with_the_same_weights(path, tmp_path):
    dice = random.Random(cases.seeds(1)[0])
    whole = _trained(path, tmp_path / "whole", tmp_path / "never")
    for number in range(cases.count(100, 20)):
        backup = tmp_path / f"backup{number}"
        killed = 0
        while True:  # killed once, twice or not at all
            step = dice.randrange(EPOCHS * STEPS) if killed < dice.choice([1, 1, 2]) else None
            options = {"save_freq": dice.choice([1, 2, 3, 5, "epoch"]), "dies_after": step}
            options["delay"] = dice.choice([None, dice.random() / 50])
            process = _run(path, tmp_path / f"{number}", backup, options)
            if process.exitcode == 0:
                break
            assert process.exitcode == -signal.SIGKILL
            killed += 1
        assert (tmp_path / f"{number}").read_bytes() == whole, options
        assert not backup.exists()


def _trained(path, result, backup):
    process = _run(path, result, backup, {"save_freq": "epoch", "dies_after": None, "delay": None})
    assert process.exitcode == 0
    return result.read_bytes()


def _run(path, result, backup, options):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["extensor.keras", "pyarrow.parquet", "pytest"])
    process = context.Process(target=_train, args=(path, str(result), str(backup), options))
    process.start()
    process.join(120)
    assert process.exitcode is not None, "hangs"
    return process


def _train(path, result, backup, options):
    train = xt.data.parquet(path, BATCH, shuffle=xt.data.Shuffle(seed=3, window=30))
    train = train.map(lambda r: (r["x"], r["y"])).prefetch(2)
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input([4]),
            keras.layers.Dense(8, "tanh"),
            keras.layers.Dropout(0.2, seed=1),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    restore = xt.keras.callbacks.BackupAndRestore(backup, train, options["save_freq"])
    callbacks = [restore, _Death(options["dies_after"], options["delay"])]
    model.fit(train, epochs=EPOCHS, callbacks=callbacks, shuffle=False, verbose=0)
    weights = [*model.get_weights(), *(v.numpy() for v in model.optimizer.variables)]
    with open(result, "wb") as file:
        file.write(b"".join(np.asarray(weight).tobytes() for weight in weights))


class _Death(keras.callbacks.Callback):
    """Kills the process after so many steps, or some seconds later."""

    def __init__(self, steps, delay):
        super().__init__()
        self.steps, self.delay = steps, delay

    def on_train_batch_end(self, batch, logs=None):
        if self.steps == 0 and self.delay is None:
            _die()
        if self.steps == 0:
            threading.Timer(self.delay, _die).start()
        if self.steps is not None:
            self.steps -= 1


def _die():
    os.kill(os.getpid(), signal.SIGKILL)
