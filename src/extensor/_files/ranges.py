"""A remote file of which some ranges were read already, by few requests."""

from __future__ import annotations

import functools
import io
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa

from extensor.errors import ExtensorError

Range = tuple[int, int]
"""The first byte of a range, and the one after its last."""

Fetch = Callable[[Sequence[Range]], Sequence[memoryview]]

# Bytes between two ranges that are read with them, rather than by another request.
_GAP = 1 << 20

# Bytes that are fetched together where a file is read from its beginning.
_PIECE = 1 << 23

# How many blocks are fetched before they are asked for, however small they are.
_MOST_BLOCKS = 64


class RangesFile(io.RawIOBase):
    """A file that reads from ranges in memory; others are fetched when they are asked for.

    Args:
        size: The size of the file in bytes.
        fetch: Returns the bytes of ranges.
        parts: The first byte of each range in memory, and its bytes.
    """

    def __init__(self, size: int, fetch: Fetch, parts: Sequence[tuple[int, memoryview]]) -> None:
        self._size, self._fetch, self._parts = size, fetch, list(parts)
        self._at = 0

    def readable(self) -> bool:
        """Returns True."""
        return True

    def seekable(self) -> bool:
        """Returns True."""
        return True

    def tell(self) -> int:
        """Returns the position."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to a position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> memoryview | bytes:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Returns the bytes from the position on."""
        begin = self._at
        end = self._size if size is None or size < 0 else min(begin + size, self._size)
        self._at = max(begin, end)
        if end <= begin:
            return b""
        return self._read(begin, end)

    def _read(self, begin: int, end: int) -> memoryview:
        for start, data in self._parts:
            if start <= begin and end <= start + len(data):
                return data[begin - start : end - start]
        return self._read_missing(begin, end)

    def _read_missing(self, begin: int, end: int) -> memoryview:
        return self._fetch([(begin, end)])[0]


class Block(NamedTuple):
    """Ranges of a file that are fetched together.

    Attributes:
        file: The name of the file.
        fetch: Returns the bytes of ranges of it.
        ranges: The ranges.
    """

    file: str
    fetch: Fetch
    ranges: Sequence[Range]

    @property
    def size(self) -> int:
        """The number of bytes in the ranges."""
        return sum(end - start for start, end in self.ranges)

    def number_of(self, file: str, position: int) -> int | None:
        """Returns the number of the range that has a byte of a file; None if none has it."""
        if file != self.file:
            return None
        return next((i for i, (a, z) in enumerate(self.ranges) if a <= position < z), None)


