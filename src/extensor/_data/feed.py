"""Passes over a plan: parts are read, converted and cut into batches, one part ahead."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.read import read_records
from extensor._data.failing import failing_dataset
from extensor._data.plan import Plan
from extensor._data.slab import batches_of
from extensor.errors import ExtensorError


class Feed:
    """The batches of a plan, as passes load them.

    Args:
        plan: What is read when.
        spec: The spec of a batch.
        splits: As `row_splits_dtype` of `from_arrow`.
        nulls: As in `from_arrow`.
        recipe: The call that makes this feed again in another process, as JSON; "" if nothing
            does.
    """

    def __init__(
        self, plan: Plan, spec: Any, splits: tf.DType, nulls: Any = "error", recipe: str = ""
    ) -> None:
        self.plan = plan
        self.spec = spec
        self.splits = splits
        self.nulls = nulls
        self.recipe = recipe
        self.counts_passes = True
        """Whether each pass begins with the epoch after those of the pass before."""
        self._lock = threading.Lock()

    @property
    def parts(self) -> int:
        """The number of parts of a pass."""
        return self.plan.parts * self.plan.epochs

    def begin(self) -> tuple[int, int]:
        """Returns the epoch and step with which the next pass begins, and counts this pass."""
        plan = self.plan
        with self._lock:
            begun = plan.begun = plan.next
            if self.counts_passes:
                plan.next = begun[0] + plan.epochs, 0
        return begun

    def open(self, epoch: int, step: int) -> Pass:
        """Begins a pass; see `Pass`."""
        return Pass(self, epoch, step)


class Pass:
    """One pass over a feed; parts are loaded by number.

    Args:
        feed: The feed.
        epoch: The number of the first epoch.
        step: The number of the first batch in the pass; batches before it are not read.
    """

    def __init__(self, feed: Feed, epoch: int, step: int) -> None:
        self._feed = feed
        self._plan = feed.plan
        self._epoch = epoch
        self._step = step
        self._lock = threading.Lock()  # while a part is read
        self._ahead: tuple[int, Future[tf.data.Dataset]] | None = None
        self._rows: _Rows | None = None
        self._tail: tuple[int, int, pa.Table] | None = None  # epoch, number of the first record
        self._is_closed = False

    reads_ahead = True
    """Whether the next part is read in the background."""
    is_over = False
    """Whether a source of unknown length has ended."""

    def load(self, number: int) -> tf.data.Dataset:
        """Returns a dataset of the batches that end in a part.

        Args:
            number: The number of the part in the pass.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == number:
            batches = ahead[1].result()
        else:
            if ahead is not None:
                ahead[1].cancel()
            batches = self._load(number)
        if self.reads_ahead and number + 1 < self._feed.parts and not self._is_closed:
            future = submit(self._load, number + 1)
            self._ahead = None if future is None else (number + 1, future)
        return batches

    def close(self) -> None:
        """Closes the files, at once or when the part that is being read is complete."""
        self._is_closed = True
        if (ahead := self._ahead) is not None:
            ahead[1].cancel()
        self._close_files()

    def _close_files(self) -> None:
        # Whoever holds the lock closes the files when it is released. Waiting could block forever:
        # garbage collection may call this anywhere.
        while self._is_closed and self._lock.acquire(blocking=False):
            rows, self._rows, self._tail, self._ahead = self._rows, None, None, None
            if rows is not None:
                rows.close()
            self._lock.release()
            break

    def _load(self, number: int) -> tf.data.Dataset:
        try:
            with self._lock:
                return self._batches(*divmod(number, self._plan.parts))
        finally:
            self._close_files()

    def _batches(self, epoch: int, part: int) -> tf.data.Dataset:
        plan, size = self._plan, self._plan.batch_size
        first = max(0, self._step - epoch * plan.steps) * size
        epoch += self._epoch
        bounds = plan.bounds(epoch)
        stop = int(bounds[part + 1])
        begin = max(first, int(bounds[part]) // size * size)
        is_last = part == plan.parts - 1
        end = stop if is_last and not plan.drop_remainder else stop // size * size
        if begin >= end:
            return empty_dataset()
        if plan.shuffle is None:
            table = self._in_order(epoch, begin, end)
        else:
            table = self._shuffled(epoch, begin, end, part)
        full = (end - begin) // size * size
        made: list[tf.data.Dataset] = []
        if full:
            made += self._converted(table.slice(0, full), size, epoch, begin)
        if begin + full < end:
            made += self._converted(table.slice(full), end - begin - full, epoch, begin + full)
        return functools.reduce(_joined, made)

    def _in_order(self, epoch: int, begin: int, end: int) -> pa.Table:
        rows, self._rows = self._rows, None
        if rows is None or not rows.can_reach(epoch, begin):
            if rows is not None:
                rows.close()
            rows = _Rows(self._plan, epoch, begin)
        table = rows.take(begin, end)
        if end < self._plan.num_rows - self._plan.num_rows % self._plan.batch_size:
            self._rows = rows
        else:
            rows.close()
        return table

    def _shuffled(self, epoch: int, begin: int, end: int, part: int) -> pa.Table:
        """Returns records of an epoch, and keeps those of the part that the next one needs."""
        plan, bounds = self._plan, self._plan.bounds(epoch)
        tables: list[pa.Table] = []
        position = begin
        tail, self._tail = self._tail, None
        if tail is not None and tail[0] == epoch and tail[1] == begin:
            tables.append(tail[2])
            position += tail[2].num_rows
        first = part
        while bounds[first] > position:
            first -= 1
        for window in range(first, part + 1):
            table = plan.window(epoch, window)
            tables.append(table.slice(max(0, position - int(bounds[window]))))
            position = int(bounds[window + 1])
        table = pa.concat_tables(tables)
        if end - begin < table.num_rows:
            # A copy, because a slice keeps the memory of the whole.
            rest = table.slice(end - begin)
            self._tail = epoch, end, rest.take(pa.array(range(rest.num_rows), pa.int64()))
        return table.slice(0, end - begin)

    def _converted(
        self, table: pa.Table, size: int, epoch: int, first: int
    ) -> list[tf.data.Dataset]:
        """Returns datasets of the batches in a table, all of one size.

        Where records cannot be converted, the last dataset raises the error, after the batches
        before it.

        Args:
            table: The records.
            size: The number of records in a batch.
            epoch: The number of the epoch.
            first: The number of the table's first record in the epoch.
        """
        feed = self._feed
        try:
            return [batches_of(read_records(table, feed.splits, feed.nulls), size, feed.spec)]
        except ExtensorError as error:
            if table.num_rows == size:
                place = self._plan.place(epoch, first + self._first_wrong(table))
                return [failing_dataset(_located(error, first, place), feed.spec)]
            made: list[tf.data.Dataset] = []
            for at in range(0, table.num_rows, size):
                made += self._converted(table.slice(at, size), size, epoch, first + at)
                if len(made) > at // size and self._fails(table.slice(at, size)):
                    break
            return made

    def _first_wrong(self, table: pa.Table) -> int:
        """Returns the number of the first record that cannot be converted."""
        good, bad = 0, table.num_rows
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (good, middle) if self._fails(table.slice(0, middle)) else (middle, bad)
        return bad - 1

    def _fails(self, table: pa.Table) -> bool:
        try:
            read_records(table, self._feed.splits, self._feed.nulls)
        except ExtensorError:
            return True
        return False


class _Rows:
    """The records of an epoch without shuffling, from one of them on."""

    def __init__(self, plan: Plan, epoch: int, position: int) -> None:
        groups, skipped = plan.rows_from(position)
        self._pieces = plan.source.read(groups, plan.piece_rows)
        self._pending: list[pa.RecordBatch] = []
        self._epoch = epoch
        self._position = position - skipped
        self._reached = position - skipped + int(plan.source.rows[groups[0]])

    def can_reach(self, epoch: int, position: int) -> bool:
        """Returns whether no row group needs to be skipped to read on from a position."""
        return self._epoch == epoch and self._position <= position <= self._reached

    def take(self, begin: int, end: int) -> pa.Table:
        """Returns the records from one to another; those before are dropped."""
        found: list[pa.RecordBatch] = []
        while self._position < end:
            piece = self._pending.pop() if self._pending else next(self._pieces)
            skipped = min(max(0, begin - self._position), piece.num_rows)
            taken = min(piece.num_rows, end - self._position)
            if skipped < taken:
                found.append(piece.slice(skipped, taken - skipped))
            if taken < piece.num_rows:
                self._pending.append(piece.slice(taken))
            self._position += taken
        self._reached = max(self._reached, end)
        return pa.Table.from_batches(found)

    def close(self) -> None:
        """Closes the file."""
        self._pending.clear()
        close: Callable[[], None] = getattr(self._pieces, "close", lambda: None)
        close()


def _joined(one: tf.data.Dataset, other: tf.data.Dataset) -> tf.data.Dataset:
    return one.concatenate(other)


def _located(error: ExtensorError, first: int, place: str) -> ExtensorError:
    """Returns an error that says where the record is that cannot be converted."""
    where = f"of the batch that begins with record {first} ({place})"
    if error.received is None:
        return type(error)(f"{error} The record is one {where}.")
    return type(error)(
        path=error.path,
        expected=error.expected,
        received=f"{error.received} {where}",
        mend=error.mend,
    )


@functools.cache
def empty_dataset() -> tf.data.Dataset:
    """Returns a dataset without elements."""
    return tf.data.Dataset.range(0)


def submit(read: Callable[[int], Any], number: int) -> Future[Any] | None:
    """Reads a part in the background; returns None if Python is exiting."""
    with contextlib.suppress(RuntimeError):
        return _readers().submit(read, number)
    return None


@functools.cache
def _readers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(8, "extensor-read")


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_readers.cache_clear)
