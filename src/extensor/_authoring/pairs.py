"""Pairs of positions, such as the edges of a graph, in a batch."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._authoring.component_check import assertions
from extensor._authoring.rows import row_ids, row_splits_of
from extensor.errors import StructureError


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Validates the pairs of positions in values of a type.

    A graph, for example, has nodes, and its edges are pairs of nodes. An alignment has sources and
    targets, and each pair has one of both. In a batch of parts (graphs, alignments), positions are
    numbered through all parts: those of each part follow those of the part before. The pairs of
    the parts also follow each other. Counts, of the shape of the batch, hold the number of
    positions and pairs in each part.

    Values have the attributes `source` and `target`, which are vectors of the positions of all
    pairs, and a count `num_<name>` for each of the names `source`, `target` and `pairs` below.

    Args:
        path: The name of the type in errors: `"Graph"`.
        part: The name of one part of a batch: `"graph"`.
        pairs: The name of the pairs: `"edges"`.
        source: The name of the first positions: `"nodes"`.
        target: The name of the second positions.
        exist: The condition on all positions, for errors in a graph.
        fix_ends: The fix if `source` and `target` have different lengths.
        fix_counts: The fix if the counts have different shapes.

    >>> import extensor as xt
    >>> edges = xt.authoring.Pairs("Graph", "graph", "edges", "nodes", "nodes")
    >>> edges.check_numbers([0, 1], [1, 2], nodes=2, edges=2)
    Traceback (most recent call last):
    extensor.errors.StructureError: Graph.target: expected positions from 0 to 1, got 2, of pair 1.
    ...
    """

    path: str
    part: str
    pairs: str
    source: str
    target: str
    exist: str = "positions that exist"
    fix_ends: str = "Pair i is of source[i] and target[i]."
    fix_counts: str = "Give a number for each part of a batch."

    @property
    def counted(self) -> list[str]:
        """The names of the counts: of the positions, then of the pairs."""
        return list(dict.fromkeys((self.source, self.target, self.pairs)))

    def _counts(self, value: object) -> dict[str, Any]:
        return {name: getattr(value, f"num_{name}") for name in self.counted}

    def check_shapes(self, value: Any) -> None:
        """Checks the static shapes of the tensors of a value.

        Raises:
            StructureError: If the shapes do not match, or the rank of the batch is not known
                (also a ValueError).
        """
        if not value.source.shape.is_compatible_with(value.target.shape):
            expected = f"shape {value.source.shape}, the shape of the source"
            received = f"{value.target.shape}"
            raise StructureError(f"{self.path}.target", expected, received, self.fix_ends)
        counts = self._counts(value)
        first, *others = counts
        for name in others:
            if not counts[name].shape.is_compatible_with(counts[first].shape):
                expected = f"shape {counts[first].shape}, the shape of num_{first}"
                received = f"{counts[name].shape}"
                raise StructureError(f"{self.path}.num_{name}", expected, received, self.fix_counts)
        if value.shape.rank is None:
            unknown = next(name for name in counts if counts[name].shape.rank is None)
            expected, received = "a tensor of known rank", "a tensor of unknown rank"
            fix = "Use tf.ensure_shape."
            raise StructureError(f"{self.path}.num_{unknown}", expected, received, fix)

    def check_numbers(
        self,
        source: np.ndarray[Any, Any],
        target: np.ndarray[Any, Any],
        **counts: np.ndarray[Any, Any],
    ) -> None:
        """Checks in NumPy that counts are not negative and add up, and that all positions exist.

        Args:
            source: The first position of each pair: an array.
            target: The second position of each pair.
            **counts: The counts by name: arrays of the shape of the batch.

        Raises:
            StructureError: If the numbers are not consistent (also a ValueError).
        """
        source, target = np.asarray(source), np.asarray(target)
        arrays = {name: np.asarray(counts[name]) for name in self.counted}
        for name, array in arrays.items():
            if array.size and array.min() < 0:
                expected, fix = "counts of at least 0", f"Give the number of {name}."
                raise StructureError(f"{self.path}.num_{name}", expected, str(array.min()), fix)
        num_pairs = arrays[self.pairs]
        total = num_pairs.sum()
        if total != len(source):
            expected = f"numbers that add up to {len(source)}, the number of {self.pairs}"
            fix = f"Give the number of {self.pairs} of each {self.part}."
            raise StructureError(f"{self.path}.num_{self.pairs}", expected, f"{total}", fix)
        parts = np.repeat(np.arange(num_pairs.size), num_pairs.reshape(-1))
        for end, name, positions in (
            ("source", self.source, source),
            ("target", self.target, target),
        ):
            lengths = arrays[name].reshape(-1)
            ends = np.cumsum(lengths)
            first, last = (ends - lengths)[parts], ends[parts]
            self.check_positions(end, positions, first, last, parts if num_pairs.ndim else None)

    def check_positions(
        self,
        end: str,
        positions: np.ndarray[Any, Any],
        first: np.ndarray[Any, Any] | int,
        last: np.ndarray[Any, Any] | int,
        parts: np.ndarray[Any, Any] | None = None,
    ) -> None:
        """Checks in NumPy that positions are in their ranges.

        Args:
            end: `"source"` or `"target"`.
            positions: An array.
            first: The first valid position: an array with one for each pair, or one number.
            last: The end of the valid range, exclusive: like `first`.
            parts: The index of the part of each pair; None without a batch.

        Raises:
            StructureError: If a position is out of range (also a ValueError).
        """
        wrong = np.flatnonzero((positions < first) | (positions >= last))
        if wrong.size:
            pair = int(wrong[0])
            low, high = (int(np.broadcast_to(x, positions.shape)[pair]) for x in (first, last))
            part = None if parts is None else int(parts[pair])
            raise self.outside(end, int(positions[pair]), pair, range(low, high), part)

    def outside(
        self, end: str, position: int, pair: int, there: range, part: int | None
    ) -> StructureError:
        """Returns the error for a position that does not exist. A subclass may add details.

        Args:
            end: `"source"` or `"target"`.
            position: The position.
            pair: The index of the pair.
            there: The valid positions.
            part: The index of the part; None without a batch.
        """
        name = self.source if end == "source" else self.target
        where = "" if part is None else f" of {self.part} {part}"
        expected = f"no position{where}"
        if there:
            expected = f"positions from {there.start} to {there.stop - 1}{where}"
        fix = f"num_{name} is the number of {name}."
        if there.start:
            fix = f"In a batch, {name} are numbered through all parts, one after the other."
        return StructureError(f"{self.path}.{end}", expected, f"{position}, of pair {pair}", fix)

    def checks(self, value: Any) -> list[tuple[tf.Tensor, str]]:
        """Returns the checks of `check_numbers` as tensors, for `xt.authoring.assertions`."""
        counts, source, target = self._counts(value), value.source, value.target
        checks = [
            (tf.reduce_all(each >= 0), f"num_{name} must not be negative")
            for name, each in counts.items()
        ]
        adds_up = tf.equal(tf.reduce_sum(counts[self.pairs]), tf.size(source, tf.int64))
        checks.append((adds_up, f"num_{self.pairs} must add up to the number of {self.pairs}"))
        checks.append((tf.equal(tf.size(source), tf.size(target)), "source and target must pair"))
        for end, name, positions in (
            ("source", self.source, source),
            ("target", self.target, target),
        ):
            holds = _all_exist(positions, counts[name], counts[self.pairs])
            checks.append((holds, f"{end} must be {self.exist}"))
        return checks

    def assertions(self, value: object, *others: tuple[tf.Tensor, str]) -> list[Any]:
        """Returns the checks of `check_numbers` as assertion ops in a graph.

        Args:
            value: A value.
            *others: More checks, as for `xt.authoring.assertions`.
        """
        return assertions(self.path, [*self.checks(value), *others])


