"""The specs of StructuredTensors: shapes and schemas, apart from any value."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import tensorflow as tf

from extensor._path import Path, PathLike
from extensor._protocol.box import StackableTypeSpec, ragged_row
from extensor._protocol.casting import cast_value, castable_type, compatible, not_castable
from extensor._protocol.registry import register_type_spec
from extensor._protocol.stand_in import plain_spec
from extensor._struct import leaf
from extensor._struct.from_python import columns_of, sizes_of
from extensor._tf import BatchableTypeSpec, VariableSpec
from extensor.errors import (
    DTypeError,
    FieldError,
    ProtocolError,
    RegistrationError,
    StructureError,
)


class StructuredTensorSpec(StackableTypeSpec):
    """Describes a StructuredTensor: its shape and its schema. The base of the two below."""

    _shape: tf.TensorShape

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the collection of records. Its rank is known."""
        return self._shape

    @property
    def rank(self) -> int:
        """How many dimensions the collection of records has."""
        return self._shape.rank

    @property
    @abc.abstractmethod
    def record(self) -> DenseStructuredTensorSpec:
        """The spec that holds the fields, below any ragged dimensions."""

    @abc.abstractmethod
    def refined(self, value: Any) -> StructuredTensorSpec:
        """Returns this spec with the static shapes that a value of it shows."""

    def field_names(self) -> tuple[str, ...]:
        """Returns the names of the fields, in their order."""
        return tuple(self.record.field_specs)

    def field_spec(self, path: PathLike) -> tf.TypeSpec:
        """Returns the spec of a field of the records below any ragged dimensions.

        Args:
            path: A field's name or path.

        Raises:
            FieldError: If there is no such field (also a KeyError).

        >>> steps = xt.DenseStructuredTensorSpec([None], {"description": tf.TensorSpec([None],
        ...                                                                            tf.string)})
        >>> recipe = xt.DenseStructuredTensorSpec([None], {
        ...     "steps": xt.RaggedStructuredTensorSpec([None, None], steps, tf.int64)})
        >>> recipe.field_spec("steps.description")
        TensorSpec(shape=(None,), dtype=tf.string, name=None)
        """
        spec: Any = self
        done: list[str] = []
        for name in resolve(path, self.record.field_specs):
            if not isinstance(spec, StructuredTensorSpec):
                raise no_such_field(Path(*done, name), ())
            if name not in spec.record.field_specs:
                raise no_such_field(Path(*done, name), spec.field_names())
            spec = spec.record.field_specs[name]
            done.append(name)
        return spec

    def cast(self, value: Any, casting_context: Any = None) -> Any:
        """Returns records that are equivalent to some, as this spec describes them.

        Args:
            value: A StructuredTensor with the same fields; dense records for ragged ones, ragged
                records whose rows have one length for dense ones. Or Python's records: as many
                lists, one in the other, as there are dimensions, of dicts. Dense records may also
                be given as one dict from names to the values of all records.
            casting_context: What TensorFlow gives when it casts the arguments of a function.

        Raises:
            DTypeError: If the records have other fields or another rank (also a TypeError).
            StructureError: If shapes do not fit, or rows differ in length (also a ValueError).
            FieldError: If one of Python's records has other fields (also a KeyError).

        >>> spec = xt.DenseStructuredTensorSpec([None], {"minutes": tf.TensorSpec([None])})
        >>> spec.cast([{"minutes": 5}, {"minutes": 20}])["minutes"].numpy()
        array([ 5., 20.], dtype=float32)
        """
        if isinstance(value, (list, tuple, Mapping)):
            return self.of_records(value, type(self).__name__)
        describe = getattr(value, "__tf_type_spec__", None)
        spec = None if describe is None else describe()
        if not isinstance(spec, StructuredTensorSpec):
            return super().cast(value, casting_context)
        if self._takes(spec):
            return value
        if self.castable_type(spec) is None:
            raise not_castable(
                self,
                spec,
                mend="Make ranks, fields and dtypes agree: with_only, without, with_updates.",
            )
        return self._cast_records(value)

    @abc.abstractmethod
    def _cast_records(self, value: Any) -> Any:
        """Casts a StructuredTensor that has the fields and the rank."""

    @abc.abstractmethod
    def of_records(self, value: Any, path: str) -> Any:
        """Returns Python's records as this spec describes them; see `cast`.

        Args:
            value: Lists of dicts, or what stands for them.
            path: What to call it in errors.
        """

    def leaves(self, path: Path | None = None) -> Iterator[tuple[Path, tf.TypeSpec]]:
        """Yields the path and spec of every field that holds no further fields.

        >>> spec = xt.DenseStructuredTensorSpec([None], {"title": tf.TensorSpec([None],
        ...                                                                     tf.string)})
        >>> [str(path) for path, _ in spec.leaves()]
        ['title']
        """
        path = Path() if path is None else path
        for name, spec in self.record.field_specs.items():
            if isinstance(spec, StructuredTensorSpec):
                yield from spec.leaves(path / name)
            else:
                yield path / name, spec


