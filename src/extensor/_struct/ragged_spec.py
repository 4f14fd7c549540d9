"""The specs of RaggedStructuredTensor and of one of its rows."""

from __future__ import annotations

import abc
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._authoring.extents import remember
from extensor._authoring.rows import uncut_rows
from extensor._path import Path
from extensor._protocol.box import alone_or_list, box, boxed_specs, expect_type, unbox
from extensor._protocol.box_ragged import RaggedParts, unbox_parts
from extensor._protocol.casting import cast_value, castable_type
from extensor._protocol.registry import register_type_spec
from extensor._protocol.row_splits import expect_splits_fit
from extensor._protocol.stackable_spec import any_length_shape
from extensor._protocol.tree import are_compatible, merge
from extensor._struct.code import dtype_code, shape_code
from extensor._struct.columns import Cuts
from extensor._struct.common_shape import checked_splits_dtype, shape_of_known_rank
from extensor._struct.dims import Dims, checked_dims, to_dims
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.row_splits import cut
from extensor._struct.spec import (
    StructuredTensorSpec,
    expect_num_parts,
    spec_or_none,
    with_any_count,
    with_row_splits_dtype,
)
from extensor._typing import FieldValue, ShapeLike
from extensor.errors import ProtocolError, StructureError

if TYPE_CHECKING:
    from extensor._struct.dense_spec import DenseStructuredTensorSpec
    from extensor._struct.tensor import StructuredTensor


_NAME = "RaggedStructuredTensorSpec"  # in errors and in the repr, which is code of users


