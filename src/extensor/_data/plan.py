"""The plan of a dataset: which records are read when, and in which batch they are.

A plan follows from the sizes of the groups of records (such as the row groups of Parquet files)
alone. It divides an epoch into parts, which are numbered. So a position in a dataset is a number,
and any part can be loaded without the parts before it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from extensor._arrow.arrow_type import contains_type, without_dictionaries, without_views
from extensor._arrow.selection import take_places
from extensor._data.earlier_runs import Batching, EarlierRuns, Span, rest_of
from extensor._data.position import Passes, Positioned
from extensor._files.ranges import FetchAhead
from extensor._streams.source import Source
from extensor.errors import StructureError

# The approximate maximal size of a part without shuffling, in records and in bytes of the source. A
# part has at least one batch.
PART_ROWS = 1 << 16
PART_BYTES = 1 << 23


class RestOfEpoch:
    """The records of an epoch that earlier runs left to a shard, in their order.

    Args:
        plan: The plan of the shard.
        epoch: The number of the epoch.
        shards: The number of shards of the first run.
        spans: The records of these shards.
    """

    def __init__(self, plan: Plan, epoch: int, shards: int, spans: Sequence[Span]) -> None:
        plans = {index: plan.of_shard(index, shards) for index in {span.shard for span in spans}}
        self._spans = [(plans[span.shard], span) for span in spans]
        ends = np.cumsum([0, *(span.end - span.begin for span in spans)])
        self.end, self._ends = int(ends[-1]), ends
        self.steps: int = plan.batching.steps(self.end)
        self.bounds = self._bounds(epoch, plan.parts)

    def _bounds(self, epoch: int, parts: int) -> np.ndarray[Any, Any]:
        """Returns the records at which parts begin and end: as the parts that they come from."""
        found = [np.zeros(1, np.int64)]
        for (plan, span), first in zip(self._spans, self._ends.tolist(), strict=False):
            own = plan.bounds(epoch)
            inner = own[(span.begin < own) & (own < span.end)]
            found.append(np.append(inner, span.end) - span.begin + first)
        bounds = np.concatenate(found)
        # As many parts as whole epochs have: the graph of a dataset has one number of parts.
        count = len(bounds) - 1
        if count <= parts:
            return np.append(bounds, np.full(parts - count, bounds[-1]))
        return bounds[np.arange(parts + 1) * count // parts]

    def between(self, begin: int, end: int) -> Iterator[tuple[Plan, int, int]]:
        """Yields plans of which the records come, and the numbers of the records there."""
        at = max(0, int(np.searchsorted(self._ends, begin, "right")) - 1)
        for (plan, span), first in zip(self._spans[at:], self._ends[at:].tolist(), strict=False):
            if first >= end:
                return
            moved = span.begin - first
            yield plan, max(span.begin, begin + moved), min(span.end, end + moved)


class Plan(Positioned):
    """What is read when.

    Args:
        source: The records.
        passes: What the passes have. The shard may be "service" too.

    Raises:
        StructureError, RowError, DTypeError: If an argument is wrong.
    """

    def __init__(self, source: Source, passes: Passes) -> None:
        self.source = source
        self.by_service = isinstance(passes.shard, str) and passes.shard == "service"
        super().__init__(passes._replace(shard=None) if self.by_service else passes)
        self.batching = Batching(self.batch_size, self.drop_remainder)
        index, count = self.shard
        chosen = np.arange(len(source.rows))[index::count]
        self.groups = chosen[source.rows[chosen] > 0]
        rows = source.rows[self.groups]
        self.num_rows = int(rows.sum())
        self._known: tuple[int, Any, Any] = -1, None, None  # the order of one epoch
        self._rests: tuple[EarlierRuns, dict[int, RestOfEpoch | None]] = (), {}
        if self.shuffle is None:
            nbytes = source.nbytes[self.groups] / np.maximum(rows, 1)
            self._ends = np.cumsum(rows)
            self._bounds = _bounds(rows, nbytes, self.batch_size)
            width = source.nbytes[self.groups].sum() / max(1, self.num_rows)
            fit = int(min(PART_ROWS, PART_BYTES // max(1.0, width)))
            self.piece_rows = max(1, fit // self.batch_size) * self.batch_size
            """The number of records to read at once."""
            self.parts = len(self._bounds) - 1
        else:
            mean = self.num_rows / max(1, len(rows))
            window = max(self.shuffle.window, self.batch_size)
            self._a_window = max(1, round(window / max(1.0, mean)))  # groups
            self.parts = -(-len(rows) // self._a_window)
        """The number of parts of an epoch."""

    @property
    def passes(self) -> Passes:
        """What the passes have, for a plan in another process."""
        shard = "service" if self.by_service else self.shard
        return Passes(self.batch_size, self.drop_remainder, self.shuffle, shard, self.epochs)

    def expect_order(self, argument: str) -> None:
        """Raises StructureError if the workers of a service divide the records."""
        if self.by_service:
            expected = "batches in an order that the dataset knows"
            fix = "Give shard=(index, count), or none."
            raise StructureError(argument, expected, 'those of shard="service"', fix)

    def bounds(self, epoch: int) -> np.ndarray[Any, Any]:
        """Returns the numbers of the records of an epoch with which its parts begin and end."""
        if (rest := self.rest(epoch)) is not None:
            return rest.bounds
        return self._bounds if self.shuffle is None else self._windows(epoch)[1]

    def rest(self, epoch: int) -> RestOfEpoch | None:
        """Returns what earlier runs left of an epoch; None if they have read nothing of it."""
        runs, known = self._rests
        if runs is not self.position.earlier_runs:
            runs, known = self._rests = self.position.earlier_runs, {}
        if runs and epoch not in known:
            found = rest_of(runs, epoch, self.shard[1], self.rows_of_shards, self.batching)
            known[epoch] = found and RestOfEpoch(self, epoch, found[0], found[1][self.shard[0]])
        return known.get(epoch)

    def of_shard(self, index: int, count: int) -> Plan:
        """Returns the plan of another shard, of whole epochs."""
        return Plan(self.source, self.passes._replace(shard=(index, count)))

    def _windows(self, epoch: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Returns the groups in the order of an epoch, and the bounds of its windows."""
        assert self.shuffle is not None
        known, order, bounds = self._known
        if known != epoch:
            order = np.random.default_rng([self.shuffle.seed, epoch]).permutation(self.groups)
            ends = np.concatenate([[0], np.cumsum(self.source.rows[order])])
            bounds = np.append(ends[: -1 : self._a_window], ends[-1:])
            self._known = epoch, order, bounds
        return order, bounds

    def ahead(self, groups: Iterable[int]) -> FetchAhead | None:
        """Returns what fetches groups before they are read; None if no file is in a store."""
        # Of the parts of a service, other workers read the next ones.
        return self.source.ahead(groups, not self.by_service)

    def read(
        self, groups: Iterable[int], rows: int, ahead: FetchAhead | None
    ) -> Generator[pa.RecordBatch]:
        """Yields the records of groups, in pieces of at most so many records.

        Strings may be in dictionaries, others in each piece.
        """
        return self.source.encoded().read(groups, rows, ahead)

    def groups_from(self, epoch: int, part: int) -> Iterator[int]:
        """Yields the groups of shuffled parts of an epoch, from one on, as they are read."""
        for number in range(part, self.parts):
            yield from self._groups(epoch, number)

    def window(self, epoch: int, part: int, ahead: FetchAhead | None = None) -> pa.Table:
        """Returns the shuffled records of a part of an epoch.

        Args:
            epoch: The number of the epoch.
            part: The number of the part.
            ahead: What fetches the groups. Default: a new one.
        """
        groups, order = self._window(epoch, part)
        pieces = self.source.read(groups, PART_ROWS, ahead)
        return take_rows(pa.Table.from_batches(pieces, self.source.schema), order)

    def _groups(self, epoch: int, part: int) -> list[int]:
        """Returns the groups of a window as they are read."""
        begin = part * self._a_window
        return np.sort(self._windows(epoch)[0][begin : begin + self._a_window]).tolist()

    def _window(self, epoch: int, part: int) -> tuple[list[int], np.ndarray[Any, Any]]:
        """Returns the groups of a window as they are read, and the order of their records."""
        assert self.shuffle is not None
        groups = self._groups(epoch, part)
        count = int(self.source.rows[groups].sum())
        return groups, np.random.default_rng([self.shuffle.seed, epoch, part]).permutation(count)

    def rows_from(self, position: int) -> tuple[list[int], int]:
        """Returns the groups from that of a record on, and the number of the record in its group.

        Args:
            position: The number of the record in an epoch without shuffling.
        """
        at = int(np.searchsorted(self._ends, position, "right"))
        begin = 0 if at == 0 else int(self._ends[at - 1])
        return self.groups[at:].tolist(), position - begin

    def place(self, epoch: int, position: int) -> str:
        """Returns where a record of an epoch is: its file, row group and number in it."""
        if (rest := self.rest(epoch)) is not None:
            plan, own, _ = next(rest.between(position, position + 1))
            return plan.place(epoch, own)
        if self.shuffle is None:
            groups, row = self.rows_from(position)
            return f"{self.source.place(groups[0])}, record {row}"
        bounds = self.bounds(epoch)
        part = int(np.searchsorted(bounds, position, "right")) - 1
        groups, order = self._window(epoch, part)
        row = int(order[position - int(bounds[part])])
        for group in groups:
            if row < self.source.rows[group]:
                return f"{self.source.place(group)}, record {row}"
            row -= int(self.source.rows[group])
        return ""

    @property
    def steps(self) -> int:
        """The number of batches in an epoch."""
        return self.batching.steps(self.num_rows)

    @property
    def end(self) -> int:
        """The number of the records in the batches of an epoch."""
        return self.steps * self.batch_size if self.drop_remainder else self.num_rows

    @property
    def steps_per_shard(self) -> int:
        """The number of batches that every shard has at least."""
        return int(self.batching.steps(self.rows_of_shards(self.shard[1])).min())

    def rows_of_shards(self, count: int) -> np.ndarray[Any, Any]:
        """Returns the number of records of each of so many shards."""
        rows = self.source.rows
        return np.array([rows[i::count].sum() for i in range(count)])

    def steps_of(self, epoch: int) -> int:
        """Returns the number of batches in an epoch."""
        rest = self.rest(epoch)
        return self.steps if rest is None else rest.steps

    def steps_of_shards(self, epoch: int, count: int) -> list[int]:
        """Returns the number of batches in an epoch of each of so many shards."""
        runs = self.position.earlier_runs
        found = rest_of(runs, epoch, count, self.rows_of_shards, self.batching)
        rows = self.rows_of_shards(count)
        if found is not None:
            rows = np.array([sum(end - begin for _, begin, end in spans) for spans in found[1]])
        return self.batching.steps(rows).tolist()

    def end_of(self, epoch: int) -> int:
        """Returns the number of the records in the batches of an epoch."""
        rest = self.rest(epoch)
        return self.end if rest is None else rest.end

    def identity(self) -> object:
        """Returns what differs between sources, as data that JSON can represent."""
        return self.source.identity()


