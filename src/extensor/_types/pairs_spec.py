"""What the specs of graphs and of alignments share: pairs of positions, in a batch of parts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import tensorflow as tf

from extensor.authoring import (
    FrozenDict,
    Pairs,
    box_rows,
    boxed_rows_specs,
    expect_unstacks,
    first_positions,
    known_arrays,
    row_splits_of,
    sizes_of,
    unbox_rows,
)
from extensor.errors import StructureError
from extensor.typing import ShapeLike

if TYPE_CHECKING:
    from typing_extensions import Self

_Value = TypeVar("_Value")

NUMBERS = tf.TensorSpec([None], tf.int64)
"""One number for each pair."""

COUNTS = tf.TensorSpec(None, tf.int64)
"""One number for each part."""

_ENDS = ("source", "target")

_Tensors = Mapping[str, Any]
"""Tensors by the name of an end of pairs, of a count without `num_`, or of a feature."""


class PairsSpec(Generic[_Value]):
    """The spec of values with the attributes that `xt.authoring.Pairs` names.

    A value may have features too: mappings under names of counts, with a row for each position or
    pair. The arguments of a constructor are the specs of these features, and the shape.
    """

    _pairs: ClassVar[Pairs]
    """The names of the attributes."""

    _features: ClassVar[tuple[str, ...]] = ()
    """The names of the attributes with features."""

    value_type: type[_Value]

    def _assign(self, shape: ShapeLike) -> None:
        """Assigns the specs of all tensors but those of features."""
        counts, pairs = tf.TensorSpec(shape, tf.int64), self._pairs
        if counts.shape.rank is None:
            expected = "a shape of known rank"
            fix = f"Sizes may be None; a single {pairs.part} has the shape []."
            raise StructureError(f"{pairs.path}.Spec", expected, f"shape {counts.shape}", fix)
        self.source = self.target = NUMBERS
        for name in pairs.counted:
            setattr(self, f"num_{name}", counts)

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the batch."""
        return getattr(self, f"num_{self._pairs.pairs}").shape

    @classmethod
    def of(cls, value: Any) -> tf.TypeSpec:
        """Returns the spec of a value, for any number of positions and pairs."""
        features = [
            {name: tf.type_spec_from_value(each) for name, each in getattr(value, kind).items()}
            for kind in cls._features
        ]
        made: Any = cls
        return made(*features, value.shape)

    def _with_shape(self, shape: tf.TensorShape) -> Self:
        made: Any = type(self)
        return made(*[getattr(self, kind) for kind in self._features], shape)

    def stacked(self, num: int | None) -> Self:
        """Returns the spec of a batch."""
        return self._with_shape(tf.TensorShape([num]).concatenate(self.shape))

    def unstacked(self) -> Self:
        """Returns the spec of one element of a batch: a single part or a smaller batch."""
        if self.shape.rank == 0:
            path, received = f"{self._pairs.path}.Spec", f"a single {self._pairs.part}"
            fix = "For the rows of a single one, use its attributes, such as value.source."
            raise StructureError(path, "a batch to unstack", received, fix)
        return self._with_shape(self.shape[1:])

    def joined(self, values: Sequence[_Value]) -> _Value | None:
        """Returns a batch of single values of this spec, or None if only their boxes make one.

        The boxes would cost several ops for each value; this costs few for all.
        """
        if self.shape.rank or not all(map(self._has_tensors, values)):
            return None
        counts = {k: tf.stack(_each(values, f"num_{k}")) for k in self._pairs.counted}
        ends = {end: tf.concat(_each(values, end), 0) for end in _ENDS}
        features = {
            kind: {
                name: tf.concat([of[name] for of in _each(values, kind)], 0)
                for name in sorted(getattr(self, kind))
            }
            for kind in self._features
        }
        splits = row_splits_of(counts[self._pairs.pairs])
        first = self._first(tf.TensorShape([len(values)]), counts, splits, ends["source"])
        return self._value({end: ends[end] + first[end] for end in _ENDS}, counts, features)

    def part(self, batch: _Value, index: int | slice | tf.Tensor) -> _Value | None:
        """Returns a part of an eager batch, or a slice of it; None if only the boxes can.

        Each tensor is cut once: the boxes would cost several ops for each.
        """
        counts = _counts(self._pairs, batch)
        arrays = known_arrays(*counts.values())
        if arrays is None or self.shape.rank != 1 or not self._has_tensors(batch):
            return None
        size, is_slice = len(arrays[0]), isinstance(index, slice)
        if isinstance(index, slice):
            begin, end, step = index.indices(size)
            if step != 1:
                return None
        elif type(index) is int:
            begin = index % size
            end = begin + 1
        else:
            return None
        end = max(begin, end)
        limits = {
            kind: [of[:i].sum() for i in (begin, end)]
            for kind, of in zip(counts, arrays, strict=True)
        }
        cut = {kind: _cut(*limit) for kind, limit in limits.items()}
        kinds, cut_pairs = self._kinds, cut[self._pairs.pairs]
        first = {kind: tf.constant(limits[kind][0], tf.int64) for kind in kinds.values()}
        one = _cut(begin, end, shrink=not is_slice)
        return self._value(
            {each: cut_pairs(getattr(batch, each)) - first[kinds[each]] for each in kinds},
            {kind: one(count) for kind, count in counts.items()},
            {k: {n: cut[k](v) for n, v in getattr(batch, k).items()} for k in self._features},
        )

    def _value(self, ends: _Tensors, counts: _Tensors, features: Mapping[str, _Tensors]) -> _Value:
        """Returns a value of parts that match. Runs no op and checks nothing."""
        value = object.__new__(self.value_type)
        value.__dict__.update(ends)
        value.__dict__.update({f"num_{kind}": count for kind, count in counts.items()})
        value.__dict__.update({kind: FrozenDict(of) for kind, of in features.items()})
        return value

    @property
    def _kinds(self) -> dict[str, str]:
        """The name of the positions at each end of the pairs."""
        return {"source": self._pairs.source, "target": self._pairs.target}

    def _first(
        self, shape: tf.TensorShape, counts: _Tensors, splits: tf.Tensor, pairs: tf.Tensor
    ) -> _Tensors:
        """Returns for each end the first position of the part of each pair."""
        kinds = self._kinds
        positions = dict.fromkeys(kinds.values())  # those of a graph are the same for both ends
        first = {kind: first_positions(shape, counts[kind], splits, pairs) for kind in positions}
        return {end: first[kind] for end, kind in kinds.items()}

    def _has_tensors(self, value: Any) -> bool:
        features = [each for kind in self._features for each in getattr(value, kind).values()]
        return all(isinstance(each, tf.Tensor) for each in (value.source, *features))

    # The boxes are: the counts; the source and target of each pair, numbered from 0 in each part;
    # the features of each kind, in the order of their names.

    def _feature_specs(self) -> list[tuple[str, str, Any]]:
        """Returns the kind, the name and the spec of each feature."""
        return [
            (kind, name, spec)
            for kind in self._features
            for name, spec in sorted(getattr(self, kind).items())
        ]

    def boxed_tensor_spec(self, minimum_rank: int = 0) -> list[tf.TypeSpec]:
        """Returns the TensorSpecs of the boxes."""
        rows = [NUMBERS, NUMBERS, *(spec for _, _, spec in self._feature_specs())]
        counts = [tf.TensorSpec(self.shape, tf.int64)] * len(self._pairs.counted)
        return [*counts, *(box for spec in rows for box in boxed_rows_specs(spec))]

    def to_boxed_tensor(self, value: Any, minimum_rank: int = 0) -> list[tf.Tensor]:
        """Returns the boxes of a value."""
        expect_unstacks(self, value, minimum_rank)
        counts = _counts(self._pairs, value)
        sizes = sizes_of(value.shape, tf.shape(counts[self._pairs.pairs], tf.int64))
        pairs = self._pairs.pairs
        splits = {k: row_splits_of(counts[k]) for k in dict.fromkeys((pairs, *self._features))}
        first = self._first(self.shape, counts, splits[pairs], value.source)
        rows = [(pairs, NUMBERS, getattr(value, end) - first[end]) for end in _ENDS]
        rows += [(k, spec, getattr(value, k)[name]) for k, name, spec in self._feature_specs()]
        boxes = list(counts.values())
        for kind, spec, part in rows:
            boxes += box_rows(spec, part, splits[kind], sizes, minimum_rank)
        return boxes

    def from_boxed_tensor(self, boxed_tensor: list[tf.Tensor]) -> _Value:
        """Returns the value, or the batch, that the boxes contain."""
        boxes = iter(boxed_tensor)
        counts = {kind: next(boxes) for kind in self._pairs.counted}
        local = {end: unbox_rows(NUMBERS, self.shape, boxes, tf.int64) for end in _ENDS}
        features: dict[str, dict[str, Any]] = {kind: {} for kind in self._features}
        for kind, name, spec in self._feature_specs():
            features[kind][name] = unbox_rows(spec, self.shape, boxes, tf.int64)
        splits = row_splits_of(counts[self._pairs.pairs])
        first = self._first(self.shape, counts, splits, local["source"])
        return self._value({end: local[end] + first[end] for end in _ENDS}, counts, features)


def _each(values: Sequence[Any], attribute: str) -> list[Any]:
    return list(map(operator.attrgetter(attribute), values))


def _counts(pairs: Pairs, value: object) -> dict[str, Any]:
    return {kind: getattr(value, f"num_{kind}") for kind in pairs.counted}


def _cut(begin: int, end: int, shrink: bool = False) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns a function that takes rows of a tensor, or one row without its dimension."""
    first, last, step = tf.unstack(tf.constant([[begin], [end], [1]], tf.int64))
    kernel = tf.raw_ops.StridedSlice
    return lambda tensor: kernel(
        input=tensor, begin=first, end=last, strides=step, shrink_axis_mask=int(shrink)
    )
