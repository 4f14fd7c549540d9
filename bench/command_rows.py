"""The command: its help, and the statistics that it prints."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

from bench.row import ProcessRow, Row, Under

_RUNS = 7


def rows() -> list[Row | ProcessRow]:
    """Returns the rows of the table."""
    return [
        ProcessRow("extensor --help, CPU of the process, vs import click", Under(0.5), _help),
    ]


def _help() -> tuple[float, float]:
    """Returns the CPU time of the help and of an import of click, in fresh processes."""
    ours = "from extensor_command.main import main; main(['--help'])"
    found = ([], [])
    for _ in range(_RUNS):
        for code, times in zip((ours, "import click"), found, strict=True):
            times.append(_cpu_of(code))
    return statistics.median(found[0]), statistics.median(found[1])


def _cpu_of(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
