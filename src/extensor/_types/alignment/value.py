"""DimensionAlignment: pairs of positions of two dimensions that belong together."""

# Type checkers do not know that __init__ may assign the fields.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import numpy as np
import tensorflow as tf

from extensor._types.alignment import check
from extensor._types.pairs_spec import COUNTS, NUMBERS, PairsSpec
from extensor.authoring import (
    array_over,
    as_tensor,
    batch_item,
    batch_of,
    cut_rows,
    extension_type,
    first_positions,
    integers,
    is_tensor_like,
    known_arrays,
    reduce_rows,
    row_ids,
    row_splits_of,
    sizes_of,
    take_rows,
    uncut_rows,
)
from extensor.errors import DTypeError, StructureError
from extensor.typing import ShapeLike, TensorLike


class AlignmentSpec(PairsSpec["DimensionAlignment"]):
    """The spec of alignments with any number of positions and pairs.

    Args:
        shape: The static shape of the batch; its rank must be known.

    >>> import extensor as xt
    >>> xt.types.DimensionAlignment.Spec([None]).is_compatible_with(
    ...     xt.types.DimensionAlignment.batch([xt.types.DimensionAlignment.identity(2)]))
    True
    """

    _pairs = check.PAIRS

    def __init__(self, shape: ShapeLike = ()) -> None:
        self._assign(shape)