@register_type_spec(name="extensor.DenseStructuredTensorSpec")
class DenseStructuredTensorSpec(StructuredTensorSpec):
    """Describes a DenseStructuredTensor.

    Two specs that list the same fields in another order are equal, as dicts are.

    Args:
        shape: The shape of the collection of records, of known rank.
        field_specs: For each field the spec of the whole field, including the outer dimensions
            that correspond to `shape`.

    Raises:
        StructureError: If the rank is unknown, or a field's shape does not begin with `shape`
            (also a ValueError).
        DTypeError: If a field is described by something that is no TypeSpec (also a TypeError).

    >>> spec = xt.DenseStructuredTensorSpec([2, 3], {"x": tf.TensorSpec([2, 3, 10], tf.int32)})
    >>> spec.shape, spec.field_names()
    (TensorShape([2, 3]), ('x',))
    """

    # Set by struct/dense.py and struct/ragged_spec.py, which stand above this room.
    dense_type: ClassVar[type] = object
    rows_type: ClassVar[Any] = object

    def __init__(self, shape: Any, field_specs: Mapping[str, tf.TypeSpec]) -> None:
        self._shape = known_rank(shape, type(self).__name__)
        rank = self._shape.rank
        if not isinstance(field_specs, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DTypeError(
                path=f"{type(self).__name__}.field_specs",
                expected="a mapping from field names to specs",
                received=type(field_specs).__name__,
                mend='Write {"title": tf.TensorSpec([None], tf.string)}.',
            )
        for name, spec in field_specs.items():
            if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise DTypeError(
                    path=f"field {name!r}",
                    expected="a name of type str",
                    received=type(name).__name__,
                    mend="Name fields by strings.",
                )
            if not isinstance(spec, tf.TypeSpec):
                raise DTypeError(
                    path=Path(name),
                    expected="a TypeSpec",
                    received=type(spec).__name__,
                    mend="Describe a field by a spec such as tf.TensorSpec([None], tf.string).",
                )
            field_shape = getattr(spec, "shape", None)
            if field_shape is None or field_shape.rank is None:
                continue
            if field_shape.rank < rank or not self._shape.is_compatible_with(field_shape[:rank]):
                raise StructureError(
                    path=Path(name),
                    expected=f"a shape that begins with {self._shape}",
                    received=f"{field_shape}",
                    mend="A field's spec includes the outer dimensions of the records.",
                )
        self._field_specs = {name: plain_spec(spec) for name, spec in field_specs.items()}
        self._order = sorted(field_specs)
        # The number of records has to be kept somewhere when no field tells it: in a tensor of
        # one byte a record. (Of none, Dataset.unbatch ends the process: TensorFlow 2.21.)
        self._counts_rows = not field_specs
        self._components: tuple[tf.TypeSpec, ...] = (
            (tf.TensorSpec(self._shape, tf.bool),)
            if self._counts_rows
            else tuple(self._field_specs[name] for name in self._order)
        )
        # Whether this spec knows what the fields' values alone would not tell: that a field is one
        # row of a ragged tensor, or, where no field has a shape, how many records there are.
        self._tells_more = any(
            isinstance(s, tf.RaggedTensorSpec) and s.ragged_rank == 0 for s in field_specs.values()
        ) or (rank > 0 and not any(hasattr(s, "shape") for s in field_specs.values()))
        self._key: Any = None
        self._hash: int | None = None

    @property
    def value_type(self) -> type:
        """DenseStructuredTensor."""
        return self.dense_type

    @property
    def field_specs(self) -> Mapping[str, tf.TypeSpec]:
        """The spec of each field, in the fields' order. Read-only."""
        return MappingProxyType(self._field_specs)

    @property
    def record(self) -> DenseStructuredTensorSpec:
        """This spec itself."""
        return self

    def serialize(self) -> tuple[Any, ...]:
        """Returns the shape and the fields, as pairs so that a SavedModel keeps their order."""
        return self._shape, tuple(self._field_specs.items())

    @classmethod
    def deserialize(cls, serialization: Any) -> DenseStructuredTensorSpec:
        """Returns the spec that `serialize` described.

        Raises:
            RegistrationError: If another version of extensor wrote more (also a ValueError).
        """
        shape, fields = saved_parts(cls, serialization, 2)
        return cls(shape, dict(fields))

    def __repr__(self) -> str:
        return f"DenseStructuredTensorSpec({self._shape}, {self._field_specs!r})"

    def _cmp_key(self) -> Any:
        if self._key is None:
            # An unknown shape never comes here: TensorShape compares its dimensions.
            self._key = (self._shape, tuple((n, self._field_specs[n]) for n in self._order))
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is DenseStructuredTensorSpec and self._cmp_key() == other._cmp_key()
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._cmp_key())
        return self._hash

    def castable_type(self, spec: tf.TypeSpec) -> StructuredTensorSpec | None:
        """Returns where records of this spec and another meet: field by field, or None."""
        if isinstance(spec, DenseStructuredTensorSpec):
            return self._joined(spec, castable_type)
        return spec.castable_type(self) if isinstance(spec, StructuredTensorSpec) else None

    def _cast_records(self, value: Any) -> Any:
        if not isinstance(value, self.dense_type):
            value = value._as_dense(self._shape)
        if self._counts_rows:
            return self.from_components((value._rows,))
        path = type(self).__name__
        return self._with_fields(
            {
                name: cast_value(spec, value._fields[name], f"{path}.{Path(name)}")
                for name, spec in self._field_specs.items()
            }
        )

    def of_records(self, value: Any, path: str) -> Any:
        """Returns Python's records as this spec describes them."""
        columns = columns_of(value, self._field_specs, self.rank, path)
        if self._counts_rows:
            return self.dense_type(sizes_of(value, self.rank), {})
        return self._with_fields(
            {
                name: cast_value(spec, columns[name], f"{path}.{Path(name)}")
                for name, spec in self._field_specs.items()
            }
        )

    def _with_fields(self, fields: dict[str, Any]) -> Any:
        """Returns records of fields that are each of its spec, if they agree on how many."""
        checked = self.dense_type(self._shape, fields)
        return checked._with_hint(self) if self._tells_more else checked

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Returns whether both have the same fields, compatible one by one."""
        other = _spec_or_none(spec_or_value)
        return (
            isinstance(other, DenseStructuredTensorSpec)
            and self._order == other._order
            and self._shape.is_compatible_with(other._shape)
            and all(compatible(self._field_specs[n], other._field_specs[n])
                    for n in self._order)
        )  # fmt: skip

    def most_specific_compatible_type(self, other: Any) -> DenseStructuredTensorSpec | None:
        """Returns the spec with both sides' shapes merged, or None."""
        if self == other:
            return self
        if not isinstance(other, DenseStructuredTensorSpec):
            return None
        return self._joined(other, lambda a, b: a.most_specific_common_supertype([b]))

    def _joined(
        self, other: DenseStructuredTensorSpec, join: Callable[[Any, Any], Any]
    ) -> DenseStructuredTensorSpec | None:
        """Returns the spec with each field's spec joined with the other's, or None."""
        if self._order != other._order:
            return None
        shape = self._shape.most_specific_compatible_shape(other._shape)
        if shape.rank is None:
            return None
        fields: dict[str, tf.TypeSpec] = {}
        for name, spec in self._field_specs.items():
            joined = join(spec, other._field_specs[name])
            if joined is None:
                return None
            fields[name] = joined
        return DenseStructuredTensorSpec(shape, fields)

    def refined(self, value: Any) -> StructuredTensorSpec:
        """Returns this spec with the static shapes that a value of it shows."""
        fields = value._fields
        return DenseStructuredTensorSpec(
            value.shape,
            {name: leaf.spec_of_field(fields[name], s) for name, s in self._field_specs.items()},
        )

    @property
    def component_specs(self) -> tuple[tf.TypeSpec, ...]:
        """The specs of the fields, ordered by name."""
        return self._components

    def to_components(self, value: Any) -> tuple[Any, ...]:
        """Returns the fields, ordered by name."""
        if self._counts_rows:
            return (value._rows,)
        fields = value._fields
        return tuple([fields[name] for name in self._order])

    def from_components(self, components: tuple[Any, ...]) -> Any:
        """Returns the DenseStructuredTensor of the given fields."""
        rank = self._shape.rank
        if self._counts_rows:
            return self.dense_type.of_parts(rank, {}, components[0])
        by_name = dict(zip(self._order, components, strict=True))
        fields = {name: by_name[name] for name in self._field_specs}
        return self.dense_type.of_parts(rank, fields, None, self if self._tells_more else None)

    def _stacks_by_components(self) -> bool:
        return True

    def _named_components(self) -> Any:
        specs = self.component_specs
        return specs if self._counts_rows else dict(zip(self._order, specs, strict=True))

    def _ragged_row(self, row_splits_dtype: tf.DType) -> Any:
        if self._shape.is_fully_defined():
            fields = {n: ragged_row(s, row_splits_dtype) for n, s in self._field_specs.items()}
            return DenseStructuredTensorSpec(self._shape, fields)
        record = self
        for _ in range(self.rank):
            record = record.unstacked()
        records = record._ragged_row(row_splits_dtype).stacked(None)
        return self.rows_type.of_rows(self._shape, records, row_splits_dtype)

    def to_boxed_tensor(self, value: Any, minimum_rank: int = 0) -> list[Any]:
        """Returns the boxes of the fields, ordered by name."""
        for name, spec in self._field_specs.items():
            _batchable(spec, Path(name))
        return super().to_boxed_tensor(value, minimum_rank)

    def stacked(self, num: int | None) -> DenseStructuredTensorSpec:
        """Returns the spec of `num` stacked values."""
        return DenseStructuredTensorSpec(
            tf.TensorShape([num]).concatenate(self._shape),
            {name: _batchable(s, Path(name))._batch(num) for name, s in self._field_specs.items()},
        )

    def unstacked(self) -> DenseStructuredTensorSpec:
        """Returns the spec of one of the values that are stacked along the first dimension."""
        if self.rank == 0:
            raise nothing_to_unstack(self)
        return DenseStructuredTensorSpec(
            self._shape[1:],
            {name: _batchable(s, Path(name))._unbatch() for name, s in self._field_specs.items()},
        )


