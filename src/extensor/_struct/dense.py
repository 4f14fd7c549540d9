"""DenseStructuredTensor, records with one size per dimension."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from typing import Any

import tensorflow as tf

from extensor._authoring.comparison import SizeComparison
from extensor._authoring.extents import remember
from extensor._path import Path
from extensor._protocol.stackable_spec import any_length, any_length_shape
from extensor._struct import arrow_types, index, masked, reshape
from extensor._struct.common_shape import common_shape, merge_shape, shape_of_known_rank
from extensor._struct.dims import (
    Axes,
    Dims,
    axes_after_gather,
    checked_dims,
    dims_of_field,
    to_dims,
)
from extensor._struct.field import (
    as_field,
    expect_fields,
    row_splits_dtypes,
    shape_of,
    spec_of_field,
    spec_of_items,
)
from extensor._struct.metadata import NONE, Metadata
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.row_splits import first_sizes, outer_sizes
from extensor._struct.same_sizes import with_size_checks
from extensor._struct.spec import (
    StructuredTensorSpec,
    no_such_field,
    resolve,
    root_is_no_field,
    with_any_count,
)
from extensor._struct.tensor import StructuredTensor
from extensor._typing import FieldValue, ShapeLike
from extensor.errors import ProtocolError, StructureError

_set = object.__setattr__

_KnownSpecs = tuple[Mapping[str, tf.TypeSpec], frozenset[str]]
"""The specs of the fields of other records, and the names of fields that have changed since."""

_UNKNOWN: _KnownSpecs = {}, frozenset()


class DenseStructuredTensor(StructuredTensor):
    """A collection of records in which every dimension has one size.

    Args:
        shape: The shape of the collection, of known rank; sizes may be unknown (None).
        fields: The values of each field for all records: a Tensor, RaggedTensor, Variable,
            StructuredTensor or other extension value, or something that converts to a tensor
            (numbers, lists, NumPy arrays). Their first dimensions are `shape`.
        dims: The names of the dimensions of `shape`: a string or None for each. See `dims`.
        validate: Whether a graph compares the dimensions that are not known while it is traced. It
            compares those that its ops do not show to be the same.

    Raises:
        StructureError: If the rank is unknown, the dimensions differ, or the names do not fit
            (also a ValueError). Running a graph raises an InvalidArgumentError instead.
        DTypeError: If a field name is not a string, or a value does not convert to a tensor (also
            a TypeError).

    >>> import extensor as xt
    >>> xt.DenseStructuredTensor([2], {"title": ["Snickerdoodles", "Flapjacks"]})
    <StructuredTensor shape=(2,) {title: string}
     [{title: b'Snickerdoodles'},
      {title: b'Flapjacks'}]>
    """

    __slots__ = ("_columns", "_hint", "_known_specs", "_metadata", "_rank", "_rows")

    _columns: dict[str, Any]
    _hint: StructuredTensorSpec | None
    _known_specs: _KnownSpecs
    _metadata: Metadata
    _rank: int
    _rows: Any

    def __init__(
        self,
        shape: ShapeLike,
        fields: Mapping[str, Any],
        dims: str | Sequence[str | None] | None = None,
        validate: bool = True,
    ) -> None:
        static = shape_of_known_rank(shape, type(self).__name__)
        expect_fields(fields, f"{type(self).__name__}.fields", "values", "titles")
        kept = {
            name: value if isinstance(value, tf.Tensor) else as_field(value, Path(name))
            for name, value in fields.items()
        }
        kept, static = _of_one_shape(static, kept, SizeComparison.in_graph(validate))
        rank = static.rank
        counter = None
        if not kept:
            if not static.is_fully_defined():
                expected = "at least one field, or a shape without unknown sizes"
                received, fix = f"0 fields and shape {static}", "Give the number of records."
                raise StructureError(type(self).__name__, expected, received, fix)
            counter = tf.zeros(static, tf.bool)
        extra = NONE
        if dims is not None:
            extra = Metadata(dims=checked_dims(dims, rank, type(self).__name__))
        self._init(rank, kept, counter, None, static, extra)
        remember(self)

    def _init(
        self,
        rank: int,
        fields: dict[str, Any],
        counter: tf.Tensor | None,
        hint: StructuredTensorSpec | None,
        shape: tf.TensorShape | None,
        extra: Metadata,
    ) -> None:
        _set(self, "_rank", rank)
        _set(self, "_columns", fields)
        _set(self, "_rows", counter)
        _set(self, "_hint", hint)
        _set(self, "_shape", shape)
        _set(self, "_spec", None)
        _set(self, "_metadata", extra)
        _set(self, "_known_specs", _UNKNOWN)

    @classmethod
    def _of_parts(
        cls,
        rank: int,
        fields: dict[str, Any],
        counter: tf.Tensor | None = None,
        hint: StructuredTensorSpec | None = None,
        metadata: Metadata = NONE,
        shape: tf.TensorShape | None = None,
    ) -> DenseStructuredTensor:
        """Returns records made of the given parts. Runs no op and validates nothing.

        Args:
            rank: The rank of the collection.
            fields: The fields' values. The dict is kept, not copied.
            counter: If there are no fields, a boolean tensor of the collection's shape.
            hint: A spec with information about the fields that their values do not have.
            metadata: The Arrow types of the fields, and the names of the dimensions.
            shape: The shape of the collection; None finds it from the parts when it is needed.
        """
        self = object.__new__(cls)
        self._init(rank, fields, counter, hint, shape, metadata)
        return self

    def _map_parts(
        self, function: Callable[[Any, str], Any], axes: Axes | None = None
    ) -> DenseStructuredTensor:
        """Returns records with a function applied to each field. Validates nothing.

        Args:
            function: Takes a field's value and its name. If there are no fields, it takes the
                tensor that counts the records, and an empty name.
            axes: For each dimension of the result, the dimension of these records that it is;
                None for a new one. Default: the same dimensions.
        """
        fields = {name: function(value, name) for name, value in self._columns.items()}
        counter = None if self._rows is None else function(self._rows, "")
        if axes is None:
            return DenseStructuredTensor._of_parts(
                self._rank, fields, counter, None, self._metadata
            )
        extra = self._metadata.with_axes(axes)
        return DenseStructuredTensor._of_parts(len(axes), fields, counter, None, extra)

    def _meanings(self) -> dict[str, Any]:
        """Returns the meaning of the numbers of each field that has one, sorted by name."""
        types = self._metadata.types
        return arrow_types.meanings_of_fields(types, self._columns, self._rank) if types else {}

    def _with_hint(self, hint: StructuredTensorSpec) -> DenseStructuredTensor:
        extra = hint._record._metadata.merge(self._metadata)
        return DenseStructuredTensor._of_parts(self._rank, self._columns, self._rows, hint, extra)

    def _with_metadata(self, extra: Metadata) -> DenseStructuredTensor:
        same = DenseStructuredTensor._of_parts(
            self._rank, self._columns, self._rows, self._hint, extra
        )
        _set(same, "_shape", self._shape)
        return same

    @property
    def _dims(self) -> Dims:
        return self._metadata.dims

    def _with_dims(self, dims: Dims) -> DenseStructuredTensor:
        if dims == self._metadata.dims:
            return self
        return self._with_metadata(self._metadata._replace(dims=to_dims(dims)))

    def _as_dense(self, shape: tf.TensorShape) -> DenseStructuredTensor:
        return self

    def _as_ragged(self, row_splits_dtype: tf.DType) -> RaggedStructuredTensor:
        sizes = first_sizes(self, 2)
        splits = reshape.uniform_row_splits(sizes, row_splits_dtype)
        ragged = RaggedStructuredTensor._of_parts(self._merge_outer(sizes), splits)
        return ragged._with_dims(self._dims)

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the collection of records; its rank is always known."""
        if self._shape is None:
            _set(self, "_shape", self._shape_of_parts())
        assert self._shape is not None
        return self._shape

    def _shape_of_parts(self) -> tf.TensorShape:
        shape = tf.TensorShape([None] * self._rank)
        for part in self._columns.values() if self._rows is None else [self._rows]:
            if shape.is_fully_defined():
                return shape
            part_shape = shape_of(part)
            if part_shape.rank is not None:
                shape = shape.merge_with(part_shape[: self._rank])
        if self._hint is None:
            return shape
        # The sizes of the parts take precedence: the parts may be newer than the hint.
        sizes = zip(shape, self._hint.shape, strict=True)
        return tf.TensorShape([hinted if size is None else size for size, hinted in sizes])

    @property
    def rank(self) -> int:
        """How many dimensions the collection has; never None."""
        return self._rank

    @property
    def arrow_types(self) -> Mapping[str, Any]:
        """The Arrow type of each field that came from Arrow; `to_arrow` writes these types.

        Structs in these types are empty: the records inside have their own `arrow_types`.

        >>> import pyarrow as pa
        >>> import extensor as xt
        >>> when = pa.array([0, 86_400], pa.timestamp("s", "UTC"))
        >>> xt.from_arrow(pa.table({"when": when})).arrow_types["when"]
        TimestampType(timestamp[s, tz=UTC])
        """
        return {name: kept.field.type for name, kept in self._metadata.types.items()}

    def field_names(self) -> tuple[str, ...]:
        """Returns the names of the fields, in their order."""
        return tuple(self._columns)

    def _describe(self) -> StructuredTensorSpec:
        if self._hint is not None:
            return self._hint._with_shapes_of(self)
        known, changed = self._known_specs
        specs = {
            name: known[name] if name in known and name not in changed else spec_of_field(value)
            for name, value in self._columns.items()
        }
        return self._spec_type(self.shape, specs, *self._metadata)

    def _describe_any_count(self) -> StructuredTensorSpec:
        if self._hint is not None or self._spec is not None or not self._columns:
            return with_any_count(self.__tf_type_spec__())
        # As above, without the spec that has the number.
        known, changed = self._known_specs
        try:
            specs = {
                name: any_length(known[name])
                if name in known and name not in changed
                else spec_of_items(value, name)
                for name, value in self._columns.items()
            }
        except ProtocolError:
            return with_any_count(self.__tf_type_spec__())
        return self._spec_type(any_length_shape(self.shape), specs, *self._metadata)

    def _specs_without(self, changed: Iterable[str]) -> _KnownSpecs:
        """Returns the specs of fields that are known, for records in which some are changed."""
        if self._spec is not None:
            return self._spec._record._field_specs, frozenset(changed)
        known, before = self._known_specs
        return (known, before.union(changed)) if known else _UNKNOWN

    @property
    def _record(self) -> DenseStructuredTensor:
        return self

    def _names(self) -> KeysView[str]:
        return self._columns.keys()

    def _field(self, name: str, at: Path) -> FieldValue:
        try:
            value = self._columns[name]
        except KeyError:
            raise no_such_field(at, self.field_names()) from None
        if not self._metadata.dims or not isinstance(value, StructuredTensor):
            return value
        return value._with_dims(dims_of_field(self._dims, value._dims, value.rank))

    def _at(self, name: str) -> FieldValue:
        return self._field(name, Path(name))

    def _field_at(self, names: tuple[str, ...], at: Path) -> FieldValue:
        name, inner = names[0], names[1:]
        if not inner or name not in self._columns:
            return self._field(name, Path(*at.names[: len(at.names) - len(inner)]) if inner else at)
        return masked.field_at(self._field(name, at), inner, at)

    def _uncut_field(self, name: str, at: Path) -> FieldValue:
        try:
            return self._columns[name]
        except KeyError:
            raise no_such_field(at, self.field_names()) from None

    def _with_updates(
        self, updates: Mapping[Any, Any], at: Path, comparison: SizeComparison | None
    ) -> DenseStructuredTensor:
        by_name: dict[str, Any] = {}
        nested: dict[str, dict[tuple[str, ...], Any]] = {}
        for path, value in updates.items():
            names = resolve(path, self._names())
            if not names:
                raise root_is_no_field("with_updates")
            if len(names) == 1:
                by_name[names[0]] = value
            else:
                nested.setdefault(names[0], {})[names[1:]] = value
        below = comparison and comparison.for_fields(None)
        if comparison is not None:  # what is inside of a field is compared there
            comparison = comparison.for_fields(tuple(by_name))
        for name, inner in nested.items():
            parent = by_name[name] if name in by_name else self._field(name, at / name)
            if masked.records_in(parent) is None:
                raise no_such_field(Path(*at, name, *next(iter(inner))), ())
            by_name[name] = masked.map_records(
                parent, lambda old, new=inner, at=at / name: old._with_updates(new, at, below)
            )
        return self._update(by_name, at, comparison)

    def _without(self, paths: list[tuple[str, ...]]) -> DenseStructuredTensor:
        tree = _tree(paths)
        kept = [n for n in self.field_names() if n not in tree or tree[n]]
        nested = {
            n: masked.map_records(
                self._field(n, Path(n)), operator.methodcaller("_without", tree[n])
            )
            for n in kept
            if n in tree
        }
        return self._select(kept)._update(nested, Path())

    def _with_only(self, paths: list[tuple[str, ...]]) -> DenseStructuredTensor:
        tree = _tree(paths)
        nested = {
            n: masked.map_records(
                self._field(n, Path(n)), operator.methodcaller("_with_only", below)
            )
            for n, below in tree.items()
            if below
        }
        return self._select(tree)._update(nested, Path())

    def _update(
        self, updates: Mapping[str, Any], at: Path, comparison: SizeComparison | None = None
    ) -> DenseStructuredTensor:
        """Returns a copy with fields replaced or added; `at` is the path of the records."""
        if not updates:
            return self
        added = {name: as_field(value, at / name) for name, value in updates.items()}
        kept = {name: value for name, value in self._columns.items() if name not in added}
        shape = merge_shape(self.shape, kept, added, at)
        if comparison is not None:
            old = self._columns or {"": self._rows}
            added = with_size_checks(self.shape, old, added, at, comparison)
        fields = {**self._columns, **added}
        extra = self._metadata.after_updates(self._columns, fields, updates)
        hint = self._hint_for(fields)
        result = DenseStructuredTensor._of_parts(self._rank, fields, None, hint, extra)
        _set(result, "_shape", shape)
        _set(result, "_known_specs", self._specs_without(updates))
        if comparison is not None:
            remember(result)
        return result

    def _select(self, names: Iterable[str]) -> DenseStructuredTensor:
        fields = {name: self._columns[name] for name in names}
        counter = self._rows
        if not fields and self._columns:
            counter = self._count_rows()
        extra = self._metadata.with_fields(fields)
        hint = self._hint_for(fields)
        result = DenseStructuredTensor._of_parts(self._rank, fields, counter, hint, extra)
        _set(result, "_shape", self._shape)
        _set(result, "_known_specs", self._specs_without(()))
        return result

    def _hint_for(self, fields: dict[str, Any]) -> StructuredTensorSpec | None:
        """Returns the old hint for unchanged fields, with new specs for the other fields.

        Returns None if there is no old hint. A hint is needed only to mark a plain tensor as one
        row of a ragged tensor.
        """
        if self._hint is None:
            return None
        old = self._hint._record.field_specs
        specs = {
            name: old[name]
            if name in old and self._columns.get(name) is value
            else spec_of_field(value)
            for name, value in fields.items()
        }
        return self._hint._with_record(self._spec_type(self._hint.shape, specs))

    def _count_rows(self) -> tf.Tensor:
        """Returns a boolean tensor of the records' shape, to store their number."""
        if self.shape.is_fully_defined():
            return tf.zeros(self.shape, tf.bool)
        return tf.zeros(outer_sizes(self, self._rank), tf.bool)

    def _row_parts(self) -> list[Any]:
        """Returns the values that have a row for each record."""
        return [*self._columns.values()] if self._rows is None else [self._rows]

    def _row_splits_dtypes(self) -> set[tf.DType]:
        found: set[tf.DType] = set()
        for value in self._columns.values():
            found |= row_splits_dtypes(value)
        return found

    def _outer_sizes(self, rank: int) -> tf.Tensor:
        parts = self.__tf_type_spec__().to_components(self)
        return outer_sizes(next((p for p in parts if isinstance(p, tf.Tensor)), parts[0]), rank)

    def _take(self, positions: tuple[Any, ...], at: Path) -> DenseStructuredTensor:
        axes = [i for i, part in enumerate(positions) if isinstance(part, slice)]
        axes += range(len(positions), self._rank)
        cut = index.slice_op(positions, self.shape)
        if cut is None or self._rows is not None:
            return self._map_parts(lambda part, name: index.take(part, positions, at / name), axes)
        fields = {
            name: cut(input=part)
            if isinstance(part, tf.Tensor)
            else index.take(part, positions, at / name)
            for name, part in self._columns.items()
        }
        extra = self._metadata.with_axes(axes)
        return DenseStructuredTensor._of_parts(len(axes), fields, None, None, extra)

    def _unstack(self, count: int) -> list[Any]:
        rank, extra = self._rank - 1, self._metadata.with_axes(range(1, self._rank))
        make = DenseStructuredTensor._of_parts
        if self._rows is not None:
            counters = index.unstack(self._rows, count, Path())
            return [make(rank, {}, counter, None, extra) for counter in counters]
        names = list(self._columns)
        columns = [index.unstack(v, count, Path(name)) for name, v in self._columns.items()]
        return [
            make(rank, dict(zip(names, row, strict=True)), None, None, extra)
            for row in zip(*columns, strict=True)
        ]

    def _gather(self, numbers: tf.Tensor) -> StructuredTensor:
        if isinstance(numbers, tf.RaggedTensor):
            values = self._without_name()._gather(numbers.values)
            return RaggedStructuredTensor._of_parts(values, numbers.row_splits)
        axes = axes_after_gather(numbers.shape.rank, self._rank)
        return self._map_parts(lambda part, _: index.gather(part, numbers), axes)

    def __tf_cut_rows__(self, row_splits: tf.Tensor) -> RaggedStructuredTensor:
        """Returns the records cut into rows; see `xt.authoring.cut_rows`. Validates nothing."""
        return RaggedStructuredTensor._of_parts(self, row_splits)

    def _merge_outer(self, sizes: reshape.Sizes) -> DenseStructuredTensor:
        axes = (None, *range(2, self._rank))
        return self._map_parts(lambda part, _: reshape.merge_outer(part, sizes), axes)

    def _split_outer(self, sizes: reshape.Sizes) -> DenseStructuredTensor:
        axes = (None, None, *range(1, self._rank))
        return self._map_parts(lambda part, _: reshape.split_outer(part, sizes), axes)

    def _merge_dims(self, outer: int, inner: int) -> DenseStructuredTensor:
        axes = (*range(outer), None, *range(inner + 1, self._rank))
        return self._map_parts(lambda part, _: reshape.merge_dims(part, outer, inner), axes)

    def _expand_dims(self, axis: int) -> DenseStructuredTensor:
        axes = (*range(axis), None, *range(axis, self._rank))
        return self._map_parts(lambda part, _: reshape.expand_dims(part, axis), axes)


def dense_of_fields(
    fields: dict[str, Any], rank: int, comparison: SizeComparison | None
) -> DenseStructuredTensor:
    """Returns records of the given rank with the given values as their fields."""
    fields, shape = _of_one_shape(tf.TensorShape([None] * rank), fields, comparison)
    return DenseStructuredTensor._of_parts(rank, fields, shape=shape)


def _of_one_shape(
    shape: tf.TensorShape, fields: dict[str, Any], comparison: SizeComparison | None
) -> tuple[dict[str, Any], tf.TensorShape]:
    """Returns fields whose outer dimensions are one shape, and this shape.

    Raises:
        StructureError: If the dimensions differ (also a ValueError).
    """
    found = common_shape(shape, fields)
    if comparison is not None and found.rank:
        fields = with_size_checks(shape, {}, fields, Path(), comparison)
    return fields, found


def _tree(paths: list[tuple[str, ...]]) -> dict[str, list[tuple[str, ...]]]:
    """Returns the rest of each path by its first name; an empty list means the whole field."""
    tree: dict[str, list[tuple[str, ...]]] = {}
    for names in paths:
        tree.setdefault(names[0], []).append(names[1:])
    return {name: [] if () in below else below for name, below in tree.items()}
