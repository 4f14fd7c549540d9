"""A callback with which training that was interrupted goes on at the exact batch."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable
from typing import Any, Literal

import keras
import tensorflow as tf

from extensor._data.state import expect_its_batches, feed_of
from extensor._files.output import atomic_output
from extensor._keras._keras_private import begin_with_epoch, keep_names_not_saved
from extensor.errors import StructureError


class BackupAndRestore(keras.callbacks.Callback):
    """Saves the training, and continues it when `fit` is called in a new process.

    `keras.callbacks.BackupAndRestore` restores the weights only; the dataset begins at its
    beginning again. This callback also saves how many batches were trained with, which is fewer
    than were read ahead, and lets the dataset begin with the next one. So the weights become those
    of a training without the interruption.

    Several workers, each with its own `shard` of the records, give one folder. If it has the
    backups of another number of workers, those that train now divide the records that were not
    trained with yet, and begin with the weights of worker 0. Workers that train together, in
    equally many steps, go on from the last step that all have saved.

    Give it as the first callback. The metrics of the epoch that was interrupted are those of the
    rest of it.

    Args:
        backup_dir: The folder of the backup. All workers have the same one, or each has its own.
        dataset: The dataset of `fit`, from a function of `xt.data`, or made of such a dataset by
            `map` and other methods that keep its batches.
        save_freq: When to save: "epoch", or after so many batches, if the dataset's number of
            batches is known.
        delete_checkpoint: Whether to remove the backup when `fit` is complete.

    Raises:
        StructureError: If the dataset is not from `xt.data`, or `save_freq` is not one of these. In
            `fit`: if the number of batches is not known but needed, or the backup of a worker is
            missing (also a ValueError).

    >>> import keras
    >>> import extensor as xt
    >>> import pathlib
    >>> folder = pathlib.Path(".")
    >>> records = xt.DenseStructuredTensor([4], {"x": [[1.0], [2.0], [3.0], [4.0]]})
    >>> xt.write_parquet(records, folder / "numbers.parquet")
    >>> train = xt.data.parquet(folder / "numbers.parquet", 2).map(lambda r: (r["x"], r["x"]))
    >>> model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> backup = xt.keras.callbacks.BackupAndRestore(folder / "backup", train, save_freq=1)
    >>> history = model.fit(train, epochs=2, shuffle=False, callbacks=[backup], verbose=0)
    """

    def __init__(
        self,
        backup_dir: str | os.PathLike[str],
        dataset: tf.data.Dataset,
        save_freq: Literal["epoch"] | int = "epoch",
        delete_checkpoint: bool = True,
    ) -> None:
        super().__init__()
        if save_freq != "epoch" and not (isinstance(save_freq, int) and save_freq > 0):
            expected, fix = '"epoch", or a positive number of batches', 'Give save_freq="epoch".'
            raise StructureError("BackupAndRestore: save_freq", expected, repr(save_freq), fix)
        self._plan: Any = feed_of(dataset).plan  # of files, or of a source that is read in order
        expect_its_batches(dataset)
        self._path = os.fspath(backup_dir)
        self._folder = _BackupFolder(self._path, self._plan.shard)
        self._length = int(dataset.cardinality())
        self._save_freq: Any = save_freq
        self._deletes = delete_checkpoint
        self._begin = (0, 0)  # where the pass of the dataset began
        self._before_pass = 0  # batches of the epochs before it
        self._before = 0  # batches of the epochs before this one
        self._skipped = 0  # batches of this epoch before the interruption
        self._seen = 0  # batches of this epoch since then
        self._saved = 0  # batches when it was saved
        self._epoch = 0
        self._offset = 0  # of the epochs of fit, from the passes of the dataset
        self._left: int | None = None  # batches of this epoch, if earlier runs have read others
        self._has_stopped = False

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Restores the backup, if there is one."""
        self._before = self._before_pass = self._skipped = self._seen = self._saved = 0
        params: Any = self.params
        if self._save_freq != "epoch" and not params.get("steps"):
            expected = "a dataset of which the number of batches is known, to see epochs end"
            received = "one of unknown cardinality"
            fix = (
                'Give save_freq="epoch", or say how many there are: '
                "dataset.apply(tf.data.experimental.assert_cardinality(count))."
            )
            raise StructureError("BackupAndRestore: save_freq", expected, received, fix)
        self._expect_passes()
        if backups := self._folder.read():
            states, backup = [each["state"] for each in backups], backups[0]
            is_own = states[0]["shard"] == list(self._plan.shard)
            self._plan.begin_at(states[0] if is_own else states)
            self._restore_weights(self._folder.path(backup["weights"]))
            for variable, value in zip(_seeds(self.model), backup["seeds"], strict=True):
                variable.assign(value)
            self._skipped = backup["batch"] if is_own else 0
            self._offset = backup["epoch"] - states[0]["epoch"] // self._plan.epochs
            if is_own:
                begin_with_epoch(self.model, backup["epoch"])
            else:
                self._skip_empty()
                begin_with_epoch(self.model, self._epoch_of_next)
            self._epoch = self._epoch_of_next - 1
        self._begin = self._plan.position.next

    def _expect_passes(self) -> None:
        """Raises for epochs that are neither passes of the dataset nor parts of one pass."""
        model: Any = self.model
        params: Any = self.params
        steps, execution = params.get("steps"), model.steps_per_execution
        if not self._has_pass_each_epoch and 0 < self._length < steps * params["epochs"]:
            expected = f"epochs of {self._length} batches, or all epochs within one pass of them"
            received = f"{params['epochs']} epochs of {steps} batches"
            fix = "Give epochs= to the function of xt.data, in place of repeat()."
            raise StructureError("BackupAndRestore: steps_per_epoch", expected, received, fix)
        if not (self._plan.counts_steps or self._has_pass_each_epoch):
            expected = "epochs that are whole passes, for batches of xt.data.bucket or xt.data.pack"
            received, fix = f"epochs of {steps} batches", "Leave steps_per_epoch out."
            raise StructureError("BackupAndRestore: steps_per_epoch", expected, received, fix)
        if self._save_freq != "epoch" and steps % execution:
            expected = f"batches of an epoch that steps_per_execution={execution} divides"
            fix = 'Give save_freq="epoch", or another steps_per_execution.'
            raise StructureError("BackupAndRestore: save_freq", expected, str(steps), fix)

    @property
    def _has_pass_each_epoch(self) -> bool:
        """Whether each epoch of `fit` is a pass over the dataset."""
        params: Any = self.params
        return params.get("steps") in (None, self._length)

    @property
    def _epoch_of_next(self) -> int:
        """The epoch of `fit` that the next pass is."""
        return self._plan.position.next[0] // self._plan.epochs + self._offset

    def _skip_empty(self) -> None:
        """Lets the next pass be one that has batches for this worker, if whole ones have."""
        plan = self._plan
        while plan.steps and not self._steps_left():
            plan.skip_pass()

    def _steps_left(self) -> int:
        """Returns the number of batches in the next pass."""
        epoch, step = self._plan.position.next
        return self._plan.steps_before(epoch, self._plan.epochs) - step

    def _restore_weights(self, path: str) -> None:
        model: Any = self.model
        if not model.built:
            received = f"{model.name}, which has no variables yet"
            fix = "Call the model on a batch before fit."
            raise StructureError("BackupAndRestore", "a model that is built", received, fix)
        if model.optimizer is not None and not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        model.load_weights(path)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Counts the batches of an epoch from its beginning."""
        begin_with_epoch(self.model, None)  # the next fit
        self._epoch, self._seen = epoch, 0
        self._left = None
        params: Any = self.params
        if self._plan.position.earlier_runs and params.get("steps") == self._length:
            self._skip_empty()
            self._left = self._steps_left()
        if self._has_pass_each_epoch:  # which has fewer batches than are read, after take
            self._begin, self._before_pass = self._plan.position.next, self._before

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Saves the training if it is time."""
        params: Any = self.params
        steps = params.get("steps")
        # Several steps in one execution may be more than are left.
        self._seen = min(batch + 1, steps - self._skipped) if steps else batch + 1
        number = self._skipped + self._seen
        is_last = bool(steps) and number >= steps
        if self._left is not None:
            is_last = self._seen >= self._left
        if self._save_freq != "epoch":
            count = self._before + self._seen
            if count - self._saved >= self._save_freq:
                self._saved = count
                # After the last batch, the dataset goes on with the next epoch, and so does fit.
                self._save(*(self._epoch + 1, 0) if is_last else (self._epoch, number))
        if is_last and (self._skipped or self._left is not None):
            # Keras would ask for as many batches as in a whole epoch.
            model: Any = self.model
            model.stop_training = self._has_stopped = True

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Saves the training if it is time."""
        model: Any = self.model
        params: Any = self.params
        if self._has_stopped:
            model.stop_training = self._has_stopped = False
        if self._left is not None and self._epoch_of_next >= params["epochs"]:
            model.stop_training = True
        self._before += self._seen
        self._seen = self._skipped = 0
        if self._save_freq == "epoch":
            self._save(epoch + 1, 0)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Removes the backup."""
        begin_with_epoch(self.model, None)
        if self._deletes:
            if self._folder.is_shared:  # others may still die
                self._save(self._epoch + 1, 0)
            self._folder.finish()

    def _save(self, epoch: int, batch: int) -> None:
        os.makedirs(self._path, exist_ok=True)
        count = self._before + self._seen
        if batch == 0 and self._has_pass_each_epoch:
            state = self._plan.state_at(*self._plan.position.next)
        else:
            state = self._plan.state(count - self._before_pass, self._begin)
        weights = self._folder.weights_of_next(f"{state['epoch']}-{state['step']}-{count}")
        model: Any = self.model
        model.save_weights(self._folder.path(weights), overwrite=True)
        keep_names_not_saved()
        # The backup is complete when its file names the weights.
        seeds = [variable.numpy().tolist() for variable in _seeds(model)]
        self._folder.write(
            {"epoch": epoch, "batch": batch, "weights": weights, "seeds": seeds, "state": state}
        )


