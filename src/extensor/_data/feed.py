"""Passes over a plan: parts are read, converted and cut into batches, one part ahead."""

from __future__ import annotations

import abc
import functools
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.null_policy import policies_of
from extensor._data.ahead import ReadAhead, empty_dataset
from extensor._data.conversion import Conversion, concatenate
from extensor._data.plan import Plan, rows_after, take_rows
from extensor._data.position import Positioned, Resumable
from extensor._files.ranges import FetchAhead
from extensor._pruning.fields import FieldsUsed


class Feed(abc.ABC):
    """The batches of a plan, as passes load them.

    Args:
        plan: What is read when.
        spec: The spec of a batch.
        serialized: The serialized form, of which another process makes this feed; "" if none can.
    """

    parts: int | None = None
    """The number of parts of a pass, if it is known; the last one is the last batch."""

    def __init__(self, plan: Resumable, spec: tf.TypeSpec, serialized: str = "") -> None:
        self.plan = plan
        self.spec = spec
        self.serialized = serialized
        self.counts_passes = True
        """Whether each pass begins with the epoch after those of the pass before."""
        self._lock = threading.Lock()

    @property
    def count(self) -> int | None:
        """The number of batches in the dataset, if it is known."""
        return None

    @abc.abstractmethod
    def open(self, epoch: int, step: int) -> ReadAhead:
        """Begins a pass with an epoch and the number of a batch in the pass."""

    def begin(self) -> tuple[int, int]:
        """Returns the epoch and step with which the next pass begins, and counts this pass."""
        position = self.plan.position
        self.plan.begin(position.next)
        with self._lock:
            begun = position.next
            if self.counts_passes:
                position.next = self.plan.pass_after(begun)
        return begun

    def count_restored(self, epoch: int) -> None:
        """Counts a pass that another dataset has begun, and whose checkpoint was restored."""
        position = self.plan.position
        with self._lock:
            if self.counts_passes:
                position.next = max(position.next, self.plan.pass_after((epoch, 0)))


class RecordFeed(Feed):
    """The batches of records; see `Feed`."""

    def __init__(self, plan: Positioned, conversion: Conversion, serialized: str = "") -> None:
        super().__init__(plan, conversion.spec, serialized)
        self.conversion = conversion

    @abc.abstractmethod
    def with_fields(self, fields: FieldsUsed) -> RecordFeed:
        """Returns the same batches with some of their fields."""


class FileFeed(RecordFeed):
    """The batches of files, whose parts are read in any order; see `Feed`."""

    def __init__(self, plan: Plan, conversion: Conversion, serialized: str = "") -> None:
        super().__init__(plan, conversion, serialized)
        self.plan = plan
        self.parts = plan.parts * plan.epochs + 1
        # Each worker of a service begins a pass, and all of them divide the parts of one epoch.
        self.counts_passes = not plan.by_service

    @property
    def count(self) -> int | None:
        """The number of batches in the dataset, if it is known."""
        # From within an epoch, the first pass is shorter than the others. A service gives a trainer
        # the batches of all its workers.
        position = self.plan.position
        is_known = not (position.next[1] or position.earlier_runs or self.plan.by_service)
        return self.plan.steps * self.plan.epochs if is_known else None

    def with_fields(self, fields: FieldsUsed) -> FileFeed:
        """Returns the same batches with some of their fields."""
        plan, conversion = self.plan, self.conversion
        paths = plan.source.smallest(fields)
        narrow = Plan(plan.source.with_fields(paths), plan.passes)
        narrow.position = plan.position
        nulls = policies_of(conversion.nulls, paths)
        return FileFeed(narrow, Conversion(narrow, narrow.source.schema, conversion.splits, nulls))

    def open(self, epoch: int, step: int) -> Pass:
        """Begins a pass; see `Pass`."""
        return Pass(self, epoch, step)


class Pass(ReadAhead):
    """One pass over a feed of files; parts are loaded by number.

    Args:
        feed: The feed.
        epoch: The number of the first epoch.
        step: The number of the first batch in the pass; batches before it are not read.
    """

    def __init__(self, feed: FileFeed, epoch: int, step: int) -> None:
        super().__init__(feed.plan.parts * feed.plan.epochs + 1, (epoch, step))
        self._feed = feed
        self._plan = feed.plan
        self._epoch = epoch
        self._step = step
        self._records: _Records | None = None
        self._last: list[tf.data.Dataset] = []  # the last batch, if it is converted already

    def _close_source(self) -> None:
        records, self._records, self._last = self._records, None, []
        if records is not None:
            records.close()

    def _read(self, number: int) -> tf.data.Dataset:
        plan = self._plan
        if number < plan.parts * plan.epochs:
            return self._batches(*divmod(number, plan.parts))
        # A part of its own, so that it is known when it is asked for.
        last = plan.epochs - 1
        end, steps = plan.end_of(self._epoch + last), plan.steps_of(self._epoch + last)
        begin, found = (steps - 1) * plan.batch_size, self._last
        return found[0] if found else concatenate(self._between(last, begin, end))

    def _batches(self, epoch: int, part: int) -> tf.data.Dataset:
        plan, size = self._plan, self._plan.batch_size
        number = self._epoch + epoch
        bounds, end = plan.bounds(number), plan.end_of(number)
        begin = int(bounds[part]) // size * size
        if part < plan.parts - 1:
            end = int(bounds[part + 1]) // size * size
        if epoch < plan.epochs - 1:
            return concatenate(self._between(epoch, begin, end))
        last = min(end, (plan.steps_of(number) - 1) * size)
        # The part that ends with the last batch converts it too: alone, it takes a third as long.
        found = self._between(epoch, begin, end if self.reads_ahead else last, last)
        self._last = found[1:] or self._last  # empty parts may follow
        return found[0]

    def _between(
        self, epoch: int, begin: int, end: int, last: int | None = None
    ) -> list[tf.data.Dataset]:
        """Returns the batches between two records of an epoch, and that which begins at `last`."""
        plan, size = self._plan, self._plan.batch_size
        begin = max(begin, (self._step - plan.steps_before(self._epoch, epoch)) * size)
        if begin >= (end if last is None else last):
            return [empty_dataset()]
        count = None if last is None else (last - begin) // size
        epoch += self._epoch
        table, place = self._taken(epoch, begin, end), functools.partial(plan.place, epoch)
        return self._feed.conversion.batches(table, size, begin, place, count)

    def _taken(self, epoch: int, begin: int, end: int) -> pa.Table:
        """Returns the records of an epoch from one to another."""
        rest = self._plan.rest(epoch)
        spans = [(self._plan, begin, end)] if rest is None else rest.between(begin, end)
        tables: list[pa.Table] = []
        for plan, first, last in spans:
            if self._records is None or self._records.plan is not plan:
                self._close_source()
                self._records = _Records(plan)
            tables.append(self._records.between(epoch, first, last))
        if len(tables) == 1:
            return tables[0]
        return _concatenate(_decoded(tables, self._plan.source.schema))


