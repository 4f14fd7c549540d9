"""Pairs of positions that are numbered through a whole batch."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._authoring.check import assertions
from extensor._authoring.rows import row_ids, row_splits_of
from extensor.errors import StructureError


@dataclasses.dataclass(frozen=True)
class Pairs:
    """The pairs of positions in values of a type: where they begin, and whether they fit.

    Graphs have nodes, and edges between two of them; alignments have sources and targets, and pairs
    of one each. In a batch the positions of each part are numbered after those of the part before,
    the pairs of each part follow those of the part before, and counts, which have the shape of the
    batch, tell how many there are of each.

    Values have the attributes `source` and `target`, which are vectors of the positions of all
    pairs, and `num_<name>` for each name below.

    Args:
        path: What the type is called in errors: `"Graph"`.
        part: What one part of a batch is called: `"graph"`.
        pairs: What the pairs are called: `"edges"`.
        source: What the first positions are positions of: `"nodes"`.
        target: What the second positions are positions of.
        exist: What all positions must be, in the words of the type.
        mend_ends: What to do if there are more of the ones than of the others.
        mend_counts: What to do if the counts have different shapes.

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
    mend_ends: str = "Pair i is of source[i] and target[i]."
    mend_counts: str = "Give a number for each part of a batch."

    @property
    def counted(self) -> list[str]:
        """What is counted: the positions, and last the pairs."""
        return list(dict.fromkeys((self.source, self.target, self.pairs)))

    def _counts(self, value: Any) -> dict[str, Any]:
        return {name: getattr(value, f"num_{name}") for name in self.counted}

    def check_shapes(self, value: Any) -> None:
        """Checks the static shapes of the tensors of a value.

        Raises:
            StructureError: If they do not fit each other, or the rank of the batch is not known
                (also a ValueError).
        """
        if not value.source.shape.is_compatible_with(value.target.shape):
            raise StructureError(
                path=f"{self.path}.target",
                expected=f"shape {value.source.shape}, as the source",
                received=f"{value.target.shape}",
                mend=self.mend_ends,
            )
        counts = self._counts(value)
        first, *others = counts
        for name in others:
            if not counts[name].shape.is_compatible_with(counts[first].shape):
                raise StructureError(
                    path=f"{self.path}.num_{name}",
                    expected=f"shape {counts[first].shape}, as num_{first}",
                    received=f"{counts[name].shape}",
                    mend=self.mend_counts,
                )
        if value.shape.rank is None:
            unknown = next(name for name in counts if counts[name].shape.rank is None)
            raise StructureError(
                path=f"{self.path}.num_{unknown}",
                expected="a tensor of known rank",
                received="one of unknown rank",
                mend="Use tf.ensure_shape.",
            )

    def check_numbers(self, source: Any, target: Any, **counts: Any) -> None:
        """Checks that counts are not negative and add up, and that all positions exist, in NumPy.

        Args:
            source: The first position of each pair: an array.
            target: The second one.
            **counts: How many there are of each, by name: arrays of the shape of the batch.

        Raises:
            StructureError: If they do not fit each other (also a ValueError).
        """
        source, target = np.asarray(source), np.asarray(target)
        arrays = {name: np.asarray(counts[name]) for name in self.counted}
        for name, array in arrays.items():
            if array.size and array.min() < 0:
                raise StructureError(
                    path=f"{self.path}.num_{name}",
                    expected="no negative number",
                    received=str(array.min()),
                    mend="Give how many there are.",
                )
        num_pairs = arrays[self.pairs]
        total = num_pairs.sum()
        if total != len(source):
            raise StructureError(
                path=f"{self.path}.num_{self.pairs}",
                expected=f"numbers that add up to {len(source)}, the number of {self.pairs}",
                received=f"{total}",
                mend=f"Give how many {self.pairs} each {self.part} has.",
            )
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
        self, end: str, positions: Any, first: Any, last: Any, parts: Any = None
    ) -> None:
        """Checks that positions are in their ranges, in NumPy.

        Args:
            end: `"source"` or `"target"`.
            positions: An array.
            first: The first position that there is: for each, or one for all.
            last: The one behind the last.
            parts: The number of the part of each, where there is a batch.

        Raises:
            StructureError: If one is outside (also a ValueError).
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
        """Returns the error for a position that does not exist. A subclass may say more.

        Args:
            end: `"source"` or `"target"`.
            position: The position.
            pair: The number of the pair.
            there: The positions that there are.
            part: The number of the part, where there is a batch.
        """
        name = self.source if end == "source" else self.target
        return StructureError(
            path=f"{self.path}.{end}",
            expected=f"positions from {there.start} to {there.stop - 1}"
            if there
            else "no position",
            received=f"{position}, of pair {pair}",
            mend=f"num_{name} says how many there are.",
        )

    def checks(self, value: Any) -> list[tuple[tf.Tensor, str]]:
        """Returns what `check_numbers` checks, in a graph: for `xt.authoring.assertions`."""
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

    def assertions(self, value: Any, *others: tuple[tf.Tensor, str]) -> list[Any]:
        """Returns what `check_numbers` checks, as assertions in a graph.

        Args:
            value: A value.
            *others: What else must hold, as `xt.authoring.assertions` takes it.
        """
        return assertions(self.path, [*self.checks(value), *others])


def first_positions(
    shape: tf.TensorShape, counts: tf.Tensor, splits: tf.Tensor, pairs: tf.Tensor
) -> tf.Tensor:
    """Returns for each pair the first position of its part, as int64.

    Args:
        shape: The static shape of the batch; of no batch, that of a scalar.
        counts: How many positions each part has.
        splits: Where the pairs of each part begin and end.
        pairs: A vector with something for each pair, of any dtype.

    >>> counts, splits = tf.constant([3, 2], tf.int64), tf.constant([0, 1, 3], tf.int64)
    >>> xt.authoring.first_positions(counts.shape, counts, splits, tf.constant([0, 3, 4])).numpy()
    array([0, 3, 3])
    """
    if shape.rank == 0:
        return tf.constant(0, tf.int64)
    return tf.gather(row_splits_of(counts), row_ids(splits, pairs))


def _all_exist(positions: tf.Tensor, counts: tf.Tensor, num_pairs: tf.Tensor) -> tf.Tensor:
    """Returns whether all positions are in the ranges of their parts, whatever the counts are."""
    pair_ends = tf.cumsum(tf.reshape(num_pairs, [-1]))
    parts = tf.searchsorted(pair_ends, tf.range(tf.size(positions, tf.int64)), side="right")
    counts = tf.reshape(counts, [-1])
    # Where the counts do not add up, which another check says, there may be pairs of no part.
    parts = tf.minimum(parts, tf.size(counts) - 1)
    ends = tf.gather(tf.cumsum(counts), parts)
    return tf.reduce_all((positions >= ends - tf.gather(counts, parts)) & (positions < ends))