def _seeds(model: Any) -> list[Any]:
    """Returns the states of the random numbers of a model, which `save_weights` leaves out."""
    return [variable for variable in model.variables if variable.name == "seed_generator_state"]


_Backup = dict[str, Any]
_Run = tuple[int, int]  # the number of the run, and of its workers

_NAME = re.compile(r"backup(-\d+-of-\d+)?\.json")


class _BackupFolder:
    """The backups of the workers of a training.

    Args:
        folder: The folder.
        shard: The number of this worker, and the number of workers.
    """

    def __init__(self, folder: str, shard: tuple[int, int]) -> None:
        self._folder = folder
        self._index, self._count = shard
        self._run = self._number = 0
        self._last: _Backup | None = None
        self._has_older = False

    def path(self, name: str) -> str:
        """Returns the path of a file in the folder."""
        return os.path.join(self._folder, name)

    def read(self) -> list[_Backup]:
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

    def _is_own(self, run: _Run, workers: dict[int, _Backup]) -> bool:
        return run[1] == self._count and self._index in workers

    def _expect_none(self, runs: dict[_Run, dict[int, _Backup]]) -> None:
        for (_, count), workers in runs.items():
            expected = f"backups of all {count} workers, to go on with {self._count}"
            missing = sorted(set(range(count)) - set(workers))
            names = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
            fix = "Give the folder in which all workers saved, or an empty one to begin again."
            received = f"none of worker {names}"
            raise StructureError(f"BackupAndRestore: {self._folder}", expected, received, fix)

    def _runs(self) -> dict[_Run, dict[int, _Backup]]:
        """Returns the backups of the workers of each run."""
        runs: dict[_Run, dict[int, _Backup]] = {}
        for name in self._names():
            with contextlib.suppress(FileNotFoundError):  # removed by another worker
                with open(self.path(name)) as file:
                    backup: _Backup = {"run": 0, "number": 0, "before": None, **json.load(file)}
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

    def write(self, backup: _Backup) -> None:
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

    def _write(self, backup: _Backup) -> None:
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

    def _remove_runs(self, runs: dict[_Run, dict[int, _Backup]], but: _Run | None = None) -> None:
        for run, workers in runs.items():
            for backup in workers.values():
                if run != but:
                    self._remove([backup["file"], *_weights_of(backup)])

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path(name))


def _at(number: int, backup: _Backup) -> _Backup:
    """Returns a worker's backup of a number, or its last one if it has none of this number."""
    before = backup["before"]
    return before if before is not None and before["number"] == number else backup


def _weights_of(backup: _Backup) -> list[str]:
    before = backup.get("before")
    return [each["weights"] for each in (backup, before) if each is not None]
