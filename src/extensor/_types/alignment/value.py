"""DimensionAlignment: which positions of one dimension belong to which of another."""

# While a value is made its fields may be assigned, which type checkers do not know.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import tensorflow as tf

from extensor import extension_type
from extensor._types.alignment import check
from extensor._types.alignment.spec import COUNTS, PAIRS, AlignmentSpec
from extensor.authoring import (
    array_over,
    batch_item,
    batch_of,
    cut_rows,
    first_positions,
    integers,
    is_tensor_like,
    known_arrays,
    reduce_rows,
    row_ids,
    row_splits_of,
    sizes_of,
    take_rows,
)
from extensor.errors import DTypeError, StructureError


@extension_type(name="extensor.types.DimensionAlignment")
class DimensionAlignment:
    """Which positions of one dimension belong to which positions of another.

    The words of a transcript belong to its speakers, tokens to words, words to sentences. An
    alignment is a set of pairs of a source and a target position: a source may have any number of
    targets, and a target any number of sources. It leads from values of the sources to values of
    the targets; `invert` turns it around.

    A batch is one alignment of many parts: the positions of all are numbered one after another, and
    `num_sources`, `num_targets` and `num_pairs`, which have the shape of the batch, tell which
    belong to which.

    Args:
        source: The source position of each pair: a vector or list.
        target: The target position of each pair. Pairs are in order by source and then by target,
            none twice; `from_pairs` sorts them.
        num_sources: How many source positions there are; of a batch, how many in each.
        num_targets: How many target positions there are, likewise.
        num_pairs: How many pairs there are in each alignment of a batch.
        validate: Whether assertions of all this are added to a graph. Outside a graph it is always
            checked, in NumPy.

    Raises:
        StructureError: If these do not fit each other (also a ValueError).
        DTypeError: If they are no integers (also a TypeError).

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

    source: Annotated[tf.Tensor, PAIRS]
    """The source position of each pair: `[pairs]`, ascending."""
    target: Annotated[tf.Tensor, PAIRS]
    """The target position of each pair: `[pairs]`, ascending for each source."""
    num_sources: Annotated[tf.Tensor, COUNTS]
    """How many source positions there are: a scalar; of a batch, of its shape."""
    num_targets: Annotated[tf.Tensor, COUNTS]
    """How many target positions there are, likewise."""
    num_pairs: Annotated[tf.Tensor, COUNTS]
    """How many pairs there are, likewise."""

    def __init__(
        self,
        source: Any,
        target: Any,
        num_sources: Any,
        num_targets: Any,
        num_pairs: Any = None,
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
    def of_parts(
        cls, source: Any, target: Any, num_sources: Any, num_targets: Any, num_pairs: Any
    ) -> DimensionAlignment:
        """Returns the alignment of parts that are known to fit. Runs no op and checks nothing."""
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
        cls, source: Any, target: Any, num_sources: Any, num_targets: Any
    ) -> DimensionAlignment:
        """Returns an alignment of pairs in any order, of which some may be there twice.

        Args:
            source: The source position of each pair.
            target: The target position of each pair.
            num_sources: How many source positions there are.
            num_targets: How many target positions there are.

        >>> xt.types.DimensionAlignment.from_pairs([1, 0, 1], [0, 1, 0], 2, 2).to_ragged()
        <tf.RaggedTensor [[1], [0]]>
        """
        source = _integers("from_pairs: source", source, rank=1)
        target = _integers("from_pairs: target", target, rank=1)
        sizes = [
            _integers(f"from_pairs: {name}", size)
            for name, size in (("num_sources", num_sources), ("num_targets", num_targets))
        ]
        # In order they might pass for others.
        for name, positions, size in zip(
            ("source", "target"), (source, target), sizes, strict=True
        ):
            if hasattr(positions, "numpy") and hasattr(size, "numpy"):
                check.positions_exist(name, array_over(positions), 0, size.numpy())
        source, target = _in_order(source, target, sizes[1])
        return cls(source, target, *sizes)

    @classmethod
    def from_ragged(cls, targets: Any, num_targets: Any) -> DimensionAlignment:
        """Returns the alignment of sources that each have some targets.

        Args:
            targets: A RaggedTensor or list, whose row i holds the target positions of source
                position i, in any order.
            num_targets: How many target positions there are.

        >>> xt.types.DimensionAlignment.from_ragged([[0], [], [1, 0]], num_targets=2)
        <DimensionAlignment 3 -> 2, 3 pairs>
        """
        if not isinstance(targets, tf.RaggedTensor):
            targets = tf.ragged.constant(targets, tf.int64, ragged_rank=1)
        if targets.shape.rank != 2 or targets.ragged_rank != 1:
            raise StructureError(
                path="DimensionAlignment.from_ragged",
                expected="a row of positions for each source",
                received=f"shape {targets.shape}",
                mend="Make alignments one by one, and a batch of them with batch.",
            )
        source = row_ids(targets.row_splits, targets.values)
        return cls.from_pairs(source, targets.values, targets.nrows(tf.int64), num_targets)

    @classmethod
    def from_index(cls, target: Any, num_targets: Any) -> DimensionAlignment:
        """Returns the alignment of sources that each have one target.

        Args:
            target: The target position of each source position: a vector or list.
            num_targets: How many target positions there are.
        """
        target = _integers("from_index: target", target, rank=1)
        count = tf.size(target, tf.int64)
        return cls(tf.range(count), target, count, num_targets)

    @classmethod
    def identity(cls, size: Any) -> DimensionAlignment:
        """Returns the alignment of a dimension with itself, position by position.

        Args:
            size: How many positions there are.
        """
        return cls.from_index(tf.range(tf.cast(size, tf.int64)), size)

    @classmethod
    def batch(cls, alignments: Iterable[DimensionAlignment]) -> DimensionAlignment:
        """Returns a batch of alignments.

        Args:
            alignments: One alignment or more; or batches of one shape.

        Raises:
            StructureError: If there is none (also a ValueError).
        """
        return batch_of(cls, list(alignments))

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the batch; of a single alignment, that of a scalar."""
        return self.num_pairs.shape

    def __getitem__(self, index: Any) -> DimensionAlignment:
        """Returns an alignment of a batch, or a batch of some.

        Args:
            index: A number or slice, or a scalar tensor.

        Raises:
            RowError: If it points outside, or this is no batch (also an IndexError).
        """
        return batch_item(self, index)

    def to_ragged(self) -> tf.RaggedTensor:
        """Returns the target positions of each source position, counted from 0 in each alignment.

        Returns:
            A RaggedTensor of shape `[..., sources, None]`. That of `invert()` tells the sources of
            each target.

        >>> turned = xt.types.DimensionAlignment.from_ragged([[0], [], [1, 0]], 2).invert()
        >>> turned.to_ragged()
        <tf.RaggedTensor [[0, 2], [2]]>
        """
        splits = row_splits_of(self.num_pairs)
        first = first_positions(self.shape, self.num_targets, splits, self.target)
        return self._cut(
            self._rows(self.target - first, self.source, self.num_sources), self.num_sources
        )

    def invert(self) -> DimensionAlignment:
        """Returns the alignment that leads from the targets to the sources."""
        order = tf.argsort(self.target, stable=True)
        return self.of_parts(
            tf.gather(self.target, order),
            tf.gather(self.source, order),
            self.num_targets,
            self.num_sources,
            self.num_pairs,
        )

    def compose(self, other: DimensionAlignment) -> DimensionAlignment:
        """Returns the alignment that leads from the sources of this one to the targets of another.

        A source and a target belong together if both belong to one position between them.

        Args:
            other: An alignment whose sources are the targets of this one.

        Raises:
            StructureError: If it has not as many (also a ValueError).

        >>> sentences = xt.types.DimensionAlignment.from_index([0, 0, 1, 2], num_targets=3)
        >>> speakers = xt.types.DimensionAlignment.from_index([1, 0, 1], num_targets=2)
        >>> sentences.compose(speakers).target.numpy()
        array([1, 1, 0, 1])
        """
        check.meet(self, other)
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
        ends = row_splits_of(self.num_sources)[1:]
        before = tf.searchsorted(source, ends, out_type=tf.int64)
        num_pairs = before - tf.concat([[0], before[:-1]], 0)
        return self.of_parts(
            source,
            target,
            self.num_sources,
            other.num_targets,
            tf.reshape(num_pairs, tf.shape(self.num_pairs)),
        )

    def apply(self, values: Any, reduction: str | None = None) -> Any:
        """Returns values of the targets, made of values of the sources.

        Args:
            values: A tensor or RaggedTensor of shape `[sources, ...]`, or with the shape of the
                batch before that; with `"only"`, of a single alignment, a value of any type that
                stacks.
            reduction: `"sum"`, `"mean"`, `"max"` or `"min"` of the values of all sources of a
                target, zero where there are none; `"only"` for the value of the one source that
                each target has; None for the values of all.

        Returns:
            A value of shape `[targets, ...]`; without a reduction a RaggedTensor of shape
            `[targets, None, ...]`; of a batch a RaggedTensor with the batch's shape before that.

        Raises:
            StructureError: If there are not as many values as sources, or `"only"` was asked for
                and a target has several sources or none (also a ValueError). In a graph that may
                show only when it runs.
            DTypeError: If the values cannot be reduced (also a TypeError).

        >>> speakers = xt.types.DimensionAlignment.from_index([0, 0, 1, 0], num_targets=2)
        >>> speakers.apply([1.0, 2.0, 4.0, 8.0], "sum").numpy()
        array([11.,  4.], dtype=float32)
        """
        flat = self._flat(values)
        if reduction is None:
            turned = self.invert()
            found = take_rows(flat, turned.target)
            return self._cut(self._rows(found, turned.source, self.num_targets), self.num_targets)
        if reduction == "only":
            turned = self.invert()
            with tf.control_dependencies(check.only_one(turned)):
                found = take_rows(flat, tf.identity(turned.target))
            return self._cut(found, self.num_targets)
        count = tf.reduce_sum(self.num_targets)
        found = reduce_rows(take_rows(flat, self.source), self.target, count, reduction)
        return self._cut(found, self.num_targets)

    def _rows(self, values: Any, positions: tf.Tensor, counts: tf.Tensor) -> tf.RaggedTensor:
        """Returns values of pairs cut by one of their positions, which ascends."""
        if not isinstance(values, (tf.Tensor, tf.RaggedTensor)):
            raise DTypeError(
                path="DimensionAlignment.apply",
                expected="a tensor or RaggedTensor, which can be cut into rows",
                received=type(values).__qualname__,
                mend='Ask for the "only" source of each target, or apply to its fields.',
            )
        total = tf.reduce_sum(counts)
        lengths = tf.math.unsorted_segment_sum(tf.ones_like(positions), positions, total)
        return cut_rows(values, row_splits_of(lengths), [total])

    def _cut(self, values: Any, counts: tf.Tensor) -> Any:
        """Returns values of the positions of all alignments cut by alignment."""
        sizes = sizes_of(self.shape, tf.shape(self.num_pairs, tf.int64))
        return cut_rows(values, row_splits_of(counts), sizes)

    def _flat(self, values: Any) -> Any:
        """Returns values of the source positions of all alignments, one after another."""
        if not is_tensor_like(values):
            values = tf.convert_to_tensor(values)
        rank = self.shape.rank
        check.values_fit(self, values)
        if not rank:
            return values
        if isinstance(values, tf.RaggedTensor):
            return values.merge_dims(0, rank)
        return tf.reshape(values, tf.concat([[-1], tf.shape(values)[rank + 1 :]], 0))

    def __repr__(self) -> str:
        def total(counts: Any) -> str:
            known = tf.get_static_value(counts) if isinstance(counts, tf.Tensor) else None
            return "?" if known is None else str(known.sum())

        shape = f"shape={self.shape} " if self.shape.rank else ""
        sizes = f"{total(self.num_sources)} -> {total(self.num_targets)}"
        return f"<DimensionAlignment {shape}{sizes}, {total(self.num_pairs)} pairs>"


def _integers(name: str, value: Any, rank: int | None = None) -> tf.Tensor:
    return tf.cast(integers(value, f"DimensionAlignment.{name}", rank), tf.int64)


def _in_order(source: tf.Tensor, target: tf.Tensor, num_targets: tf.Tensor) -> Any:
    """Returns pairs in order, none twice."""
    width = tf.maximum(num_targets, 1)
    keys = tf.sort(source * width + target)
    is_first = tf.concat([tf.ones_like(keys[:1], tf.bool), keys[1:] != keys[:-1]], 0)
    keys = tf.boolean_mask(keys, is_first)
    return keys // width, keys % width
