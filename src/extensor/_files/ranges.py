"""A remote file of which some ranges were read already, by few requests."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import pyarrow as pa

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
        for start, data in self._parts:
            if start <= begin and end <= start + len(data):
                return data[begin - start : end - start]
        return self._fetch([(begin, end)])[0]


def ranges_file(size: int, fetch: Fetch, ranges: Sequence[Range]) -> pa.PythonFile:
    """Returns a file of which ranges are fetched at once, for pyarrow."""
    parts = zip((start for start, _ in ranges), fetch(ranges), strict=True)
    return pa.PythonFile(RangesFile(size, fetch, list(parts)), mode="r")


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
