"""Whether the parts of a DimensionAlignment fit each other, and what it is applied to."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor._types import numbering, rows
from extensor.errors import DTypeError, StructureError

MEND = "Values of a batch have its shape, then the source positions, then what else there is."


def shapes(alignment: Any) -> None:
    """Raises StructureError unless the shapes fit, as far as they are known statically."""
    if not alignment.source.shape.is_compatible_with(alignment.target.shape):
        raise StructureError(
            path="DimensionAlignment.target",
            expected=f"shape {alignment.source.shape}, as the source",
            received=f"{alignment.target.shape}",
            mend="Pair i is of source[i] and target[i].",
        )
    for name in ("num_targets", "num_pairs"):
        counts = getattr(alignment, name)
        if not counts.shape.is_compatible_with(alignment.num_sources.shape):
            raise StructureError(
                path=f"DimensionAlignment.{name}",
                expected=f"shape {alignment.num_sources.shape}, as num_sources",
                received=f"{counts.shape}",
                mend="Give all three for each alignment of a batch.",
            )
    if alignment.shape.rank is None:
        raise StructureError(
            path="DimensionAlignment.num_pairs",
            expected="a tensor of known rank",
            received="one of unknown rank",
            mend="Use tf.ensure_shape.",
        )


def numbers(source: Any, target: Any, num_sources: Any, num_targets: Any, num_pairs: Any) -> None:
    """Raises StructureError unless all pairs are of positions that exist, and in order."""
    counts = {"sources": num_sources, "targets": num_targets, "pairs": num_pairs}
    numbering.expect_counts("DimensionAlignment", "alignment", counts, "pairs", len(source))
    parts = numbering.parts_of(num_pairs)
    positions_exist(source, *numbering.ranges(num_sources, parts), "source")
    positions_exist(target, *numbering.ranges(num_targets, parts), "target")
    same = source[1:] == source[:-1]
    wrong = (source[1:] < source[:-1]) | (same & (target[1:] <= target[:-1]))
    if wrong.any():
        at = int(wrong.argmax())
        pairs = [(int(source[i]), int(target[i])) for i in (at, at + 1)]
        raise StructureError(
            path="DimensionAlignment",
            expected="pairs in order, none twice",
            received=f"{pairs[0]} before {pairs[1]}",
            mend="DimensionAlignment.from_pairs puts them in order.",
        )


def positions_exist(positions: Any, first: Any, end: Any, name: str) -> None:
    """Raises StructureError unless all positions are in their range."""
    wrong = np.flatnonzero((positions < first) | (positions >= end))
    if wrong.size:
        pair = wrong[0]
        low, high = (int(np.broadcast_to(x, positions.shape)[pair]) for x in (first, end))
        raise StructureError(
            path=f"DimensionAlignment.{name}",
            expected=f"positions from {low} to {high - 1}" if low < high else "no position",
            received=f"{positions[pair]}, of pair {pair}",
            mend=f"num_{name}s says how many there are.",
        )


def assertions(alignment: Any) -> list[Any]:
    """Returns what `numbers` checks, as assertions in a graph."""
    source, target = alignment.source, alignment.target
    counts = {name: getattr(alignment, f"num_{name}") for name in ("sources", "targets", "pairs")}
    in_order = (source[1:] > source[:-1]) | (
        tf.equal(source[1:], source[:-1]) & (target[1:] > target[:-1])
    )
    checks = numbering.counts_hold(counts, "pairs", source, target)
    checks.append((tf.reduce_all(in_order), "pairs must be in order, none twice"))
    for name, positions in (("source", source), ("target", target)):
        inside = numbering.inside(positions, counts[f"{name}s"], counts["pairs"])
        checks.append((inside, f"{name} must be positions that exist"))
    return [tf.debugging.Assert(holds, [f"DimensionAlignment: {text}"]) for holds, text in checks]


def meet(first: Any, second: Any) -> None:
    """Raises StructureError unless one alignment ends where another begins."""
    between, others = first.num_targets, second.num_sources
    known = [tf.get_static_value(counts) for counts in (between, others)]
    if not between.shape.is_compatible_with(others.shape) or (
        known[0] is not None and known[1] is not None and (known[0] != known[1]).any()
    ):
        shown = [
            f"shape {counts.shape}" if value is None else str(value.tolist())
            for counts, value in zip((between, others), known, strict=True)
        ]
        raise StructureError(
            path="DimensionAlignment.compose",
            expected=f"an alignment of {shown[0]} sources, as many as the targets of this one",
            received=f"one of {shown[1]}",
            mend="Compose words -> sentences with sentences -> speakers.",
        )


def values_fit(alignment: Any, values: Any) -> None:
    """Raises an error if values cannot be those of the source positions."""
    rank, path = alignment.shape.rank, "DimensionAlignment.apply"
    given: Any = None
    if rank == 0:
        given = rows.static_count(values)
    elif not isinstance(values, (tf.Tensor, tf.RaggedTensor)):
        raise DTypeError(
            path=path,
            expected="a tensor or RaggedTensor of values for a batch",
            received=type(values).__qualname__,
            mend="Apply the alignments of the batch one by one.",
        )
    elif values.shape.rank is None or values.shape.rank <= rank:
        raise StructureError(
            path=path,
            expected=f"values of more than {rank} dimension(s), for a batch of {rank}",
            received=f"shape {values.shape}",
            mend=MEND,
        )
    elif isinstance(values, tf.RaggedTensor):
        outer = values if rank == 1 else values.merge_dims(0, rank - 1)
        given = tf.get_static_value(outer.row_lengths())
    else:
        given = values.shape[rank]
    wanted = tf.get_static_value(alignment.num_sources)
    if wanted is None or given is None:
        return
    given = np.asarray(given)
    count = given.size if given.ndim else wanted.size
    if count != wanted.size or (given.reshape(-1) != wanted.reshape(-1)).any():
        raise StructureError(
            path=path,
            expected=f"{wanted.tolist()} values, one for each source position",
            received=f"{given.tolist()}",
            mend=MEND,
        )


def only_one(turned: Any) -> list[Any]:
    """Raises StructureError, or returns an assertion, unless each target has one source."""
    count = tf.reduce_sum(turned.num_sources)
    each = tf.equal(tf.size(turned.source, tf.int64), count) & tf.reduce_all(
        tf.equal(turned.source[1:], turned.source[:-1] + 1)
    )
    known = tf.get_static_value(each)
    if known is None:
        text = "DimensionAlignment.apply: each target must have one source"
        return [tf.debugging.Assert(each, [text])]
    if not known:
        raise StructureError(
            path='DimensionAlignment.apply(..., "only")',
            expected="one source for each target",
            received="a target with none, or with several",
            mend='Choose how to put them together, such as "mean", or leave the reduction out.',
        )
    return []
