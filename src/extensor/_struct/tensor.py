"""StructuredTensor, the base of both encodings: records with one tensor for each field."""

from __future__ import annotations

import abc
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import tensorflow as tf

from extensor._authoring.comparison import SizeComparison
from extensor._converter import converter
from extensor._path import Path, PathLike
from extensor._struct import dense_rows, index, masked
from extensor._struct.common_shape import checked_splits_dtype
from extensor._struct.conversion import Conversions
from extensor._struct.dims import Dims, checked_dims
from extensor._struct.display import html, text
from extensor._struct.other_names import OtherNames
from extensor._struct.refusal import RefusesMath
from extensor._struct.spec import StructuredTensorSpec, no_such_field, resolve, root_is_no_field
from extensor._tf import equip
from extensor._typing import FieldValue, TensorLike
from extensor.errors import DTypeError, ExtensorError, ImmutableError, StructureError

if TYPE_CHECKING:
    from extensor._struct.ragged import RaggedStructuredTensor
    from extensor._struct.value import StructuredTensorValue

_set = object.__setattr__

_BLOCK = 256
"""How many records are unstacked at once by iteration."""


class StructuredTensor(RefusesMath, Conversions, OtherNames):
    """A collection of records with one schema; one tensor holds a field of all records.

    This is the base of the two encodings, `DenseStructuredTensor` and `RaggedStructuredTensor`.
    Values are immutable. A field is a Tensor, RaggedTensor, Variable, StructuredTensor or any
    other extension value. Its outer dimensions are those of the collection.

    >>> import extensor as xt
    >>> recipes = xt.DenseStructuredTensor([2], {"title": ["Snickerdoodles", "Flapjacks"],
    ...                                          "est_time": [55.0, 30.0]})
    >>> recipes
    <StructuredTensor shape=(2,) {title: string, est_time: float32}
     [{title: b'Snickerdoodles', est_time: 55.0},
      {title: b'Flapjacks', est_time: 30.0}]>
    >>> recipes["est_time"]
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([55., 30.], dtype=float32)>
    >>> recipes[0].to_py()
    {'title': b'Snickerdoodles', 'est_time': 55.0}
    """

    # tf_keras sets `_keras_mask` on the inputs of a model; the mask is not part of the value.
    __slots__ = ("__weakref__", "_keras_mask", "_shape", "_spec")

    _shape: tf.TensorShape | None
    _spec: StructuredTensorSpec | None

    _spec_type: ClassVar[Any]
    """The class of the spec, set by its file, which imports the file of the value."""

    _value_type: ClassVar[Any]
    """The class of concrete values, set by its file."""

    _ragged_type: ClassVar[type[RaggedStructuredTensor]]
    """RaggedStructuredTensor, set by its file."""

    def __tf_concrete__(self) -> StructuredTensorValue:
        """Returns what `tf.compat.v1.Session.run` returns: a StructuredTensorValue."""
        return self._value_type.from_tensor(self)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is StructuredTensor:
            expected = "a call of one of its two encodings"
            received = "a call of the abstract class"
            fix = (
                'Write xt.struct.constant([{"title": "Tea"}]), '
                'xt.DenseStructuredTensor([1], {"title": ["Tea"]}) or '
                "xt.RaggedStructuredTensor.from_row_splits(records, splits)."
            )
            raise DTypeError("StructuredTensor()", expected, received, fix)
        return object.__new__(cls)

    @property
    @abc.abstractmethod
    def shape(self) -> tf.TensorShape:
        """The static shape of the collection of records; its rank is always known.

        A single record has shape `()`. The shapes of the fields begin with this shape.
        """

    @property
    @abc.abstractmethod
    def rank(self) -> int:
        """The number of dimensions of the collection; never None."""

    @property
    def dims(self) -> Dims:
        """The name of each dimension, or None.

        Names are for people: they are shown, and are not part of the equality of specs. An
        operation keeps the names of the dimensions that it keeps. A dimension that is new, or
        that was made of others, has no name.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> recipes = xt.DenseStructuredTensor([2], {"x": [1, 2]}, dims=("recipe",))
        >>> recipes[:1].dims, tf.stack([recipes, recipes]).dims
        (('recipe',), (None, 'recipe'))
        """
        return self._dims or (None,) * self.rank

    def with_dims(self, dims: str | Sequence[str | None] | None) -> StructuredTensor:
        """Returns the records with names for their dimensions; all tensors are shared.

        Args:
            dims: A string or None for each dimension; for one dimension also a string. None
                removes all names.

        Raises:
            StructureError: If the number of names differs from the rank, or two are equal (also
                a ValueError).
            DTypeError: If a name is not a string (also a TypeError).

        >>> import extensor as xt
        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> rows = xt.RaggedStructuredTensor.from_row_lengths(steps, [2, 1])
        >>> rows.with_dims(("recipe", "step"))
        <StructuredTensor shape=(recipe: 2, step: None) {minutes: int32}
         [[{minutes: 5}, {minutes: 20}],
          [{minutes: 8}]]>
        """
        return self._with_dims(checked_dims(dims, self.rank, f"{type(self).__name__}.with_dims"))

    def _without_name(self) -> StructuredTensor:
        """Returns the records without a name for their first dimension."""
        dims = self._dims
        return self._with_dims((None, *dims[1:])) if dims else self

    @abc.abstractmethod
    def field_names(self) -> tuple[str, ...]:
        """Returns the names of the fields, in their order."""

    @abc.abstractmethod
    def _with_updates(
        self, updates: Mapping[Any, Any], at: Path, comparison: SizeComparison | None
    ) -> StructuredTensor:
        """Returns `with_updates`, for records at the path `at` of the outermost records.

        Without a comparison, the fields are known to have the rows of the records.
        """

    @abc.abstractmethod
    def _without(self, paths: list[tuple[str, ...]]) -> StructuredTensor:
        """Returns `without`, for the names of paths that exist."""

    @abc.abstractmethod
    def _with_only(self, paths: list[tuple[str, ...]]) -> StructuredTensor:
        """Returns `with_only`, for the names of paths that exist."""

    @abc.abstractmethod
    def _select(self, names: Iterable[str]) -> StructuredTensor:
        """Returns a copy with these fields only, in this order. All of them must exist."""

    @abc.abstractmethod
    def _with_hint(self, hint: StructuredTensorSpec) -> StructuredTensor:
        """Returns these records with a spec that has information their tensors do not have."""

    @abc.abstractmethod
    def _as_ragged(self, row_splits_dtype: tf.DType) -> StructuredTensor:
        """Returns the records, of rank 2 or more, in the ragged encoding."""

    @abc.abstractmethod
    def _as_dense(self, shape: tf.TensorShape) -> StructuredTensor:
        """Returns the records in the dense encoding, with this shape.

        Raises:
            StructureError: If the rows have different lengths. In a graph, running it raises an
                InvalidArgumentError instead.
        """

    def __tf_type_spec__(self) -> StructuredTensorSpec:
        """Returns the spec of this value."""
        if (spec := self._spec) is None:
            _set(self, "_spec", spec := self._describe())
        return spec

    @abc.abstractmethod
    def _describe(self) -> StructuredTensorSpec: ...

    def field_value(self, path: PathLike) -> Any:
        """Returns the value of a field, for all records.

        Args:
            path: The field's name, or a path through nested records: `"recipe.title"` or
                `("recipe", "title")`. A string equal to a field's name means that field, even if
                it contains a dot.

        Returns:
            A value whose shape begins with the shape of the collection and of each list of
            records on the path. Runs no op and copies nothing.

        Raises:
            FieldError: If there is no such field (also a KeyError).

        >>> import extensor as xt
        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> recipes = xt.DenseStructuredTensor(
        ...     [2], {"steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])})
        >>> recipes.field_value("steps.minutes")
        <tf.RaggedTensor [[5, 20], [8]]>
        """
        names = resolve(path, self._names())
        return self._field_at(names, Path(*names)) if names else self

    def with_updates(
        self, updates: Mapping[Any, Any] | None = None, /, **fields: Any
    ) -> StructuredTensor:
        """Returns a copy with fields modified or added; all others are shared.

        Args:
            updates: New values by name or path (`{"recipe.title": titles}`). The records on a
                path must exist. The shape of a value begins with the shape of the records that
                get it.
            **fields: New values by name. Beside `updates`, `validate=False` is no field: then a
                graph does not compare the rows of the new values, where they are not known while
                it is traced. It compares those that its ops do not show to be the same.

        Raises:
            FieldError: If records on a path do not exist (also a KeyError).
            StructureError: If a value does not fit the collection (also a ValueError). Running a
                graph raises an InvalidArgumentError instead.
            DTypeError: If `validate` beside `updates` is no bool (also a TypeError).

        >>> import extensor as xt
        >>> recipes = xt.DenseStructuredTensor([2], {"est_time": [55.0, 30.0]})
        >>> recipes.with_updates(hours=recipes["est_time"] / 60).field_names()
        ('est_time', 'hours')
        """
        validate = True
        if updates is not None and "validate" in fields:
            validate = fields.pop("validate")
            if not isinstance(validate, bool):
                expected = "True or False, beside a mapping"
                fix = 'Put a field of this name into the mapping: {"validate": values}.'
                raise DTypeError("with_updates: validate", expected, type(validate).__name__, fix)
        return self._with_updates(
            {**(updates or {}), **fields}, Path(), SizeComparison.in_graph(validate)
        )

    def _expect_records_around(self, names: tuple[str, ...], at: Path) -> None:
        """Raises FieldError unless a path leads through records to its last name."""
        if masked.records_in(masked.uncut_field(self, names[:-1], at)) is None:
            raise no_such_field(Path(*at, *names), ())

    def without(self, *field_names: PathLike) -> StructuredTensor:
        """Returns a copy without the given fields; all others are shared.

        Args:
            *field_names: Names or paths of fields.

        Raises:
            FieldError: If a field is missing (also a KeyError).

        >>> import extensor as xt
        >>> recipes = xt.DenseStructuredTensor([2], {"title": ["a", "b"], "est_time": [55., 30.]})
        >>> recipes.without("est_time").field_names()
        ('title',)
        """
        return self._without(self._existing(field_names))

    def with_only(self, *field_names: PathLike) -> StructuredTensor:
        """Returns a copy with the given fields only, in the order given; they are shared.

        Args:
            *field_names: Names or paths of fields.

        Raises:
            FieldError: If a field is missing (also a KeyError).

        >>> import extensor as xt
        >>> recipes = xt.DenseStructuredTensor([2], {"title": ["a", "b"], "est_time": [55., 30.]})
        >>> recipes.with_only("est_time").field_names()
        ('est_time',)
        """
        return self._with_only(self._existing(field_names))

    def _existing(self, paths: tuple[PathLike, ...]) -> list[tuple[str, ...]]:
        """Returns the names of each path; raises unless there is a field at each."""
        every: list[tuple[str, ...]] = []
        for path in paths:
            names = resolve(path, self._names())
            if not names:
                raise root_is_no_field("path")
            self._require(names)
            every.append(names)
        return every

    def _require(self, names: tuple[str, ...]) -> None:
        """Raises unless there is a field at a path. Cuts no rows, so any type of field works."""
        masked.uncut_field(self, names, Path())

    def merge_dims(self, outer_axis: int, inner_axis: int) -> StructuredTensor:
        """Returns the records with some of their dimensions merged into one.

        Args:
            outer_axis: The first dimension to merge; may be negative.
            inner_axis: The last dimension to merge; may be negative.

        Raises:
            StructureError: If the axes are not dimensions of the records (also a ValueError).

        >>> import extensor as xt
        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> rows = xt.RaggedStructuredTensor.from_row_lengths(steps, [2, 1])
        >>> rows.merge_dims(0, 1)["minutes"].numpy()
        array([ 5, 20,  8], dtype=int32)
        """
        rank = self.rank
        outer, inner = (a + rank if a < 0 else a for a in (outer_axis, inner_axis))
        if not 0 <= outer <= inner < rank:
            expected = "records of rank 1 or more"
            if rank:
                expected = f"an outer axis up to the inner one, both from {-rank} to {rank - 1}"
            received = f"axes {outer_axis} and {inner_axis}"
            fix = "The dimensions inside a field belong to the field: merge them there."
            raise StructureError(f"{type(self).__name__}.merge_dims", expected, received, fix)
        return self if outer == inner else self._merge_dims(outer, inner)

    def partition_outer_dimension(
        self, row_partition: tf.experimental.RowPartition | TensorLike, validate: bool = True
    ) -> RaggedStructuredTensor:
        """Returns the records with the first dimension cut into rows: one dimension more.

        Args:
            row_partition: A tf.experimental.RowPartition, or row splits.
            validate: As for `RaggedStructuredTensor.from_row_splits`.

        Raises:
            StructureError: If the rows do not fit the records (also a ValueError).

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> rows = tf.experimental.RowPartition.from_row_lengths([2, 1])
        >>> steps.partition_outer_dimension(rows)["minutes"]
        <tf.RaggedTensor [[5, 20], [8]]>
        """
        splits: Any = row_partition
        if isinstance(splits, tf.experimental.RowPartition):
            splits = splits.row_splits()
        return self._ragged_type.from_row_splits(self._without_name(), splits, validate)

    def to_dense(
        self, default_values: Mapping[Any, Any] | None = None, masked: bool = False
    ) -> Any:
        """Returns the records with rows filled up to the longest one.

        Lists inside the records stay ragged; the filled records have empty lists.

        Args:
            default_values: The value of a field in the filled records, by its path. Default: 0,
                False or an empty string.
            masked: Whether to return an `xt.types.MaskedTensor` of records, whose mask is False
                for the filled ones.

        Returns:
            A DenseStructuredTensor of the same rank, or a MaskedTensor of one.

        Raises:
            FieldError: If there is no field at a path (also a KeyError).
            DTypeError: If the field at a path is not of tensors (also a TypeError).

        >>> import extensor as xt
        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> rows = xt.RaggedStructuredTensor.from_row_lengths(steps, [2, 1])
        >>> rows.to_dense({"minutes": -1})["minutes"].numpy()
        array([[ 5, 20],
               [ 8, -1]], dtype=int32)
        """
        return dense_rows.to_dense(self, default_values, masked)

    def to_static(
        self,
        padded: Mapping[Any, int | Sequence[int]] | None = None,
        packed: Mapping[Any, int | Sequence[int]] | None = None,
        overflow: str = "error",
    ) -> Any:
        """Returns the records with static shapes: each list gets a capacity, by its path.

        Its free places are null. XLA, GPUs and other backends of Keras need static shapes.

        Args:
            padded: The size of each list at a path. The field becomes a masked tensor, or masked
                records, of shape `[batch, size, ...]`, whose mask is True for the items.
            packed: The size of all lists of the batch at a path together. The field stays ragged;
                its last list has the free places, which are null.
            overflow: "error" if a list must not have more items, or "cut" to leave out those at its
                end; `xt.struct.num_cut` counts them.

        Lists of lists get a tuple, the size of the outermost lists first. Lists in records in lists
        have a path of their own; each list needs a capacity.

        Returns:
            Records of the same fields. For ragged records, whose path is `()`, a MaskedTensor of
            records. `xt.struct.from_static` returns the lists.

        Raises:
            FieldError: If a path does not exist (also a KeyError).
            StructureError: If a list has no capacity, a capacity is of no list or less than 1, or
                the items do not fit (also a ValueError). Running a graph raises an
                InvalidArgumentError instead if they do not fit.
            UnsupportedTypeError: If a field has no static shapes, such as a union (also a
                TypeError).

        >>> import extensor as xt
        >>> records = xt.struct.constant(
        ...     [{"items": [{"price": 5.0}, {"price": 2.0}]}, {"items": []}])
        >>> static = records.to_static({"items": 3})
        >>> static["items.price"].values.numpy().tolist(), static["items"].mask.numpy().tolist()
        ([[5.0, 2.0, 0.0], [0.0, 0.0, 0.0]], [[True, True, False], [False, False, False]])
        >>> records.to_static(packed={"items": 3})["items.price"].to_py()
        [[5.0, 2.0], [None]]
        """
        return converter("to_static")(self, padded, packed, overflow)

    def with_row_splits_dtype(self, dtype: tf.DType) -> StructuredTensor:
        """Returns the records with one dtype for all row splits, also those of the fields.

        Args:
            dtype: tf.int64 or tf.int32.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> records = xt.DenseStructuredTensor([2], {"x": tf.ragged.constant([[1], []])})
        >>> records.with_row_splits_dtype(tf.int32)["x"].row_splits.dtype
        tf.int32
        """
        dtype = checked_splits_dtype(dtype, f"{type(self).__name__}.with_row_splits_dtype")
        spec: Any = self.__tf_type_spec__()
        return spec._with_row_splits_dtype(dtype).cast(self)

    def __getitem__(self, key: Any) -> Any:
        """Returns a field, a record, a range of records, or a part of these.

        Args:
            key: A field's name or path, an int, a slice, `...`, or a tuple of these. A name
                selects a field of all records; the other keys select along the dimensions, in
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
            names = resolve(path, self._names())
            if names and names[0] not in self._names():
                return False  # the error would look for names like this one
            self._require(names)
        except ExtensorError:
            return False
        return len(names) > 0  # the empty path is the records themselves

    def __len__(self) -> int:
        if self.rank == 0:
            expected, received = "records of rank 1 or more", "a single record, of shape ()"
            fix = (
                "Write len(record.field_names()) for the number of its fields. tf.stack makes "
                "one value of a list of records; no tensor or variable can hold them. For a "
                "DataFrame, write records.to_pandas()."
            )
            raise DTypeError(f"len({type(self).__name__})", expected, received, fix)
        size = self.shape[0]
        if size is None:
            expected = "a statically known number of records"
            fix = "Use tf.shape of one of the fields inside a tf.function."
            raise DTypeError(type(self).__name__, expected, f"shape {self.shape}", fix)
        return size

    def __iter__(self) -> Iterator[Any]:
        count = len(self)
        if not tf.executing_eagerly():
            for i in range(count):
                yield self[i]
            return
        # One op cuts all records of a block, so the first record of many comes soon too.
        for start in range(0, count, _BLOCK):
            stop = min(start + _BLOCK, count)
            yield from self[start:stop]._unstack(stop - start)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "_keras_mask":
            _set(self, name, value)
            return
        raise self._immutable(name, "assignment")

    def __delattr__(self, name: str) -> None:
        if name != "_keras_mask":
            raise self._immutable(name, "deletion")
        object.__delattr__(self, name)

    def _immutable(self, name: str, change: str) -> ImmutableError:
        expected = f"no {change} of attributes, because records are immutable"
        received = f"{change} of {name!r}"
        fix = "Get a changed copy by with_updates, without or with_only."
        return ImmutableError(f"{type(self).__name__}.{name}", expected, received, fix)

    def __reduce__(self) -> tuple[Any, ...]:
        spec = self.__tf_type_spec__()
        return _rebuild, (spec, spec.to_components(self))

    def __copy__(self) -> StructuredTensor:
        return self

    def __repr__(self) -> str:
        return text.short_text(self)

    def _repr_html_(self) -> str:
        return html.records_html(self)

    def _ipython_key_completions_(self) -> list[str]:
        """Returns what may follow `records["` in a notebook: the fields, then the paths inside."""
        names = self.field_names()
        every = self.__tf_type_spec__()._field_paths()
        paths = (str(path) for path in every if len(path.names) > 1)
        # A name that looks like a path selects the field of this name.
        return [*names, *(path for path in paths if path not in names)]


# tf.nest asks for the spec in each call: without the check that it is one.
equip(StructuredTensor, operator.methodcaller("__tf_type_spec__"))


def _rebuild(spec: StructuredTensorSpec, components: tuple[FieldValue, ...]) -> StructuredTensor:
    return spec.from_components(components)