def first_positions(
    shape: tf.TensorShape, counts: tf.Tensor, splits: tf.Tensor, pairs: tf.Tensor
) -> tf.Tensor:
    """Returns the first position of the part of each pair, as int64.

    Args:
        shape: The static shape of the batch; `[]` without a batch.
        counts: The number of positions of each part.
        splits: The row splits of the pairs by part.
        pairs: A vector with one item for each pair, of any dtype.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> counts, splits = tf.constant([3, 2], tf.int64), tf.constant([0, 1, 3], tf.int64)
    >>> xt.authoring.first_positions(counts.shape, counts, splits, tf.constant([0, 3, 4])).numpy()
    array([0, 3, 3])
    """
    if shape.rank == 0:
        return tf.constant(0, tf.int64)
    return tf.gather(row_splits_of(counts), row_ids(splits, pairs))


def _all_exist(positions: tf.Tensor, counts: tf.Tensor, num_pairs: tf.Tensor) -> tf.Tensor:
    """Returns whether all positions are in the ranges of their parts; safe for wrong counts."""
    pair_ends = tf.cumsum(tf.reshape(num_pairs, [-1]))
    parts = tf.searchsorted(pair_ends, tf.range(tf.size(positions, tf.int64)), side="right")
    counts = tf.reshape(counts, [-1])
    # Another check reports counts that do not add up. Here they must not cause a bad index.
    parts = tf.minimum(parts, tf.size(counts) - 1)
    ends = tf.gather(tf.cumsum(counts), parts)
    return tf.reduce_all((positions >= ends - tf.gather(counts, parts)) & (positions < ends))
