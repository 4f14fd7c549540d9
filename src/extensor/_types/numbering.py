"""Positions that are numbered through a whole batch, and pairs of these.

Graphs have nodes, and edges between two; alignments have sources and targets, and pairs of one
each. In a batch the positions of each part are numbered after those of the part before, its pairs
follow theirs, and how many there are of each stands in counts, which have the shape of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._types import rows
from extensor.errors import StructureError


def offsets(
    shape: tf.TensorShape, pairs: tf.Tensor, splits: tf.Tensor, counts: tf.Tensor
) -> tf.Tensor:
    """Returns for each pair the first position of its part.

    Args:
        shape: The static shape of the batch.
        pairs: A vector with something for each pair, of any dtype.
        splits: Where the pairs of each part begin and end.
        counts: How many positions each part has.
    """
    if shape.rank == 0:
        return tf.constant(0, tf.int64)
    return tf.gather(rows.splits_of(counts), rows.row_ids(splits, pairs))


def expect_counts(path: str, part: str, counts: Mapping[str, Any], pairs: str, number: int) -> None:
    """Raises StructureError unless counts are not negative, and those of the pairs add up.

    Args:
        path: What has the counts.
        part: What a part of a batch is called.
        counts: Arrays by what they count: "nodes", "edges".
        pairs: What the pairs are called among these.
        number: How many pairs there are.
    """
    for name, each in counts.items():
        if each.size and each.min() < 0:
            raise StructureError(
                path=f"{path}.num_{name}",
                expected="no negative number",
                received=str(each.min()),
                mend="Give how many there are.",
            )
    total = counts[pairs].sum()
    if total != number:
        raise StructureError(
            path=f"{path}.num_{pairs}",
            expected=f"numbers that add up to {number}, the number of {pairs}",
            received=f"{total}",
            mend=f"Give how many {pairs} each {part} has.",
        )


def parts_of(num_pairs: Any) -> Any:
    """Returns for each pair the number of its part, of counts as arrays."""
    return np.repeat(np.arange(num_pairs.size), num_pairs.reshape(-1))


def ranges(counts: Any, parts: Any) -> tuple[Any, Any]:
    """Returns for each pair the first position of its part, and that behind the last, as arrays.

    >>> from extensor._types.numbering import parts_of, ranges
    >>> ranges(np.array([3, 2]), parts_of(np.array([1, 2])))
    (array([0, 3, 3]), array([3, 5, 5]))
    """
    ends = np.cumsum(counts.reshape(-1))
    return (ends - counts.reshape(-1))[parts], ends[parts]


# The same in a graph, as what has to hold and what to say if it does not.


def counts_hold(
    counts: Mapping[str, tf.Tensor], pairs: str, source: tf.Tensor, target: tf.Tensor
) -> list[tuple[tf.Tensor, str]]:
    """Returns what `expect_counts` checks, and that source and target are of one length."""
    checks = [
        (tf.reduce_all(each >= 0), f"num_{name} must not be negative")
        for name, each in counts.items()
    ]
    total = tf.reduce_sum(counts[pairs])
    adds_up = tf.equal(total, tf.size(source, tf.int64))
    checks.append((adds_up, f"num_{pairs} must add up to the number of {pairs}"))
    checks.append((tf.equal(tf.size(source), tf.size(target)), "source and target must pair"))
    return checks


def inside(positions: tf.Tensor, counts: tf.Tensor, num_pairs: tf.Tensor) -> tf.Tensor:
    """Returns whether all positions are in the ranges of their parts, whatever is in the counts."""
    pair_ends = tf.cumsum(tf.reshape(num_pairs, [-1]))
    parts = tf.searchsorted(pair_ends, tf.range(tf.size(positions, tf.int64)), side="right")
    counts = tf.reshape(counts, [-1])
    # Where the counts do not add up, which is said elsewhere, there may be pairs of no part.
    parts = tf.minimum(parts, tf.size(counts) - 1)
    ends = tf.gather(tf.cumsum(counts), parts)
    return tf.reduce_all((positions >= ends - tf.gather(counts, parts)) & (positions < ends))
