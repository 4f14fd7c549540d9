"""The spec of RaggedStructuredTensors, and how their rows are boxed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import tensorflow as tf

from extensor._path import Path
from extensor._protocol.box import box, boxed_specs, expect_boxes, expect_type, unbox
from extensor._protocol.casting import cast_value, castable_type
from extensor._protocol.registry import register_type_spec
from extensor._struct.from_python import rows_of
from extensor._struct.spec import (
    DenseStructuredTensorSpec,
    StructuredTensorSpec,
    known_rank,
    saved_parts,
)
from extensor.errors import DTypeError, ProtocolError, StructureError


@register_type_spec(name="extensor.RaggedStructuredTensorSpec")
class RaggedStructuredTensorSpec(StructuredTensorSpec):
    """Describes a RaggedStructuredTensor, or one row of such a tensor.

    If `shape` has one dimension more than `values_spec`, it describes a RaggedStructuredTensor.
    If it has as many, it describes one row that was unstacked from such a tensor: a
    StructuredTensor that `values_spec` describes and that may differ in length from the other
    rows, so that stacking rows gives a ragged tensor again. (`tf.RaggedTensorSpec` of ragged rank
    0 is the same idea.)

    Args:
        shape: The shape of the collection of records, of known rank.
        values_spec: The spec of the records below the outermost ragged dimension.
        row_splits_dtype: The dtype of the row splits, tf.int64 or tf.int32.

    Raises:
        StructureError: If the rank is unknown or does not fit (also a ValueError).
        DTypeError: If the row splits are no integers (also a TypeError).

    >>> step = xt.DenseStructuredTensorSpec([None], {"minutes": tf.TensorSpec([None], tf.int32)})
    >>> spec = xt.RaggedStructuredTensorSpec([None, None], step, tf.int64)
    >>> spec.field_names(), spec.unstacked().shape
    (('minutes',), TensorShape([None]))
    """

    ragged_type: ClassVar[type] = object  # set by struct/ragged.py, which stands above this room

    def __init__(
        self,
        shape: Any,
        values_spec: StructuredTensorSpec,
        row_splits_dtype: tf.DType = tf.int64,
    ) -> None:
        self._shape = known_rank(shape, type(self).__name__)
        if not isinstance(values_spec, StructuredTensorSpec) or values_spec.rank < 1:
            raise StructureError(
                path=f"{type(self).__name__}.values_spec",
                expected="the spec of a StructuredTensor of rank 1 or more",
                received=repr(values_spec),
                mend="Ragged rows are cut from a collection of records.",
            )
        if self._shape.rank - values_spec.rank not in (0, 1):
            raise StructureError(
                path=f"{type(self).__name__}.shape",
                expected=f"rank {values_spec.rank + 1}: one more than the values",
                received=f"{self._shape}",
                mend="Give the shape [nrows, None] followed by the values' inner dimensions.",
            )
        row_splits_dtype = tf.dtypes.as_dtype(row_splits_dtype)
        if row_splits_dtype not in (tf.int64, tf.int32):
            raise DTypeError(
                path=f"{type(self).__name__}.row_splits_dtype",
                expected="int64 or int32",
                received=row_splits_dtype.name,
                mend="Leave it out for int64.",
            )
        self._values_spec = values_spec
        self._row_splits_dtype = row_splits_dtype
        self._is_row = self._shape.rank == values_spec.rank
        nrows = self._shape[0]
        splits = tf.TensorSpec([None if nrows is None else nrows + 1], row_splits_dtype)
        self._components: tuple[tf.TypeSpec, ...] = (
            values_spec.component_specs if self._is_row else (values_spec, splits)
        )

    @property
    def value_type(self) -> type:
        """RaggedStructuredTensor; for one row, the type of the values."""
        return self._values_spec.value_type if self._is_row else self.ragged_type

    @property
    def is_row(self) -> bool:
        """Whether this describes one row of a RaggedStructuredTensor."""
        return self._is_row

    @property
    def values_spec(self) -> StructuredTensorSpec:
        """The spec of the records below the outermost ragged dimension."""
        return self._values_spec

    @property
    def row_splits_dtype(self) -> tf.DType:
        """The dtype of the row splits."""
        return self._row_splits_dtype

    @property
    def record(self) -> DenseStructuredTensorSpec:
        """The spec that holds the fields, below any ragged dimensions."""
        return self._values_spec.record

    def serialize(self) -> tuple[Any, ...]:
        """Returns the constructor's arguments."""
        return self._shape, self._values_spec, self._row_splits_dtype

    @classmethod
    def deserialize(cls, serialization: Any) -> RaggedStructuredTensorSpec:
        """Returns the spec that `serialize` described.

        Raises:
            RegistrationError: If another version of extensor wrote more (also a ValueError).
        """
        return cls(*saved_parts(cls, serialization, 3))

    def __repr__(self) -> str:
        return (
            f"RaggedStructuredTensorSpec({self._shape}, {self._values_spec!r}, "
            f"{self._row_splits_dtype!r})"
        )

    def most_specific_compatible_type(self, other: Any) -> Any:
        """Returns the spec with both sides' shapes merged, or None."""
        if not isinstance(other, RaggedStructuredTensorSpec) or self.rank != other.rank:
            return None
        return super().most_specific_compatible_type(other)

    def castable_type(self, spec: tf.TypeSpec) -> StructuredTensorSpec | None:
        """Returns where records of this spec and another meet: field by field, or None."""
        if not isinstance(spec, StructuredTensorSpec) or spec.rank != self.rank:
            return None
        if isinstance(spec, RaggedStructuredTensorSpec) and spec.is_row != self._is_row:
            row, cut = (self, spec) if self._is_row else (spec, self)
            return cut.castable_type(row.values_spec)
        inner: Any
        if isinstance(spec, RaggedStructuredTensorSpec):
            inner = spec.values_spec
        elif self._is_row:
            inner = spec
        else:
            try:
                inner = spec.unstacked().unstacked().stacked(None)
            except ProtocolError:  # a field that does not stack, nor can it be cut into rows
                return None
        values: Any = castable_type(self._values_spec, inner)
        if values is None:
            return None
        # TensorFlow does not mix row splits of two dtypes.
        dtypes = {*_row_splits_dtypes(self), *_row_splits_dtypes(spec)}
        dtype = tf.int64 if tf.int64 in dtypes else tf.int32
        shape = self._shape.most_specific_compatible_shape(spec.shape)
        return RaggedStructuredTensorSpec(shape, _with_row_splits(values, dtype), dtype)

    def _cast_records(self, value: Any) -> Any:
        if self._is_row:
            return self._values_spec.cast(value)._with_hint(self)
        if not isinstance(value, self.ragged_type):
            value = value._as_ragged(self._row_splits_dtype)
        path = f"{type(self).__name__}.row_splits"
        splits = tf.cast(value._row_splits, self._row_splits_dtype)
        splits = cast_value(self._components[1], splits, path)
        return self.ragged_type.of_parts(self._values_spec.cast(value._values), splits)

    def of_records(self, value: Any, path: str) -> Any:
        """Returns Python's records as this spec describes them."""
        if self._is_row:
            return self._values_spec.of_records(value, path)._with_hint(self)
        records, ends = rows_of(value, path)
        splits = tf.constant(ends, self._row_splits_dtype)
        splits = cast_value(self._components[1], splits, f"{path}.row_splits")
        values = self._values_spec.of_records(records, f"{path}.values")
        return self.ragged_type.of_parts(values, splits)

    def refined(self, value: Any) -> StructuredTensorSpec:
        """Returns this spec with the static shapes that a value of it shows."""
        values = self._values_spec.refined(value if self._is_row else value.values)
        return RaggedStructuredTensorSpec(value.shape, values, self._row_splits_dtype)

    @property
    def component_specs(self) -> tuple[tf.TypeSpec, ...]:
        """The specs of the values and the row splits; of one row, the values' own components."""
        return self._components

    def to_components(self, value: Any) -> tuple[Any, ...]:
        """Returns the values and the row splits; of one row, the values' own components."""
        if self._is_row:
            return self._values_spec.to_components(value)
        return value._values, value._row_splits

    def from_components(self, components: tuple[Any, ...]) -> Any:
        """Returns the RaggedStructuredTensor, or the row, that is made of the components."""
        if self._is_row:
            return self._values_spec.from_components(components)._with_hint(self)
        return self.ragged_type.of_parts(components[0], components[1], self)

    def stacked(self, num: int | None) -> RaggedStructuredTensorSpec:
        """Returns the spec of `num` stacked values."""
        values = _any_length(self._values_spec if self._is_row else self)
        return RaggedStructuredTensorSpec(
            tf.TensorShape([num]).concatenate(self._shape), values, self._row_splits_dtype
        )

    def unstacked(self) -> StructuredTensorSpec:
        """Returns the spec of one row."""
        if self._is_row:
            return self._values_spec.unstacked()
        values = _any_length(self._values_spec)
        if isinstance(values, RaggedStructuredTensorSpec):
            return values
        return RaggedStructuredTensorSpec(self._shape[1:], values, self._row_splits_dtype)

    @classmethod
    def of_rows(
        cls, shape: tf.TensorShape, records: StructuredTensorSpec, row_splits_dtype: tf.DType
    ) -> Any:
        """Returns the spec of records of a shape, of which each dimension may be ragged.

        Args:
            shape: Of any rank but 0. Of rank 1, it is one row.
            records: The spec of all the records, in one dimension.
            row_splits_dtype: The dtype of the row splits.
        """
        values = _with_row_splits(records, row_splits_dtype)
        for axis in range(1, shape.rank):
            values = cls(tf.TensorShape([None] * (axis + 1)), values, row_splits_dtype)
        return cls(shape, values, row_splits_dtype) if shape.rank == 1 else values

    def _ragged_row(self, row_splits_dtype: tf.DType) -> Any:
        own = self._row_splits_dtype  # which all row splits below have too
        values = self._values_spec.unstacked()._ragged_row(own).stacked(None)
        return RaggedStructuredTensorSpec(self._shape, _with_row_splits(values, own), own)

    # A row of a ragged collection is boxed leaf by leaf, each leaf as TensorFlow boxes a
    # RaggedTensor of the same partition. That repeats the row splits for every leaf, but it needs
    # no kernel that TensorFlow does not have, and keeps the gradients that it has.

    def boxed_tensor_spec(self, minimum_rank: int = 0) -> list[tf.TypeSpec]:
        """Returns one variant TensorSpec for each leaf of the records."""
        if self._is_row and minimum_rank > 0:
            return self._values_spec.boxed_tensor_spec(minimum_rank)
        return [tf.TensorSpec(None, tf.variant) for _ in leaf_specs(self)]

    def to_boxed_tensor(self, value: Any, minimum_rank: int = 0) -> list[Any]:
        """Returns each leaf of the records as a variant tensor."""
        expect_type(self, value)
        if self._is_row and minimum_rank > 0:
            return self._values_spec.to_boxed_tensor(value, minimum_rank)
        boxes: list[Any] = []
        for spec, tensor in zip(leaf_specs(self), leaf_values(self, value), strict=True):
            boxes.extend(box(spec, tensor, minimum_rank))
        return boxes

    def from_boxed_tensor(self, boxed_tensor: Any) -> Any:
        """Returns the records that boxed leaves stand for."""
        expect_boxes(self, boxed_tensor)
        values = [unbox(s, [b]) for s, b in zip(leaf_specs(self), boxed_tensor, strict=True)]
        return from_leaf_values(self, iter(values))


