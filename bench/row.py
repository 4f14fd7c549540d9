"""A row of the table: two calls, and the limit of their ratio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from bench.measure import Call, medians


class Limit(Protocol):
    """The limit of the two calls of a row; its `str` is shown in the table."""

    def ratio(self, ours: float, peer: float) -> float: ...

    def holds(self, ours: float, peer: float) -> bool | None: ...


@dataclass(frozen=True)
class Faster:
    """The peer takes at least `times` as long as we do; the ratio is peer / ours."""

    times: float

    def ratio(self, ours: float, peer: float) -> float:
        return peer / ours

    def holds(self, ours: float, peer: float) -> bool:
        return peer / ours >= self.times

    def __str__(self) -> str:
        return f"peer/ours >= {self.times:g}"


@dataclass(frozen=True)
class Within:
    """We take at most `times` as long as the peer does; the ratio is ours / peer."""

    times: float

    def ratio(self, ours: float, peer: float) -> float:
        return ours / peer

    def holds(self, ours: float, peer: float) -> bool:
        return ours / peer <= self.times

    def __str__(self) -> str:
        return f"ours/peer <= {self.times:g}"


@dataclass(frozen=True)
class Under:
    """We take at most so many seconds, whatever the peer does; the ratio is ours / peer."""

    seconds: float

    def ratio(self, ours: float, peer: float) -> float:
        return ours / peer

    def holds(self, ours: float, peer: float) -> bool:
        return ours <= self.seconds

    def __str__(self) -> str:
        return f"ours <= {self.seconds * 1e6:g} us"


@dataclass(frozen=True)
class NoLimit:
    """For information; the ratio is ours / peer."""

    def ratio(self, ours: float, peer: float) -> float:
        return ours / peer

    def holds(self, ours: float, peer: float) -> None:
        return None

    def __str__(self) -> str:
        return "-"


@dataclass(frozen=True)
class Row:
    """Two calls to measure side by side.

    Attributes:
        name: What is measured against what.
        limit: The limit of the two times.
        prepare: Returns our call and the peer's. It takes a folder for files, and does all work
            that is not measured. It looks up names of extensor, so that a missing name affects only
            this row.
        peer_scale: The factor for the peer's time, if the peer does only part of the work.
        statistic: The statistic of the repetitions: `medians` or `fastest`.
    """

    name: str
    limit: Limit
    prepare: Callable[[Path], tuple[Call, Call]]
    peer_scale: float = 1
    statistic: Callable[..., list[float]] = medians
    unit: ClassVar[str] = "s"

    def measure(self, folder: Path, seconds: float) -> tuple[float, float]:
        """Returns our time and the peer's, in seconds."""
        ours, peer = self.statistic(*self.prepare(folder), seconds=seconds)
        return ours, peer * self.peer_scale


@dataclass(frozen=True)
class ProcessRow:
    """Two measurements that need separate processes.

    Attributes:
        name: What is measured against what.
        limit: The limit of the two times.
        times: Measures both in processes that take turns; returns our median time and the peer's,
            in seconds.
    """

    name: str
    limit: Limit
    times: Callable[[], tuple[float, float]]
    unit: ClassVar[str] = "s"

    def measure(self, folder: Path, seconds: float) -> tuple[float, float]:
        """Returns our time and the peer's, in seconds."""
        return self.times()
