"""A process killed in write_parquet leaves the old file or the new one, and nothing that stays."""

import ast
import functools
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import extensor as xt
from tests.fuzz import cases

ROWS = 70_000  # more than a row group
NEAR = [".it.parquet.notes", ".it.parquet.", ".other.parquet.0123456789abcdef0123456789abcdef",
        "it.parquet.bak", "it.parque"]  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
def test_a_killed_writer_leaves_the_old_file_or_the_new_one():
    ends = cases.run(__name__, cases.seeds(200, few=20))
    assert {"old", "new"} <= set(ends)


def case(seed):
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "it.parquet"
        for name in NEAR:
            (path.parent / name).write_text("somebody else's")
        is_there = dice.random() < 0.7
        if is_there:
            pq.write_table(pa.table({"word": ["old"] * ROWS, "number": range(ROWS)}), path)
        kind = dice.choice(["any step", "last steps", "time"])
        extent = _extent(kind)
        if kind == "time":
            _killed(path, dice.random() * extent)
        else:
            _ended(_write_counting, path, kind, dice.randrange(extent))
        end = _content(path)
        assert end in (("old", "new") if is_there else (None, "new"))
        if dice.random() < 0.1:
            _overtaken(path)
        assert _ended(_write, path, "last") == 0
        assert _content(path) == "last"
        left = {p.name for p in path.parent.iterdir()} - {path.name, *NEAR}
        assert not left, f"left behind: {left}"
        assert all((path.parent / name).exists() for name in NEAR)
    return end or "none"


def _overtaken(path):
    """Writes the file while another process is in the middle of writing it, which then ends."""
    reading, writing = os.pipe()
    slow = _forked(_write_slowly, path, reading)
    while len(list(path.parent.glob(".it.parquet.*"))) < 3:  # with the two of NEAR
        time.sleep(0.001)
    assert _ended(_write, path, "overtaking") == 0
    assert _content(path) == "overtaking"
    os.write(writing, b"!")
    os.close(reading)
    os.close(writing)
    assert os.waitpid(slow, 0)[1] == 0, "who writes still was disturbed"
    assert _content(path) == "slow"


def _records(word):
    import tensorflow as tf

    return xt.DenseStructuredTensor(
        [ROWS], {"word": tf.fill([ROWS], word), "number": tf.range(ROWS)}
    )


def _write(path, word):
    xt.write_parquet(_records(word), path)


def _write_slowly(path, reading):
    def batches():
        yield _records("slow")
        os.read(reading, 1)
        yield _records("slow")

    xt.write_parquet(batches(), path)


def _write_counting(path, kind, die_at=None):
    """Writes, counts the calls that Python makes, and kills this process at one of them.

    Args:
        path: The file.
        kind: Whether to count "any step" or the "last steps", after the records are made.
        die_at: The number of the call.

    Returns:
        How many calls there were.
    """
    steps = 0

    def count(frame, event, argument):
        nonlocal steps
        if steps == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1

    def batches():
        yield _records("new")
        if kind == "last steps":
            sys.setprofile(count)

    if kind == "any step":
        sys.setprofile(count)
    xt.write_parquet(batches(), path)
    sys.setprofile(None)
    return steps


def _killed(path, seconds):
    reading, writing = os.pipe()
    child = _forked(_write_when_told, path, writing)
    os.read(reading, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)


def _write_when_told(path, writing):
    records = _records("new")
    os.write(writing, b"!")
    xt.write_parquet(records, path)


@functools.cache
def _extent(kind):
    """Returns how many calls Python makes in a write, or how many seconds it takes."""
    reading, writing = os.pipe()

    def measure(path):
        if kind != "time":
            extent = _write_counting(path, kind)
        else:
            records = _records("new")
            begun = time.perf_counter()
            xt.write_parquet(records, path)
            extent = time.perf_counter() - begun
        os.write(writing, repr(extent).encode())

    with tempfile.TemporaryDirectory() as folder:
        assert _ended(measure, Path(folder) / "it.parquet") == 0
    return ast.literal_eval(os.read(reading, 100).decode())


def _ended(function, *args):
    """Calls a function in a process of its own, and returns how that ended."""
    return os.waitpid(_forked(function, *args), 0)[1]


def _forked(function, *args):
    # No tensor was made in this process, so that TensorFlow has no threads to lose.
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function(*args)
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def _content(path):
    """Returns the word that a whole file is full of; None if there is no file."""
    if not path.exists():
        return None
    table = pq.read_table(path, partitioning=None)
    table.validate(full=True)
    (word,) = table["word"].unique().to_pylist()
    assert table.num_rows % ROWS == 0
    assert table["number"][ROWS - 1].as_py() == ROWS - 1
    return word.decode() if isinstance(word, bytes) else word
