"""KeyboardInterrupt at any step: it arrives, and afterwards all is as it was."""

import functools
import gc
import importlib
import os
import random
import signal
import sys
import tempfile
import time
import traceback

import keras
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from extensor._data import stream
from tests.apis.kinds import recipes
from tests.fuzz import cases

ROWS = 300


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="interrupts by a timer")
def test_an_interrupt_arrives_and_leaves_all_as_it_was():
    ends = cases.run(__name__, cases.seeds(300))
    assert any("interrupted" in end for end in ends)


def case(seed):
    dice = random.Random(seed)
    action = dice.choice([_fit, _iterate, _iterate, _read, _write, _trace])
    by_time = dice.random() < 0.5
    steps, seconds = _extent(action)
    try:
        # TensorFlow's C++ may abort where Python that it calls raises.
        with cases.theirs("TensorFlow"):
            if by_time:
                signal.signal(signal.SIGALRM, _raise)
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, dice.random() * seconds))
                try:
                    action()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            else:
                _count_steps(action, die_at=dice.randrange(steps))
        end = "finished"
    except KeyboardInterrupt:
        end = "interrupted"
    except SystemError:
        # C++ went on although Python that it called had raised.
        end = "interrupted in TensorFlow"
    except Exception as error:
        # TensorFlow's C++ calls Python, and makes another error of what is raised there.
        if traceback.extract_tb(error.__traceback__)[-1].filename.startswith(cases.SOURCE):
            raise
        end = "interrupted in TensorFlow"
    del action
    if not tf.executing_eagerly():
        # TensorFlow was interrupted between a change of its mode and the `try` that restores the
        # mode. No later case can run in this process.
        with cases.theirs("TensorFlow"):
            os.abort()
    _iterate()
    _read()
    _write()
    until = time.monotonic() + 20
    while stream._passes and time.monotonic() < until:
        gc.collect()
        time.sleep(0.01)
    assert not stream._passes, "a pass is still open"
    left = set(os.listdir(_folder())) - {"it.parquet", "out.parquet"}
    assert not left, f"left behind: {left}"
    return end


def _raise(*_):
    raise KeyboardInterrupt


def _count_steps(action, die_at=None):
    """Counts the calls that Python makes in this thread, and interrupts it at one of them.

    An error that is raised when a function returns to C would be a SystemError: no interrupt
    arrives there.
    """
    steps = 0

    def count(frame, event, argument):
        nonlocal steps
        if event not in ("call", "c_call"):
            return
        steps += 1
        if steps - 1 == die_at:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return steps


@functools.cache
def _extent(action):
    """Returns how many calls Python makes in an action, and how many seconds it takes."""
    action()
    begun = time.perf_counter()
    action()
    seconds = time.perf_counter() - begun
    return _count_steps(action), seconds


@functools.cache
def _folder():
    folder = tempfile.mkdtemp()
    table = pa.table({"x": [[float(i), 1.0] for i in range(ROWS)], "y": [1.0] * ROWS,
                      "s": ["a"] * ROWS})  # fmt: skip
    pq.write_table(table, f"{folder}/it.parquet", row_group_size=50)
    return folder


@functools.cache
def _dataset():
    importlib.import_module("extensor._data.plan").PART_ROWS = 40
    return xt.data.parquet(f"{_folder()}/it.parquet", 20)


@functools.cache
def _model():
    class Sums(xt.keras.Layer):
        def call(self, records):
            return tf.reduce_sum(records["x"], axis=1)[:, tf.newaxis]

    records = _dataset().map(lambda r: (r.with_only("x"), r["y"][:, tf.newaxis]))
    model = xt.keras.Sequential([Sums(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model, records


def _fit():
    model, records = _model()
    model.fit(records, verbose=0)


def _iterate():
    assert sum(batch["x"].shape[0] for batch in _dataset()) == ROWS


def _read():
    assert xt.read_parquet(f"{_folder()}/it.parquet").shape == [ROWS]


def _write():
    xt.write_parquet(recipes(5), f"{_folder()}/out.parquet")


def _trace():
    value = recipes(3)
    assert tf.function(lambda r: r.with_updates({"z": r["score"] * 2}))(value)["z"].shape == [3]