def saved_parts(cls: type, serialization: Any, number: int) -> Any:
    """Returns what a spec serialized, if it is as many parts as this version of extensor writes.

    Raises:
        RegistrationError: If it is not (also a ValueError).
    """
    if len(serialization) == number:
        return serialization
    raise RegistrationError(
        path=cls.__name__,
        expected=f"{number} parts, as this version of extensor writes",
        received=f"{len(serialization)}",
        mend="Load it with the extensor that saved it, or a newer one.",
    )


def known_rank(shape: Any, owner: str) -> tf.TensorShape:
    """Returns a shape as a TensorShape, of which the rank is known.

    Raises:
        StructureError: If it is not.
    """
    shape = tf.TensorShape(shape)
    if shape.rank is None:
        raise StructureError(
            path=f"{owner}.shape",
            expected="a shape of known rank",
            received="<unknown>",
            mend="Write None for a dimension of unknown size, such as [None] for a batch.",
        )
    return shape


def resolve(path: PathLike, fields: Any) -> tuple[str, ...]:
    """Returns the names of a path. A text that is a field's own name is that field.

    The empty text is a name like any other: a name that got lost on the way is missed, and does
    not stand for the records themselves.
    """
    if isinstance(path, str) and (path in fields or not path):
        return (path,)
    return Path.of(path).names