def _row_splits_dtypes(spec: Any) -> Iterator[tf.DType]:
    """Yields the dtypes of the row splits in a spec."""
    if isinstance(spec, (tf.RaggedTensorSpec, RaggedStructuredTensorSpec)):
        yield spec.row_splits_dtype
    if isinstance(spec, StructuredTensorSpec):
        for field in spec.record.field_specs.values():
            yield from _row_splits_dtypes(field)


def _with_row_splits(spec: Any, dtype: tf.DType) -> Any:
    """Returns a spec with row splits of one dtype in all its parts."""
    if isinstance(spec, tf.RaggedTensorSpec):
        return tf.RaggedTensorSpec(
            spec.shape, spec.dtype, spec.ragged_rank, dtype, spec.flat_values_spec
        )
    if isinstance(spec, RaggedStructuredTensorSpec):
        return RaggedStructuredTensorSpec(
            spec.shape, _with_row_splits(spec.values_spec, dtype), dtype
        )
    if isinstance(spec, DenseStructuredTensorSpec):
        fields = {n: _with_row_splits(s, dtype) for n, s in spec.field_specs.items()}
        return DenseStructuredTensorSpec(spec.shape, fields)
    return spec


def _any_length(spec: StructuredTensorSpec) -> StructuredTensorSpec:
    """Returns a spec with its first dimension of unknown size, in all its parts."""
    shape = tf.TensorShape([None]).concatenate(spec.shape[1:])
    if isinstance(spec, RaggedStructuredTensorSpec):
        return RaggedStructuredTensorSpec(
            shape, _any_length(spec.values_spec), spec.row_splits_dtype
        )
    fields = {n: s._unbatch()._batch(None) for n, s in spec.record.field_specs.items()}
    return DenseStructuredTensorSpec(shape, fields)


