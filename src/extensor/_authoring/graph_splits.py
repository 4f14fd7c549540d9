"""Which row splits of a graph are equal in every run, found from its ops."""

from __future__ import annotations

import tensorflow as tf

from extensor._authoring.graph_sizes import GraphSizes, constant
from extensor._tf._tf_broadcast import makes_positions, makes_rows


def same_splits(a: tf.Tensor, b: tf.Tensor, sizes: GraphSizes) -> bool:
    """Returns whether two row splits of a graph are known to be the same.

    They are if they are one tensor, or if arithmetic on the rows of one gave the other.

    Args:
        a: Row splits.
        b: Row splits.
        sizes: What is known of sizes.
    """
    return _origin(a, sizes) is _origin(b, sizes)


def _origin(splits: tf.Tensor, sizes: GraphSizes) -> tf.Tensor:
    """Returns the row splits that others are equal to."""
    splits = sizes.source(splits)
    if hasattr(splits, "numpy") or splits.op.type != "ConcatV2" or not makes_rows(splits.op):
        return splits
    lengths = sizes.source(splits.op.inputs[1].op.inputs[0])  # of which the Cumsum is
    if lengths.op.type != "GatherV2":
        return splits
    operand = _splits_of_lengths(sizes.source(lengths.op.inputs[0]))
    if operand is None or not _is_each_row(lengths.op.inputs[1], sizes):
        return splits
    return _origin(operand, sizes)


def _splits_of_lengths(lengths: tf.Tensor) -> tf.Tensor | None:
    """Returns the row splits whose differences are lengths, or None."""
    if lengths.op.type != "Sub":
        return None
    parts = [part.op for part in lengths.op.inputs]
    if any(part.type != "StridedSlice" for part in parts):
        return None
    ends, starts = parts
    is_pair = ends.inputs[0] is starts.inputs[0]
    first, last = constant(ends.inputs[1]), constant(starts.inputs[2])
    is_shifted = first is not None and last is not None and (first[0], last[0]) == (1, -1)
    return ends.inputs[0] if is_pair and is_shifted else None


def _is_each_row(positions: tf.Tensor, sizes: GraphSizes) -> bool:
    """Returns whether the positions of rows of an operand are 0, 1, 2, and so on."""
    op = sizes.source(positions).op
    if op.type in ("If", "StatelessIf") and makes_positions(op):
        counts = {sizes.number(value) for value in op.inputs if value.dtype.is_integer}
        return len(counts) == 1 and None not in counts
    if op.type == "AddV2" and makes_rows(op):  # the start of each row, and offsets in rows
        starts = sizes.source(op.inputs[0]).op
        if starts.type == "GatherV2":
            rows = sizes.source(starts.inputs[1]).op
            return rows.type == "GatherV2" and _is_each_row(rows.inputs[0], sizes)
    return False
