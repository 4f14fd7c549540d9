"""Whether the parts of a DimensionAlignment fit each other, and what it is applied to."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor.authoring import Pairs, assertions, static_num_rows
from extensor.errors import DTypeError, StructureError

MEND = "Values of a batch have its shape, then the source positions, then what else there is."

_PAIRS = Pairs(
    "DimensionAlignment",
    part="alignment",
    pairs="pairs",
    source="sources",
    target="targets",
    mend_counts="Give all three for each alignment of a batch.",
)

shapes = _PAIRS.check_shapes
positions_exist = _PAIRS.check_positions


def numbers(source: Any, target: Any, num_sources: Any, num_targets: Any, num_pairs: Any) -> None:
    """Raises StructureError unless all pairs are of positions that exist, and in order."""
    _PAIRS.check_numbers(source, target, sources=num_sources, targets=num_targets, pairs=num_pairs)
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


def in_graph(alignment: Any) -> list[Any]:
    """Returns what `numbers` checks, as assertions in a graph."""
    source, target = alignment.source, alignment.target
    in_order = (source[1:] > source[:-1]) | (
        tf.equal(source[1:], source[:-1]) & (target[1:] > target[:-1])
    )
    return _PAIRS.assertions(
        alignment, (tf.reduce_all(in_order), "pairs must be in order, none twice")
    )


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
        given = static_num_rows(values)
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
        text = "each target must have one source"
        return assertions("DimensionAlignment.apply", [(each, text)])
    if not known:
        raise StructureError(
            path='DimensionAlignment.apply(..., "only")',
            expected="one source for each target",
            received="a target with none, or with several",
            mend='Choose how to put them together, such as "mean", or leave the reduction out.',
        )
    return []