@extension_type(name="extensor.types.DimensionAlignment")
class DimensionAlignment:
    """Pairs of positions: which positions of one dimension belong to which of another.

    For example, words belong to speakers, tokens to words, words to sentences. An alignment is a
    set of pairs of a source position and a target position. A source may have any number of
    targets, and a target any number of sources. `apply` computes values of the targets from values
    of the sources; `invert` swaps sources and targets.

    A batch stores the pairs of all its alignments one after another, and numbers the positions
    through all of them. `num_sources`, `num_targets` and `num_pairs` have the shape of the batch.

    Args:
        source: The source position of each pair: a vector or list.
        target: The target position of each pair. Pairs must be sorted by source and then by target,
            without duplicates; `from_pairs` sorts them.
        num_sources: The number of source positions; for a batch, of each alignment.
        num_targets: The number of target positions, in the same form.
        num_pairs: The number of pairs of each alignment in a batch. Default: all pairs, in one
            alignment.
        validate: Whether a graph gets assertions that check the arguments. Eager arguments are
            always checked, in NumPy.

    Raises:
        StructureError: If the arguments do not match each other (also a ValueError).
        DTypeError: If they are not integers (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> speakers = xt.types.DimensionAlignment.from_index([0, 0, 1, 0], num_targets=2)
    >>> speakers
    <DimensionAlignment 4 -> 2, 4 pairs>
    >>> words = tf.constant(["hi", "there", "hello", "bye"])
    >>> speakers.apply(words)
    <tf.RaggedTensor [[b'hi', b'there', b'bye'], [b'hello']]>
    >>> speakers.invert().apply(tf.constant(["Ann", "Bob"]), "only").numpy()
    array([b'Ann', b'Ann', b'Bob', b'Ann'], dtype=object)
    """

    Spec = AlignmentSpec

    source: Annotated[tf.Tensor, NUMBERS]
    """The source position of each pair: `[pairs]`, ascending."""
    target: Annotated[tf.Tensor, NUMBERS]
    """The target position of each pair: `[pairs]`, ascending for each source."""
    num_sources: Annotated[tf.Tensor, COUNTS]
    """The number of source positions: a scalar; for a batch, a tensor of its shape."""
    num_targets: Annotated[tf.Tensor, COUNTS]
    """The number of target positions, in the same form."""
    num_pairs: Annotated[tf.Tensor, COUNTS]
    """The number of pairs, in the same form."""

    def __init__(
        self,
        source: TensorLike,
        target: TensorLike,
        num_sources: TensorLike,
        num_targets: TensorLike,
        num_pairs: TensorLike | None = None,
        validate: bool = False,
    ) -> None:
        self.source = _integers("source", source, rank=1)
        self.target = _integers("target", target, rank=1)
        self.num_sources = _integers("num_sources", num_sources)
        self.num_targets = _integers("num_targets", num_targets)
        if num_pairs is None:
            num_pairs = tf.size(self.source, tf.int64)
        self.num_pairs = _integers("num_pairs", num_pairs)
        if validate and not tf.executing_eagerly():
            with tf.control_dependencies(check.in_graph(self)):
                self.source = tf.identity(self.source)

    def __post_init__(self) -> None:
        check.shapes(self)
        parts = (self.source, self.target, self.num_sources, self.num_targets, self.num_pairs)
        arrays = known_arrays(*parts)
        if arrays is not None:
            check.numbers(*arrays)

    @classmethod
    def _of_parts(
        cls,
        source: TensorLike,
        target: TensorLike,
        num_sources: TensorLike,
        num_targets: TensorLike,
        num_pairs: TensorLike,
    ) -> DimensionAlignment:
        """Returns an alignment from parts that match. Runs no op and checks nothing."""
        self = object.__new__(cls)
        self.__dict__.update(
            source=source,
            target=target,
            num_sources=num_sources,
            num_targets=num_targets,
            num_pairs=num_pairs,
        )
        return self

    @classmethod
    def from_pairs(
        cls,
        source: TensorLike,
        target: TensorLike,
        num_sources: TensorLike,
        num_targets: TensorLike,
    ) -> DimensionAlignment:
        """Returns an alignment from pairs in any order; duplicates are dropped.

        Args:
            source: The source position of each pair.
            target: The target position of each pair.
            num_sources: The number of source positions.
            num_targets: The number of target positions.

        >>> import extensor as xt
        >>> xt.types.DimensionAlignment.from_pairs([1, 0, 1], [0, 1, 0], 2, 2).to_ragged()
        <tf.RaggedTensor [[1], [0]]>
        """
        source = _integers("from_pairs: source", source, rank=1)
        target = _integers("from_pairs: target", target, rank=1)
        sizes = [
            _integers(f"from_pairs: {name}", size)
            for name, size in (("num_sources", num_sources), ("num_targets", num_targets))
        ]
        # Before sorting: a position out of range could become another valid pair.
        for name, positions, size in zip(
            ("source", "target"), (source, target), sizes, strict=True
        ):
            if hasattr(positions, "numpy") and hasattr(size, "numpy"):
                check.positions_exist(name, array_over(positions), 0, size.numpy())
        source, target = _in_order(source, target, sizes[1])
        return cls(source, target, *sizes)

    @classmethod
    def from_ragged(
        cls, targets: tf.RaggedTensor | Sequence[Any], num_targets: TensorLike
    ) -> DimensionAlignment:
        """Returns an alignment from the targets of each source.

        Args:
            targets: A RaggedTensor or list. Row i contains the targets of source i, in any order.
                For a batch: a RaggedTensor of shape `[batch, None, None]`.
            num_targets: The number of target positions; for a batch, of all or of each alignment.

        >>> import extensor as xt
        >>> xt.types.DimensionAlignment.from_ragged([[0], [], [1, 0]], num_targets=2)
        <DimensionAlignment 3 -> 2, 3 pairs>
        """
        if not isinstance(targets, tf.RaggedTensor):
            targets = tf.ragged.constant(targets, tf.int64, ragged_rank=1)
        rank = targets.shape.rank
        if rank not in (2, 3) or targets.ragged_rank != rank - 1:
            expected = "shape [sources, None], or [batch, None, None]: the targets of each source"
            received = f"shape {targets.shape}"
            fix = "Create single alignments, and combine them with DimensionAlignment.batch."
            raise StructureError("DimensionAlignment.from_ragged", expected, received, fix)
        rows: Any = targets if rank == 2 else targets.values
        source = row_ids(rows.row_splits, rows.values)
        if rank == 2:
            return cls.from_pairs(source, rows.values, targets.nrows(tf.int64), num_targets)
        splits = tf.gather(rows.row_splits, targets.row_splits)
        return cls._of_batch("from_ragged", source, rows.values, splits, targets, num_targets)

    @classmethod
    def from_index(cls, target: TensorLike, num_targets: TensorLike) -> DimensionAlignment:
        """Returns an alignment in which each source has one target.

        Args:
            target: The target position of each source position: a vector or list. For a batch: a
                RaggedTensor of shape `[batch, None]`.
            num_targets: The number of target positions; for a batch, of all or of each alignment.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> speakers = tf.ragged.constant([[0, 0, 1], [0]])
        >>> xt.types.DimensionAlignment.from_index(speakers, num_targets=[2, 1])
        <DimensionAlignment shape=(2,) 4 -> 3, 4 pairs>
        """
        if isinstance(target, tf.RaggedTensor):
            if target.shape.rank != 2:
                expected = "shape [batch, None]: the target of each source"
                received = f"shape {target.shape}"
                fix = "Make batches of one dimension, and join them by DimensionAlignment.batch."
                raise StructureError("DimensionAlignment.from_index", expected, received, fix)
            source = tf.range(tf.size(target.values, tf.int64))
            splits = target.row_splits
            return cls._of_batch("from_index", source, target.values, splits, target, num_targets)
        target = _integers("from_index: target", target, rank=1)
        count = tf.size(target, tf.int64)
        return cls(tf.range(count), target, count, num_targets)

    @classmethod
    def _of_batch(
        cls,
        path: str,
        source: tf.Tensor,
        target: tf.Tensor,
        splits: tf.Tensor,
        rows: tf.RaggedTensor,
        num_targets: TensorLike,
    ) -> DimensionAlignment:
        """Returns a batch of alignments from pairs of all of them.

        Args:
            path: The name of the constructor, for errors.
            source: The source position of each pair, counted through the batch.
            target: The target position of each pair, counted in its alignment.
            splits: The row splits of the pairs by alignment.
            rows: A RaggedTensor with a row of sources for each alignment.
            num_targets: The number of target positions of all or of each alignment.
        """
        target = _integers(f"{path}: target", target, rank=1)
        num_sources = tf.cast(rows.row_lengths(), tf.int64)
        counts = _integers(f"{path}: num_targets", num_targets)
        counts = tf.broadcast_to(counts, tf.shape(num_sources))
        splits = tf.cast(splits, tf.int64)
        arrays = known_arrays(target, counts, splits)
        if arrays is not None:
            parts = np.repeat(np.arange(len(arrays[1])), np.diff(arrays[2]))
            check.positions_exist("target", arrays[0], 0, arrays[1][parts], parts)
        target += first_positions(counts.shape, counts, splits, target)
        source, target = _in_order(tf.cast(source, tf.int64), target, tf.reduce_sum(counts))
        return cls(source, target, num_sources, counts, _counts(source, num_sources))

    @classmethod
    def identity(cls, size: TensorLike) -> DimensionAlignment:
        """Returns the alignment of a dimension with itself, position by position.

        Args:
            size: The number of positions.
        """
        return cls.from_index(tf.range(tf.cast(size, tf.int64)), size)

    @classmethod
    def batch(cls, alignments: Iterable[DimensionAlignment]) -> DimensionAlignment:
        """Returns a batch of alignments.

        Args:
            alignments: One or more alignments, or batches of the same shape.

        Raises:
            StructureError: If `alignments` is empty (also a ValueError).
        """
        return batch_of(cls, list(alignments))

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the batch; `[]` for a single alignment."""
        return tf.TensorShape(self.num_pairs.shape)  # of a KerasTensor, it is a tuple

    def __getitem__(self, index: int | slice | tf.Tensor) -> DimensionAlignment:
        """Returns one alignment of a batch, or a slice of the batch.

        Args:
            index: A number or slice, or a scalar tensor.

        Raises:
            RowError: If the index is out of range, or this is a single alignment (also an
                IndexError).
        """
        return batch_item(self, index)

    def to_ragged(self) -> tf.RaggedTensor:
        """Returns the target positions of each source position, counted from 0 in each alignment.

        Returns:
            A RaggedTensor of shape `[..., sources, None]`. Call `invert().to_ragged()` for the
            sources of each target.

        >>> import extensor as xt
        >>> inverse = xt.types.DimensionAlignment.from_ragged([[0], [], [1, 0]], 2).invert()
        >>> inverse.to_ragged()
        <tf.RaggedTensor [[0, 2], [2]]>
        """
        splits = row_splits_of(self.num_pairs)
        first = first_positions(self.shape, self.num_targets, splits, self.target)
        return self._cut(
            self._rows(self.target - first, self.source, self.num_sources), self.num_sources
        )

    def invert(self) -> DimensionAlignment:
        """Returns the alignment with sources and targets swapped."""
        order = tf.argsort(self.target, stable=True)
        return self._of_parts(
            tf.gather(self.target, order),
            tf.gather(self.source, order),
            self.num_targets,
            self.num_sources,
            self.num_pairs,
        )

    def compose(self, other: DimensionAlignment) -> DimensionAlignment:
        """Returns the alignment from the sources of this one to the targets of another.

        A source and a target are a pair if both are paired with the same position between them.

        Args:
            other: An alignment whose sources are the targets of this one.

        Raises:
            StructureError: If the numbers differ (also a ValueError).

        >>> import extensor as xt
        >>> sentences = xt.types.DimensionAlignment.from_index([0, 0, 1, 2], num_targets=3)
        >>> speakers = xt.types.DimensionAlignment.from_index([1, 0, 1], num_targets=2)
        >>> sentences.compose(speakers).target.numpy()
        array([1, 1, 0, 1])
        """
        check.can_compose(self, other)
        lengths = tf.math.unsorted_segment_sum(
            tf.ones_like(other.source), other.source, tf.reduce_sum(other.num_sources)
        )
        splits = row_splits_of(lengths)
        found = tf.ragged.range(
            tf.gather(splits[:-1], self.target), tf.gather(splits[1:], self.target)
        )
        first = tf.gather(self.source, row_ids(found.row_splits, found.values))
        last = tf.gather(other.target, found.values)
        source, target = _in_order(first, last, tf.reduce_sum(other.num_targets))
        return self._of_parts(
            source, target, self.num_sources, other.num_targets, _counts(source, self.num_sources)
        )

    def apply(self, values: object, reduction: str | None = None) -> Any:
        """Returns values of the targets, computed from values of the sources.

        Args:
            values: A tensor or RaggedTensor of shape `[sources, ...]`; for a batch, `[*batch,
                sources, ...]`. Also records, masked values, and values of other types that can be
                cut into rows (see `xt.authoring.cut_rows`); for a batch of one dimension, these are
                in lists. For `"only"` and a single alignment, a value of any type that stacks.
            reduction: `"sum"`, `"mean"`, `"max"` or `"min"` over the sources of each target, zero
                if it has none. `"only"`: the value of its one source. None: the values of all its
                sources.

        Returns:
            A value of shape `[targets, ...]`; without a reduction, a RaggedTensor, or ragged
            records, of shape `[targets, None, ...]`. For a batch, the same with the shape of the
            batch in front. Masked values are reduced as by `tf.reduce_sum` and so on.

        Raises:
            StructureError: If there are not as many values as sources, or with `"only"`, if a
                target has no source or several (also a ValueError). A graph may raise this when it
                runs.
            DTypeError: If the values cannot be reduced (also a TypeError).

        >>> import extensor as xt
        >>> speakers = xt.types.DimensionAlignment.from_index([0, 0, 1, 0], num_targets=2)
        >>> speakers.apply([1.0, 2.0, 4.0, 8.0], "sum").numpy()
        array([11.,  4.], dtype=float32)
        """
        flat = self._flat(values)
        is_tensor = isinstance(flat, (tf.Tensor, tf.RaggedTensor))
        if reduction not in (None, "only") and (is_tensor or reduction not in _REDUCTIONS):
            count = tf.reduce_sum(self.num_targets)
            found = reduce_rows(take_rows(flat, self.source), self.target, count, reduction)
            return self._cut(found, self.num_targets)
        inverse = self.invert()
        if reduction == "only":
            with tf.control_dependencies(check.one_source_each(inverse)):
                found = take_rows(flat, tf.identity(inverse.target))
            return self._cut(found, self.num_targets)
        found = self._rows(take_rows(flat, inverse.target), inverse.source, self.num_targets)
        if reduction is not None:
            found = _REDUCTIONS[reduction](found, 1)
        return self._cut(found, self.num_targets)

    def _rows(self, values: check.Values, positions: tf.Tensor, counts: tf.Tensor) -> check.Values:
        """Returns values of pairs as one row for each position; the positions are ascending."""
        is_tensor = isinstance(values, (tf.Tensor, tf.RaggedTensor))
        if not is_tensor and not hasattr(type(values), "__tf_cut_rows__"):
            expected = "a tensor, RaggedTensor or records, which can be split into rows"
            fix = 'Pass reduction="only", or apply the alignment to each field.'
            raise DTypeError("DimensionAlignment.apply", expected, type(values).__qualname__, fix)
        total = tf.reduce_sum(counts)
        lengths = tf.math.unsorted_segment_sum(tf.ones_like(positions), positions, total)
        return cut_rows(values, row_splits_of(lengths), [total])

    def _cut(self, values: check.Values, counts: tf.Tensor) -> check.Values:
        """Returns the values split by alignment."""
        sizes = sizes_of(self.shape, tf.shape(self.num_pairs, tf.int64))
        return cut_rows(values, row_splits_of(counts), sizes)

    def _flat(self, values: object) -> check.Values:
        """Returns the values with the dimensions of the batch merged into the first one."""
        if not is_tensor_like(values):
            values = as_tensor(values, "DimensionAlignment.apply")
        rank = self.shape.rank
        check.values_fit(self, values)
        if not rank:
            return values
        if isinstance(values, tf.RaggedTensor):
            return values.merge_dims(0, rank)
        rows = None if isinstance(values, tf.Tensor) else uncut_rows(values)
        if rows is not None:
            return rows[0]
        return tf.reshape(values, tf.concat([[-1], tf.shape(values)[rank + 1 :]], 0))

    def __repr__(self) -> str:
        def total(counts: tf.Tensor) -> str:
            known = tf.get_static_value(counts) if isinstance(counts, tf.Tensor) else None
            return "?" if known is None else str(known.sum())

        shape = f"shape={self.shape} " if self.shape.rank else ""
        sizes = f"{total(self.num_sources)} -> {total(self.num_targets)}"
        return f"<DimensionAlignment {shape}{sizes}, {total(self.num_pairs)} pairs>"


_REDUCTIONS: dict[str, Any] = {
    "sum": tf.reduce_sum,
    "mean": tf.reduce_mean,
    "max": tf.reduce_max,
    "min": tf.reduce_min,
}


def _integers(name: str, value: TensorLike, rank: int | None = None) -> tf.Tensor:
    return tf.cast(integers(value, f"DimensionAlignment.{name}", rank), tf.int64)


def _counts(source: tf.Tensor, num_sources: tf.Tensor) -> tf.Tensor:
    """Returns the number of pairs of each alignment, from the sources of all pairs in order."""
    ends = row_splits_of(num_sources)[1:]
    before = tf.searchsorted(source, ends, out_type=tf.int64)
    return tf.reshape(before - tf.concat([[0], before[:-1]], 0), tf.shape(num_sources))


def _in_order(
    source: tf.Tensor, target: tf.Tensor, num_targets: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the pairs sorted, without duplicates."""
    width = tf.maximum(num_targets, 1)
    keys = tf.sort(source * width + target)
    is_first = tf.concat([tf.ones_like(keys[:1], tf.bool), keys[1:] != keys[:-1]], 0)
    keys = tf.boolean_mask(keys, is_first)
    return keys // width, keys % width
