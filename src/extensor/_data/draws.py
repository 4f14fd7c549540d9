"""The order in which a mixture draws from its sources."""

from __future__ import annotations

import heapq
import itertools
import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_BITS = 32  # of fractions and phases: the product with a number of draws fits int64


Numbers = np.ndarray[Any, Any]


class _Node(NamedTuple):
    """A part of the sources that is divided in two."""

    first: _Node | int
    second: _Node | int
    fraction: int  # of the first
    phase: int


class Draws:
    """The order of the draws.

    Args:
        weights: A positive number for each source.
        seed: Numbers from which the phases follow.
    """

    def __init__(self, weights: Sequence[float], seed: Sequence[int]) -> None:
        self.count = len(weights)
        random = np.random.default_rng([*seed])
        numbers = itertools.count()
        # Only ratios matter. Scaled by a power of two, no sum is infinite, and no weight is 0.
        _, exponent = math.frexp(max(weights))
        weights = [max(math.ldexp(weight, -exponent), sys.float_info.min) for weight in weights]
        nodes: list[tuple[float, int, _Node | int]] = [
            (weight, next(numbers), source) for source, weight in enumerate(weights)
        ]
        heapq.heapify(nodes)
        while len(nodes) > 1:
            (light, _, one), (heavy, _, other) = heapq.heappop(nodes), heapq.heappop(nodes)
            fraction = max(1, round(light / (light + heavy) * (1 << _BITS)))
            node = _Node(one, other, fraction, int(random.integers(1 << _BITS)))
            heapq.heappush(nodes, (light + heavy, next(numbers), node))
        [(_, _, self._root)] = nodes

    def counts(self, draws: int) -> list[int]:
        """Returns how many of the first draws are of each source."""
        found = [0] * self.count
        nodes: list[tuple[_Node | int, int]] = [(self._root, draws)]
        while nodes:
            node, number = nodes.pop()
            if isinstance(node, int):
                found[node] = number
            else:
                first = (node.fraction * number + node.phase) >> _BITS
                nodes += [(node.first, first), (node.second, number - first)]
        return found

    def sources(self, draws: Numbers) -> Numbers:
        """Returns the sources of draws, by their numbers."""
        found = np.empty(len(draws), np.int64)
        self._fill(self._root, draws, found, np.arange(len(draws)))
        return found

    def _fill(self, node: _Node | int, draws: Numbers, found: Numbers, at: Numbers) -> None:
        """Sets the sources of draws of a node, which are numbered among those of the node."""
        if isinstance(node, int):
            found[at] = node
            return
        before = (node.fraction * draws + node.phase) >> _BITS
        is_first = (node.fraction * (draws + 1) + node.phase) >> _BITS > before
        self._fill(node.first, before[is_first], found, at[is_first])
        self._fill(node.second, (draws - before)[~is_first], found, at[~is_first])

    def draws_until(self, source: int, count: int) -> int:
        """Returns the number of draws up to the draw `count` of a source, with it; at least 1."""
        most = 1
        while self.counts(most)[source] < count:
            most *= 2
        least = most // 2
        while most - least > 1:
            middle = (least + most) // 2
            if self.counts(middle)[source] < count:
                least = middle
            else:
                most = middle
        return most
