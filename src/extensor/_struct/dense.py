"""DenseStructuredTensor: records of which every dimension has one size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from extensor._path import Path
from extensor._struct import leaf, partition, uniform
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._struct.spec import (
    DenseStructuredTensorSpec,
    StructuredTensorSpec,
    known_rank,
    no_such_field,
)
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, StructureError

_set = object.__setattr__


class DenseStructuredTensor(StructuredTensor):
    """A collection of records in which every dimension has one size.

    Args:
        shape: The shape of the collection, of known rank; sizes may be unknown (None).
        fields: For each field its values for all records: a Tensor, RaggedTensor, Variable,
            StructuredTensor or other extension value, or something that converts to a tensor
            (numbers, lists, NumPy arrays). Their first dimensions are `shape`.

    Raises:
        StructureError: If the rank is unknown, or the dimensions disagree (also a ValueError).
        DTypeError: If a field's name is no string, or its value no tensor (also a TypeError).

    >>> xt.DenseStructuredTensor([2], {"title": ["Snickerdoodles", "Flapjacks"]})
    <StructuredTensor shape=(2,) {title: string}>
    """

    __slots__ = ("_fields", "_rank", "_rows")

    _fields: dict[str, Any]
    _rank: int
    _rows: Any

    def __init__(self, shape: Any, fields: Mapping[str, Any]) -> None:
        shape = known_rank(shape, type(self).__name__)
        if not isinstance(fields, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DTypeError(
                path=f"{type(self).__name__}.fields",
                expected="a mapping from field names to values",
                received=type(fields).__name__,
                mend='Write {"title": titles}.',
            )
        kept: dict[str, Any] = {}
        for name, value in fields.items():
            if not isinstance(name, str):
                raise DTypeError(
                    path=f"field {name!r}",
                    expected="a name of type str",
                    received=type(name).__name__,
                    mend="Name fields by strings.",
                )
            kept[name] = leaf.as_field(value, Path(name))
        shape = _common_shape(shape, kept)
        rank = shape.rank
        counter = None
        if not kept:
            if not shape.is_fully_defined():
                raise StructureError(
                    path=type(self).__name__,
                    expected="at least one field, or a shape without unknown sizes",
                    received=f"no field and shape {shape}",
                    mend="Give the number of records.",
                )
            counter = tf.zeros(shape, tf.bool)
        self._init(rank, kept, counter, None, shape)

    def _init(self, rank: int, fields: dict[str, Any], counter: Any, hint: Any, shape: Any) -> None:
        _set(self, "_rank", rank)
        _set(self, "_fields", fields)
        _set(self, "_rows", counter)
        _set(self, "_hint", hint)
        _set(self, "_shape", shape)
        _set(self, "_spec", None)

    @classmethod
    def of_parts(
        cls, rank: int, fields: dict[str, Any], counter: Any = None, hint: Any = None
    ) -> DenseStructuredTensor:
        """Returns records of parts that are known to fit. Runs no op and checks nothing.

        Args:
            rank: How many dimensions of the fields are those of the collection.
            fields: The fields' values. The dict is kept, not copied.
            counter: Where there is no field, a boolean tensor of the collection's shape.
            hint: A spec that says more of the fields than their values do.
        """
        self = cls.__new__(cls)
        self._init(rank, fields, counter, hint, None)
        return self

    def map_parts(self, function: Callable[[Any, str], Any], rank: int) -> DenseStructuredTensor:
        """Returns records whose every field is a function of this one's. Checks nothing.

        Args:
            function: Takes a field's value and its name. Where there is no field, it takes the
                tensor that counts the records, and an empty name.
            rank: The rank of the result.
        """
        fields = {name: function(value, name) for name, value in self._fields.items()}
        counter = None if self._rows is None else function(self._rows, "")
        return DenseStructuredTensor.of_parts(rank, fields, counter)

    def _with_hint(self, hint: StructuredTensorSpec) -> DenseStructuredTensor:
        return DenseStructuredTensor.of_parts(self._rank, self._fields, self._rows, hint)

    def _as_ragged(self, row_splits_dtype: tf.DType) -> StructuredTensor:
        return uniform.as_ragged(self, row_splits_dtype)

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the collection of records; its rank is always known."""
        if self._shape is None:
            _set(self, "_shape", self._shape_of_parts())
        assert self._shape is not None
        return self._shape

    def _shape_of_parts(self) -> tf.TensorShape:
        shape = tf.TensorShape([None] * self._rank)
        for part in self._fields.values() if self._rows is None else [self._rows]:
            if shape.is_fully_defined():
                return shape
            part_shape = leaf.shape_of(part)
            if part_shape.rank is not None:
                shape = shape.merge_with(part_shape[: self._rank])
        if self._hint is None:
            return shape
        # What the parts show weighs more: the hint is from before they were, perhaps, replaced.
        sizes = zip(shape, self._hint.shape, strict=True)
        return tf.TensorShape([hinted if size is None else size for size, hinted in sizes])

    @property
    def rank(self) -> int:
        """How many dimensions the collection has; never None."""
        return self._rank

    def field_names(self) -> tuple[str, ...]:
        """Returns the names of the fields, in their order."""
        return tuple(self._fields)

    def _describe(self) -> StructuredTensorSpec:
        if self._hint is not None:
            return self._hint.refined(self)
        specs = {name: leaf.spec_of_field(value) for name, value in self._fields.items()}
        return DenseStructuredTensorSpec(self.shape, specs)

    def _field(self, name: str, at: Path) -> Any:
        try:
            return self._fields[name]
        except KeyError:
            raise no_such_field(at, self.field_names()) from None

    def _updated(self, updates: Mapping[str, Any], at: Path) -> DenseStructuredTensor:
        if not updates:
            return self
        rank = self._rank
        shape = self.shape
        fields = dict(self._fields)
        for name, value in updates.items():
            value = leaf.as_field(value, at / name)
            shape = _merged_shape(shape, value, at / name, rank)
            fields[name] = value
        result = DenseStructuredTensor.of_parts(rank, fields, None, self._hint_for(fields))
        _set(result, "_shape", shape)
        return result

    def _selected(self, names: Any) -> DenseStructuredTensor:
        fields = {name: self._fields[name] for name in names}
        counter = self._rows
        if not fields and self._fields:
            counter = self._count_rows()
        result = DenseStructuredTensor.of_parts(self._rank, fields, counter, self._hint_for(fields))
        _set(result, "_shape", self._shape)
        return result

    def _hint_for(self, fields: dict[str, Any]) -> StructuredTensorSpec | None:
        """Keeps what the old hint says of fields that stay; nothing where it says nothing.

        A hint matters only where it makes a plain value one row of a ragged one.
        """
        if self._hint is None:
            return None
        old = self._hint.record.field_specs
        specs = {
            name: old[name]
            if name in old and self._fields.get(name) is value
            else leaf.spec_of_field(value)
            for name, value in fields.items()
        }
        record = DenseStructuredTensorSpec(self._hint.shape, specs)
        if isinstance(self._hint, RaggedStructuredTensorSpec):
            return RaggedStructuredTensorSpec(self._hint.shape, record, self._hint.row_splits_dtype)
        return record

    def _count_rows(self) -> Any:
        """Returns a tensor that keeps nothing but the number of records."""
        if self.shape.is_fully_defined():
            return tf.zeros(self.shape, tf.bool)
        return tf.zeros(partition.outer_sizes(self, self._rank), tf.bool)

    def _row_splits_dtypes(self) -> set[tf.DType]:
        found: set[tf.DType] = set()
        for value in self._fields.values():
            found |= leaf.row_splits_dtypes(value)
        return found


DenseStructuredTensorSpec.dense_type = DenseStructuredTensor


def _common_shape(shape: tf.TensorShape, fields: Mapping[str, Any]) -> tf.TensorShape:
    """Returns `shape` with the sizes that the fields tell, which must agree on them."""
    rank = shape.rank
    for name, value in fields.items():
        shape = _merged_shape(shape, value, Path(name), rank)
    return shape


def _merged_shape(shape: tf.TensorShape, value: Any, path: Path, rank: int) -> tf.TensorShape:
    if rank == 0:
        return shape
    value_shape = leaf.shape_of(value)
    value_rank = value_shape.rank
    if value_rank is None:
        return shape
    if value_rank >= rank:
        unknown = False
        for axis in range(rank):
            size, other = shape[axis], value_shape[axis]
            if size != other:
                if size is None:
                    unknown = True
                elif other is not None or not partition.is_uniform(value, axis, size):
                    break
        else:
            return shape.merge_with(value_shape[:rank]) if unknown else shape
    raise StructureError(
        path=path,
        expected=f"a value whose shape begins with {shape}, the shape of the records",
        received=f"shape {value_shape}",
        mend="Give every field one value for each record.",
    )
