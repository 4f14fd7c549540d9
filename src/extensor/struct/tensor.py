"""StructuredTensor: collections of records, each field one tensor for all of them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from extensor.errors import DTypeError, ExtensorError, StructureError
from extensor.path import Path, PathLike
from extensor.struct import index, leaf, partition, rows, show
from extensor.struct.ragged_spec import RaggedStructuredTensorSpec
from extensor.struct.spec import (
    DenseStructuredTensorSpec,
    StructuredTensorSpec,
    known_rank,
    no_such_field,
    resolve,
)

_set = object.__setattr__

_arrow_exports: dict[str, Callable[[Any, Any], Any]] = {}


def register_arrow_exports(
    array: Callable[[Any, Any], Any], stream: Callable[[Any, Any], Any]
) -> None:
    """Gives StructuredTensors the Arrow PyCapsule interface.

    Args:
        array: Takes records and the requested schema, and returns what `__arrow_c_array__` does.
        stream: The same for `__arrow_c_stream__`.
    """
    _arrow_exports.update(array=array, stream=stream)


class StructuredTensor(abc.ABC):
    """A collection of records with one schema, each field of all records in one tensor.

    This is the base of the two encodings, `DenseStructuredTensor` and `RaggedStructuredTensor`.
    Values are immutable. A field is a Tensor, RaggedTensor, Variable, StructuredTensor or any
    other extension value, whose outer dimensions are those of the collection.

    >>> recipes = xt.DenseStructuredTensor([2], {"title": ["Snickerdoodles", "Flapjacks"],
    ...                                          "est_time": [55.0, 30.0]})
    >>> recipes
    <StructuredTensor shape=(2,) {title: string, est_time: float32}>
    >>> recipes["est_time"]
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([55., 30.], dtype=float32)>
    >>> recipes[0].to_py()
    {'title': b'Snickerdoodles', 'est_time': 55.0}
    """

    __slots__ = ("__weakref__", "_hint", "_shape", "_spec")

    _hint: StructuredTensorSpec | None
    _shape: tf.TensorShape | None
    _spec: StructuredTensorSpec | None

    @property
    @abc.abstractmethod
    def shape(self) -> tf.TensorShape:
        """The static shape of the collection of records; its rank is always known.

        A single record has shape `()`. The shapes of the fields begin with this shape.
        """

    @property
    @abc.abstractmethod
    def rank(self) -> int:
        """How many dimensions the collection has; never None."""

    @abc.abstractmethod
    def field_names(self) -> tuple[str, ...]:
        """Returns the names of the fields, in their order."""

    @abc.abstractmethod
    def _field(self, name: str, at: Path) -> Any:
        """Returns a field's value; `at` is the path from the root to the field, for errors."""

    @abc.abstractmethod
    def _updated(self, updates: Mapping[str, Any], at: Path) -> StructuredTensor:
        """Returns a copy with fields replaced or added; the records stand at the path `at`."""

    @abc.abstractmethod
    def _selected(self, names: Any) -> StructuredTensor:
        """Returns a copy with these fields only, in this order; all of them exist."""

    @abc.abstractmethod
    def _row_splits_dtypes(self) -> set[tf.DType]:
        """Returns the dtypes of the row splits within."""

    def __tf_type_spec__(self) -> StructuredTensorSpec:
        """Returns the spec of this value."""
        if self._spec is None:
            _set(self, "_spec", self._describe())
        assert self._spec is not None
        return self._spec

    @abc.abstractmethod
    def _describe(self) -> StructuredTensorSpec: ...

    def field_value(self, path: PathLike) -> Any:
        """Returns the value of a field, for all records.

        Args:
            path: The field's name, or a path through nested records: `"recipe.title"` or
                `("recipe", "title")`. A text that is the name of a field is that field, even if
                it holds a dot.

        Returns:
            A value whose shape begins with the shape of the collection, and of each list of
            records on the way. No op is run and nothing is copied.

        Raises:
            FieldError: If there is no such field (also a KeyError).

        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> recipes = xt.DenseStructuredTensor(
        ...     [2], {"steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])})
        >>> recipes.field_value("steps.minutes")
        <tf.RaggedTensor [[5, 20], [8]]>
        """
        value: Any = self
        at = Path()
        for name in resolve(path, self.field_names()):
            if not isinstance(value, StructuredTensor):
                raise no_such_field(at / name, ())
            at = at / name
            value = value._field(name, at)
        return value

    def with_updates(
        self, updates: Mapping[Any, Any] | None = None, /, **fields: Any
    ) -> StructuredTensor:
        """Returns a copy with fields modified or added; all others are shared.

        Args:
            updates: New values by name or path (`{"recipe.title": titles}`); the records on the
                way must exist. A value's shape begins with the shape of the collection that
                gets it.
            **fields: New values by name.

        Raises:
            FieldError: If records on the way do not exist (also a KeyError).
            StructureError: If a value does not fit the collection (also a ValueError).

        >>> recipes = xt.DenseStructuredTensor([2], {"est_time": [55.0, 30.0]})
        >>> recipes.with_updates(hours=recipes["est_time"] / 60).field_names()
        ('est_time', 'hours')
        """
        return self._with_updates({**(updates or {}), **fields}, Path())

    def _with_updates(self, updates: Mapping[Any, Any], at: Path) -> StructuredTensor:
        """`with_updates` for records that stand at the path `at` of the caller's."""
        by_name: dict[str, Any] = {}
        nested: dict[str, dict[tuple[str, ...], Any]] = {}
        for path, value in updates.items():
            names = resolve(path, self.field_names())
            if not names:
                raise no_such_field(at / "", self.field_names())
            if len(names) == 1:
                by_name[names[0]] = value
            else:
                nested.setdefault(names[0], {})[names[1:]] = value
        for name, inner in nested.items():
            parent = by_name[name] if name in by_name else self._field(name, at / name)
            if not isinstance(parent, StructuredTensor):
                raise no_such_field(Path(*at, name, *next(iter(inner))), ())
            by_name[name] = parent._with_updates(inner, at / name)
        return self._updated(by_name, at)

    def without(self, *field_names: PathLike) -> StructuredTensor:
        """Returns a copy without the given fields; all others are shared.

        Args:
            *field_names: Names or paths of fields.

        Raises:
            FieldError: If a field is missing (also a KeyError).

        >>> recipes = xt.DenseStructuredTensor([2], {"title": ["a", "b"], "est_time": [55., 30.]})
        >>> recipes.without("est_time").field_names()
        ('title',)
        """
        tree = self._tree(field_names)
        kept = [n for n in self.field_names() if n not in tree or tree[n]]
        nested = {n: self._records_at(n).without(*tree[n]) for n in kept if n in tree}
        return self._selected(kept)._updated(nested, Path())

    def with_only(self, *field_names: PathLike) -> StructuredTensor:
        """Returns a copy with the given fields only, in the order given; they are shared.

        Args:
            *field_names: Names or paths of fields.

        Raises:
            FieldError: If a field is missing (also a KeyError).

        >>> recipes = xt.DenseStructuredTensor([2], {"title": ["a", "b"], "est_time": [55., 30.]})
        >>> recipes.with_only("est_time").field_names()
        ('est_time',)
        """
        tree = self._tree(field_names)
        nested = {n: self._records_at(n).with_only(*inner) for n, inner in tree.items() if inner}
        return self._selected(tree)._updated(nested, Path())

    def _tree(self, paths: tuple[PathLike, ...]) -> dict[str, list[tuple[str, ...]]]:
        """Groups paths by their first name; a field named whole has no paths below it."""
        tree: dict[str, list[tuple[str, ...]]] = {}
        for path in paths:
            names = resolve(path, self.field_names())
            if not names:
                raise no_such_field(Path(""), self.field_names())
            self._require(names)
            below = tree.setdefault(names[0], [])
            if len(names) > 1:
                below.append(names[1:])
            else:
                below.insert(0, ())
        return {name: [] if () in below else below for name, below in tree.items()}

    def _require(self, names: tuple[str, ...]) -> None:
        """Raises unless there is a field at a path. Cuts nothing, so any field will do."""
        value: Any = self
        at = Path()
        for name in names:
            while isinstance(value, RaggedStructuredTensor):
                value = value.values
            if not isinstance(value, StructuredTensor):
                raise no_such_field(at / name, ())
            at = at / name
            value = value._field(name, at)

    def _records_at(self, name: str) -> StructuredTensor:
        return self._field(name, Path(name))

    def to_py(self) -> Any:
        """Returns the records as plain Python: dicts for records, lists for dimensions.

        Strings are bytes, as in every TensorFlow value that is turned into Python. Needs eager
        execution.

        >>> xt.DenseStructuredTensor([2], {"x": [1, 2]}).to_py()
        [{'x': 1}, {'x': 2}]
        """
        return rows.to_py(self)

    def __getitem__(self, key: Any) -> Any:
        """Returns a field, a record, a range of records, or a part of these.

        Args:
            key: A field's name or path, an int, a slice, `...`, or a tuple of these. Names select
                a field of all records; the other keys select along the dimensions, in their
                order: `recipes["ingredients", 0, :, "name"]`.

        Raises:
            FieldError: If a field is missing (also a KeyError).
            RowError: If an int is out of range (also an IndexError).
        """
        return index.select(self, key)

    def __contains__(self, path: object) -> bool:
        """Returns whether there is a field of this name or path."""
        if not isinstance(path, (str, tuple, Path)):
            return False
        try:
            names = resolve(path, self.field_names())
            self._require(names)
        except ExtensorError:
            return False
        return len(names) > 0  # the empty path is the records themselves

    def __len__(self) -> int:
        if self.rank == 0:
            raise DTypeError("a single record has no len(): its shape is ()")
        size = self.shape[0]
        if size is None:
            raise DTypeError(
                path=type(self).__name__,
                expected="a number of records known when the graph is built",
                received=f"shape {self.shape}",
                mend="Use tf.shape of one of the fields inside a tf.function.",
            )
        return size

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            yield self[i]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"StructuredTensor is immutable: cannot set {name!r}. "
            "Use with_updates, without or with_only to get a changed copy."
        )

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __reduce__(self) -> Any:
        spec = self.__tf_type_spec__()
        return _rebuilt, (spec, spec.to_components(self))

    def __copy__(self) -> StructuredTensor:
        return self

    def __repr__(self) -> str:
        return show.line(self)

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """Exports the records by the Arrow PyCapsule interface."""
        return _arrow_exports["array"](self, requested_schema)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Exports the records by the Arrow PyCapsule interface, as a stream of one batch."""
        return _arrow_exports["stream"](self, requested_schema)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.field_names())


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


class RaggedStructuredTensor(StructuredTensor):
    """A collection of records cut into rows of differing lengths.

    Made by `from_row_splits`. It holds the records of all rows, one after another, in `values`,
    and where each row begins and ends in `row_splits`.
    """

    __slots__ = ("_row_splits", "_values")

    _values: StructuredTensor
    _row_splits: Any

    def __init__(self) -> None:
        raise DTypeError(
            "RaggedStructuredTensor is made by its factories: use "
            "RaggedStructuredTensor.from_row_splits(values, row_splits)."
        )

    @classmethod
    def from_row_splits(
        cls, values: StructuredTensor, row_splits: Any, validate: bool = False
    ) -> RaggedStructuredTensor:
        """Returns the records of `values` cut into rows.

        Args:
            values: A StructuredTensor of shape `[nvals, ...]`.
            row_splits: An int64 or int32 vector of shape `[nrows + 1]`: row `i` is
                `values[row_splits[i]:row_splits[i + 1]]`. It begins with 0, never decreases and
                ends with `nvals`. A list becomes an int64 tensor.
            validate: Whether assertions that the splits cut the values are added to a graph.
                Outside a graph that is always checked, in NumPy.

        Returns:
            A RaggedStructuredTensor of shape `[nrows, None, ...]`.

        Raises:
            StructureError: If the splits do not cut the values (also a ValueError).
            DTypeError: If the splits are no integers, or of another dtype than row splits inside
                the values (also a TypeError).

        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])
        <StructuredTensor shape=(2, None) {minutes: int32}>
        """
        if not isinstance(values, StructuredTensor) or values.rank == 0:
            raise DTypeError(
                path="from_row_splits: values",
                expected="a StructuredTensor of rank 1 or more",
                received=repr(values) if isinstance(values, StructuredTensor)
                else type(values).__name__,
                mend="Cut bare tensors with tf.RaggedTensor.from_row_splits.",
            )  # fmt: skip
        splits = partition.checked_row_splits(row_splits, values, validate)
        return cls.of_parts(values, splits)

    @classmethod
    def of_parts(cls, values: Any, row_splits: Any, hint: Any = None) -> RaggedStructuredTensor:
        """Returns records of parts that are known to fit. Runs no op and checks nothing."""
        self = cls.__new__(cls)
        _set(self, "_values", values)
        _set(self, "_row_splits", row_splits)
        _set(self, "_hint", None)
        _set(self, "_shape", None)
        _set(self, "_spec", None)
        return self

    def _with_hint(self, hint: StructuredTensorSpec) -> RaggedStructuredTensor:
        return self  # its own spec says that its rows are ragged

    @property
    def values(self) -> Any:
        """The records of all rows, one after another: a StructuredTensor of one rank less."""
        return self._values

    @property
    def row_splits(self) -> Any:
        """Where rows begin and end in `values`: an integer vector of shape `[nrows + 1]`."""
        return self._row_splits

    def row_lengths(self) -> tf.Tensor:
        """Returns the number of records in each row.

        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3]).row_lengths().numpy()
        array([2, 1])
        """
        return self._row_splits[1:] - self._row_splits[:-1]

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the collection of records; its rank is always known."""
        if self._shape is None:
            nsplits = self._row_splits.shape[0]
            outer = [None if nsplits is None else nsplits - 1, None]
            _set(self, "_shape", tf.TensorShape(outer).concatenate(self._values.shape[1:]))
        assert self._shape is not None
        return self._shape

    @property
    def rank(self) -> int:
        """How many dimensions the collection has; never None."""
        return self._values.rank + 1

    def field_names(self) -> tuple[str, ...]:
        """Returns the names of the fields, in their order."""
        return self._values.field_names()

    def _describe(self) -> StructuredTensorSpec:
        return RaggedStructuredTensorSpec(
            self.shape, self._values.__tf_type_spec__(), self._row_splits.dtype
        )

    def _field(self, name: str, at: Path) -> Any:
        value = self._values._field(name, at)
        if isinstance(value, StructuredTensor):
            return RaggedStructuredTensor.of_parts(value, self._row_splits)
        return partition.cut(value, self._row_splits, at)

    def _updated(self, updates: Mapping[str, Any], at: Path) -> RaggedStructuredTensor:
        if not updates:
            return self
        inner = {
            name: partition.uncut(value, self._row_splits, at / name)
            for name, value in updates.items()
        }
        return RaggedStructuredTensor.of_parts(self._values._updated(inner, at), self._row_splits)

    def _selected(self, names: Any) -> RaggedStructuredTensor:
        return RaggedStructuredTensor.of_parts(self._values._selected(names), self._row_splits)

    def _row_splits_dtypes(self) -> set[tf.DType]:
        return {self._row_splits.dtype}


DenseStructuredTensorSpec.dense_type = DenseStructuredTensor
RaggedStructuredTensorSpec.ragged_type = RaggedStructuredTensor


def _rebuilt(spec: StructuredTensorSpec, components: Any) -> Any:
    return spec.from_components(components)


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