class _Records:
    """The records of whole epochs of a plan; those that were read and not taken are kept.

    Args:
        plan: The plan.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._rows: _Rows | None = None
        self._tail: tuple[int, int, pa.Table] | None = None  # epoch, number of the first record
        # What fetches the windows of an epoch from one on, in this order.
        self._windows: tuple[int, int, FetchAhead | None] | None = None

    def close(self) -> None:
        """Closes the file."""
        rows, self._rows, self._tail = self._rows, None, None
        if rows is not None:
            rows.close()
        self._close_windows()

    def _close_windows(self) -> None:
        windows, self._windows = self._windows, None
        if windows is not None and windows[2] is not None:
            windows[2].close()

    def between(self, epoch: int, begin: int, end: int) -> pa.Table:
        """Returns the records of an epoch from one to another."""
        if self.plan.shuffle is None:
            return self._in_order(epoch, begin, end)
        return self._shuffle(epoch, begin, end)

    def _in_order(self, epoch: int, begin: int, end: int) -> pa.Table:
        rows, self._rows = self._rows, None
        if rows is None or not rows.can_reach(epoch, begin):
            if rows is not None:
                rows.close()
            rows = _Rows(self.plan, epoch, begin)
        table = rows.take(begin, end)
        if end < self.plan.end:
            self._rows = rows
        else:
            rows.close()
        return table

    def _shuffle(self, epoch: int, begin: int, end: int) -> pa.Table:
        """Returns records of an epoch, and keeps those of the last window that come after them."""
        bounds = self.plan.bounds(epoch)
        tables: list[pa.Table] = []
        position = begin
        tail, self._tail = self._tail, None
        if tail is not None and tail[0] == epoch and tail[1] == begin:
            tables.append(tail[2])
            position += tail[2].num_rows
        window = int(np.searchsorted(bounds, position, "right")) - 1
        while position < end:
            table = self._window(epoch, window)
            tables.append(rows_after(table, max(0, position - int(bounds[window]))))
            window += 1
            position = int(bounds[window])
        table = _concatenate(tables)
        if end - begin < table.num_rows:
            rest = rows_after(table, end - begin)
            if 2 * rest.num_rows < table.num_rows:
                # A copy, because a slice keeps the memory of the whole.
                rest = take_rows(rest, np.arange(rest.num_rows))
            self._tail = epoch, end, rest
        return table.slice(0, end - begin)

    def _window(self, epoch: int, window: int) -> pa.Table:
        """Returns the records of a window, and fetches those after it meanwhile."""
        if self._windows is None or self._windows[:2] != (epoch, window):
            self._close_windows()
            ahead = self.plan.ahead(self.plan.groups_from(epoch, window))
        else:
            ahead = self._windows[2]
        table = self.plan.window(epoch, window, ahead)
        self._windows = epoch, window + 1, ahead
        if window + 1 == self.plan.parts:
            self._close_windows()
        return table


def _concatenate(tables: list[pa.Table]) -> pa.Table:
    """Returns at least one table as one."""
    # Not concat_tables, which loses the number of records without fields.
    pieces = [batch for table in tables for batch in table.to_batches()]
    return pa.Table.from_batches(pieces, tables[0].schema)


def _decoded(found: list[Any], schema: pa.Schema) -> list[Any]:
    """Returns tables or batches of a schema; Arrow does not join dictionaries inside lists."""
    return [each if each.schema.equals(schema) else each.cast(schema) for each in found]


class _Rows:
    """The records of an epoch without shuffling, from one of them on."""

    def __init__(self, plan: Plan, epoch: int, position: int) -> None:
        groups, skipped = plan.rows_from(position)
        self._ahead = plan.ahead(groups)
        self._pieces = plan.read(groups, plan.piece_rows, self._ahead)
        self._schema = plan.source.schema
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
        return pa.Table.from_batches(found if len(found) == 1 else _decoded(found, self._schema))

    def close(self) -> None:
        """Closes the file."""
        self._pending.clear()
        self._pieces.close()
        if self._ahead is not None:
            self._ahead.close()