def _bounds(
    rows: np.ndarray[Any, Any], nbytes: np.ndarray[Any, Any], size: int
) -> np.ndarray[Any, Any]:
    """Returns the numbers of records at which parts begin and end: multiples of the batch size.

    Args:
        rows: The number of records in each group.
        nbytes: The size of a record of each group.
        size: The number of records in a batch.
    """
    bounds, end, filled = [0], 0, 0.0
    for count, width in zip(rows.tolist(), nbytes.tolist(), strict=True):
        position, end = end, end + count
        while True:
            room = min(PART_ROWS - (position - bounds[-1]), (PART_BYTES - filled) // max(width, 1))
            cut = max((position + max(0, int(room))) // size * size, bounds[-1] + size)
            if position + room >= end or cut >= end:
                filled += (end - position) * width
                break
            bounds.append(cut)
            position, filled = cut, 0.0
    return np.array([*bounds, end] if bounds[-1] < end else bounds)


def rows_after(table: pa.Table, start: int) -> pa.Table:
    """Returns the records of a table from one on."""
    # With their number, which Arrow does not know of records without fields.
    return table.slice(start, table.num_rows - start)


def take_rows(table: pa.Table, order: np.ndarray[Any, Any]) -> pa.Table:
    """Returns records of a table in an order."""
    if not table.num_columns:  # Arrow would lose the number of records
        return table.slice(0, len(order))
    try:
        return table.combine_chunks().take(order)
    except pa.ArrowNotImplementedError:  # dictionaries inside lists and structs, views, runs
        columns = [_taken(column, order) for column in table.columns]
        fields = [f.with_type(c.type) for f, c in zip(table.schema, columns, strict=True)]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields, table.schema.metadata))


def _taken(column: pa.ChunkedArray, order: np.ndarray[Any, Any]) -> pa.ChunkedArray:
    """Returns values of a column in an order; words in place of dictionaries."""
    with contextlib.suppress(pa.ArrowNotImplementedError):
        return column.take(order)
    if contains_type(column.type, _is_taken_one_by_one):
        return pa.chunked_array([take_places(pa.concat_arrays(column.chunks), order)])
    plain = without_dictionaries(column.type)
    return column.cast(without_views(plain)).take(order).cast(plain)


def _is_taken_one_by_one(arrow: pa.DataType) -> bool:
    """Returns whether a cast does not help: that of runs ignores slices, and unions have none."""
    return pa.types.is_run_end_encoded(arrow) or pa.types.is_union(arrow)