class ListSpec(StructuredTensorSpec):
    """Describes records that are in lists, or one list of them: what both specs here share."""

    _NUMBERS_OF_PARTS = (3,)
    """How many parts a serialization may have."""

    _values_spec: StructuredTensorSpec
    _row_splits_dtype: tf.DType

    def __init__(
        self,
        shape: ShapeLike,
        values_spec: StructuredTensorSpec,
        row_splits_dtype: tf.DType = tf.int64,
    ) -> None:
        self._shape = shape_of_known_rank(shape, _NAME)
        if not isinstance(values_spec, StructuredTensorSpec) or values_spec.rank < 1:
            expected = "the spec of a StructuredTensor of rank 1 or more"
            fix = "Give the spec of the records before they are cut into rows."
            raise StructureError(f"{_NAME}.values_spec", expected, repr(values_spec), fix)
        self._values_spec = values_spec
        argument = f"{_NAME}.row_splits_dtype"
        self._row_splits_dtype = checked_splits_dtype(row_splits_dtype, argument)

    @property
    def values_spec(self) -> StructuredTensorSpec:
        """The spec of the records below the outermost ragged dimension."""
        return self._values_spec

    @property
    def row_splits_dtype(self) -> tf.DType:
        """The dtype of the row splits."""
        return self._row_splits_dtype

    @property
    def _record(self) -> DenseStructuredTensorSpec:
        """The spec that holds the fields, below any ragged dimensions."""
        return self._values_spec._record

    @abc.abstractmethod
    def _like(
        self, shape: tf.TensorShape, values_spec: StructuredTensorSpec, row_splits_dtype: tf.DType
    ) -> ListSpec:
        """Returns a spec of other parts with the same name of the first dimension."""

    def _cmp_key(self) -> tuple[Any, ...]:
        return self._shape, self._values_spec, self._row_splits_dtype

    def serialize(self) -> tuple[Any, ...]:
        """Returns the constructor's arguments. The values' spec has the names of dimensions."""
        return self._cmp_key()

    @classmethod
    def deserialize(cls, serialization: tuple[Any, ...]) -> ListSpec:
        """Returns the spec that `serialize` described.

        Raises:
            RegistrationError: If another version of extensor wrote more or fewer parts (also a
                ValueError).
        """
        return cls(*expect_num_parts(cls, serialization, *cls._NUMBERS_OF_PARTS))

    def __repr__(self) -> str:
        values = self._values_spec._with_dims(())
        dims = f", dims={self._dims}" if self._dims else ""
        return (
            f"xt.{_NAME}({shape_code(self._shape)}, {values!r}, "
            f"{dtype_code(self._row_splits_dtype)}{dims})"
        )

    # IPython uses the method only of the class that defines __repr__.
    _repr_pretty_ = StructuredTensorSpec._repr_pretty_

    def is_compatible_with(self, spec_or_value: object) -> bool:
        """Returns whether both have compatible shapes, values and row splits."""
        other = spec_or_none(spec_or_value)
        return isinstance(other, type(self)) and (
            self == other or are_compatible(self._cmp_key(), other._cmp_key())
        )

    def most_specific_compatible_type(self, other: object) -> StructuredTensorSpec | None:
        """Returns the spec with both sides' shapes merged, or None."""
        if not isinstance(other, type(self)) or self.rank != other.rank:
            return None
        return self if self == other else self._merged(other)

    def _merged(self, other: Any) -> StructuredTensorSpec | None:
        parts: Any = merge(self._cmp_key(), other._cmp_key())
        return None if parts is None else type(self)(*parts)._with_dims(self._dims or other._dims)

    def _castable_with(
        self, spec: StructuredTensorSpec, inner: tf.TypeSpec
    ) -> StructuredTensorSpec | None:
        """Returns the spec that records of this spec and of another cast to, or None.

        Args:
            spec: The other spec.
            inner: The spec of its values that are in lists.
        """
        values: Any = castable_type(self._values_spec, inner)
        if values is None:
            return None
        # TensorFlow does not mix row splits of two dtypes.
        dtypes = self._row_splits_dtypes() | spec._row_splits_dtypes()
        dtype = tf.int64 if tf.int64 in dtypes else tf.int32
        shape = self._shape.most_specific_compatible_shape(spec.shape)
        joined = type(self)(shape, with_row_splits_dtype(values, dtype), dtype)
        return joined._with_dims(self._dims or spec._dims)

    def _ragged_row(self, row_splits_dtype: tf.DType) -> StructuredTensorSpec:
        own = self._row_splits_dtype  # all inner row splits have the same dtype
        values = self._values_spec.unstacked()._ragged_row(own).stacked(None)
        values = values._with_row_splits_dtype(own)._with_dims(self._values_spec._dims)
        return self._like(self._shape, values, own)

    def _with_record(self, record: DenseStructuredTensorSpec) -> StructuredTensorSpec:
        return self._like(self._shape, record, self._row_splits_dtype)

    def _with_row_splits_dtype(self, dtype: tf.DType) -> StructuredTensorSpec:
        return self._like(self._shape, with_row_splits_dtype(self._values_spec, dtype), dtype)

    def _find_row_splits_dtypes(self) -> set[tf.DType]:
        return {self._row_splits_dtype, *self._values_spec._row_splits_dtypes()}

    def boxed_tensor_spec(self, minimum_rank: int = 0) -> list[tf.TypeSpec] | tf.TypeSpec:
        """Returns one variant TensorSpec for each column of the records."""
        count = sum(count for _, count in self._column_boxes)
        return alone_or_list([tf.TensorSpec(None, tf.variant)] * count)

    def to_boxed_tensor(
        self, value: FieldValue, minimum_rank: int = 0
    ) -> list[tf.Tensor] | tf.Tensor:
        """Returns each column of the records as a variant tensor."""
        expect_type(self, value)
        boxes: list[Any] = []
        columns = zip(self._column_boxes, self._to_columns(value), strict=True)
        for (spec, _), column in columns:
            boxes.extend(box(spec, column, minimum_rank))
        return alone_or_list(boxes)

    def _unbox(self, boxes: list[Any]) -> StructuredTensor:
        rest = iter(boxes)

        def column(spec: tf.TypeSpec, count: int) -> FieldValue:
            own = [next(rest) for _ in range(count)]
            is_ragged = isinstance(spec, tf.RaggedTensorSpec)
            return unbox_parts(spec, own) if is_ragged else unbox(spec, own)

        return self._from_columns(column(spec, count) for spec, count in self._column_boxes)

    def _column_specs(self, rows: Cuts | None = None) -> list[Any]:
        rows = rows or Cuts(0, self._shape[0], self._row_splits_dtype)
        levels = rows.levels + self.rank - self._values_spec.rank
        return self._values_spec._column_specs(rows._replace(levels=levels))

    @functools.cached_property
    def _column_boxes(self) -> list[tuple[Any, int]]:
        """The spec of each column, and the number of its boxes."""
        return [(spec, len(boxed_specs(spec))) for spec in self._column_specs()]


