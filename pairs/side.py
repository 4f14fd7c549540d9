"""One side of a pair: the tests of a file, all without or all with the import."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

CHILD = Path(__file__).with_name("child.py")

# One set of names for both sides, so that ids which come from a set agree.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


BEAT = 30.0
"""Seconds after which a line says how far a file is."""


class Outcome(NamedTuple):
    """What became of a test, or of the file it is in."""

    word: str
    """`passed`, `failed`, `skipped`, `xfailed`, `not collected`, `aborted` or `timed out`."""
    why: str = ""


class ImportFailedError(Exception):
    """What is to be imported before the tests cannot be imported."""


@dataclass(frozen=True)
class Side:
    """Runs files of a suite, each in a process of its own.

    Args:
        root: The suite's folder.
        first: What to import before the tests: a module, or the path of a `.py` file. None for
            nothing.
        seconds: How long one test, or the collection of a file, may take.
        options: More options for pytest.
    """

    root: Path
    first: str | None
    seconds: float
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "without it" if self.first is None else f"with {self.first}"

    def run(self, file: Path, only: Collection[str] | None = None) -> dict[str, Outcome]:
        """Returns what became of each test of a file, by its id, and of the file, by its path.

        A test that ends its process is `aborted`; the tests after it run in another process.

        Args:
            file: The file.
            only: The ids of the tests to run. Default: all.

        Raises:
            ImportFailedError: If `first` cannot be imported.
        """
        of_file = file.relative_to(self.root).as_posix()
        outcomes: dict[str, Outcome] = {}
        while True:
            found, running, end = self._process(file, only, list(outcomes))
            outcomes.update(found)
            if running is None or running in outcomes:
                outcomes.setdefault(of_file, end)
                return outcomes
            outcomes[running] = end

    def _process(
        self, file: Path, only: Collection[str] | None, skip: list[str]
    ) -> tuple[dict[str, Outcome], str | None, Outcome]:
        """Returns what one process found, the test that it died in, and how the process ended."""
        with tempfile.TemporaryDirectory() as folder:
            events = Path(folder, "events")
            events.touch()
            task = {
                "file": str(file),
                "root": str(self.root),
                "first": self.first,
                "events": str(events),
                "only": None if only is None else sorted(only),
                "skip": skip,
                "options": list(self.options),
            }
            task_file = Path(folder, "task")
            task_file.write_text(json.dumps(task))
            return _read(events, self._wait(task_file, events))

    def _wait(self, task: Path, events: Path) -> int | None:
        """Returns the exit status of a process, or None if a test took too long."""
        process = subprocess.Popen(
            [sys.executable, str(CHILD), str(task)],
            cwd=self.root,
            env={**ENVIRONMENT, **os.environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            size, since = 0, time.monotonic()
            beat = since
            while True:
                try:
                    return process.wait(timeout=0.1)
                except subprocess.TimeoutExpired:
                    now = time.monotonic()
                if events.stat().st_size != size:
                    size, since = events.stat().st_size, now
                elif now - since > self.seconds:
                    return None
                if now - beat > BEAT:
                    beat = now
                    done = sum("end" in event for event in _events(events))
                    print(f"[pairs] ... {done} tests {self}", flush=True)
        finally:
            # The tests' own processes too.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _events(path: Path) -> Iterator[dict[str, object]]:
    for line in path.read_text(errors="replace").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:  # cut off when the process died
            return


def _read(events: Path, status: int | None) -> tuple[dict[str, Outcome], str | None, Outcome]:
    outcomes: dict[str, Outcome] = {}
    running: str | None = None
    finished = False
    for event in _events(events):
        if "cannot_import" in event:
            raise ImportFailedError(event["cannot_import"])
        if "start" in event:
            running = str(event["start"])
        elif "end" in event:
            running = None
            outcomes[str(event["end"])] = Outcome(str(event["outcome"]), str(event["why"]))
        finished = finished or "finished" in event
    return outcomes, running, _end(status, finished and running is None)


# Of pytest: all passed, some failed, some were not collected (each says so itself), none was left.
_ORDERLY = {0, 1, 2, 5}


def _end(status: int | None, in_order: bool) -> Outcome:
    if status is None:
        return Outcome("timed out", "nothing happened for too long")
    if in_order and status in _ORDERLY:
        return Outcome("passed")
    return Outcome("aborted", signal.Signals(-status).name if status < 0 else f"exit {status}")
