"""RaggedStructuredTensor, records cut into rows of different lengths."""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._authoring.comparison import SizeComparison
from extensor._authoring.rows import uncut_rows
from extensor._path import Path
from extensor._protocol.casting import required
from extensor._protocol.stackable_spec import any_length_shape
from extensor._struct import index, reshape, row_partition
from extensor._struct.dims import Dims, axes_after_gather, move_axes, to_dims
from extensor._struct.display import text
from extensor._struct.row_splits import (
    checked_row_splits,
    cut,
    first_sizes,
    ragged_sizes,
    row_lengths_or_zero,
    uncut,
)
from extensor._struct.spec import StructuredTensorSpec, resolve
from extensor._struct.tensor import StructuredTensor
from extensor._typing import FieldValue, TensorLike
from extensor.errors import DTypeError, StructureError, UnsupportedTypeError

if TYPE_CHECKING:
    from extensor._struct.dense import DenseStructuredTensor

_set = object.__setattr__


class RaggedStructuredTensor(StructuredTensor):
    """A collection of records cut into rows of different lengths.

    Create it with `from_row_splits`. `values` holds the records of all rows, one after another;
    `row_splits` holds where each row begins and ends.

    >>> import extensor as xt
    >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
    >>> xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3]).to_py()
    [[{'minutes': 5}, {'minutes': 20}], [{'minutes': 8}]]
    """

    # The names of the dimensions are kept one by one: the first here, the others by the values.
    __slots__ = ("_name", "_row_splits", "_values")

    _name: str | None
    _values: StructuredTensor
    _row_splits: Any

    def __init__(self) -> None:
        raise DTypeError(
            "RaggedStructuredTensor has no public constructor: use "
            "RaggedStructuredTensor.from_row_splits(values, row_splits)."
        )

    @classmethod
    def from_row_splits(
        cls, values: StructuredTensor, row_splits: TensorLike, validate: bool = True
    ) -> RaggedStructuredTensor:
        """Returns the records of `values` cut into rows.

        Args:
            values: A StructuredTensor of shape `[nvals, ...]`.
            row_splits: An int64 or int32 vector of shape `[nrows + 1]`: row `i` is
                `values[row_splits[i]:row_splits[i + 1]]`. It begins with 0, never decreases and
                ends with `nvals`. A list becomes an int64 tensor.
            validate: Whether a graph checks that the splits fit the values, unless they are those
                of other records with as many values. In eager mode they are always checked, in
                NumPy.

        Returns:
            A RaggedStructuredTensor of shape `[nrows, None, ...]`.

        Raises:
            StructureError: If the splits do not fit the values (also a ValueError). Running a
                graph raises an InvalidArgumentError instead.
            DTypeError: If the splits are not int64 or int32, or if row splits inside the values
                have another dtype (also a TypeError).

        >>> import extensor as xt
        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])
        <StructuredTensor shape=(2, None) {minutes: int32}
         [[{minutes: 5}, {minutes: 20}],
          [{minutes: 8}]]>
        """
        if not isinstance(values, StructuredTensor) or values.rank == 0:
            expected, received = "a StructuredTensor of rank 1 or more", type(values).__name__
            if isinstance(values, StructuredTensor):
                received = text.kind_text(values)
            fix = "Cut plain tensors with tf.RaggedTensor.from_row_splits."
            raise DTypeError("from_row_splits: values", expected, received, fix)
        return cls._of_parts(values, checked_row_splits(row_splits, values, validate))

    @classmethod
    def from_row_lengths(
        cls, values: StructuredTensor, row_lengths: TensorLike, validate: bool = True
    ) -> RaggedStructuredTensor:
        """Returns the records of `values` cut into rows of the given lengths.

        Args:
            values: A StructuredTensor of shape `[nvals, ...]`.
            row_lengths: An integer vector of shape `[nrows]`; its sum is `nvals`.
            validate: As for `from_row_splits`.

        Raises:
            StructureError: If the lengths do not fit the values (also a ValueError).
            DTypeError: If the lengths are not int64 or int32 (also a TypeError).

        >>> import extensor as xt
        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> xt.RaggedStructuredTensor.from_row_lengths(steps, [2, 0, 1])["minutes"]
        <tf.RaggedTensor [[5, 20], [], [8]]>
        """
        return cls.from_row_splits(values, row_partition.splits_of_lengths(row_lengths), validate)

    @classmethod
    def from_value_rowids(
        cls,
        values: StructuredTensor,
        value_rowids: TensorLike,
        nrows: TensorLike | None = None,
        validate: bool = True,
    ) -> RaggedStructuredTensor:
        """Returns the records of `values` cut into rows, by the number of each record's row.

        Args:
            values: A StructuredTensor of shape `[nvals, ...]`.
            value_rowids: An integer vector of shape `[nvals]`, which does not decrease.
            nrows: The number of rows. Default: the last row number plus 1.
            validate: As for `from_row_splits`.

        Raises:
            StructureError: If the row numbers do not fit the values (also a ValueError).
            DTypeError: If the row numbers are not int64 or int32 (also a TypeError).

        >>> import extensor as xt
        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> xt.RaggedStructuredTensor.from_value_rowids(steps, [0, 0, 2], nrows=4)["minutes"]
        <tf.RaggedTensor [[5, 20], [], [8], []]>
        """
        splits = row_partition.splits_of_rowids(value_rowids, nrows, validate)
        return cls.from_row_splits(values, splits, validate)

    @classmethod
    def from_uniform_row_length(
        cls,
        values: StructuredTensor,
        uniform_row_length: TensorLike,
        nrows: TensorLike | None = None,
        validate: bool = True,
    ) -> RaggedStructuredTensor:
        """Returns the records of `values` cut into rows of one length.

        For dense records of rank 2, use `tf.reshape(values, [-1, length])`.

        Args:
            values: A StructuredTensor of shape `[nvals, ...]`.
            uniform_row_length: The length of each row.
            nrows: The number of rows; needed if the length is 0.
            validate: As for `from_row_splits`.

        Raises:
            StructureError: If the values do not fill the rows (also a ValueError).

        >>> import extensor as xt
        >>> steps = xt.DenseStructuredTensor([4], {"minutes": [5, 20, 8, 1]})
        >>> xt.RaggedStructuredTensor.from_uniform_row_length(steps, 2)["minutes"]
        <tf.RaggedTensor [[5, 20], [8, 1]]>
        """
        is_valid = isinstance(values, StructuredTensor) and values.rank > 0  # else an error below
        nvals = first_sizes(values, 1)[0] if is_valid else 0
        splits = row_partition.splits_of_length(uniform_row_length, nvals, nrows)
        return cls.from_row_splits(values, splits, validate)

    @classmethod
    def _of_parts(
        cls, values: FieldValue, row_splits: tf.Tensor, name: str | None = None
    ) -> RaggedStructuredTensor:
        """Returns records made of the given parts. Runs no op and validates nothing.

        Args:
            values: The records of all rows. The name of their first dimension is that of the
                ragged dimension.
            row_splits: Where rows begin and end.
            name: The name of the first dimension.
        """
        self = object.__new__(cls)
        _set(self, "_values", values)
        _set(self, "_row_splits", row_splits)
        _set(self, "_name", name)
        _set(self, "_shape", None)
        _set(self, "_spec", None)
        return self

    def _with_hint(self, hint: StructuredTensorSpec) -> RaggedStructuredTensor:
        return self  # the spec of these records already marks the rows as ragged

    @property
    def _dims(self) -> Dims:
        inner = self._values._dims
        if self._name is None and not inner:
            return ()
        return (self._name, *(inner or (None,) * self._values.rank))

    def _with_dims(self, dims: Dims) -> RaggedStructuredTensor:
        values = self._values._with_dims(to_dims(dims[1:]))
        name = dims[0] if dims else None
        if name == self._name and values is self._values:
            return self
        return RaggedStructuredTensor._of_parts(values, self._row_splits, name)

    def _as_ragged(self, row_splits_dtype: tf.DType) -> RaggedStructuredTensor:
        return self

    def _as_dense(self, shape: tf.TensorShape) -> StructuredTensor:
        values = self._values._as_dense(tf.TensorShape([None]).concatenate(shape[2:]))
        splits = self._row_splits
        lengths = splits[1:] - splits[:-1]
        size = shape[1]
        if size is None:
            size = tf.reduce_max(row_lengths_or_zero(splits))
        expected = "rows of one length" if shape[1] is None else f"rows of {shape[1]} records"
        received = "rows of different lengths" if shape[1] is None else "rows of other lengths"
        fix = "Slice the rows to one length first, or use a spec of ragged records."
        wrong = StructureError(f"records of shape {self.shape}", expected, received, fix)
        same = tf.reduce_all(lengths == tf.cast(size, lengths.dtype))
        with tf.control_dependencies(required(same, wrong)):
            if not isinstance(size, int):
                size = int(size) if hasattr(size, "numpy") else tf.identity(size)
            nsplits = splits.shape[0]
            nrows = tf.size(lengths) if nsplits is None else nsplits - 1
        return reshape.split_outer(values, [nrows, size])._with_dims(self._dims)

    @property
    def values(self) -> StructuredTensor:
        """The records of all rows, one after another: a StructuredTensor of one rank less."""
        return self._values

    @property
    def row_splits(self) -> tf.Tensor:
        """Where rows begin and end in `values`: an integer vector of shape `[nrows + 1]`."""
        return self._row_splits

    def row_lengths(self) -> tf.Tensor:
        """Returns the number of records in each row.

        >>> import extensor as xt
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
        return self._spec_of(self.shape)

    def _describe_any_count(self) -> StructuredTensorSpec:
        return self._spec_of(any_length_shape(self.shape))

    def _spec_of(self, shape: tf.TensorShape) -> StructuredTensorSpec:
        # The number of values is left out, as RaggedTensorSpec.from_value does.
        values = self._values._describe_any_count()
        dtype = self._row_splits.dtype
        dims = None if self._name is None else self._dims
        return self._spec_type(shape, values, dtype, dims)

    @property
    def _record(self) -> DenseStructuredTensor:
        return self._values._record

    def _names(self) -> KeysView[str]:
        return self._values._names()

    def _field(self, name: str, at: Path) -> FieldValue:
        return self._cut(self._values._field(name, at), at)

    def _field_at(self, names: tuple[str, ...], at: Path) -> FieldValue:
        # The value is cut once for each list on the path, however many names there are.
        return self._cut(self._values._field_at(names, at), at)

    def _cut(self, value: FieldValue, at: Path) -> FieldValue:
        if isinstance(value, StructuredTensor):
            return RaggedStructuredTensor._of_parts(value, self._row_splits, self._name)
        return cut(value, self._row_splits, at)

    def _uncut_field(self, name: str, at: Path) -> FieldValue:
        return self._values._uncut_field(name, at)

    # The rows are taken off once, not again for each level of the path.

    def _with_updates(
        self, updates: Mapping[Any, Any], at: Path, comparison: SizeComparison | None
    ) -> RaggedStructuredTensor:
        inner: dict[Any, Any] = {}
        for path, value in updates.items():
            names = resolve(path, self._names())
            try:
                inner[path] = uncut(value, self._row_splits, Path(*at, *names), comparison)
            except StructureError:
                self._expect_records_around(names, at)  # else the rows are of no records
                raise
        below = comparison and comparison.inside_rows()
        return self._with_values(self._values._with_updates(inner, at, below))

    def _without(self, paths: list[tuple[str, ...]]) -> RaggedStructuredTensor:
        return self._with_values(self._values._without(paths))

    def _with_only(self, paths: list[tuple[str, ...]]) -> RaggedStructuredTensor:
        return self._with_values(self._values._with_only(paths))

    def _with_values(self, values: FieldValue) -> RaggedStructuredTensor:
        return RaggedStructuredTensor._of_parts(values, self._row_splits, self._name)

    def _select(self, names: Iterable[str]) -> RaggedStructuredTensor:
        values = self._values._select(names)
        return RaggedStructuredTensor._of_parts(values, self._row_splits, self._name)

    def _row_splits_dtypes(self) -> set[tf.DType]:
        return {self._row_splits.dtype}

    def _outer_sizes(self, rank: int) -> tf.Tensor:
        return ragged_sizes(self, rank)

    def _take(self, positions: tuple[Any, ...], at: Path) -> StructuredTensor:
        first, rest = positions[0], positions[1:]
        if not isinstance(first, slice):
            return index.take_row(self, positions, at)
        if first == index.ALL and isinstance(rest[0], slice) and rest[0] == index.ALL:
            return self._with_values(index.take(self._values, rest, at))
        if first != index.ALL and index.is_step_of_one(first.step):
            values, splits = index.rows_between(self, first, at)
            rows = RaggedStructuredTensor._of_parts(values, splits, self._name)
            return index.take(rows, (index.ALL, *rest), at) if rest else rows
        return index.gather_at(self, positions, at)

    def _unstack(self, count: int) -> list[Any]:
        return index.unstack_rows(self, Path())

    def _gather(self, numbers: tf.Tensor) -> StructuredTensor:
        if isinstance(numbers, tf.RaggedTensor):
            values = self._without_name()._gather(numbers.values)
            return RaggedStructuredTensor._of_parts(values, numbers.row_splits)
        if numbers.shape.rank == 1:
            try:
                return _gathered_rows(self, numbers, ())[0]
            except UnsupportedTypeError:  # values of a field cannot be cut into rows
                pass
        rows, values = index.number_items(self, 2)
        taken = index.gather(values, index.gather(rows, numbers))
        return taken._with_dims(
            move_axes(self._dims, axes_after_gather(numbers.shape.rank, self.rank))
        )

    def __tf_cut_rows__(self, row_splits: tf.Tensor) -> RaggedStructuredTensor:
        """Returns the records cut into rows; see `xt.authoring.cut_rows`. Validates nothing."""
        return RaggedStructuredTensor._of_parts(self, row_splits)

    def _merge_outer(self, sizes: reshape.Sizes) -> StructuredTensor:
        return self._values._without_name()

    def _split_outer(self, sizes: reshape.Sizes) -> RaggedStructuredTensor:
        splits = reshape.uniform_row_splits(sizes, self._row_splits.dtype)
        return RaggedStructuredTensor._of_parts(self._without_name(), splits)

    def _merge_dims(self, outer: int, inner: int) -> StructuredTensor:
        values, splits = self._values, self._row_splits
        if outer == 0:
            return values._merge_dims(0, inner - 1) if inner > 1 else values._without_name()
        if outer > 1:
            return self._with_values(values._merge_dims(outer - 1, inner - 1))
        for _ in range(inner - outer):
            if isinstance(values, RaggedStructuredTensor):
                splits = index.gather_tensor(values._row_splits, splits)
                values = values._values
            else:
                splits = splits * tf.cast(first_sizes(values, 2)[1], splits.dtype)
                values = values._merge_dims(0, 1)
        return RaggedStructuredTensor._of_parts(values._without_name(), splits, self._name)

    def _expand_dims(self, axis: int) -> RaggedStructuredTensor:
        if axis > 1:
            return self._with_values(self._values._expand_dims(axis - 1))
        nrows = self.shape[0]
        if nrows is None:
            nrows = tf.size(self._row_splits, self._row_splits.dtype) - 1
        split = self._split_outer([1, nrows] if axis == 0 else [nrows, 1])
        dims = self._dims
        return split._with_dims((*dims[:axis], None, *dims[axis:])) if dims else split


def _gathered_rows(
    value: FieldValue, numbers: tf.Tensor, outer: tuple[Any, ...]
) -> tuple[Any, list[Any]]:
    """Returns the rows of ragged records with the given numbers.

    Gathers the rows of each field, which takes one op for a tensor or RaggedTensor.

    Args:
        value: The records, or records or a field inside of them.
        numbers: A vector of integers.
        outer: The row splits around the value, from the outermost.

    Returns:
        The value in the rows of the result, and the row splits of the result around it.
    """
    if isinstance(value, RaggedStructuredTensor):
        values, splits = _gathered_rows(value.values, numbers, (*outer, value.row_splits))
        return RaggedStructuredTensor._of_parts(values, splits[-1], value._name), splits[:-1]
    if isinstance(value, StructuredTensor):
        found: list[list[Any]] = []

        def gather(part: FieldValue, _: str) -> FieldValue:
            values, splits = _gathered_rows(part, numbers, outer)
            found.append(splits)
            return values

        records: Any = value
        return records._map_parts(gather), found[0]
    for row_splits in reversed(outer):
        value = cut(value, row_splits, Path())
    value = index.gather(value, numbers)
    found_splits: list[Any] = []
    for _ in outer:
        rows = uncut_rows(value)
        assert rows is not None
        value, row_splits = rows
        found_splits.append(row_splits)
    return value, found_splits


StructuredTensor._ragged_type = RaggedStructuredTensor
