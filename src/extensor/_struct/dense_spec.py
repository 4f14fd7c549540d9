"""The spec of DenseStructuredTensor."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import tensorflow as tf

from extensor._authoring.extents import remember
from extensor._path import Path
from extensor._protocol.casting import cast_value, castable_type
from extensor._protocol.registry import register_type_spec
from extensor._protocol.stackable_spec import any_length, any_length_shape, ragged_row
from extensor._protocol.stand_in import plain_spec
from extensor._protocol.tree import are_compatible, supertype
from extensor._struct import arrow_types
from extensor._struct.change import (
    change_numbers,
    needs_change,
    null_field,
    wider_of_two,
    with_dtype_of,
    with_inner_sizes,
)
from extensor._struct.code import code_of, shape_code, to_arrow_types, type_text
from extensor._struct.common_shape import shape_of_known_rank
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.dims import Dims, checked_dims
from extensor._struct.field import batchable, expect_fields, marks_rows, spec_of_field
from extensor._struct.masked import is_nullable
from extensor._struct.metadata import NONE, Metadata
from extensor._struct.ragged_spec import ragged_spec_of
from extensor._struct.spec import (
    StructuredTensorSpec,
    expect_num_parts,
    nothing_to_unstack,
    row_splits_dtypes_of,
    spec_or_none,
    with_row_splits_dtype,
)
from extensor._struct.tensor import StructuredTensor
from extensor._tf import stacked, unstacked
from extensor._typing import FieldValue, ShapeLike
from extensor.errors import DTypeError, StructureError


@register_type_spec(name="extensor.DenseStructuredTensorSpec")
class DenseStructuredTensorSpec(StructuredTensorSpec):
    """Describes a DenseStructuredTensor.

    Two specs with the same fields in a different order are equal, like dicts.

    Args:
        shape: The shape of the collection of records, of known rank.
        field_specs: The spec of each field, including the outer dimensions that correspond to
            `shape`.
        types: What the numbers of fields mean: for each field, a type of Arrow, or the text of the
            type of its numbers, such as "timestamp[us]", "date32" or "decimal128(9, 2)". The unit,
            the scale, and whether a time has a zone are part of equality, all else is not.
        dims: The names of the dimensions of `shape`, which are not part of equality: a string or
            None for each.

    Raises:
        StructureError: If the rank is unknown, a field's shape does not begin with `shape`, or
            the names do not fit (also a ValueError).
        DTypeError: If a field's spec is not a TypeSpec, or a type does not fit it (also a
            TypeError).
        FieldError: If `types` has the name of another field (also a KeyError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec = xt.DenseStructuredTensorSpec([2, 3], {"x": tf.TensorSpec([2, 3, 10], tf.int32)})
    >>> spec.shape, spec.field_names()
    (TensorShape([2, 3]), ('x',))
    >>> xt.DenseStructuredTensorSpec(
    ...     [None], {"when": tf.TensorSpec([None], tf.int64)}, {"when": "timestamp[us]"})
    xt.DenseStructuredTensorSpec([None], {'when': tf.TensorSpec([None], tf.int64)},
                                 types={'when': 'timestamp[us]'})
    """

    def __init__(
        self,
        shape: ShapeLike,
        field_specs: Mapping[str, tf.TypeSpec],
        types: Mapping[str, Any] = arrow_types.NONE,
        dims: str | Sequence[str | None] | None = None,
    ) -> None:
        self._shape = shape_of_known_rank(shape, type(self).__name__)
        rank = self._shape.rank
        where = f"{type(self).__name__}.field_specs"
        expect_fields(field_specs, where, "specs", "tf.TensorSpec([None], tf.string)")
        found, sizes = self._shape, self._shape.as_list()
        has_sizes, marks = rank == 0, False
        kept: dict[str, tf.TypeSpec] = {}
        for name, spec in field_specs.items():
            if (
                spec.__class__ is tf.TensorSpec
                and spec.shape.rank is not None
                and spec.shape.as_list()[:rank] == sizes
            ):  # most fields
                kept[name], has_sizes = spec, True
                continue
            if not isinstance(spec, tf.TypeSpec):
                fix = "Describe a field by a spec such as tf.TensorSpec([None], tf.string)."
                raise DTypeError(Path(name), "a TypeSpec", type(spec).__name__, fix)
            kept[name] = plain_spec(spec)
            marks = marks or marks_rows(spec)
            field_shape: Any = getattr(spec, "shape", None)
            if not isinstance(field_shape, tf.TensorShape):  # of a user's class it may be anything
                continue
            has_sizes = True
            if field_shape.rank is None:
                continue
            if field_shape.rank < rank or not found.is_compatible_with(field_shape[:rank]):
                expected = f"a shape that begins with {found}"
                fix = "Include the outer dimensions of the records in the field's spec."
                raise StructureError(Path(name), expected, f"shape {field_shape}", fix)
            if None in sizes:
                found = found.merge_with(field_shape[:rank])
                sizes = found.as_list()
        self._field_specs = kept
        self._order = sorted(field_specs)
        self._is_sorted = self._order == list(field_specs)
        # Returns the fields in a dict by order. An itemgetter of one name returns no tuple.
        self._picked: Callable[[Any], tuple[Any, ...]] = (
            operator.itemgetter(*self._order)
            if len(self._order) > 1
            else lambda fields: tuple([fields[name] for name in self._order])
        )
        # Without fields, a tensor of one byte a record stores the number of records. (With no
        # component at all, Dataset.unbatch aborts the process: TensorFlow 2.21.)
        self._counts_rows = not field_specs
        self._components: tuple[tf.TypeSpec, ...] = (
            (tf.TensorSpec(self._shape, tf.bool),)
            if self._counts_rows
            else tuple(self._field_specs[name] for name in self._order)
        )
        # Whether this spec has information that the fields' values do not have: that a field is
        # one row of a ragged tensor, or, if no field has a shape, the number of records.
        self._has_extra_information = marks or not has_sizes
        self._metadata = NONE
        if types and not isinstance(next(iter(types.values())), arrow_types.ArrowType):
            types = to_arrow_types(types, kept, rank)
        if types or dims:
            self._metadata = Metadata(types, checked_dims(dims, rank, type(self).__name__))
        self._meanings = arrow_types.meanings_of_fields(types, kept, rank) if types else {}
        self._saved_types: Any = None
        self._key: Any = None

    @property
    def value_type(self) -> type:
        """DenseStructuredTensor."""
        return DenseStructuredTensor

    @property
    def field_specs(self) -> Mapping[str, tf.TypeSpec]:
        """The spec of each field, in the fields' order. Read-only."""
        return MappingProxyType(self._field_specs)

    @property
    def arrow_types(self) -> Mapping[str, Any]:
        """The Arrow type of each field that came from Arrow. Not part of equality.

        >>> import pyarrow as pa
        >>> import extensor as xt
        >>> schema = pa.schema({"price": pa.decimal64(9, 2)})
        >>> xt.spec_from_schema(schema).arrow_types["price"]
        Decimal64Type(decimal64(9, 2))
        """
        return {name: kept.field.type for name, kept in self._metadata.types.items()}

    @property
    def _dims(self) -> Dims:
        return self._metadata.dims

    def _with_dims(self, dims: Dims) -> DenseStructuredTensorSpec:
        if dims == self._metadata.dims:
            return self
        types = self._metadata.types
        return DenseStructuredTensorSpec(self._shape, self._field_specs, types, dims)

    @property
    def _record(self) -> DenseStructuredTensorSpec:
        """This spec itself."""
        return self

    def serialize(self) -> tuple[Any, ...]:
        """Returns the shape and the fields. Fields are pairs, so a SavedModel keeps their order.

        A third part has the Arrow types of the fields, and a fourth the names of the dimensions,
        if there are any.
        """
        fields = tuple(self._field_specs.items())
        types, dims = self._metadata
        if self._saved_types is None:
            self._saved_types = arrow_types.types_to_text(types)
        if dims:
            return self._shape, fields, self._saved_types, dims
        return (self._shape, fields, self._saved_types) if types else (self._shape, fields)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle keeps what a SavedModel does not: the words of dictionaries.
        types, dims = self._metadata
        parts = (self._shape, dict(self._field_specs), dict(types), dims)
        return DenseStructuredTensorSpec, parts

    @classmethod
    def deserialize(cls, serialization: tuple[Any, ...]) -> DenseStructuredTensorSpec:
        """Returns the spec that `serialize` described.

        Raises:
            RegistrationError: If another version of extensor wrote more or fewer parts (also a
                ValueError).
        """
        shape, pairs, *rest = expect_num_parts(cls, serialization, 2, 3, 4)
        fields = dict(pairs)
        types = (
            arrow_types.types_from_text(rest[0], fields, shape.rank) if rest else arrow_types.NONE
        )
        return cls(shape, fields, types, rest[1] if len(rest) == 2 else None)

    def __repr__(self) -> str:
        fields = ", ".join(f"{n!r}: {code_of(spec)}" for n, spec in self._field_specs.items())
        units = {name: type_text(self._metadata.types[name]) for name in self._meanings}
        types = f", types={units}" if units else ""
        dims = f", dims={self._dims}" if self._dims else ""
        shape = shape_code(self._shape)
        return f"xt.DenseStructuredTensorSpec({shape}, {{{fields}}}{types}{dims})"

    # IPython uses the method only of the class that defines __repr__.
    _repr_pretty_ = StructuredTensorSpec._repr_pretty_

    def _cmp_key(self) -> tuple[Any, ...]:
        if self._key is None:
            # The rank is always known, so TensorShape compares its dimensions.
            fields = tuple((n, self._field_specs[n]) for n in self._order)
            self._key = (self._shape, fields, tuple(self._meanings.items()))
        return self._key

    def _share_key(self, other: Any) -> None:
        self._key = other._cmp_key()

    def castable_type(self, spec: tf.TypeSpec) -> StructuredTensorSpec | None:
        """Returns the spec that records of this spec and of another cast to, or None."""
        if isinstance(spec, DenseStructuredTensorSpec):
            return self._join(spec, castable_type)
        return spec.castable_type(self) if isinstance(spec, StructuredTensorSpec) else None

    def _cast_records(self, value: FieldValue) -> DenseStructuredTensor:
        value = value._as_dense(self._shape)
        path = type(self).__name__
        if self._counts_rows:
            return self.from_components((cast_value(self._components[0], value._rows, path),))
        columns, had = dict(value._columns), value._meanings()
        for name, spec in self._field_specs.items():
            if name not in columns:
                columns[name] = null_field(spec, value)
                continue
            want = self._meanings.get(name)
            have = arrow_types.meaning_beside(had.get(name), value._metadata.types.get(name), want)
            meanings = want, have
            if needs_change(spec, columns[name], meanings):
                columns[name] = change_numbers(columns[name], *meanings, spec, Path(name))
        cast = self._with_fields(
            {
                name: spec._cast_castable(columns[name])
                if isinstance(spec, StructuredTensorSpec)
                and isinstance(columns[name], StructuredTensor)
                else cast_value(spec, columns[name], f"{path}.{Path(name)}")
                for name, spec in self._field_specs.items()
            }
        )
        if value._metadata is NONE:
            return cast
        extra = value._metadata.after_updates(value._columns, cast._columns, cast._columns)
        return cast._with_metadata(self._metadata.merge(extra.without(had)))

    def _with_fields(self, fields: dict[str, Any]) -> DenseStructuredTensor:
        """Returns records of this spec with the given fields. Validates the fields' sizes."""
        checked = DenseStructuredTensor(self._shape, fields)
        if self._has_extra_information:
            return checked._with_hint(self)
        return checked if self._metadata is NONE else checked._with_metadata(self._metadata)

    def is_compatible_with(self, spec_or_value: object) -> bool:
        """Returns whether both have the same fields with compatible specs."""
        other = spec_or_none(spec_or_value)
        return (
            isinstance(other, DenseStructuredTensorSpec)
            and self._order == other._order
            and self._meanings == other._meanings
            and self._shape.is_compatible_with(other._shape)
            and all(are_compatible(self._field_specs[n], other._field_specs[n])
                    for n in self._order)
        )  # fmt: skip

    def most_specific_compatible_type(self, other: object) -> DenseStructuredTensorSpec | None:
        """Returns the spec with both sides' shapes merged, or None."""
        if self == other:
            return self
        return self._merged(other) if isinstance(other, DenseStructuredTensorSpec) else None

    def _merged(self, other: Any) -> DenseStructuredTensorSpec | None:
        return self._join(other, supertype)

    def _join(
        self, other: DenseStructuredTensorSpec, join: Callable[[Any, Any], Any]
    ) -> DenseStructuredTensorSpec | None:
        """Returns the spec with each field's spec joined with the other's, or None."""
        casts = join is castable_type
        if not casts and (self._order != other._order or self._meanings != other._meanings):
            return None
        shape = self._shape.most_specific_compatible_shape(other._shape)
        if shape.rank is None:
            return None
        metadata = self._metadata.joined(other._metadata)
        if casts:
            alike = _made_alike(self, other)
            if alike is None:
                return None
            *both, types = alike
            metadata = metadata._replace(types=types)
        else:
            both = self._field_specs, other._field_specs
        fields: dict[str, tf.TypeSpec] = {}
        for name, spec in both[0].items():
            joined = join(spec, both[1][name])
            if joined is None:
                return None
            fields[name] = joined
        return DenseStructuredTensorSpec(shape, fields, *metadata)

    def _with_shapes_of(self, value: FieldValue) -> StructuredTensorSpec:
        """Returns this spec with the static shapes of a value."""
        fields = value._columns
        return DenseStructuredTensorSpec(
            value.shape,
            {name: spec_of_field(fields[name], s) for name, s in self._field_specs.items()},
            *value._metadata,
        )

    @property
    def component_specs(self) -> tuple[tf.TypeSpec, ...]:
        """The specs of the fields, ordered by name."""
        return self._components

    def to_components(self, value: FieldValue) -> tuple[Any, ...]:
        """Returns the fields, ordered by name."""
        if self._counts_rows:
            return (value._rows,)
        return self._picked(value._columns)

    def from_components(self, components: tuple[Any, ...]) -> DenseStructuredTensor:
        """Returns the DenseStructuredTensor of the given fields."""
        rank = self._shape.rank
        if self._counts_rows:
            return DenseStructuredTensor._of_parts(rank, {}, components[0], None, self._metadata)
        fields = dict(zip(self._order, components, strict=True))
        if not self._is_sorted:
            fields = {name: fields[name] for name in self._field_specs}
        hint = self if self._has_extra_information else None
        records = DenseStructuredTensor._of_parts(rank, fields, None, hint, self._metadata)
        remember(records)
        return records

    def _with_value_sizes(self, relaxed: Any) -> tf.TypeSpec:
        types = self._metadata.types
        wide = {n: count for n in types if (count := arrow_types.value_rank(types[n]))}
        if not wide:
            return relaxed
        fields = {
            name: with_inner_sizes(spec, self._field_specs[name].shape[-wide[name] :])
            if name in wide
            else spec
            for name, spec in relaxed.field_specs.items()
        }
        return DenseStructuredTensorSpec(relaxed.shape, fields, *self._metadata)

    def _stacks_by_components(self) -> bool:
        return True

    def _named_components(self) -> Any:
        specs = self.component_specs
        return specs if self._counts_rows else dict(zip(self._order, specs, strict=True))

    def _ragged_row(self, row_splits_dtype: tf.DType) -> StructuredTensorSpec:
        if self._shape.is_fully_defined():
            fields = {n: ragged_row(s, row_splits_dtype) for n, s in self._field_specs.items()}
            return DenseStructuredTensorSpec(self._shape, fields, *self._metadata)
        record = self
        for _ in range(self.rank):
            record = record.unstacked()
        records = record._ragged_row(row_splits_dtype).stacked(None)
        rows = ragged_spec_of(self._shape, records, row_splits_dtype)
        return rows._with_dims(self._dims)

    def _with_record(self, record: DenseStructuredTensorSpec) -> DenseStructuredTensorSpec:
        return record

    def _any_length(self) -> DenseStructuredTensorSpec:
        specs = {n: any_length(batchable(s, Path(n))) for n, s in self._field_specs.items()}
        return DenseStructuredTensorSpec(any_length_shape(self._shape), specs, *self._metadata)

    def _find_row_splits_dtypes(self) -> set[tf.DType]:
        return {d for spec in self._field_specs.values() for d in row_splits_dtypes_of(spec)}

    def _with_row_splits_dtype(self, dtype: tf.DType) -> DenseStructuredTensorSpec:
        specs = {n: with_row_splits_dtype(s, dtype) for n, s in self._field_specs.items()}
        return DenseStructuredTensorSpec(self._shape, specs, *self._metadata)

    def to_boxed_tensor(
        self, value: FieldValue, minimum_rank: int = 0
    ) -> list[tf.Tensor] | tf.Tensor:
        """Returns the boxes of the fields, ordered by name."""
        for name, spec in self._field_specs.items():
            batchable(spec, Path(name))
        return super().to_boxed_tensor(value, minimum_rank)

    def stacked(self, num: int | None) -> DenseStructuredTensorSpec:
        """Returns the spec of `num` stacked values."""
        return DenseStructuredTensorSpec(
            tf.TensorShape([num]).concatenate(self._shape),
            {name: stacked(batchable(s, Path(name)), num) for name, s in self._field_specs.items()},
            *self._metadata.with_axes((None, *range(self.rank))),
        )

    def unstacked(self) -> DenseStructuredTensorSpec:
        """Returns the spec of one element along the first dimension."""
        return self._once("_element", self._of_element)

    def _of_element(self) -> DenseStructuredTensorSpec:
        if self.rank == 0:
            raise nothing_to_unstack(self)
        return DenseStructuredTensorSpec(
            self._shape[1:],
            {name: unstacked(batchable(s, Path(name))) for name, s in self._field_specs.items()},
            *self._metadata.with_axes(range(1, self.rank)),
        )


def _made_alike(
    one: DenseStructuredTensorSpec, other: DenseStructuredTensorSpec
) -> tuple[Any, Any, arrow_types.ArrowTypes] | None:
    """Returns the fields of two specs with the same names, meanings and dtypes, and their types.

    Returns:
        None if the numbers of a field do not change to those of the other without loss, or a
        field that only one has cannot be null.
    """
    both = one, other
    fields = dict(one._field_specs), dict(other._field_specs)
    types = dict(one._metadata.joined(other._metadata).types)
    for name in {**fields[0], **fields[1]}:
        if name not in fields[0] or name not in fields[1]:
            has = int(name in fields[1])
            if not is_nullable(fields[has][name], one.rank):
                return None
            fields[1 - has][name] = fields[has][name]
            continue
        specs = fields[0][name], fields[1][name]
        own = [spec._meanings.get(name) for spec in both]
        kept = [spec._metadata.types.get(name) for spec in both]
        meanings = (
            arrow_types.meaning_beside(own[0], kept[0], own[1]),
            arrow_types.meaning_beside(own[1], kept[1], own[0]),
        )
        want = wider_of_two(specs, meanings)
        if want is None:
            return None
        have = 1 - want
        if needs_change(specs[want], specs[have], (meanings[want], meanings[have])):
            fields[have][name] = with_dtype_of(specs[have], specs[want])
        if meanings[0] != meanings[1] or fields[have][name] is not specs[have]:
            types.pop(name, None)
            if name in both[want]._metadata.types:
                types[name] = both[want]._metadata.types[name]
    return *fields, types


DenseStructuredTensor._spec_type = DenseStructuredTensorSpec