def no_such_field(path: Path, names: tuple[str, ...]) -> FieldError:
    """Returns the error for a path that names no field, with what there is instead."""
    listed = ", ".join(str(Path(name)) for name in names[:20])
    if len(names) > 20:
        listed += f", ... ({len(names)} in all)"
    return FieldError(
        path=path,
        expected=f"one of the fields {listed}" if names else "a record, which has fields",
        received=f"{Path(path.names[-1])}",
        mend="Check the spelling; a name that holds a dot is quoted in a path.",
    )


def nothing_to_unstack(spec: tf.TypeSpec) -> StructureError:
    """Returns the error for unstacking a single record."""
    return StructureError(
        path=type(spec).__name__,
        expected="at least one dimension to unstack",
        received="a single record",
        mend="Unbatch or slice collections of records.",
    )


def _batchable(spec: tf.TypeSpec, path: Path) -> Any:
    if isinstance(spec, BatchableTypeSpec):
        return spec
    if isinstance(spec, VariableSpec):
        raise ProtocolError(
            path=path,
            expected="a field whose values stack",
            received="a Variable",
            mend="Read it first, with with_updates and tf.convert_to_tensor(variable).",
        )
    raise ProtocolError(
        path=path,
        expected="a field whose values stack",
        received=type(spec).__name__,
        mend=f"Derive {type(spec).__name__} from xt.StackableTypeSpec, or leave the field out.",
    )


def _spec_or_none(spec_or_value: Any) -> Any:
    if isinstance(spec_or_value, tf.TypeSpec):
        return spec_or_value
    type_spec = getattr(spec_or_value, "__tf_type_spec__", None)
    return None if type_spec is None else type_spec()
