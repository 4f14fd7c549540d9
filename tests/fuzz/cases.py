"""Runs hostile cases in processes that they may abort or hang, and names the seed of each fault.

A subject is a module with a function `case(seed)`, which returns in a word or two how the case
ended well, and raises where something does not hold. One case again, with its whole traceback:

    python -m tests.fuzz.cases tests.fuzz.test_parquet_files 12345
"""

import collections
import contextlib
import faulthandler
import importlib
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import extensor as xt

# The only place that says how many cases there are: the same few in each `make test`, and in
# `make test-all` as many as were asked for, of seeds that nobody has tried before.
ALL = os.environ.get("EXTENSOR_HYPOTHESIS_PROFILE") == "all"
FEW = 50
SOURCE = str(Path(xt.__file__).parent)

_GIVEN_UP = 5  # faults after which a subject is not tried further
_results = None  # where this process reports to, if another one waits for it


def count(many, few=FEW):
    """Returns how often something is done: `few` times, or `many` in the exhaustive profile."""
    return many if ALL else few


def seeds(many, few=FEW):
    """Returns the seeds of `few` cases, or of `many` new ones in the exhaustive profile."""
    first = random.SystemRandom().randrange(1 << 31) if ALL else 0
    return range(first, first + count(many, few))


@contextlib.contextmanager
def theirs(name):
    """Holds calls of another library that may abort the process outside of our code: no fault."""
    _report("theirs", name)
    try:
        yield
    finally:
        _report("theirs", None)


def run(subject, seeds, timeout=120, alone=False):
    """Runs cases one after another in one process, and in a new one after each that ends it.

    Args:
        subject: The name of the module that has the function `case`.
        seeds: The seeds of the cases, or their names.
        timeout: Seconds after which a case hangs.
        alone: Whether each case has a process of its own.

    Returns:
        A Counter of how the cases ended.

    Raises:
        AssertionError: That tells the seed and the traceback of each case that failed.
    """
    waiting, ends, faults = list(seeds), collections.Counter(), []
    while waiting and len(faults) < _GIVEN_UP:
        batch = waiting[: 1 if alone else None]
        with tempfile.TemporaryDirectory() as folder, _worker(subject, batch, folder) as worker:
            for seed in batch:
                end, fault = worker.next_end(timeout)
                waiting.pop(0)
                if fault is None:
                    ends[end] += 1
                else:
                    faults.append(f"{sys.executable} -m tests.fuzz.cases {subject} {seed}\n{fault}")
                if worker.ended or len(faults) == _GIVEN_UP:
                    break
    print(f"{subject}: {dict(ends.most_common())}")
    if faults:
        raise AssertionError("\n\n".join([f"{len(faults)} of the cases failed.", *faults]))
    return ends


class _Worker:
    def __init__(self, process, results, log):
        self.process, self._results, self._log, self.ended = process, results, log, False

    def next_end(self, timeout):
        """Waits until a case ends, and returns how it did and what was wrong."""
        inside = None
        while self._results.poll(timeout):
            try:
                kind, *rest = self._results.recv()
            except (EOFError, ConnectionResetError):
                self.ended = True
                self.process.join()
                if inside and SOURCE not in self._stack().rpartition("Current thread")[2]:
                    return f"{inside} aborted", None
                return None, f"exit status {self.process.exitcode}\n{self._stack()}"
            if kind == "end":
                return rest
            inside = rest[0]
        self.ended = True
        os.kill(self.process.pid, signal.SIGABRT)  # prints where each thread is
        self.process.join(10)
        if inside and SOURCE not in self._stack():
            return f"{inside} hung", None
        return None, f"nothing came for {timeout} s\n{self._stack()}"

    def _stack(self):
        return self._log.read_text(errors="replace").rpartition("Fatal Python error")[2][-8000:]


@contextlib.contextmanager
def _worker(subject, seeds, folder):
    # The server has imported all and run nothing, so that a process costs milliseconds.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["extensor.keras", "pyarrow.parquet", "pytest"])
    theirs, mine = context.Pipe()
    log = Path(folder) / "log"
    process = context.Process(target=_work, args=(subject, list(seeds), mine, log))
    process.start()
    mine.close()
    try:
        yield _Worker(process, theirs, log)
    finally:
        process.kill()
        process.join()


def _work(subject, seeds, results, log):
    global _results
    _results = results
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable(2)
    case = importlib.import_module(subject).case
    for seed in seeds:
        end = fault = None
        try:
            end = case(seed)
        except BaseException:
            fault = traceback.format_exc()
        _report("end", end, fault)
    os._exit(0)  # what takes long to end is a subject of its own


def _report(*message):
    if _results is not None:
        _results.send(message)


def is_ours(error):
    """Returns whether an error came up in extensor's own source, or in what that asked for.

    The files of `_tf` and `_patches` stand in for functions of TensorFlow, and pass its errors on.
    TensorFlow must not filter tracebacks.
    """
    passed_on = (f"{SOURCE}/_tf/", f"{SOURCE}/_patches/")
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return any(f.startswith(SOURCE) and not f.startswith(passed_on) for f in files)


if __name__ == "__main__":
    faulthandler.enable()
    for seed in sys.argv[2:]:
        case = importlib.import_module(sys.argv[1]).case
        print(seed, case(int(seed) if seed.isdecimal() else seed))