@register_type_spec(name="extensor.RaggedRowSpec")
class RaggedRowSpec(ListSpec):
    """Describes one row of a RaggedStructuredTensor: the records that `values_spec` describes.

    Rows may have different lengths, so stacking them gives a ragged tensor again. (Compare
    `tf.RaggedTensorSpec` of ragged rank 0.)
    """

    _public_name = "RaggedStructuredTensorSpec"
    """The constructor that makes it, which is in its repr."""

    @property
    def value_type(self) -> type:
        """The type of the values."""
        return self._values_spec.value_type

    @property
    def component_specs(self) -> tuple[tf.TypeSpec, ...]:
        """The specs of the components of the values."""
        return self._values_spec.component_specs

    @property
    def _dims(self) -> Dims:
        return self._values_spec._dims

    def _with_dims(self, dims: Dims) -> RaggedRowSpec:
        return self._like(self._shape, self._values_spec._with_dims(dims), self._row_splits_dtype)

    def _like(
        self, shape: tf.TensorShape, values_spec: StructuredTensorSpec, row_splits_dtype: tf.DType
    ) -> RaggedRowSpec:
        return RaggedRowSpec(shape, values_spec, row_splits_dtype)

    def castable_type(self, spec: tf.TypeSpec) -> StructuredTensorSpec | None:
        """Returns the spec that records of this spec and of another cast to, or None."""
        if not isinstance(spec, StructuredTensorSpec) or spec.rank != self.rank:
            return None
        if isinstance(spec, RaggedStructuredTensorSpec):
            return spec.castable_type(self._values_spec)
        inner = spec.values_spec if isinstance(spec, RaggedRowSpec) else spec
        return self._castable_with(spec, inner)

    def _cast_records(self, value: FieldValue) -> StructuredTensor:
        return self._values_spec.cast(value)._with_hint(self)

    def _with_shapes_of(self, value: FieldValue) -> StructuredTensorSpec:
        """Returns this spec with the static shapes of a value."""
        return self._like(
            value.shape, self._values_spec._with_shapes_of(value), self._row_splits_dtype
        )

    def to_components(self, value: FieldValue) -> tuple[Any, ...]:
        """Returns the components of the values."""
        return self._values_spec.to_components(value)

    def from_components(self, components: tuple[Any, ...]) -> StructuredTensor:
        """Returns the row with the given components."""
        return self._values_spec.from_components(components)._with_hint(self)

    def stacked(self, num: int | None) -> RaggedStructuredTensorSpec:
        """Returns the spec of `num` stacked rows."""
        shape = tf.TensorShape([num]).concatenate(self._shape)
        values = self._values_spec._any_length()
        return RaggedStructuredTensorSpec(shape, values, self._row_splits_dtype)

    def unstacked(self) -> StructuredTensorSpec:
        """Returns the spec of one element of the row."""
        return self._values_spec.unstacked()

    def _any_length(self) -> StructuredTensorSpec:
        return self._values_spec._any_length()

    def boxed_tensor_spec(self, minimum_rank: int = 0) -> list[tf.TypeSpec] | tf.TypeSpec:
        """Returns the TensorSpecs of the boxes: of the row, or of its elements."""
        if minimum_rank:
            return self._values_spec.boxed_tensor_spec(minimum_rank)
        return super().boxed_tensor_spec()

    def to_boxed_tensor(
        self, value: FieldValue, minimum_rank: int = 0
    ) -> list[tf.Tensor] | tf.Tensor:
        """Returns the boxes of the row, or of its elements."""
        if minimum_rank:
            expect_type(self, value)
            return self._values_spec.to_boxed_tensor(value, minimum_rank)
        return super().to_boxed_tensor(value)

    def _to_columns(self, value: FieldValue) -> list[Any]:
        return self._values_spec._to_columns(value)

    def _from_columns(self, columns: Iterator[Any]) -> StructuredTensor:
        return self._values_spec._from_columns(columns)._with_hint(self)


