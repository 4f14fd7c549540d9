"""The spec of DimensionAlignments, and the boxing of the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor.authoring import (
    box_rows,
    boxed_rows_specs,
    expect_unstacks,
    first_positions,
    row_splits_of,
    sizes_of,
    unbox_rows,
)
from extensor.errors import StructureError
from extensor.typing import ShapeLike

if TYPE_CHECKING:
    from typing_extensions import Self

    from extensor._types.alignment.value import DimensionAlignment

PAIRS = tf.TensorSpec([None], tf.int64)
"""One number for each pair."""

COUNTS = tf.TensorSpec(None, tf.int64)
"""One number for each alignment."""


class AlignmentSpec:
    """The spec of alignments with any number of positions and pairs.

    Args:
        shape: The static shape of the batch; its rank must be known.

    >>> import extensor as xt
    >>> xt.types.DimensionAlignment.Spec([None]).is_compatible_with(
    ...     xt.types.DimensionAlignment.batch([xt.types.DimensionAlignment.identity(2)]))
    True
    """

    num_pairs: tf.TensorSpec
    value_type: Any

    def __init__(self, shape: ShapeLike = ()) -> None:
        counts = tf.TensorSpec(shape, tf.int64)
        if counts.shape.rank is None:
            expected = "a shape of known rank"
            fix = "Sizes may be None; a single alignment has the shape []."
            raise StructureError("DimensionAlignment.Spec", expected, f"shape {counts.shape}", fix)
        self.source = self.target = PAIRS
        self.num_sources = self.num_targets = self.num_pairs = counts

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the batch."""
        return self.num_pairs.shape

    @classmethod
    def of(cls, value: DimensionAlignment) -> tf.TypeSpec:
        """Returns the spec of an alignment."""
        return cls(value.shape)

    def stacked(self, num: int | None) -> Self:
        """Returns the spec of a batch."""
        return type(self)(tf.TensorShape([num]).concatenate(self.shape))

    def unstacked(self) -> Self:
        """Returns the spec of one element of a batch: an alignment or a smaller batch."""
        if self.shape.rank == 0:
            expected, fix = "a batch to unstack", "For a row for each source, call to_ragged()."
            raise StructureError("DimensionAlignment.Spec", expected, "a single alignment", fix)
        return type(self)(self.shape[1:])

    def joined(self, alignments: Sequence[Any]) -> DimensionAlignment | None:
        """Returns a batch of single alignments, or None if only their boxes make one.

        The boxes would cost several ops for each alignment; this costs few for all.
        """
        if self.shape.rank or not all(isinstance(a.source, tf.Tensor) for a in alignments):
            return None
        counts = [
            tf.stack([getattr(alignment, name) for alignment in alignments])
            for name in ("num_sources", "num_targets", "num_pairs")
        ]
        splits = row_splits_of(counts[2])
        local = [
            tf.concat([getattr(a, end) for a in alignments], 0) for end in ("source", "target")
        ]
        positions = [
            each + first_positions(count.shape, count, splits, each)
            for each, count in zip(local, counts[:2], strict=True)
        ]
        return self.value_type._of_parts(*positions, *counts)

    # The boxes are: the numbers of sources, targets and pairs; then the positions of the pairs,
    # which count from 0 in each alignment.

    def boxed_tensor_spec(self, minimum_rank: int = 0) -> list[tf.TypeSpec]:
        """Returns the TensorSpecs of the boxes."""
        return [*[self.num_pairs] * 3, *boxed_rows_specs(PAIRS) * 2]

    def to_boxed_tensor(self, value: DimensionAlignment, minimum_rank: int = 0) -> list[tf.Tensor]:
        """Returns the boxes of an alignment, or of a batch."""
        expect_unstacks(self, value, minimum_rank)
        sizes = sizes_of(value.shape, tf.shape(value.num_pairs, tf.int64))
        splits = row_splits_of(value.num_pairs)
        boxes = [value.num_sources, value.num_targets, value.num_pairs]
        for positions, counts in (
            (value.source, value.num_sources),
            (value.target, value.num_targets),
        ):
            local = positions - first_positions(self.shape, counts, splits, positions)
            boxes += box_rows(PAIRS, local, splits, sizes, minimum_rank)
        return boxes

    def from_boxed_tensor(self, boxed_tensor: list[tf.Tensor]) -> DimensionAlignment:
        """Returns the alignment, or the batch, that the boxes contain."""
        num_sources, num_targets, num_pairs, *others = boxed_tensor
        boxes, splits = iter(others), row_splits_of(num_pairs)
        positions: list[tf.Tensor] = []
        for counts in (num_sources, num_targets):
            local = unbox_rows(PAIRS, self.shape, boxes, tf.int64)
            positions.append(local + first_positions(self.shape, counts, splits, local))
        return self.value_type._of_parts(*positions, num_sources, num_targets, num_pairs)