class FetchAhead:
    """Blocks of files in the order in which they are read; the next ones are fetched meanwhile.

    A block is dropped when a later one is read.

    Args:
        blocks: The blocks. An error that they raise ends them.
        ahead: How many bytes of blocks are fetched before they are asked for. If it is not 0, the
            next block is, however large.
    """

    def __init__(self, blocks: Iterable[Block], ahead: int) -> None:
        self._blocks = iter(blocks)
        self._ahead = ahead
        self._next: Block | None = None  # is not fetched yet
        self._fetched: deque[tuple[Block, Future[Sequence[memoryview]]]] = deque()
        self._lock = threading.Lock()

    def read(self, file: str, begin: int, end: int) -> memoryview | None:
        """Returns bytes of a file; None if they are in no block that is next."""
        first = self._piece(file, begin, end)
        if first is None or len(first) == end - begin:
            return first
        # Arrow's memory is given back when it is free. Blocks are dropped while it is filled.
        data = memoryview(pa.allocate_buffer(end - begin)).cast("B")
        data[: len(first)] = first
        at = len(first)
        while at < len(data):
            piece = self._piece(file, begin + at, end)
            if piece is None:
                return None
            data[at : at + len(piece)] = piece
            at += len(piece)
        return data

    def _piece(self, file: str, begin: int, end: int) -> memoryview | None:
        """Returns some of these bytes, up to the end of their range."""
        with self._lock:
            number = self._go_to(file, begin)
            if number is None:
                return None
            block, future = self._fetched[0]
            self._fetch_next()
        start = block.ranges[number][0]
        return future.result()[number][begin - start : end - start]

    def _go_to(self, file: str, position: int) -> int | None:
        """Drops the blocks before the one that has a byte, and returns the number of its range."""
        for i, (block, _) in enumerate(self._fetched):
            if (number := block.number_of(file, position)) is not None:
                for _ in range(i):
                    self._fetched.popleft()[1].cancel()
                return number
        if (following := self._following()) is None:
            return None
        number = following.number_of(file, position)
        if number is not None:
            self._drop()
            self._submit(following)
        return number

    def _fetch_next(self) -> None:
        """Fetches blocks after the one that is read, as many as there is room for."""
        waiting = itertools.islice(self._fetched, 1, None)
        room = self._ahead - sum(block.size for block, _ in waiting)
        while len(self._fetched) <= _MOST_BLOCKS and (following := self._following()) is not None:
            room -= following.size
            if room < 0 and (len(self._fetched) > 1 or not self._ahead):
                return
            self._submit(following)

    def _following(self) -> Block | None:
        """Returns the first block that is not fetched."""
        if self._next is None:
            try:
                self._next = next(self._blocks, None)
            except ExtensorError:  # whoever reads on there gets it
                self._blocks = iter(())
        return self._next

    def _submit(self, block: Block) -> None:
        self._next = None
        self._fetched.append((block, _submit(block.fetch, block.ranges)))

    def _drop(self) -> None:
        for _, future in self._fetched:
            future.cancel()
        self._fetched.clear()

    def close(self) -> None:
        """Drops all blocks; those that are not fetched yet will not be."""
        with self._lock:
            self._blocks, self._next = iter(()), None
            self._drop()


def _submit(fetch: Fetch, ranges: Sequence[Range]) -> Future[Sequence[memoryview]]:
    try:
        return _pool().submit(fetch, ranges)
    except RuntimeError:  # Python is exiting
        future: Future[Sequence[memoryview]] = Future()
        future.set_result(fetch(ranges))
        return future


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_BLOCKS, "extensor-fetch")  # they wait for the store


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def few_ranges(ranges: Sequence[Range]) -> list[Range]:
    """Returns at most two ranges that contain some: one, or two where there is a wide gap.

    >>> from extensor._files.ranges import few_ranges
    >>> few_ranges([(4, 10), (10, 20), (30, 40)])
    [(4, 40)]
    >>> few_ranges([(4, 10), (5_000_000, 5_000_020), (5_000_040, 5_000_050)])
    [(4, 10), (5000000, 5000050)]
    """
    ordered = sorted(ranges)
    if not ordered:
        return []
    # The widest gap: its size, and the range after it.
    ends = [ordered[0][1]]
    for _, end in ordered[1:]:
        ends.append(max(ends[-1], end))
    gaps = [(ordered[i][0] - ends[i - 1], i) for i in range(1, len(ordered))]
    width, at = max(gaps, default=(0, 0))
    if width <= _GAP:
        return [(ordered[0][0], ends[-1])]
    return [(ordered[0][0], ends[at - 1]), (ordered[at][0], ends[-1])]


def pieces_of(size: int) -> Iterator[Range]:
    """Yields the ranges of a file of this size that are fetched one after another."""
    for start in range(0, size, _PIECE):
        yield start, min(start + _PIECE, size)


def joined_ranges(ranges: Iterable[Range]) -> Iterator[Range]:
    """Yields ranges in order; those that lie together are one, up to 8 MB.

    >>> from extensor._files.ranges import joined_ranges
    >>> list(joined_ranges([(0, 10), (10, 20), (30, 40)]))
    [(0, 20), (30, 40)]
    """
    begin = stop = 0
    for start, end in ranges:
        if start == stop and end - begin <= _PIECE:
            stop = end
            continue
        if stop > begin:
            yield begin, stop
        begin, stop = start, end
    if stop > begin:
        yield begin, stop
