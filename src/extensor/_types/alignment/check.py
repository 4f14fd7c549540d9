"""Checks of the parts of a DimensionAlignment, and of the values it is applied to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

import numpy as np
import tensorflow as tf

from extensor.authoring import Pairs, assertions, static_num_rows, uncut_rows
from extensor.errors import DTypeError, StructureError

if TYPE_CHECKING:
    from extensor import StructuredTensor
    from extensor._types.alignment.value import DimensionAlignment

Array = np.ndarray[Any, Any]

Values = Union[tf.Tensor, tf.RaggedTensor, "StructuredTensor"]
"""Values of positions: a tensor, records, or another value that stacks."""

FIX = "Values for a batch have the shape [*batch, sources, ...]."

PAIRS = Pairs(
    "DimensionAlignment",
    part="alignment",
    pairs="pairs",
    source="sources",
    target="targets",
    fix_counts="Give all three for each alignment of a batch.",
)

shapes = PAIRS.check_shapes
positions_exist = PAIRS.check_positions


def numbers(
    source: Array, target: Array, num_sources: Array, num_targets: Array, num_pairs: Array
) -> None:
    """Raises StructureError unless all positions exist and the pairs are sorted."""
    PAIRS.check_numbers(source, target, sources=num_sources, targets=num_targets, pairs=num_pairs)
    same = source[1:] == source[:-1]
    wrong = (source[1:] < source[:-1]) | (same & (target[1:] <= target[:-1]))
    if wrong.any():
        at = int(wrong.argmax())
        pairs = [(int(source[i]), int(target[i])) for i in (at, at + 1)]
        expected = "sorted pairs without duplicates"
        fix = "Use DimensionAlignment.from_pairs, which sorts them."
        raise StructureError("DimensionAlignment", expected, f"{pairs[0]} before {pairs[1]}", fix)


def in_graph(alignment: DimensionAlignment) -> list[Any]:
    """Returns the checks of `numbers` as assertions for a graph."""
    source, target = alignment.source, alignment.target
    in_order = (source[1:] > source[:-1]) | (
        tf.equal(source[1:], source[:-1]) & (target[1:] > target[:-1])
    )
    return PAIRS.assertions(
        alignment, (tf.reduce_all(in_order), "pairs must be sorted, without duplicates")
    )


def can_compose(first: DimensionAlignment, second: DimensionAlignment) -> None:
    """Raises StructureError unless one has as many targets as the other has sources."""
    between, others = first.num_targets, second.num_sources
    known = [tf.get_static_value(counts) for counts in (between, others)]
    if not between.shape.is_compatible_with(others.shape) or (
        known[0] is not None and known[1] is not None and (known[0] != known[1]).any()
    ):
        shown = ["?" if value is None else f"{value.tolist()}" for value in known]
        expected = f"{shown[0]} sources, as many as the targets of this alignment"
        fix = "Compose words -> sentences with sentences -> speakers."
        raise StructureError("DimensionAlignment.compose", expected, f"{shown[1]} sources", fix)


def values_fit(alignment: DimensionAlignment, values: Values) -> None:
    """Raises an error if the values do not match the source positions."""
    rank, path = alignment.shape.rank, "DimensionAlignment.apply"
    given: Any = None
    if rank == 0:
        given = static_num_rows(values)
    elif not isinstance(values, (tf.Tensor, tf.RaggedTensor)):
        rows = uncut_rows(values) if rank == 1 else None
        if rows is None:
            expected = "a tensor or RaggedTensor of values for a batch" + (
                ", or records in lists" if rank == 1 else ""
            )
            fix = "Apply the alignments of the batch one by one."
            raise DTypeError(path, expected, type(values).__qualname__, fix)
        given = tf.get_static_value(rows[1][1:] - rows[1][:-1])
    elif values.shape.rank is None or values.shape.rank <= rank:
        expected = f"values of rank {rank + 1} or more, for a batch of rank {rank}"
        raise StructureError(path, expected, f"shape {values.shape}", FIX)
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
        expected = f"{wanted.tolist()} values, one for each source position"
        raise StructureError(path, expected, f"{given.tolist()}", FIX)


def one_source_each(inverse: DimensionAlignment) -> list[Any]:
    """Raises StructureError unless each target has one source; in a graph, returns an assertion."""
    count = tf.reduce_sum(inverse.num_sources)
    each = tf.equal(tf.size(inverse.source, tf.int64), count) & tf.reduce_all(
        tf.equal(inverse.source[1:], inverse.source[:-1] + 1)
    )
    known = tf.get_static_value(each)
    if known is None:
        text = "each target must have one source"
        return assertions("DimensionAlignment.apply", [(each, text)])
    if not known:
        expected = "one source for each target"
        received = "a target with 0 sources, or with several"
        fix = 'Choose a reduction that combines sources, such as "mean", or omit the reduction.'
        raise StructureError('DimensionAlignment.apply(..., "only")', expected, received, fix)
    return []
