"""Quantiles of numbers and of times that come batch by batch, as `keras.layers.Discretization`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import keras
import numpy as np

from extensor._keras._keras_private import joined_summaries, summary_with


def _no_numbers() -> Any:
    return np.array([[], []], np.float32)


@dataclass(eq=False)
class Quantiles:
    """The summary of numbers that `keras.layers.Discretization` keeps.

    It has all numbers while they are fewer than `1 / epsilon`, else their quantiles.
    """

    epsilon: float = 0.01
    """The precision of the quantiles."""

    summary: Any = field(default_factory=_no_numbers)
    """The numbers, ascending, and below them how many numbers each stands for."""

    def add(self, numbers: Any) -> None:
        """Adds an array of one number or more."""
        self.summary = summary_with(self.summary, numbers, self.epsilon)

    def merged(self, other: Quantiles, change: float = 0.0) -> Quantiles:
        """Returns the quantiles of the numbers of both.

        Args:
            other: The quantiles of other numbers, of the same precision.
            change: What to add to the other numbers.
        """
        moved = other.summary + np.array([[change], [0.0]])
        summary = joined_summaries(self.summary, moved.astype(np.float32), self.epsilon)
        return replace(self, summary=summary)

    def boundaries(self, num_bins: int) -> list[float]:
        """Returns the boundaries of bins that have the same number of numbers each."""
        layer: Any = keras.layers.Discretization(num_bins=num_bins, epsilon=self.epsilon)
        layer.summary = self.summary
        layer.finalize_state()
        return layer.bin_boundaries


@dataclass(eq=False)
class TimeQuantiles:
    """Quantiles of times, which float32 holds exactly enough only as differences."""

    start: Any = None
    """The time of which the differences are: the first one. None if there is no time yet."""

    differences: Quantiles = field(default_factory=Quantiles)

    def add(self, times: Any) -> None:
        """Adds an array of int64, which may be empty."""
        if times.size:
            self.start = times[0] if self.start is None else self.start
            self.differences.add(times - self.start)

    def merged(self, other: TimeQuantiles) -> TimeQuantiles:
        """Returns the quantiles of the times of both."""
        if self.start is None or other.start is None:
            return other if self.start is None else self
        change = float(int(other.start) - int(self.start))
        return replace(self, differences=self.differences.merged(other.differences, change))

    def boundaries(self, num_bins: int) -> list[int]:
        """Returns the boundaries of buckets that have the same number of times each."""
        found = np.asarray(self.differences.boundaries(num_bins), np.float64)
        return (np.rint(found).astype(np.int64) + self.start).tolist()
