"""Writes what tests cost to `build/`: `make durations`.

A plugin of pytest. `build/durations.txt` has a row for each file, `build/durations-of-tests.txt`
one for each test that takes a tenth of a second. Each process of pytest-xdist collects all files,
and the processes run side by side: the sums are seconds of work, not of waiting.
"""

import collections
import time
from pathlib import Path

import pytest

_PARTS = ("collection", "setup", "call", "teardown")
_FOLDER = Path("build")

# Seconds by file and part, and by test.
_files = collections.defaultdict(collections.Counter)
_tests = collections.Counter()


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """Measures the import of a file, and the making of its tests."""
    began = time.perf_counter()
    yield
    # Folders collect nothing themselves; classes belong to their file.
    if isinstance(collector, pytest.File):
        _files[collector.nodeid]["collection"] += time.perf_counter() - began


def pytest_runtest_logreport(report):
    """Adds the time of a part of a test."""
    _files[report.nodeid.split("::")[0]][report.when] += report.duration
    _tests[report.nodeid] += report.duration


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Adds the times that another process took to collect."""
    for file, seconds in getattr(node, "workeroutput", {}).get("collection", {}).items():
        _files[file]["collection"] += seconds


def pytest_sessionfinish(session):
    """Sends the times of this process to the first one, which writes the tables."""
    if hasattr(session.config, "workeroutput"):
        collected = {file: seconds["collection"] for file, seconds in _files.items()}
        session.config.workeroutput["collection"] = collected
        return
    counts = collections.Counter(test.split("::")[0] for test in _tests)
    total = sum(_files.values(), collections.Counter())
    rows = sorted(_files.items(), key=lambda row: -row[1].total())
    head = " ".join(f"{cell:>10}" for cell in ("seconds", *_PARTS, "tests"))
    _write(
        "durations",
        [
            f"{head}  file",
            _row("all files", total, len(_tests)),
            *(_row(file, seconds, counts[file]) for file, seconds in rows),
        ],
    )
    slow = [f"{took:8.1f}  {test}" for test, took in _tests.most_common() if took >= 0.1]
    _write("durations-of-tests", slow)


def _row(file, seconds, count):
    cells = (seconds.total(), *(seconds[part] for part in _PARTS))
    return " ".join(f"{cell:10.1f}" for cell in cells) + f" {count:10}  {file}"


def _write(name, lines):
    _FOLDER.mkdir(exist_ok=True)
    file = _FOLDER / f"{name}.txt"
    file.write_text("\n".join(lines) + "\n")
    print(f"\n[durations] wrote {file}", end="")
