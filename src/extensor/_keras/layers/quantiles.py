"""Quantiles of numbers and of times that come batch by batch, as `keras.layers.Discretization`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from extensor._keras._keras_private import joined_summaries, summary_with


@dataclass(eq=False)
class Quantiles:
    """The summary of numbers that `keras.layers.Discretization` keeps.

    It has all numbers while they are fewer than `1 / epsilon`, else their quantiles.
    """

    epsilon: float = 0.01
    """The precision of the quantiles."""

    summary: Any = field(default_factory=lambda: np.array([[], []], np.float32))
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
            self.start = int(times[0]) if self.start is None else self.start
            # Of more than half of the range of int64, the exact difference would wrap around.
            about = times.astype(np.float64) - self.start
            self.differences.add(np.where(np.abs(about) < 2.0**62, times - self.start, about))

    def merged(self, other: TimeQuantiles) -> TimeQuantiles:
        """Returns the quantiles of the times of both."""
        if self.start is None or other.start is None:
            return other if self.start is None else self
        change = float(other.start - self.start)
        return replace(self, differences=self.differences.merged(other.differences, change))

    def boundaries(self, num_bins: int) -> list[int]:
        """Returns the boundaries of buckets that have the same number of times each."""
        least, most = tf.int64.limits
        found = (round(each) + self.start for each in self.differences.boundaries(num_bins))
        return [min(max(each, least), most) for each in found]
