"""Statistics of numbers and of strings, in one pass and in bounded memory.

The sketches are those of Apache DataSketches: KLL for quantiles, the frequent items sketch of
Misra and Gries, and HyperLogLog for the number of distinct strings. Each can be merged with another
one, and states its error.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from extensor._dependency import import_extra

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time

_K = 800
"""KLL keeps a few times so many numbers. A rank has an error of 0.35% with a probability of 99%."""

_LG_WORDS = 12
"""The sketch keeps at most 3,072 strings, and counts all of them exactly if there are no more."""

_LG_DISTINCT = 12
"""The number of distinct strings has a standard error of 1.6%."""

_LONGEST = 200
"""Longer strings are counted by so many of their first bytes, so that memory is bounded."""

_BARS = 20


def datasketches() -> Any:
    """Returns the package of the sketches.

    Raises:
        MissingDependencyError: If it is not installed (also an ImportError).
    """
    return import_extra("datasketches", "describe", "xt.data.describe")


class Numbers:
    """Statistics of numbers.

    Everything but `quantile`, `histogram` and `share_up_to` is exact, up to the rounding of
    float64.

    >>> import extensor as xt
    >>> data = [{"title": "tea", "minutes": 5}, {"title": "pie", "minutes": 7}]
    >>> found = xt.data.describe(xt.struct.constant(data))
    >>> found["minutes"].numbers.mean
    6.0
    """

    def __init__(self) -> None:
        self.count = 0
        """The number of finite numbers. All statistics below are theirs."""
        self.nans = 0
        """The number of NaNs."""
        self.infinities = 0
        """The number of infinities of both signs."""
        self.zeros = 0
        """The number of zeros."""
        self.min: Any = None
        """The smallest number; None if there is none."""
        self.max: Any = None
        """The largest number; None if there is none."""
        self.mean = math.nan
        """The mean."""
        self.is_integer = True
        """Whether all numbers have an integer type."""
        self._squares = 0.0  # the sum of the squared distances from the mean
        self._factor = 1  # of the numbers in the sketch
        self._sketch: Any = datasketches().kll_doubles_sketch(_K)

    @property
    def std(self) -> float:
        """The standard deviation of the numbers, as np.std computes it."""
        return math.sqrt(self._squares / self.count) if self.count else math.nan

    @property
    def rank_error(self) -> float:
        """The error of a rank, with a probability of 99%: 0.0 if all numbers were kept."""
        sketch = self._sketch
        return sketch.normalized_rank_error(True) if sketch.is_estimation_mode() else 0.0

    def add(self, values: pa.Array) -> None:
        """Adds numbers of an integer or floating type, without nulls."""
        self.is_integer &= pa.types.is_integer(values.type)
        if not pa.types.is_integer(values.type):
            array = np.asarray(values.cast(pa.float64()))
            finite = np.isfinite(array)
            nans = int(np.isnan(array).sum())
            self.nans += nans
            self.infinities += len(array) - int(finite.sum()) - nans
            array = array[finite]
            ends = (float(array.min()), float(array.max())) if len(array) else (None, None)
        else:
            # The ends of integers are exact: a float64 has 53 bits.
            both = pc.min_max(values)
            ends = both["min"].as_py(), both["max"].as_py()
            array = np.asarray(values.cast(pa.float64(), safe=False))
        if not len(array):
            return
        self.zeros += int((array == 0).sum())
        with np.errstate(over="ignore", invalid="ignore"):  # as large as float64 allows
            mean = float(array.mean())
            squares = float(np.square(array - mean).sum())
        self._join(len(array), mean, squares, *ends)
        self._sketch.update(np.array(array))  # a copy, because the sketch takes no read-only array

    def merge(self, other: Numbers) -> None:
        """Adds the numbers of other statistics."""
        self.nans += other.nans
        self.infinities += other.infinities
        self.zeros += other.zeros
        self.is_integer &= other.is_integer
        if other.count:
            self._join(other.count, other.mean, other._squares, other.min, other.max)
            self._sketch.merge(other._sketch)

    def _join(self, count: int, mean: float, squares: float, low: Any, high: Any) -> None:
        if not self.count:
            self.count, self.mean, self._squares = count, mean, squares
            self.min, self.max = low, high
            return
        whole = self.count + count
        step = mean - self.mean
        self._squares += squares + step * step * (self.count / whole) * count
        self.mean += step * (count / whole)
        self.min, self.max = min(self.min, low), max(self.max, high)
        self.count = whole

    def quantile(self, rank: float) -> float:
        """Returns the number below or at which a share of all numbers is.

        Args:
            rank: The share, between 0.0 and 1.0.

        Returns:
            One of the numbers, whose true rank differs by at most `rank_error` with a probability
            of 99%. NaN if there are no numbers.
        """
        if not self.count:
            return math.nan
        return float(self._sketch.get_quantile(rank, True)) * self._factor

    @property
    def median(self) -> float:
        """The median as np.median computes it; of more numbers than are kept, `quantile(0.5)`."""
        middle = self.quantile(0.5)
        if self.count % 2 or not self.count or self.rank_error:
            return middle
        # With an even count, the mean of the two in the middle.
        other = self.quantile((self.count + 1) / (2 * self.count))
        step = other - middle
        return middle + step / 2 if math.isfinite(step) else middle / 2 + other / 2

    def share_up_to(self, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Returns the share of the numbers that are at most each point.

        Args:
            points: Different numbers in increasing order.
        """
        kept = np.unique([value for value, _ in self._sketch])
        shares = np.array([0.0, *self._sketch.get_cdf(kept.tolist(), True)[:-1]])
        return shares[np.searchsorted(kept * self._factor, points, "right")]

    def points(self) -> np.ndarray[Any, Any]:
        """Returns the numbers that the sketch keeps, each once, in increasing order."""
        return np.unique([value for value, _ in self._sketch]) * self._factor

    def scaled(self, factor: int) -> Numbers:
        """Returns the same numbers in a unit of which so many are one of theirs."""
        found = copy.copy(self)
        found._factor, found.mean = self._factor * factor, self.mean * factor
        found._squares = self._squares * factor**2
        if self.count:
            found.min, found.max = self.min * factor, self.max * factor
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_sketch": self._sketch.serialize()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._sketch = datasketches().kll_doubles_sketch.deserialize(state["_sketch"])

    def histogram_edges(self) -> np.ndarray[Any, Any]:
        """Returns the edges of the bars of a histogram.

        Numbers far from the others do not squeeze the bars: the outermost bars may hold numbers
        beyond the outermost edges.
        """
        if not self.count:
            return np.zeros(0)
        low, high = self.quantile(0.01), self.quantile(0.99)
        span = high - low
        low, high = max(float(self.min), low - span), min(float(self.max), high + span)
        return edges_between(low, high, self.is_integer)

    def histogram(self, edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Returns the share of the numbers in each bar; the last one includes its upper edge."""
        if not self.count:
            return np.zeros(max(0, len(edges) - 1))
        shares = np.array(self._sketch.get_cdf((edges[1:-1] / self._factor).tolist(), False))
        return np.diff(shares, prepend=0.0)


def edges_between(low: float, high: float, is_integer: bool) -> np.ndarray[Any, Any]:
    """Returns the edges of the bars for numbers between two finite ones.

    >>> from extensor._describe.sketches import edges_between
    >>> edges_between(1, 4, is_integer=True)
    array([0.5, 1.5, 2.5, 3.5, 4.5])
    """
    if not math.isfinite(high - low):  # the difference is too large for a float64
        return np.array([low, 0.0, high])
    if is_integer and abs(low) + abs(high) < 2**50:
        # Bars of the same number of integers each.
        low, high = math.floor(low), math.ceil(high)
        step = -(-(high - low + 1) // _BARS)
        return low - 0.5 + step * np.arange(-(-(high - low + 1) // step) + 1.0)
    edges = np.unique(np.linspace(low, high, _BARS + 1))
    return edges if len(edges) > 1 else np.array([low - 0.5, low + 0.5])


class Words:
    """Statistics of strings.

    >>> import extensor as xt
    >>> data = [{"title": "tea", "minutes": 5}, {"title": "pie", "minutes": 7}]
    >>> found = xt.data.describe(xt.struct.constant(data))
    >>> sorted(found["title"].words.top())
    [('pie', 1), ('tea', 1)]
    """

    def __init__(self) -> None:
        self.count = 0
        """The number of strings."""
        self.lengths = Numbers()
        """Statistics of the lengths in bytes."""
        package = datasketches()
        self._sketch: Any = package.frequent_strings_sketch(_LG_WORDS)
        self._distinct: Any = package.hll_union(_LG_DISTINCT)

    @property
    def unique(self) -> int:
        """The number of distinct strings: exact if it is small, else with an error of 1.6%."""
        found = self._sketch.num_active_items
        if self.error == 0:
            return found
        return min(self.count, max(found, round(self._distinct.get_estimate())))

    @property
    def error(self) -> int:
        """By how much a count of `top` may differ from the true one; 0 if all are exact."""
        return max((high - low for _, _, low, high in self._items(1)), default=0)

    def add(self, values: pa.Array) -> None:
        """Adds strings or bytes, without nulls."""
        self.count += len(values)
        if not len(values):
            return
        self.lengths.add(pc.binary_length(values).cast(pa.int64()))
        found = values.value_counts()
        # Through bytes, because Arrow does not check that a string is UTF-8.
        words = found.field(0).cast(pa.large_binary()).to_pylist()
        package = datasketches()
        distinct = package.hll_sketch(_LG_DISTINCT)
        for word, count in zip(words, found.field(1).to_pylist(), strict=True):
            text = _text(word)
            self._sketch.update(text, count)
            distinct.update(text)
        self._distinct.update(distinct)

    def merge(self, other: Words) -> None:
        """Adds the strings of other statistics."""
        self.count += other.count
        self.lengths.merge(other.lengths)
        self._sketch.merge(other._sketch)
        self._distinct.update(other._distinct.get_result())

    def top(self, limit: int | None = None) -> list[tuple[str, int]]:
        """Returns the most frequent strings and their counts, the most frequent first.

        A string that occurs more often than `error` is always found.

        Args:
            limit: How many at most. Default: all that are known.
        """
        items = self._items(limit)
        return [(text, estimate) for text, estimate, _, _ in items]

    def _items(self, limit: int | None) -> list[tuple[str, int, int, int]]:
        kinds = datasketches().frequent_items_error_type.NO_FALSE_NEGATIVES
        items = self._sketch.get_frequent_items(kinds)
        items.sort(key=lambda item: (-item[1], item[0]))
        return items[:limit]

    def __getstate__(self) -> dict[str, Any]:
        distinct = self._distinct.get_result().serialize_compact()
        return {**vars(self), "_sketch": self._sketch.serialize(), "_distinct": distinct}

    def __setstate__(self, state: dict[str, Any]) -> None:
        package = datasketches()
        vars(self).update(state)
        self._sketch = package.frequent_strings_sketch.deserialize(state["_sketch"])
        self._distinct = package.hll_union(_LG_DISTINCT)
        self._distinct.update(package.hll_sketch.deserialize(state["_distinct"]))


def _text(word: bytes) -> str:
    if len(word) > _LONGEST:
        return word[:_LONGEST].decode("utf-8", "backslashreplace") + "..."
    return word.decode("utf-8", "backslashreplace")
