"""What a graph compares when values become fields of records.

Sizes that are not known while a function is traced are compared when it runs: one op for each
partition that may differ. None is added where the ops of the graph show that the rows are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow as tf

from extensor._authoring.extents import learn_from_records
from extensor._authoring.graph_sizes import GraphSizes, constant
from extensor._protocol.run_time_check import assert_op, run_checks
from extensor._tf import BaseResourceVariable
from extensor._tf._tf_broadcast import makes_positions, makes_rows
from extensor.errors import ExtensorError

RowError = tuple[ExtensorError, Callable[[Any, Any, Any], list[Any]]]
"""An error, and a function of a row, its length and the expected one, which returns its numbers."""


@dataclass(frozen=True)
class SizeComparison:
    """The comparisons of one call.

    Attributes:
        known: How many outer dimensions of the values are known to be those of the records.
        names: The names of the fields to compare; None for all.
        sizes: The sizes that are known from the graph.
    """

    known: int = 0
    names: Container[str] | None = None
    sizes: GraphSizes = field(default_factory=GraphSizes)
    _checks: dict[Any, list[Any]] = field(default_factory=dict[Any, list[Any]])

    @classmethod
    def in_graph(cls, validate: bool) -> SizeComparison | None:
        """Returns a comparison in a graph; None where all sizes are known, or if not wanted."""
        return cls() if validate and not tf.executing_eagerly() else None

    def for_fields(self, names: Container[str] | None) -> SizeComparison:
        """Returns the comparison of the fields with these names only."""
        return replace(self, names=names)

    def inside_rows(self) -> SizeComparison:
        """Returns the comparison of the items of values whose rows were compared."""
        return replace(self, known=1)

    def has(self, name: str) -> bool:
        """Returns whether a field is compared."""
        return self.names is None or name in self.names

    def same_rows(self, a: tf.Tensor, b: tf.Tensor) -> bool:
        """Returns whether two row splits of a graph are known to be the same.

        They are if they are one tensor, or if arithmetic on the rows of one gave the other.
        """
        return _origin(a, self.sizes) is _origin(b, self.sizes)

    def use_records(self) -> None:
        """Stores that the fields of all records of the graph have the same rows."""
        learn_from_records(self.sizes)

    def ops(self, key: Hashable, make: Callable[[], list[Any]]) -> list[Any]:
        """Returns the ops that compare a partition; they are made once for each key."""
        if key not in self._checks:
            self._checks[key] = make()
        return self._checks[key]


def with_checks(checks: list[Any], value: Any) -> Any:
    """Returns a value that is computed only if checks pass; gradients flow through it."""
    if not checks or isinstance(value, BaseResourceVariable):
        return value
    with tf.control_dependencies(checks):
        return tf.nest.map_structure(tf.identity, value, expand_composites=True)


def equal_splits(
    own: tf.Tensor, expected: tf.Tensor, wrong_count: Callable[[], list[Any]], wrong_row: RowError
) -> list[Any]:
    """Returns the op that compares row splits in a graph.

    Args:
        own: The row splits of a value.
        expected: Those that it must have.
        wrong_count: Returns the op that fails because of another number of rows.
        wrong_row: The error for a row of another length.
    """
    error, numbers = wrong_row

    def first() -> list[Any]:
        lengths, wanted = own[1:] - own[:-1], expected[1:] - expected[:-1]
        row = tf.argmax(tf.cast(lengths != wanted, tf.int32))
        return numbers(row, lengths[row], wanted[row])

    def rows() -> list[Any]:
        return assert_op(tf.reduce_all(own == expected), error, first)

    if own.shape[0] is not None and own.shape[0] == expected.shape[0]:
        return rows()
    same_count = tf.equal(tf.size(own), tf.size(expected))
    return [tf.cond(same_count, lambda: run_checks(rows()), lambda: run_checks(wrong_count()))]


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
