"""TimeBuckets: the number of the interval in which a time lies."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from extensor._keras._keras_private import joined_summaries, summary_with
from extensor._keras.layer import Layer
from extensor._keras.layers.lists import in_flat, valid_items
from extensor._types.masked.value import MaskedTensor
from extensor._typing import TensorLike, Value
from extensor.errors import ArgumentError, DTypeError, StructureError


@keras.saving.register_keras_serializable(package="extensor")
class TimeBuckets(Layer):
    """A layer like `keras.layers.Discretization` for times, which are large integers.

    Discretization compares in float32, which cannot tell two timestamps of one minute apart. This
    layer compares integers. Lists stay lists, and nulls stay null, with zero as their value.

    Args:
        num_bins: The number of buckets that `adapt` makes, with the same number of times in each.
        bin_boundaries: The first time of each bucket but the first, ascending.
        **kwargs: Options of `keras.layers.Layer`.

    Raises:
        ArgumentError: If not exactly one of both is given, `num_bins` is less than 1, or the
            boundaries are not ascending numbers (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> buckets = xt.keras.layers.TimeBuckets(bin_boundaries=[1_700_000_000, 1_700_000_060])
    >>> buckets(tf.constant([1_600_000_000, 1_700_000_059, 1_700_000_060])).numpy()
    array([0, 1, 2], dtype=int32)
    """

    def __init__(
        self,
        num_bins: int | None = None,
        bin_boundaries: Sequence[int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if (num_bins is None) is (bin_boundaries is None):
            received = "none of them" if num_bins is None else "both"
            fix = "Give num_bins and call adapt(dataset), or give bin_boundaries."
            raise ArgumentError(self.name, "num_bins or bin_boundaries", received, fix)
        if num_bins is not None and (not isinstance(num_bins, numbers.Integral) or num_bins < 1):
            fix = "Give the number of buckets."
            raise ArgumentError(self.name, "num_bins of 1 or more", repr(num_bins), fix)
        self.num_bins = num_bins
        self.bin_boundaries = None
        if bin_boundaries is not None:
            self.bin_boundaries = _checked_boundaries(bin_boundaries, self.name)

    def adapt(self, data: TensorLike | tf.data.Dataset) -> None:
        """Computes the boundaries.

        Args:
            data: A dataset of batches of integers, or an array of integers; dense, ragged or in a
                MaskedTensor, whose nulls are left out.

        Raises:
            ArgumentError: If the boundaries were given to the constructor (also a ValueError).
            StructureError: If there are no times in the data (also a ValueError).
        """
        if self.num_bins is None:
            expected, received = "a layer with num_bins, to adapt", "a layer with bin_boundaries"
            raise ArgumentError(self.name, expected, received, "Write TimeBuckets(num_bins=...).")
        batches: Any = data if isinstance(data, tf.data.Dataset) else [data]
        quantiles = TimeQuantiles()
        for batch in batches:
            times = tf.constant(batch) if isinstance(batch, (np.ndarray, list)) else batch
            times, valid = valid_items(times, self.name)
            quantiles.add(as_times(times, self.name).numpy()[valid.numpy()])
        self.bin_boundaries = time_boundaries(quantiles, self.num_bins, self.name)

    def call(self, inputs: Value) -> Value:
        """Returns the number of the bucket of each time."""
        if self.bin_boundaries is None:
            fix = "Call adapt(dataset) first, or give bin_boundaries."
            raise StructureError(self.name, "boundaries of the buckets", "none", fix)
        if isinstance(inputs, MaskedTensor):
            found = self.call(inputs.values)
            if not isinstance(found, MaskedTensor):
                found = MaskedTensor(found, inputs.mask).fill(0)
            return MaskedTensor._of_parts(found, inputs.mask)
        return in_flat(inputs, self._numbers)

    def _numbers(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the number of the bucket of each time of a tensor."""
        times = tf.reshape(as_times(inputs, self.name), [-1])
        boundaries = tf.constant(self.bin_boundaries, tf.int64)
        found = tf.searchsorted(boundaries, times, side="right")
        return tf.ensure_shape(tf.reshape(found, tf.shape(inputs)), inputs.shape)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor; after `adapt`, with the boundaries."""
        adapted = self.bin_boundaries is not None
        return {
            **super().get_config(),
            "num_bins": None if adapted else self.num_bins,
            "bin_boundaries": self.bin_boundaries,
        }


def as_times(times: tf.Tensor, path: str) -> tf.Tensor:
    """Returns times as int64.

    Raises:
        DTypeError: If they are no integers that int64 holds (also a TypeError).
    """
    if not times.dtype.is_integer or times.dtype == tf.uint64:
        fix = "Give integers, such as tf.cast(tf.floor(times), tf.int64)."
        raise DTypeError(path, "times as integers of int64", times.dtype.name, fix)
    return tf.cast(times, tf.int64)


def _checked_boundaries(given: Sequence[float], path: str) -> list[int]:
    """Returns boundaries as the first integers that are not below them.

    Raises:
        ArgumentError: If they are not ascending numbers (also a ValueError).
    """
    found = np.asarray(given)
    is_number = found.ndim == 1 and (found.dtype.kind in "iuf" or not found.size)
    if not is_number or not np.isfinite(found).all() or (found[1:] < found[:-1]).any():
        expected = "bin_boundaries that are numbers, ascending"
        fix = "Sort them. Give times as integers, in the unit of the field."
        raise ArgumentError(path, expected, f"{list(given)!r:.60}", fix)
    return [math.ceil(each) for each in found.tolist()]


def time_boundaries(quantiles: TimeQuantiles, num_bins: int, path: str) -> list[int]:
    """Returns the boundaries of buckets.

    Args:
        quantiles: The times.
        num_bins: The number of buckets.
        path: The path of the field, or the name of the layer, for the error.

    Raises:
        StructureError: If there are no times (also a ValueError).
    """
    if quantiles.start is None:
        fix = "Adapt the layer to a dataset with times."
        raise StructureError(path, "at least one time", "none", fix)
    return quantiles.boundaries(num_bins)


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
