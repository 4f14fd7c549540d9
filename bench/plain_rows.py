"""What `import extensor` costs those who use plain tensors only."""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys

from bench.plain import WORK
from bench.row import ProcessRow, Within

_PAIRS = 7


def rows() -> list[ProcessRow]:
    return [
        ProcessRow(
            f"{name} of plain tensors, with extensor imported, vs without",
            Within(1.05),
            functools.partial(_with_and_without, name),
        )
        for name in WORK
    ]


def _with_and_without(name: str) -> tuple[float, float]:
    ours, peer = _processes()
    return _median(ours, name), _median(peer, name)


def _median(processes: list[dict[str, float]], name: str) -> float:
    return statistics.median(process[name] for process in processes)


@functools.cache
def _processes() -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """Returns what each process measured: with extensor, and without."""
    ours: list[dict[str, float]] = []
    peer: list[dict[str, float]] = []
    turns = [(ours, ["extensor", "extensor.keras"]), (peer, [])]
    for _ in range(_PAIRS):
        for results, modules in turns:
            results.append(_measured(modules))
        turns.reverse()
    for name in WORK:
        for label, results in (("with", ours), ("without", peer)):
            times = sorted(result[name] * 1e6 for result in results)
            spread = f"{times[0]:.4g} to {times[-1]:.4g} us"
            print(f"[bench]   {name}, {label}: {spread} in {_PAIRS} processes", file=sys.stderr)
    return ours, peer


def _measured(modules: list[str]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.plain", *modules], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)
