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
from tests.keras import kinds

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
    seed, count = cases.seeds(1)[0], cases.count(100, 20)
    never = {"save_freq": "epoch", "dies_after": None, "delay": None}
    assert _exit_code(_train, path, tmp_path / "whole", tmp_path / "never", never) == 0
    whole = (tmp_path / "whole").read_bytes()
    first, killed = 0, 0
    while first < count:
        code = _exit_code(_train_each, path, tmp_path, range(first, count), seed, killed)
        ended = next((i for i in range(first, count) if not _result(tmp_path, i).exists()), count)
        for number in range(first, ended):
            assert _result(tmp_path, number).read_bytes() == whole, _options(seed, number, killed)
            assert not (tmp_path / f"backup{number}").exists()
        assert code == (0 if ended == count else -signal.SIGKILL)
        first, killed = ended, killed + 1 if ended == first else 1


def _options(seed, number, killed):
    """Returns how a training goes that was killed so many times: once, twice or not at all."""
    dice = random.Random(f"{seed}, {number}, {killed}")
    dies = killed < dice.choice([1, 1, 2])
    return {
        "dies_after": dice.randrange(EPOCHS * STEPS) if dies else None,
        "save_freq": dice.choice([1, 2, 3, 5, "epoch"]),
        "delay": dice.choice([None, dice.random() / 50]),
    }


def _result(folder, number):
    return folder / f"{number}"


def _exit_code(function, *args):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["extensor.keras", "pyarrow.parquet", "pytest"])
    process = context.Process(target=function, args=args)
    process.start()
    process.join(120)
    assert process.exitcode is not None, "hangs"
    return process.exitcode


def _train_each(path, folder, numbers, seed, killed):
    """Ends a training that was killed, and begins the next ones in the same process."""
    for number in numbers:
        options = _options(seed, number, killed)
        _train(path, _result(folder, number), folder / f"backup{number}", options)
        killed = 0


def _train(path, result, backup, options):
    train = xt.data.parquet(path, BATCH, shuffle=xt.data.Shuffle(seed=3, window=30))
    train = train.map(lambda r: (r["x"], r["y"])).prefetch(2)
    model = kinds.reused(_model)
    restore = xt.keras.callbacks.BackupAndRestore(backup, train, options["save_freq"])
    callbacks = [restore, _Death(options["dies_after"], options["delay"])]
    model.fit(train, epochs=EPOCHS, callbacks=callbacks, shuffle=False, verbose=0)
    weights = [*model.get_weights(), *(v.numpy() for v in model.optimizer.variables)]
    written = result.with_suffix(".part")
    written.write_bytes(b"".join(np.asarray(weight).tobytes() for weight in weights))
    written.rename(result)


def _model():
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input([4]),
            layers.Dense(8, "tanh"),
            layers.Dropout(0.2, seed=1),
            layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    return model


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
