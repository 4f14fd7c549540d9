"""StructuredTensorSpec, the base of both specs, and the resolution of field paths."""

from __future__ import annotations

import abc
import difflib
import functools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from extensor._converter import converter
from extensor._path import Path, PathLike
from extensor._protocol.stackable_spec import StackableTypeSpec, stacks_by_components
from extensor._protocol.tree import map_shapes, with_items
from extensor._struct.cast_request import STRICT, CastRequest
from extensor._struct.columns import Columns, columns_of
from extensor._struct.dims import Dims
from extensor._struct.records import RecordsBase
from extensor._tf import component_specs, describes_extension, from_components, to_components
from extensor._typing import FieldValue
from extensor.errors import FieldError, ProtocolError, RegistrationError, StructureError

if TYPE_CHECKING:
    from extensor._struct.dense_spec import DenseStructuredTensorSpec
    from extensor._struct.tensor import StructuredTensor


class StructuredTensorSpec(StackableTypeSpec, Columns):
    """Describes a StructuredTensor: its shape and its fields. The base of both specs.

    >>> import extensor as xt
    >>> spec = xt.spec_of(xt.struct.constant([{"minutes": [5, 20]}]))
    >>> isinstance(spec, xt.StructuredTensorSpec), spec.field_spec("minutes").dtype
    (True, tf.int32)
    """

    _shape: tf.TensorShape
    _hash: int | None = None
    _found_row_splits_dtypes: frozenset[tf.DType] | None = None
    _casts_with_fields = True
    """`castable_type` finds the supertype too: see `_protocol.casting.castable_type`."""

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the collection of records; its rank is always known."""
        return self._shape

    @property
    def rank(self) -> int:
        """The number of dimensions of the collection; never None."""
        return self._shape.rank

    @property
    def dims(self) -> Dims:
        """The name of each dimension, or None. Not part of equality.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None])}, dims="recipe")
        >>> spec.dims, spec.stacked(3).dims
        (('recipe',), (None, 'recipe'))
        """
        return self._dims or (None,) * self.rank

    @property
    @abc.abstractmethod
    def _dims(self) -> Dims:
        """The names of the dimensions; `()` if none has a name."""

    @abc.abstractmethod
    def _with_dims(self, dims: Dims) -> StructuredTensorSpec:
        """Returns this spec with other names of its dimensions."""

    @abc.abstractmethod
    def _cmp_key(self) -> tuple[Any, ...]:
        """Returns what makes specs equal: all but the metadata."""

    def _share_key(self, other: Any) -> None:
        """Takes the key of an equal spec, so that the next comparison compares one object."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, StructuredTensorSpec) or type(self) is not type(other):
            return False
        if self._hash is not None and other._hash is not None and self._hash != other._hash:
            return False  # without a look at the levels inside
        if self._cmp_key() != other._cmp_key():
            return False
        self._share_key(other)
        return True

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._cmp_key())
        return self._hash

    @property
    @abc.abstractmethod
    def _record(self) -> DenseStructuredTensorSpec:
        """The spec that holds the fields, below any ragged dimensions."""

    @abc.abstractmethod
    def _with_shapes_of(self, value: FieldValue) -> StructuredTensorSpec:
        """Returns this spec with the static shapes of a value."""

    def field_names(self) -> tuple[str, ...]:
        """Returns the names of the fields, in their order."""
        return tuple(self._record.field_specs)

    def field_spec(self, path: PathLike) -> tf.TypeSpec:
        """Returns the spec of a field of the records below any ragged dimensions.

        Args:
            path: A field's name or path.

        Raises:
            FieldError: If there is no such field (also a KeyError).

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> steps = xt.DenseStructuredTensorSpec([None], {"description": tf.TensorSpec([None],
        ...                                                                            tf.string)})
        >>> recipe = xt.DenseStructuredTensorSpec([None], {
        ...     "steps": xt.RaggedStructuredTensorSpec([None, None], steps, tf.int64)})
        >>> recipe.field_spec("steps.description")
        TensorSpec(shape=(None,), dtype=tf.string, name=None)
        """
        spec: Any = self
        done: list[str] = []
        for name in resolve(path, self._record.field_specs):
            spec = without_mask(spec)
            if not isinstance(spec, StructuredTensorSpec):
                raise no_such_field(Path(*done, name), ())
            if name not in spec._record.field_specs:
                raise no_such_field(Path(*done, name), spec.field_names())
            spec = spec._record.field_specs[name]
            done.append(name)
        return spec

    def cast(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        value: object,
        casting_context: object | None = None,
        *,
        extra: Literal["error", "ignore"] | Iterable[PathLike] = "error",
        times: Literal["text"] | None = None,
    ) -> StructuredTensor:
        """Returns records of this spec that are equivalent to `value`.

        Numbers change to a wider dtype or a finer unit, and values without a mask to masked ones.
        A field that may be null may be missing. docs/casting.md has the table.

        Args:
            value: A StructuredTensor with the same fields. Dense records cast to ragged, and
                ragged records cast to dense if all rows have one length. Or Python data: dicts in
                as many nested lists as the spec has dimensions; for dense records also one dict
                from names to the values of all records. Or an Arrow table, or a DataFrame.
            casting_context: The context that TensorFlow passes when it casts arguments.
            extra: What becomes of fields that the spec does not have, at any depth: `"error"` (the
                default), `"ignore"` to leave them out, or the paths of those to leave out.
            times: `"text"` to take text in ISO 8601 too where the spec has timestamps, dates and
                times. Default: such text is an error.

        Raises:
            DTypeError: If the records have other fields or another rank, or a cast may lose
                information; the error lists all paths (also a TypeError).
            StructureError: If shapes do not fit, or rows differ in length (also a ValueError).
            FieldError: If a dict has other keys than the fields (also a KeyError).

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> spec = xt.DenseStructuredTensorSpec([None], {"minutes": tf.TensorSpec([None])})
        >>> spec.cast([{"minutes": 5}, {"minutes": 20}])["minutes"].numpy()
        array([ 5., 20.], dtype=float32)
        """
        return self._cast_as(value, CastRequest.from_arguments(extra, times), casting_context)

    def _cast_as(
        self, value: Any, request: CastRequest, casting_context: object | None = None
    ) -> StructuredTensor:
        """Casts as `cast`, with its arguments `extra` and `times` as a request."""
        describe = getattr(value, "__tf_type_spec__", None)
        if describe is None and not isinstance(value, tf.TypeSpec):
            if converter("is_data")(value):
                return converter("of_spec")(value, self, request=request)
            if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
                return converter("records_of_spec")(value, self, request)
        spec = None if describe is None else describe()
        if not isinstance(spec, StructuredTensorSpec):
            return super().cast(value, casting_context)
        hash(self)  # all specs inside keep their hash, which shows at once which of them differ
        if self._accepts(spec):
            return value
        if request.reads_times:
            value = converter("records_with_times")(value, self)
        if request != STRICT:
            value = converter("without_extra")(value, self, request)
            spec = value.__tf_type_spec__()
        wrong = converter("mismatch")(self, spec, type(self).__name__)
        if wrong is not None:
            raise wrong
        return self._cast_records(value)

    def to_tensors(self, value: FieldValue) -> list[tf.Tensor]:
        """Returns the flat list of tensors of a value. Called by TensorFlow."""
        if isinstance(value, RecordsBase) and self._accepts(tf.type_spec_from_value(value)):
            # TensorFlow would compare the dtype and shape of each tensor with its spec again.
            tensors = _flat_tensors(value)
            if all(isinstance(tensor, tf.Tensor) for tensor in tensors):
                return tensors
        return super().to_tensors(value)

    def python_class(self, name: str = "Record") -> type:
        """Returns a dataclass with the fields of the spec, the counterpart of `struct.spec_from`.

        Args:
            name: The name of the class. Classes of nested records get the names of their fields.

        Raises:
            FieldError: If the name of a field is not a Python name (also a KeyError).

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> spec = xt.DenseStructuredTensorSpec([None], {"title": tf.TensorSpec([None], tf.string)})
        >>> Recipe = spec.python_class("Recipe")
        >>> Recipe("Tea")
        Recipe(title='Tea')
        >>> xt.struct.spec_from(Recipe) == spec
        True
        """
        return converter("python_class")(self, name)

    def _cast_castable(self, value: FieldValue) -> StructuredTensor:
        """Casts a StructuredTensor whose spec `castable_type` accepted before."""
        own = value.__tf_type_spec__()
        return value if own is self else self._cast_records(value)

    @abc.abstractmethod
    def _cast_records(self, value: FieldValue) -> StructuredTensor:
        """Casts a StructuredTensor that has the spec's fields and rank."""

    @abc.abstractmethod
    def _with_record(self, record: DenseStructuredTensorSpec) -> StructuredTensorSpec:
        """Returns this spec with another spec for its dense records."""

    @abc.abstractmethod
    def _any_length(self) -> StructuredTensorSpec:
        """Returns this spec with a first dimension of unknown size, in all fields."""

    @abc.abstractmethod
    def _with_row_splits_dtype(self, dtype: tf.DType) -> StructuredTensorSpec:
        """Returns this spec with one dtype for all row splits."""

    def _row_splits_dtypes(self) -> frozenset[tf.DType]:
        """Returns the dtypes of all row splits inside the records."""
        if self._found_row_splits_dtypes is None:
            self._found_row_splits_dtypes = frozenset(self._find_row_splits_dtypes())
        return self._found_row_splits_dtypes

    @abc.abstractmethod
    def _find_row_splits_dtypes(self) -> set[tf.DType]:
        """Returns the dtypes of all row splits inside the records."""

    def leaves(self, path: Path | None = None) -> Iterator[tuple[Path, tf.TypeSpec]]:
        """Yields the path and spec of every leaf: a field that is not records.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> spec = xt.DenseStructuredTensorSpec([None], {"title": tf.TensorSpec([None],
        ...                                                                     tf.string)})
        >>> [str(path) for path, _ in spec.leaves()]
        ['title']
        """
        path = Path() if path is None else path
        for name, spec in self._record.field_specs.items():
            if isinstance(spec, StructuredTensorSpec):
                yield from spec.leaves(path / name)
            else:
                yield path / name, spec

    def _field_paths(self, path: Path | None = None) -> Iterator[Path]:
        """Yields the path of every field, each before the fields inside it."""
        path = Path() if path is None else path
        for name, field in self._record.field_specs.items():
            yield path / name
            spec: Any = without_mask(field)
            if isinstance(spec, StructuredTensorSpec):
                yield from spec._field_paths(path / name)

    def _units(self) -> dict[Path, Any]:
        """Returns the meaning of the numbers of each field that has one, by path."""
        return self._once("_meanings_by_path", lambda: _found_in(self, "_meanings"))

    def _types(self) -> dict[Path, Any]:
        """Returns the Arrow type of each field that has one, by path."""
        return self._once("_types_by_path", lambda: _found_in(self, "arrow_types"))

    @abc.abstractmethod
    def _merged(self, other: StructuredTensorSpec) -> StructuredTensorSpec | None:
        """Returns the spec of the values of both, as `most_specific_compatible_type`."""

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        """Returns the most specific spec for the values of all specs. Called by TensorFlow."""
        found: Any = super().most_specific_common_supertype(others)
        for other in others:  # equal specs may have other types, such as text and bytes
            if found is not None and found is not other and found._types() != other._types():
                found = found._merged(other)
        return found

    def _repr_html_(self) -> str:
        return converter("spec_html")(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Prints the tree of fields in IPython, where the repr would be one long line."""
        for i, line in enumerate(str(converter("tree")(self)).splitlines()):
            if i:
                printer.break_()
            printer.text(line)

    # Records in lists are boxed by their columns: see `columns`.

    @functools.cached_property
    def _parts(self) -> list[Columns]:
        pairs = zip(sorted(self.field_names()) or [""], self.component_specs, strict=True)
        return [columns_of(spec, Path(name)) for name, spec in pairs]

    def _from_columns(self, columns: Iterator[Any]) -> StructuredTensor:
        return self.from_components(tuple([part._from_columns(columns) for part in self._parts]))


def _flat_tensors(value: FieldValue) -> list[Any]:
    """Returns `tf.nest.flatten(value, expand_composites=True)`, without specs of RaggedTensors."""
    if isinstance(value, tf.Tensor):
        return [value]
    if isinstance(value, tf.RaggedTensor):
        return [value.flat_values, *value.nested_row_splits]
    if isinstance(value, RecordsBase):
        records: Any = value
        parts = records.__tf_type_spec__().to_components(records)
        return [tensor for part in parts for tensor in _flat_tensors(part)]
    return tf.nest.flatten(value, expand_composites=True)


def with_row_splits_dtype(spec: tf.TypeSpec, dtype: tf.DType) -> tf.TypeSpec:
    """Returns the spec of a field with one dtype for all row splits."""
    if isinstance(spec, StructuredTensorSpec):
        is_done = not spec._row_splits_dtypes() - {dtype}
        return spec if is_done else spec._with_row_splits_dtype(dtype)
    if isinstance(spec, tf.RaggedTensorSpec):
        return tf.RaggedTensorSpec(
            spec.shape, spec.dtype, spec.ragged_rank, dtype, spec.flat_values_spec
        )
    if row_splits_dtypes_of(spec) - {dtype}:
        parts = map_shapes(
            spec.serialize(), lambda shape: shape, lambda part: with_row_splits_dtype(part, dtype)
        )
        return spec.deserialize(parts)
    return spec


def row_splits_dtypes_of(spec: tf.TypeSpec) -> set[tf.DType]:
    """Returns the dtypes of the row splits inside the spec of a field."""
    if isinstance(spec, StructuredTensorSpec):
        return set(spec._row_splits_dtypes())
    if isinstance(spec, tf.RaggedTensorSpec):
        return {spec.row_splits_dtype}
    found: set[tf.DType] = set()
    if stacks_by_components(spec):
        for part in tf.nest.flatten(spec.component_specs):
            found |= row_splits_dtypes_of(part)
    return found


def with_any_count(spec: StructuredTensorSpec) -> StructuredTensorSpec:
    """Returns the spec of the records of all rows, whose number changes from batch to batch.

    The spec of a value has no such number, like `tf.RaggedTensorSpec.from_value`. Otherwise a
    tf.function would be traced for each batch.
    """
    try:
        return spec._any_length()
    except ProtocolError:  # a field that does not stack has the number in its spec
        return spec


def spec_or_none(spec_or_value: object) -> tf.TypeSpec | None:
    """Returns a spec as it is, the spec of an extension value, or None for anything else."""
    if isinstance(spec_or_value, tf.TypeSpec):
        return spec_or_value
    type_spec = getattr(spec_or_value, "__tf_type_spec__", None)
    return None if type_spec is None else type_spec()


def expect_num_parts(cls: type, serialization: tuple[Any, ...], *numbers: int) -> tuple[Any, ...]:
    """Returns a spec's serialization as it is, if it has one of the expected numbers of parts.

    Raises:
        RegistrationError: If the number of parts differs (also a ValueError).
    """
    if len(serialization) in numbers:
        return serialization
    expected = f"{' or '.join(map(str, numbers))} parts, as this version of extensor saves"
    fix = "Load the data with the version of extensor that saved it, or a newer version."
    raise RegistrationError(cls.__name__, expected, f"{len(serialization)} parts", fix)


def parts_of_spec(spec: tf.TypeSpec) -> dict[str, Any]:
    """Returns the specs of the components of an extension type by name, or by place.

    Records have fields instead, and tensors have no parts.
    """
    if isinstance(spec, StructuredTensorSpec) or not describes_extension(spec):
        return {}
    return _by_name(component_specs(spec))


def _by_name(components: Any) -> dict[str, Any]:
    if isinstance(components, Mapping):
        return {str(name): part for name, part in components.items()}
    return {f"[{i}]": part for i, part in enumerate(tf.nest.flatten(components))}


def parts_of_value(value: FieldValue) -> dict[str, Any]:
    """Returns the components of an extension value, by the names of `parts_of_spec`."""
    return _by_name(to_components(tf.type_spec_from_value(value), value))


def with_parts(value: FieldValue, parts: dict[str, Any]) -> FieldValue:
    """Returns an extension value with other components, by the names of `parts_of_spec`."""
    spec = tf.type_spec_from_value(value)
    own = component_specs(spec)
    if isinstance(own, Mapping):
        return from_components(spec, with_items(own, parts.values()))
    return from_components(spec, tf.nest.pack_sequence_as(own, list(parts.values())))


def has_records(spec: tf.TypeSpec) -> bool:
    """Returns whether a spec is that of records, or of an extension value with records in it."""
    is_records = isinstance(spec, StructuredTensorSpec)
    return is_records or any(map(has_records, parts_of_spec(spec).values()))


def units_of(spec: object) -> dict[Path, Any]:
    """Returns the meaning of the numbers in all records of a value, by path."""
    spec = without_mask(spec)
    if isinstance(spec, StructuredTensorSpec):
        return spec._units()
    return _found_in(spec, "_meanings") if isinstance(spec, tf.TypeSpec) else {}


def _found_in(spec: tf.TypeSpec, attribute: str, path: Path | None = None) -> dict[Path, Any]:
    """Returns what an attribute of the specs of all records has for their fields, by path."""
    path = Path() if path is None else path
    spec = without_mask(spec)
    found: dict[Path, Any] = {}
    parts = parts_of_spec(spec)
    if isinstance(spec, StructuredTensorSpec):
        parts = spec._record.field_specs
        found = {path / name: each for name, each in getattr(spec._record, attribute).items()}
    for name, part in parts.items():
        found |= _found_in(part, attribute, path / name)
    return found


def resolve(path: PathLike, fields: Container[str]) -> tuple[str, ...]:
    """Returns the names of a path. A string equal to a field's name means that field.

    The empty string is a name too, not the path of the records themselves. So a name that is
    empty by mistake raises an error.
    """
    if isinstance(path, str) and (path in fields or not path):
        return (path,)
    return Path.of(path).names


def without_mask(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns the spec of the values of masked values; other specs as they are."""
    while stacks_by_components(spec) and isinstance(getattr(spec, "mask", None), tf.TypeSpec):
        spec = spec.values
    return spec


def no_such_field(path: Path, names: tuple[str, ...]) -> FieldError:
    """Returns the error for a path that names no field. It lists the existing fields."""
    listed = ", ".join(str(Path(name)) for name in names[:20])
    if len(names) > 20:
        listed += f", ... ({len(names)} in all)"
    close = difflib.get_close_matches(path.names[-1], names, 3)
    meant = f"Did you mean {' or '.join(str(Path(n)) for n in close)}? " if close else ""
    fix = "Check the spelling; quote a name that contains a dot."
    if path.names == ("",):
        fix = "Name a field; the path of the records themselves is ()."
    expected = f"one of the fields {listed}" if names else "a record with fields"
    return FieldError(path, expected, f"{Path(path.names[-1])}", f"{meant}{fix}")


def root_is_no_field(what: str, fix: str = "Name a field of the records.") -> FieldError:
    """Returns the error for the path of the records themselves where a field is needed."""
    return FieldError(what, "the path of a field", "(), the path of the records themselves", fix)


def nothing_to_unstack(spec: tf.TypeSpec) -> StructureError:
    """Returns the error for unstacking a single record."""
    expected = "at least one dimension to unstack"
    fix = "Unbatch or slice only collections of records."
    return StructureError(type(spec).__name__, expected, "a single record", fix)
