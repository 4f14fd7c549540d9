"""The cost of `import extensor` for programs with only plain tensors."""

from __future__ import annotations

import atexit
import functools
import statistics
import subprocess
import sys

from bench.plain import WORK
from bench.row import ProcessRow, Under, Within

_IMPORTS = 5
_IMPORT = """
import sys, time
start = time.perf_counter()
import tensorflow
sys.dont_write_bytecode = False  # bytecode is cached, as in an installed package
between = time.perf_counter()
import extensor
print(time.perf_counter() - between, between - start)
"""
_PAIRS, _TURNS = 3, 41


def rows() -> list[ProcessRow]:
    return [
        ProcessRow("import extensor, vs import tensorflow before it", Under(0.2), _import),
        *(
            ProcessRow(
                f"{name} of plain tensors, with extensor imported, vs without",
                Within(1.05),
                functools.partial(_with_and_without, name),
            )
            for name in WORK
        ),
    ]


def _import() -> tuple[float, float]:
    """Returns the import times of extensor and of TensorFlow in fresh processes."""
    command = [sys.executable, "-c", _IMPORT]
    ours, peer = [], []
    for _ in range(_IMPORTS):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        for times, seconds in zip((ours, peer), done.stdout.split(), strict=True):
            times.append(float(seconds))
    return statistics.median(ours), statistics.median(peer)


def _with_and_without(name: str) -> tuple[float, float]:
    """Returns the median times over all pairs of processes."""
    ours, peer = [], []
    for with_extensor, without in _pairs():
        turns = [(with_extensor, ours), (without, peer)]
        for process in (with_extensor, without):
            _ask(process, name)  # the first request prepares the call
        for _ in range(_TURNS):
            for process, durations in turns:
                durations.append(_ask(process, name))
            turns.reverse()
    for label, durations in (("with", ours), ("without", peer)):
        first, _, third = statistics.quantiles([duration * 1e6 for duration in durations], n=4)
        spread = f"half of the turns took {first:.4g} to {third:.4g} us"
        print(f"[bench]   {name}, {label}: {spread}, in {_PAIRS} processes", file=sys.stderr)
    return statistics.median(ours), statistics.median(peer)


Process = subprocess.Popen[str]


@functools.cache
def _pairs() -> list[tuple[Process, Process]]:
    """Returns processes with and without extensor, which wait for requests."""
    return [(_started("extensor", "extensor.keras"), _started()) for _ in range(_PAIRS)]


def _started(*modules: str) -> Process:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.plain", *modules],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    atexit.register(_stopped, process)
    return process


def _ask(process: Process, name: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    print(name, file=process.stdin, flush=True)
    answer = process.stdout.readline()
    if not answer:
        raise RuntimeError(f"bench.plain stopped with {process.wait()} when asked for {name}.")
    return float(answer)


def _stopped(process: Process) -> None:
    process.communicate()  # closes its input, which ends it
