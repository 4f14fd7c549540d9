"""The plan of a dataset: which records are read when, and in which batch they are.

A plan follows from the sizes of the groups of records (such as the row groups of Parquet files)
alone. It divides an epoch into parts, which are numbered. So a position in a dataset is a number,
and any part can be loaded without the parts before it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from extensor._arrow.arrow_type import map_schema, without_dictionaries
from extensor._data.position import Passes, Positioned
from extensor._files.ranges import FetchAhead
from extensor._streams.source import Source

# The approximate maximal size of a part without shuffling, in records and in bytes of the source. A
# part has at least one batch.
PART_ROWS = 1 << 16
PART_BYTES = 1 << 23


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
        index, count = self.shard
        chosen = np.arange(len(source.rows))[index::count]
        self.groups = chosen[source.rows[chosen] > 0]
        rows = source.rows[self.groups]
        self.num_rows = int(rows.sum())
        self._known: tuple[int, Any, Any] = -1, None, None  # the order of one epoch
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

    def bounds(self, epoch: int) -> np.ndarray[Any, Any]:
        """Returns the numbers of the records of an epoch with which its parts begin and end."""
        return self._bounds if self.shuffle is None else self._windows(epoch)[1]

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
        """Yields the records of groups, in pieces of at most so many records."""
        if ahead is None:
            return self.source.read(groups, rows)
        return self.source.read_fetched(groups, rows, ahead)

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
        pieces = self.read(groups, PART_ROWS, ahead)
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
        full, rest = divmod(self.num_rows, self.batch_size)
        return full if self.drop_remainder or not rest else full + 1

    @property
    def end(self) -> int:
        """The number of the records in the batches of an epoch."""
        return self.steps * self.batch_size if self.drop_remainder else self.num_rows

    @property
    def steps_per_shard(self) -> int:
        """The number of batches that every shard has at least."""
        count, size = self.shard[1], self.batch_size
        rows = [int(self.source.rows[i::count].sum()) for i in range(count)]
        return min(n // size if self.drop_remainder else -(-n // size) for n in rows)

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
    except pa.ArrowNotImplementedError:  # dictionaries inside lists and structs
        plain = table.cast(map_schema(table.schema, without_dictionaries))
        return plain.combine_chunks().take(order)