def leaf_specs(spec: Any) -> list[tf.RaggedTensorSpec]:
    """Returns, for each leaf of a ragged collection, the spec of its RaggedTensor."""
    if isinstance(spec, RaggedStructuredTensorSpec):
        inner = leaf_specs(spec.values_spec)
        if spec.is_row:
            return inner
        return [
            tf.RaggedTensorSpec(
                spec.shape[:1].concatenate([None]).concatenate(s.shape[1:]),
                s.dtype,
                s.ragged_rank + 1,
                spec.row_splits_dtype,
            )
            for s in inner
        ]
    result: list[tf.RaggedTensorSpec] = []
    for component, path in _named_components(spec):
        if isinstance(component, StructuredTensorSpec):
            result.extend(leaf_specs(component))
        elif isinstance(component, tf.RaggedTensorSpec):
            result.append(component)
        else:
            for tensor_spec in boxed_specs(component, 1):
                if tensor_spec.dtype == tf.variant or tensor_spec.shape.rank is None:
                    raise ProtocolError(
                        path=path,
                        expected="a type that boxes into plain tensors, inside ragged rows",
                        received=type(component).__name__,
                        mend="Keep fields of this type outside lists of records where values are "
                        "stacked or unstacked.",
                    )
                result.append(tf.RaggedTensorSpec(tensor_spec.shape, tensor_spec.dtype, 0))
    return result


