"""Drift: by how much the values of a path differ between two descriptions."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from extensor._describe.paths import PathStatistics, counts_of, in_one_unit, short
from extensor._describe.sketches import Numbers, Words
from extensor.errors import DTypeError, FieldError

_CHANCE = 1.628
"""Two samples of n and m values of one distribution differ by more than this, times the root of
1/n + 1/m, with a probability of 1%: the quantile of Kolmogorov's distribution."""


@dataclass(frozen=True)
class Drift:
    """The difference between two descriptions at one path.

    Attributes:
        path: The path.
        statistic: "Kolmogorov-Smirnov" (of numbers, or of the lengths of lists), "L-infinity" (of
            strings), "nulls", "type" or "presence": that whose distance is largest.
        distance: The distance, between 0.0 and 1.0.
        limit: The largest distance that is no drift: the threshold, or, if that is larger, what
            chance and the error of the sketches explain.
        reason: What differs, as text.

    >>> import extensor as xt
    >>> data = [{"title": "tea", "minutes": 5}, {"title": "pie", "minutes": 7}]
    >>> found = xt.data.describe(xt.struct.constant(data))
    >>> drift = found.compare(found).drifts[-1]
    >>> drift.distance, drift.drifted
    (0.0, False)
    """

    path: str
    statistic: str
    distance: float
    limit: float
    reason: str

    @property
    def drifted(self) -> bool:
        """Whether the distance is larger than the limit."""
        return self.distance > self.limit


def drifts_between(
    one: Mapping[str, PathStatistics],
    other: Mapping[str, PathStatistics],
    threshold: float,
    thresholds: Mapping[str, float],
) -> list[Drift]:
    """Returns the difference at each path, the largest first; see `Description.compare`."""
    _expect_threshold("threshold", threshold)
    paths = dict.fromkeys([*one, *other])
    for path, each in thresholds.items():
        _expect_threshold(f"thresholds, {path}", each)
        if path not in paths:
            raise no_path(f"thresholds, {path}", paths)
    drifts = [
        _drift(path, one.get(path), other.get(path), thresholds.get(path, threshold))
        for path in paths
    ]
    return sorted(drifts, key=lambda drift: (not drift.drifted, -drift.distance))


def no_path(where: str, paths: Iterable[str]) -> FieldError:
    """Returns the error for a path that is not described."""
    expected = f"one of the paths {', '.join(list(paths)[:20])}"
    return FieldError(where, expected, "another path", "[*] stands for the items of a list.")


def _expect_threshold(name: str, value: object) -> None:
    if not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
        raise DTypeError(name, "a number between 0 and 1", repr(value)[:60], "0.1 is the default.")


def _drift(
    path: str, one: PathStatistics | None, other: PathStatistics | None, threshold: float
) -> Drift:
    if one is None or other is None:
        where = "first" if other is None else "second"
        return Drift(path, "presence", 1.0, threshold, f"only in the {where}")
    # All values may be null in a small sample, and then have no type.
    has_types = not pa.types.is_null(one.type) and not pa.types.is_null(other.type)
    if counts_of(one.type) != counts_of(other.type) and has_types:
        return Drift(path, "type", 1.0, threshold, f"{one.type} and {other.type}")
    one, other = in_one_unit(one, other)
    found = [_drift_of_nulls(one, other, threshold)]
    if one.numbers is not None and other.numbers is not None:
        medians = [each.text_of(each.numbers.median) for each in (one, other)]  # pyright: ignore
        reason = f"medians {medians[0]} and {medians[1]}"
        found.append(_drift_of_nans(path, one.numbers, other.numbers, threshold))
        found.append(_drift_of_numbers(path, one.numbers, other.numbers, threshold, reason))
    if one.lengths is not None and other.lengths is not None:
        means = f"mean lengths {one.lengths.mean:.3g} and {other.lengths.mean:.3g}"
        found.append(_drift_of_numbers(path, one.lengths, other.lengths, threshold, means))
    if one.words is not None and other.words is not None:
        found.append(_drift_of_words(path, one.words, other.words, threshold))
    return max(found[::-1], key=lambda drift: (drift.drifted, drift.distance))


def _drift_of_nulls(one: PathStatistics, other: PathStatistics, threshold: float) -> Drift:
    counts = [each.count + each.nulls for each in (one, other)]
    distance = abs(one.null_share - other.null_share) if all(counts) else 0.0
    reason = f"{one.null_share:.1%} and {other.null_share:.1%} nulls"
    return Drift(one.path, "nulls", distance, max(threshold, _chance(*counts)), reason)


def _drift_of_nans(path: str, one: Numbers, other: Numbers, threshold: float) -> Drift:
    counts = [each.count + each.nans + each.infinities for each in (one, other)]
    shares = [each.count / max(1, count) for each, count in zip((one, other), counts, strict=True)]
    distance = abs(shares[0] - shares[1]) if all(counts) else 0.0
    limit, reason = max(threshold, _chance(*counts)), "shares of NaN and infinities"
    return Drift(path, "Kolmogorov-Smirnov", distance, limit, reason)


def _drift_of_numbers(
    path: str, one: Numbers, other: Numbers, threshold: float, reason: str
) -> Drift:
    if not one.count or not other.count:
        return Drift(path, "Kolmogorov-Smirnov", 0.0, threshold, "no finite numbers in one of them")
    points = np.union1d(one.points(), other.points())
    gaps = np.abs(one.share_up_to(points) - other.share_up_to(points))
    limit = _chance(one.count, other.count) + one.rank_error + other.rank_error
    return Drift(path, "Kolmogorov-Smirnov", float(gaps.max()), max(threshold, limit), reason)


def _drift_of_words(path: str, one: Words, other: Words, threshold: float) -> Drift:
    if not one.count or not other.count:
        return Drift(path, "L-infinity", 0.0, threshold, "no strings in one of them")
    ours, theirs = dict(one.top()), dict(other.top())
    gaps = {
        word: theirs.get(word, 0) / other.count - ours.get(word, 0) / one.count
        for word in {**ours, **theirs}
    }
    word = max(gaps, key=lambda each: (abs(gaps[each]), each))
    reason = (
        f"{short(word, 24)!r}: {ours.get(word, 0) / one.count:.1%} and "
        f"{theirs.get(word, 0) / other.count:.1%}"
    )
    limit = _chance(one.count, other.count) + one.error / one.count + other.error / other.count
    return Drift(path, "L-infinity", abs(gaps[word]), max(threshold, limit), reason)


def _chance(n: int, m: int) -> float:
    return _CHANCE * math.sqrt(1 / n + 1 / m) if n and m else 1.0
