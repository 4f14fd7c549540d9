"""The backups of all workers of a training, in one folder.

The only worker writes `backup.json`, one of several such as `backup-2-of-4.json`, each atomically
after the weights that it names. When the number of workers changes, a new run begins. The backups
of the run before stay until each worker of the new one has written its first.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable
from typing import Any

from extensor._files.files import atomic_output
from extensor.errors import StructureError

Backup = dict[str, Any]
_Run = tuple[int, int]  # the number of the run, and of its workers

_NAME = re.compile(r"backup(-\d+-of-\d+)?\.json")


class BackupFolder:
    """The backups of the workers of a training.

    Args:
        folder: The folder.
        shard: The number of this worker, and the number of workers.
    """

    def __init__(self, folder: str, shard: tuple[int, int]) -> None:
        self._folder = folder
        self._index, self._count = shard
        self._run = self._number = 0
        self._last: Backup | None = None
        self._has_older = False

    def path(self, name: str) -> str:
        """Returns the path of a file in the folder."""
        return os.path.join(self._folder, name)

    def read(self) -> list[Backup]:
        """Returns the backup of this worker, or those of all workers of a run with other workers.

        They are of one time: all workers have written so many. There is none in the beginning.

        Raises:
            StructureError: If not all workers of such a run have a backup (also a ValueError).
        """
        runs = self._runs()
        self._run = self._number = 0
        self._last = None
        self._has_older = bool(runs)
        whole = [run for run, workers in runs.items() if len(workers) == run[1]]
        own = [run for run, workers in runs.items() if self._is_own(run, workers)]
        if not whole and not own:
            self._expect_none({run: w for run, w in runs.items() if run[1] != self._count})
            return []
        run = max(whole or own)
        workers = runs[run]
        number = min(each["number"] for each in workers.values())
        found = {index: _at(number, each) for index, each in sorted(workers.items())}
        if run[1] != self._count:
            self._run = run[0] + 1
            self._remove([self._own])  # of a run that ended before all had saved
            return list(found.values())
        self._run = run[0]
        self._last = found[self._index]
        self._number = self._last["number"]
        if self._last is not workers[self._index]:
            self._write(self._last)  # the one after it is written again
        return [self._last]

    def _is_own(self, run: _Run, workers: dict[int, Backup]) -> bool:
        return run[1] == self._count and self._index in workers

    def _expect_none(self, runs: dict[_Run, dict[int, Backup]]) -> None:
        for (_, count), workers in runs.items():
            expected = f"backups of all {count} workers, to go on with {self._count}"
            missing = sorted(set(range(count)) - set(workers))
            names = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
            fix = "Give the folder in which all workers saved, or an empty one to begin again."
            received = f"none of worker {names}"
            raise StructureError(f"BackupAndRestore: {self._folder}", expected, received, fix)

    def _runs(self) -> dict[_Run, dict[int, Backup]]:
        """Returns the backups of the workers of each run."""
        runs: dict[_Run, dict[int, Backup]] = {}
        for name in self._names():
            with contextlib.suppress(FileNotFoundError):  # removed by another worker
                with open(self.path(name)) as file:
                    backup: Backup = {"run": 0, "number": 0, "before": None, **json.load(file)}
                index, count = backup["state"]["shard"]
                runs.setdefault((backup["run"], count), {})[index] = {**backup, "file": name}
        return runs

    def _names(self) -> list[str]:
        names = os.listdir(self._folder) if os.path.isdir(self._folder) else []
        return [name for name in names if _NAME.fullmatch(name)]

    def weights_of_next(self, place: str) -> str:
        """Returns the name of the file for the weights of the next backup.

        Args:
            place: What the name has that differs between the backups of one process.
        """
        if self._count == 1:
            return f"{place}.weights.h5"
        return f"{self._index}-of-{self._count}-{self._run}-{self._number + 1}.weights.h5"

    def write(self, backup: Backup) -> None:
        """Writes a backup whose weights are written, and removes what it replaces."""
        self._number += 1
        backup = {**backup, "run": self._run, "number": self._number, "is_done": False}
        if self._last is not None and self._count > 1:
            # Another worker may die before it has written one of this number.
            backup["before"] = {**self._last, "before": None}
        self._last = backup
        self._write(backup)
        self._remove(set(self._own_weights()) - set(_weights_of(backup)))
        if self._has_older:
            runs = self._runs()
            if len(runs.get((self._run, self._count), ())) == self._count:
                self._has_older = False
                self._remove_runs(runs, but=(self._run, self._count))

    @property
    def _own(self) -> str:
        only = self._count == 1
        return "backup.json" if only else f"backup-{self._index}-of-{self._count}.json"

    def _own_weights(self) -> list[str]:
        own = f"{self._index}-of-{self._count}-" if self._count > 1 else ""
        names = os.listdir(self._folder) if os.path.isdir(self._folder) else []
        return [name for name in names if name.startswith(own) and name.endswith(".weights.h5")]

    def _write(self, backup: Backup) -> None:
        with atomic_output(self.path(self._own)) as file:
            file.write(json.dumps(backup).encode())

    @property
    def is_shared(self) -> bool:
        """Whether other workers save in this folder, or the run before did."""
        return any(name != self._own for name in self._names())

    def finish(self) -> None:
        """Removes the backups, when no worker needs them any more.

        The last backup of a worker stays until all are done: if another one dies, the training goes
        on with it.
        """
        if self.is_shared and self._last is not None:
            self._write({**self._last, "is_done": True})
            runs = self._runs()
            workers = runs.get((self._run, self._count), {})
            if len(workers) < self._count or not all(w.get("is_done") for w in workers.values()):
                return
            self._remove_runs(runs)
        self._remove([self._own, *self._own_weights()])
        with contextlib.suppress(OSError):
            os.rmdir(self._folder)

    def _remove_runs(self, runs: dict[_Run, dict[int, Backup]], but: _Run | None = None) -> None:
        for run, workers in runs.items():
            for backup in workers.values():
                if run != but:
                    self._remove([backup["file"], *_weights_of(backup)])

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path(name))


def _at(number: int, backup: Backup) -> Backup:
    """Returns a worker's backup of a number, or its last one if it has none of this number."""
    before = backup["before"]
    return before if before is not None and before["number"] == number else backup


def _weights_of(backup: Backup) -> list[str]:
    before = backup.get("before")
    return [each["weights"] for each in (backup, before) if each is not None]
