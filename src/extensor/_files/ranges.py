"""A remote file of which some ranges were read already, by few requests."""

from __future__ import annotations

import bisect
import functools
import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

Range = tuple[int, int]
"""The first byte of a range, and the one after its last."""

Fetch = Callable[[Sequence[Range]], Sequence[memoryview]]

# Bytes between two ranges that are read with them, rather than by another request.
_GAP = 1 << 20


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


class ReadAheadFile(RangesFile):
    """A file that reads blocks of ranges one after another, and the next ones in the background.

    A block is dropped when the one after the next is read.

    Args:
        size: The size of the file in bytes.
        fetch: Returns the bytes of ranges.
        blocks: The ranges of each block, such as those of a row group.
        ahead: How many bytes of blocks are fetched before they are asked for.
    """

    def __init__(
        self, size: int, fetch: Fetch, blocks: Sequence[Sequence[Range]], ahead: int
    ) -> None:
        super().__init__(size, fetch, ())
        self._blocks, self._ahead = blocks, ahead
        self._fetched: dict[int, Future[Sequence[memoryview]]] = {}
        starts = [
            (start, i, j) for i, block in enumerate(blocks) for j, (start, _) in enumerate(block)
        ]
        self._places = sorted(starts)

    def _read(self, begin: int, end: int) -> memoryview:
        at = bisect.bisect_right(self._places, (begin, self._size, self._size)) - 1
        if at >= 0:
            _, block, number = self._places[at]
            start, stop = self._blocks[block][number]
            if end <= stop:
                self._move_to(block)
                return self._fetched[block].result()[number][begin - start : end - start]
        return super()._read(begin, end)

    def _move_to(self, block: int) -> None:
        """Fetches a block and those after it, and drops those before."""
        for old in [each for each in self._fetched if each < block - 1]:
            del self._fetched[old]
        waiting = 0
        for i in range(block, len(self._blocks)):
            if i > block:
                waiting += sum(end - start for start, end in self._blocks[i])
                if waiting > self._ahead:
                    return
            if i not in self._fetched:
                self._fetched[i] = _pool().submit(self._fetch, self._blocks[i])

    def close(self) -> None:
        """Drops all blocks; those that are not fetched yet will not be."""
        for future in self._fetched.values():
            future.cancel()
        self._fetched.clear()
        super().close()


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(16, "extensor-fetch")


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
