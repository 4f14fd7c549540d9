"""Values, specs and datasets in forked and spawned processes, and by pickle and cloudpickle."""

import atexit
import copy
import faulthandler
import multiprocessing
import os
import pickle
import random
import signal
import sys
import tempfile
import threading
import time

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from tests.apis.kinds import KINDS, assert_same
from tests.fuzz import cases

LIMIT = 60  # seconds after which a process that was begun here hangs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")
def test_other_processes_take_up_what_this_one_had():
    ends = cases.run(__name__, cases.seeds(300, few=40), alone=cases.ALL)
    assert {"fork", "spawn", "pickle"} <= set(ends)


def case(seed):
    dice = random.Random(seed)
    kind = dice.choice(["pickle"] * 20 + ["fork"] * 20 + ["spawn"])
    {"pickle": _pickled, "fork": _forked, "spawn": _spawned}[kind](dice)
    return kind


def _pickled(dice):
    kind = dice.choice(KINDS)
    made = _local() if dice.random() < 0.5 else None
    value = made(tf.ones([2]), "kg") if made else kind.make(dice.randrange(1, 4))
    spec = tf.type_spec_from_value(value)
    copies = [copy.copy, copy.deepcopy, lambda x: cloudpickle.loads(cloudpickle.dumps(x))]
    if not made:
        copies.append(lambda x: pickle.loads(pickle.dumps(x, dice.randrange(2, 6))))
    again = dice.choice(copies)
    assert again(spec) == spec
    assert hash(again(spec)) == hash(spec)
    other = again(value)
    assert tf.type_spec_from_value(other) == spec
    assert _numbers(other) == _numbers(value)
    # What came back is a whole value.
    assert tf.type_spec_from_value(tf.function(lambda x: x)(other)).is_compatible_with(value)
    if not made:
        assert_same(other, value)


def _local():
    @xt.extension_type
    class Local:
        x: tf.Tensor
        unit: str = "g"

    return Local


def _numbers(value):
    return [repr(t.numpy().tolist()) for t in tf.nest.flatten(value, expand_composites=True)]


def _forked(dice):
    """Forks in the middle of things; the child asks Arrow and extensor, and ends as Python ends."""
    path = _file(dice.choice([10, 100_000]))
    dataset = xt.data.parquet(path, 10)
    iterators = [iter(dataset) for _ in range(dice.randrange(3))]
    for iterator in iterators:
        next(iterator)
    busy = dice.random() < 0.5
    stop = threading.Event()
    if busy:  # Python is called by TensorFlow's threads while it forks
        thread = threading.Thread(target=_passes, args=(dataset, stop), daemon=True)
        thread.start()
        time.sleep(dice.random() / 20)
    child = os.fork()
    if child == 0:
        _as_child(path)
    stop.set()
    assert _status(child) == 0
    if busy:
        thread.join(LIMIT)
        assert not thread.is_alive()
    assert next(iter(dataset))["n"].numpy().tolist() == list(range(10))


def _as_child(path):
    """Does in a forked process what needs no thread of TensorFlow, and ends it."""
    status = 1
    try:
        faulthandler.dump_traceback_later(LIMIT / 2, exit=True)
        # The records' schema and spec, which no op makes.
        spec = xt.spec_from_schema(pq.read_schema(path), 10)
        assert pickle.loads(pickle.dumps(spec)) == spec
        with tempfile.TemporaryDirectory() as folder:
            from extensor._formats.parquet.plan import ParquetPlan
            from extensor._formats.parquet.read import table_of
            from extensor._formats.parquet.write import write

            plan = ParquetPlan(path)
            (file,) = plan.files
            table = table_of(plan, file, file.row_groups)
            write(table.to_batches()[:1], os.path.join(folder, "it.parquet"))
        atexit._run_exitfuncs()
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _passes(dataset, stop):
    while not stop.is_set():
        for _ in dataset.take(3):
            pass


def _spawned(dice):
    """Hands values to a new process, and has them back."""
    values = [dice.choice(KINDS).make(2) for _ in range(2)]
    context = multiprocessing.get_context(dice.choice(["spawn", "forkserver"]))
    with context.Pool(1) as pool:
        for value, other in zip(values, pool.map(_doubled, values), strict=True):
            assert_same(other, value)
        path = _file(30)
        assert pool.apply_async(_sum, (path,)).get(LIMIT) == sum(range(30))


def _doubled(value):
    return tf.function(lambda x: x)(value)


def _sum(path):
    return sum(int(tf.reduce_sum(batch["n"])) for batch in xt.data.parquet(path, 7))


def _file(rows):
    path = os.path.join(tempfile.mkdtemp(), "it.parquet")
    table = pa.table({"n": range(rows), "s": ["a"] * rows, "l": [[i] for i in range(rows)]})
    pq.write_table(table, path)
    return path


def _status(child):
    """Waits for a process, and kills it if it does not end."""
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]
