"""The second table: how the time of a call grows with fields, depth, rows, files or types.

The sizes of a call cannot take turns: records of a million rows stay in memory, and types stay
registered. So each time is the shortest CPU time, which other load on the machine affects least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Call, fastest_cpu

_TOLERANCE = 1.25


@dataclass(frozen=True)
class Growth:
    """A call of several sizes, whose time must grow no faster than the size.

    Attributes:
        axis: What grows, such as "fields".
        name: What is called.
        sizes: The sizes, in ascending order.
        prepare: Returns the call of a size. It takes a folder for files and the size. A size is
            measured before the next one is prepared.
    """

    axis: str
    name: str
    sizes: Sequence[int]
    prepare: Callable[[Path, int], Call]

    @property
    def title(self) -> str:
        """The name in progress reports, and for the filter."""
        return f"growth with {self.axis}: {self.name}"

    def measure(self, folder: Path, seconds: float) -> list[float]:
        """Returns the shortest CPU time of each size, in seconds."""
        share = seconds / len(self.sizes)
        return [fastest_cpu(self.prepare(folder, size), share) for size in self.sizes]

    def worst(self, times: Sequence[float]) -> float:
        """Returns the largest growth of the time from one size to a larger one, per size.

        1 is linear; less is better.
        """
        pairs = list(zip(self.sizes, times, strict=True))
        return max(
            (time / before) / (size / smaller)
            for i, (smaller, before) in enumerate(pairs)
            for size, time in pairs[i + 1 :]
        )

    def holds(self, times: Sequence[float]) -> bool:
        """Returns whether the time grows at most as the size does."""
        return self.worst(times) <= _TOLERANCE


def header(growth: Growth) -> tuple[str, ...]:
    """Returns the first line of the table of an axis."""
    return (growth.axis, *(f"{size:,}" for size in growth.sizes), "worst step", "verdict")


def cells(
    growth: Growth, times: Sequence[float] | None, duration: Callable[[float | None], str]
) -> tuple[str, ...]:
    """Returns a line of the table of an axis; without times if the calls failed."""
    if times is None:
        return (growth.name, *("-" for _ in growth.sizes), "-", "error")
    verdict = "ok" if growth.holds(times) else "SHORT"
    return (growth.name, *map(duration, times), f"{growth.worst(times):.2f}", verdict)