def leaf_values(spec: Any, value: Any) -> list[Any]:
    """Returns the leaves of a ragged collection as tensors and RaggedTensors."""
    if isinstance(spec, RaggedStructuredTensorSpec):
        if spec.is_row:
            return leaf_values(spec.values_spec, value)
        return [
            tf.RaggedTensor.from_row_splits(inner, value.row_splits, validate=False)
            for inner in leaf_values(spec.values_spec, value.values)
        ]
    result: list[Any] = []
    for component_spec, component in zip(
        spec.component_specs, spec.to_components(value), strict=True
    ):
        if isinstance(component_spec, StructuredTensorSpec):
            result.extend(leaf_values(component_spec, component))
        elif isinstance(component_spec, tf.RaggedTensorSpec):
            result.append(component)
        else:
            result.extend(box(component_spec, component, 1))
    return result


def from_leaf_values(spec: Any, values: Any) -> Any:
    """Returns the records whose leaves the iterator `values` yields, in `leaf_specs`'s order."""
    if isinstance(spec, RaggedStructuredTensorSpec):
        if spec.is_row:
            return from_leaf_values(spec.values_spec, values)._with_hint(spec)
        splits: list[tf.Tensor] = []

        def below() -> Any:
            for value in values:
                splits.append(value.row_splits)
                yield value.values

        inner = from_leaf_values(spec.values_spec, below())
        return spec.from_components((inner, splits[0]))
    components: list[Any] = []
    for component_spec in spec.component_specs:
        if isinstance(component_spec, StructuredTensorSpec):
            components.append(from_leaf_values(component_spec, values))
        elif isinstance(component_spec, tf.RaggedTensorSpec):
            components.append(next(values))
        else:
            count = len(boxed_specs(component_spec, 1))
            components.append(unbox(component_spec, [next(values) for _ in range(count)]))
    return spec.from_components(tuple(components))


def _named_components(spec: DenseStructuredTensorSpec) -> list[tuple[Any, Path]]:
    names = sorted(spec.field_names()) or [""]
    return [(c, Path(n)) for c, n in zip(spec.component_specs, names, strict=True)]


DenseStructuredTensorSpec.rows_type = RaggedStructuredTensorSpec