@register_type_spec(name="extensor.RaggedStructuredTensorSpec")
class RaggedStructuredTensorSpec(ListSpec):
    """Describes a RaggedStructuredTensor.

    Args:
        shape: The shape of the collection of records, of known rank. If it has no dimension more
            than `values_spec`, the result is a `RaggedRowSpec`: the spec of one row.
        values_spec: The spec of the records below the outermost ragged dimension.
        row_splits_dtype: The dtype of the row splits, tf.int64 or tf.int32.
        dims: The names of the dimensions of `shape`, which are not part of equality: a string or
            None for each. Default: those of `values_spec`.

    Raises:
        StructureError: If the rank is unknown or does not fit, or the names do not fit (also a
            ValueError).
        DTypeError: If the dtype of the row splits is not int64 or int32 (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> step = xt.DenseStructuredTensorSpec([None], {"minutes": tf.TensorSpec([None], tf.int32)})
    >>> spec = xt.RaggedStructuredTensorSpec([None, None], step, tf.int64)
    >>> spec.field_names(), spec.unstacked().shape
    (('minutes',), TensorShape([None]))
    """

    _NUMBERS_OF_PARTS = (3, 4)

    def __new__(
        cls,
        shape: Any,
        values_spec: StructuredTensorSpec,
        row_splits_dtype: tf.DType = tf.int64,
        dims: str | Sequence[str | None] | None = None,
    ) -> Any:
        """Returns a new spec; that of one row, if the shape is that of the values."""
        if not isinstance(shape, tf.TensorShape):  # to copy one takes half of the time
            shape = shape_of_known_rank(shape, _NAME)
        if isinstance(values_spec, StructuredTensorSpec) and shape.rank == values_spec.rank:
            row = RaggedRowSpec(shape, values_spec, row_splits_dtype)
            return row if dims is None else row._with_dims(checked_dims(dims, shape.rank, _NAME))
        return super().__new__(cls)

    def __init__(
        self,
        shape: ShapeLike,
        values_spec: StructuredTensorSpec,
        row_splits_dtype: tf.DType = tf.int64,
        dims: str | Sequence[str | None] | None = None,
    ) -> None:
        super().__init__(shape, values_spec, row_splits_dtype)
        if self.rank != values_spec.rank + 1:
            expected = f"rank {values_spec.rank + 1}, one more than the values"
            fix = "Give the shape [nrows, None] followed by the values' inner dimensions."
            raise StructureError(f"{_NAME}.shape", expected, f"shape {self._shape}", fix)
        self._name: str | None = None
        if dims is not None:
            names = checked_dims(dims, self.rank, _NAME)
            self._values_spec = values_spec._with_dims(to_dims(names[1:]))
            self._name = names[0] if names else None
        nrows = self._shape[0]
        splits = tf.TensorSpec([None if nrows is None else nrows + 1], self._row_splits_dtype)
        self._components = (self._values_spec, splits)

    @property
    def value_type(self) -> type:
        """RaggedStructuredTensor."""
        return RaggedStructuredTensor

    @property
    def component_specs(self) -> tuple[tf.TypeSpec, ...]:
        """The specs of the values and the row splits."""
        return self._components

    @property
    def _dims(self) -> Dims:
        inner = self._values_spec._dims
        if self._name is None and not inner:
            return inner
        return (self._name, *(inner or (None,) * self._values_spec.rank))

    def _with_dims(self, dims: Dims) -> RaggedStructuredTensorSpec:
        if dims == self._dims:
            return self
        return RaggedStructuredTensorSpec(
            self._shape, self._values_spec, self._row_splits_dtype, dims
        )

    def _like(
        self, shape: tf.TensorShape, values_spec: StructuredTensorSpec, row_splits_dtype: tf.DType
    ) -> RaggedStructuredTensorSpec:
        dims = None if self._name is None else (self._name, *values_spec.dims)
        return RaggedStructuredTensorSpec(shape, values_spec, row_splits_dtype, dims)

    def serialize(self) -> tuple[Any, ...]:
        """Returns the constructor's arguments; the names of the dimensions only if there are any.

        The values' spec has the names of all dimensions but the first.
        """
        return self._cmp_key() if self._name is None else (*self._cmp_key(), self._dims)

    def castable_type(self, spec: tf.TypeSpec) -> StructuredTensorSpec | None:
        """Returns the spec that records of this spec and of another cast to, or None."""
        if not isinstance(spec, StructuredTensorSpec) or spec.rank != self.rank:
            return None
        if isinstance(spec, RaggedRowSpec):
            return self.castable_type(spec.values_spec)
        if isinstance(spec, RaggedStructuredTensorSpec):
            return self._castable_with(spec, spec.values_spec)
        try:
            inner = spec.unstacked().unstacked().stacked(None)
        except ProtocolError:  # a field that does not stack cannot be cut into rows either
            return None
        return self._castable_with(spec, inner)

    def _cast_records(self, value: FieldValue) -> StructuredTensor:
        value = value._as_ragged(self._row_splits_dtype)
        path = f"{_NAME}.row_splits"
        if self._row_splits_dtype == tf.int32 != value._row_splits.dtype:
            expect_splits_fit(value._row_splits[-1], path)
        splits = tf.cast(value._row_splits, self._row_splits_dtype)
        splits = cast_value(self._components[1], splits, path)
        values = self._values_spec._cast_castable(value._values)
        cast = RaggedStructuredTensor._of_parts(values, splits)
        return cast._with_dims(self._dims or value._dims)

    def _with_shapes_of(self, value: FieldValue) -> StructuredTensorSpec:
        """Returns this spec with the static shapes of a value."""
        values = with_any_count(self._values_spec._with_shapes_of(value.values))
        return self._like(value.shape, values, self._row_splits_dtype)

    def to_components(self, value: FieldValue) -> tuple[Any, ...]:
        """Returns the values and the row splits."""
        return value._values, value._row_splits

    def from_components(self, components: tuple[Any, ...]) -> StructuredTensor:
        """Returns the RaggedStructuredTensor with the given components."""
        records = RaggedStructuredTensor._of_parts(components[0], components[1], self._name)
        remember(records)
        return records

    def stacked(self, num: int | None) -> RaggedStructuredTensorSpec:
        """Returns the spec of `num` stacked values."""
        shape = tf.TensorShape([num]).concatenate(self._shape)
        return RaggedStructuredTensorSpec(shape, self._any_length(), self._row_splits_dtype)

    def unstacked(self) -> StructuredTensorSpec:
        """Returns the spec of one row."""
        return self._once("_row", self._of_row)

    def _of_row(self) -> StructuredTensorSpec:
        values = self._values_spec._any_length()
        if isinstance(values, RaggedStructuredTensorSpec):
            return values
        return RaggedRowSpec(self._shape[1:], values, self._row_splits_dtype)

    def _any_length(self) -> StructuredTensorSpec:
        values = self._values_spec._any_length()
        return self._like(any_length_shape(self._shape), values, self._row_splits_dtype)

    def _to_columns(self, value: FieldValue) -> list[Any]:
        splits = value.row_splits
        return [cut(c, splits, Path()) for c in self._values_spec._to_columns(value.values)]

    def _from_columns(self, columns: Iterator[Any]) -> StructuredTensor:
        splits: list[tf.Tensor] = []

        def below() -> Iterator[Any]:
            for column in columns:
                rows = column if isinstance(column, RaggedParts) else uncut_rows(column)
                assert rows is not None
                splits.append(rows[1])
                yield rows[0]

        values = self._values_spec._from_columns(below())
        return self.from_components((values, splits[0]))


def ragged_spec_of(
    shape: tf.TensorShape, records: StructuredTensorSpec, row_splits_dtype: tf.DType
) -> StructuredTensorSpec:
    """Returns the spec of records of a shape in which each inner dimension is ragged.

    Args:
        shape: A shape of rank 1 or more. Rank 1 gives the spec of one row.
        records: The spec of all records, in one dimension.
        row_splits_dtype: The dtype of the row splits.
    """
    values: Any = records._with_row_splits_dtype(row_splits_dtype)
    if shape.rank == 1:
        return RaggedRowSpec(shape, values, row_splits_dtype)
    for rank in range(2, shape.rank + 1):
        values = RaggedStructuredTensorSpec([None] * rank, values, row_splits_dtype)
    return values


RaggedStructuredTensor._spec_type = RaggedStructuredTensorSpec
