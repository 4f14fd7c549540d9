"""RaggedStructuredTensor, records cut into rows of different lengths, and its spec."""

# This file calls methods of records and specs that are private to this package.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections.abc import Iterator, KeysView, Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._authoring.rows import uncut_rows
from extensor._path import Path
from extensor._protocol.box import box, boxed_specs, expect_type, unbox
from extensor._protocol.box_ragged import Rows, unbox_rows
from extensor._protocol.casting import cast_value, castable_type, required
from extensor._protocol.registry import register_type_spec
from extensor._protocol.stackable_spec import any_length_shape
from extensor._protocol.tree import compatible, merged
from extensor._struct import index, reshape, row_partition
from extensor._struct.code import dtype_code, shape_code
from extensor._struct.common_shape import known_rank
from extensor._struct.dims import Dims, after_gather, checked_dims, moved, named
from extensor._struct.display import text
from extensor._struct.row_partition import splits_of
from extensor._struct.row_splits import (
    checked_row_splits,
    cut,
    outer_sizes,
    ragged_sizes,
    row_lengths_or_zero,
    uncut,
)
from extensor._struct.spec import (
    StructuredTensorSpec,
    is_cut_by_type,
    saved_parts,
    spec_or_none,
)
from extensor._struct.tensor import StructuredTensor
from extensor._tf import unstacked
from extensor.errors import DTypeError, ProtocolError, StructureError, UnsupportedTypeError

if TYPE_CHECKING:
    from extensor._struct.dense import DenseStructuredTensorSpec

_set = object.__setattr__


class RaggedStructuredTensor(StructuredTensor):
    """A collection of records cut into rows of different lengths.

    Create it with `from_row_splits`. `values` holds the records of all rows, one after another;
    `row_splits` holds where each row begins and ends.
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
        cls, values: StructuredTensor, row_splits: Any, validate: bool = False
    ) -> RaggedStructuredTensor:
        """Returns the records of `values` cut into rows.

        Args:
            values: A StructuredTensor of shape `[nvals, ...]`.
            row_splits: An int64 or int32 vector of shape `[nrows + 1]`: row `i` is
                `values[row_splits[i]:row_splits[i + 1]]`. It begins with 0, never decreases and
                ends with `nvals`. A list becomes an int64 tensor.
            validate: Whether to add assertions to a graph that the splits fit the values. In
                eager mode the splits are always validated, in NumPy.

        Returns:
            A RaggedStructuredTensor of shape `[nrows, None, ...]`.

        Raises:
            StructureError: If the splits do not fit the values (also a ValueError).
            DTypeError: If the splits are not int64 or int32, or if row splits inside the values
                have another dtype (also a TypeError).

        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])
        <StructuredTensor shape=(2, None) {minutes: int32}
         [[{minutes: 5}, {minutes: 20}],
          [{minutes: 8}]]>
        """
        if not isinstance(values, StructuredTensor) or values.rank == 0:
            raise DTypeError(
                path="from_row_splits: values",
                expected="a StructuredTensor of rank 1 or more",
                received=text.kind(values) if isinstance(values, StructuredTensor)
                else type(values).__name__,
                mend="Cut plain tensors with tf.RaggedTensor.from_row_splits.",
            )  # fmt: skip
        return cls.of_parts(values, checked_row_splits(row_splits, values, validate))

    @classmethod
    def from_row_lengths(
        cls, values: StructuredTensor, row_lengths: Any, validate: bool = False
    ) -> RaggedStructuredTensor:
        """Returns the records of `values` cut into rows of the given lengths.

        Args:
            values: A StructuredTensor of shape `[nvals, ...]`.
            row_lengths: An integer vector of shape `[nrows]`; its sum is `nvals`.
            validate: As for `from_row_splits`.

        Raises:
            StructureError: If the lengths do not fit the values (also a ValueError).
            DTypeError: If the lengths are not int64 or int32 (also a TypeError).

        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> xt.RaggedStructuredTensor.from_row_lengths(steps, [2, 0, 1])["minutes"]
        <tf.RaggedTensor [[5, 20], [], [8]]>
        """
        return cls.from_row_splits(values, row_partition.splits_of_lengths(row_lengths), validate)

    @classmethod
    def from_value_rowids(
        cls, values: StructuredTensor, value_rowids: Any, nrows: Any = None, validate: bool = False
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

        >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
        >>> xt.RaggedStructuredTensor.from_value_rowids(steps, [0, 0, 2], nrows=4)["minutes"]
        <tf.RaggedTensor [[5, 20], [], [8], []]>
        """
        splits = row_partition.splits_of_rowids(value_rowids, nrows)
        return cls.from_row_splits(values, splits, validate)

    @classmethod
    def from_uniform_row_length(
        cls, values: StructuredTensor, uniform_row_length: Any, nrows: Any = None
    ) -> RaggedStructuredTensor:
        """Returns the records of `values` cut into rows of one length.

        For dense records of rank 2, use `tf.reshape(values, [-1, length])`.

        Args:
            values: A StructuredTensor of shape `[nvals, ...]`.
            uniform_row_length: The length of each row.
            nrows: The number of rows; needed if the length is 0.

        Raises:
            StructureError: If the values do not fill the rows (also a ValueError).

        >>> steps = xt.DenseStructuredTensor([4], {"minutes": [5, 20, 8, 1]})
        >>> xt.RaggedStructuredTensor.from_uniform_row_length(steps, 2)["minutes"]
        <tf.RaggedTensor [[5, 20], [8, 1]]>
        """
        nvals: Any = values.shape[0] if isinstance(values, StructuredTensor) and values.rank else 0
        if nvals is None:
            nvals = outer_sizes(values, 1)[0]
        splits = row_partition.splits_of_length(uniform_row_length, nvals, nrows)
        return cls.from_row_splits(values, splits)

    @classmethod
    def of_parts(
        cls, values: Any, row_splits: Any, name: str | None = None
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
        values = self._values._with_dims(named(dims[1:]))
        name = dims[0] if dims else None
        if name == self._name and values is self._values:
            return self
        return RaggedStructuredTensor.of_parts(values, self._row_splits, name)

    def _as_ragged(self, row_splits_dtype: tf.DType) -> RaggedStructuredTensor:
        return self

    def _as_dense(self, shape: tf.TensorShape) -> Any:
        values = self._values._as_dense(tf.TensorShape([None]).concatenate(shape[2:]))
        splits = self._row_splits
        lengths = splits[1:] - splits[:-1]
        size = shape[1]
        if size is None:
            size = tf.reduce_max(row_lengths_or_zero(splits))
        wrong = StructureError(
            path=f"records of shape {self.shape}",
            expected="rows of one length" if shape[1] is None else f"rows of {shape[1]} records",
            received="rows of different lengths" if shape[1] is None else "rows of other lengths",
            mend="Slice the rows to one length first, or use a spec of ragged records.",
        )
        same = tf.reduce_all(lengths == tf.cast(size, lengths.dtype))
        with tf.control_dependencies(required(same, wrong)):
            if not isinstance(size, int):
                size = int(size) if hasattr(size, "numpy") else tf.identity(size)
            nsplits = splits.shape[0]
            nrows = tf.size(lengths) if nsplits is None else nsplits - 1
        return reshape.split(values, [nrows, size])._with_dims(self._dims)

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

    def partition_outer_dimension(self, row_partition: Any) -> RaggedStructuredTensor:
        """Returns the records with the first dimension cut into rows: one dimension more."""
        return RaggedStructuredTensor.from_row_splits(self._unnamed(), splits_of(row_partition))

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
        values = self._values.__tf_type_spec__()
        dtype = self._row_splits.dtype
        dims = None if self._name is None else self._dims
        return RaggedStructuredTensorSpec(self.shape, values, dtype, dims)

    def _names(self) -> KeysView[str]:
        return self._values._names()

    def _field(self, name: str, at: Path) -> Any:
        value = self._values._field(name, at)
        if isinstance(value, StructuredTensor):
            return RaggedStructuredTensor.of_parts(value, self._row_splits, self._name)
        return cut(value, self._row_splits, at)

    def _uncut_field(self, name: str, at: Path) -> Any:
        return self._values._uncut_field(name, at)

    def _updated(self, updates: Mapping[str, Any], at: Path) -> RaggedStructuredTensor:
        if not updates:
            return self
        inner = {name: uncut(value, self._row_splits, at / name) for name, value in updates.items()}
        values = self._values._updated(inner, at)
        return RaggedStructuredTensor.of_parts(values, self._row_splits, self._name)

    def _selected(self, names: Any) -> RaggedStructuredTensor:
        values = self._values._selected(names)
        return RaggedStructuredTensor.of_parts(values, self._row_splits, self._name)

    def _row_splits_dtypes(self) -> set[tf.DType]:
        return {self._row_splits.dtype}

    def _outer_sizes(self, rank: int) -> tf.Tensor:
        return ragged_sizes(self, rank)

    def _taken(self, positions: tuple[Any, ...], at: Path) -> Any:
        first, rest = positions[0], positions[1:]
        if not isinstance(first, slice):
            return index.take_row(self, positions, at)
        if first == index.ALL and isinstance(rest[0], slice) and rest[0] == index.ALL:
            values = index.take(self._values, rest, at)
            return RaggedStructuredTensor.of_parts(values, self._row_splits, self._name)
        if first != index.ALL and first.step in (None, 1):
            rows = self._sliced(first, at)
            return index.take(rows, (index.ALL, *rest), at) if rest else rows
        return index.gathered_at(self, positions, at)

    def _unstacked(self, count: int) -> list[Any]:
        return index.each_row(self, Path())

    def _sliced(self, rows: slice, at: Path) -> RaggedStructuredTensor:
        """Returns rows that are beside each other, without a copy of the values."""
        nrows = self.shape[0]
        if nrows is not None and all(
            bound is None or isinstance(bound, int) for bound in (rows.start, rows.stop)
        ):
            begin, end, _ = rows.indices(nrows)
            splits = self._row_splits[begin : max(begin, end) + 1]
        else:
            starts = index.take(self._row_splits[:-1], (rows,), at)
            limits = index.take(self._row_splits[1:], (rows,), at)
            # Without rows, the splits are [0].
            zero = tf.zeros([1], limits.dtype)[tf.size(starts) :]
            splits = tf.concat([zero, starts[:1], limits], 0)
        values = index.take(self._values, (slice(splits[0], splits[-1]),), at)
        return RaggedStructuredTensor.of_parts(values, splits - splits[0], self._name)

    def _gathered(self, numbers: Any) -> Any:
        if isinstance(numbers, tf.RaggedTensor):
            values = self._unnamed()._gathered(numbers.values)
            return RaggedStructuredTensor.of_parts(values, numbers.row_splits)
        if numbers.shape.rank == 1:
            try:
                return _gathered_rows(self, numbers, ())[0]
            except UnsupportedTypeError:  # values of a field cannot be cut into rows
                pass
        rows, values = index.numbered(self, 2)
        taken = index.gather(values, index.gather(rows, numbers))
        return taken._with_dims(moved(self._dims, after_gather(numbers.shape.rank, self.rank)))

    def __tf_cut_rows__(self, row_splits: Any) -> RaggedStructuredTensor:
        """Returns the records cut into rows; see `xt.authoring.cut_rows`. Validates nothing."""
        return RaggedStructuredTensor.of_parts(self, row_splits)

    def _merged(self, sizes: reshape.Sizes) -> Any:
        return self._values._unnamed()

    def _split(self, sizes: reshape.Sizes) -> RaggedStructuredTensor:
        splits = reshape.uniform_row_splits(sizes, self._row_splits.dtype)
        return RaggedStructuredTensor.of_parts(self._unnamed(), splits)

    def _merged_dims(self, outer: int, inner: int) -> Any:
        values, splits = self._values, self._row_splits
        if outer == 0:
            return values._merged_dims(0, inner - 1) if inner > 1 else values._unnamed()
        if outer > 1:
            values = values._merged_dims(outer - 1, inner - 1)
            return RaggedStructuredTensor.of_parts(values, splits, self._name)
        for _ in range(inner - outer):
            if isinstance(values, RaggedStructuredTensor):
                splits = index.gathered(values._row_splits, splits)
                values = values._values
            else:
                size = values.shape[1]
                if size is None:
                    size = tf.cast(outer_sizes(values, 2)[1], splits.dtype)
                splits = splits * size
                values = values._merged_dims(0, 1)
        return RaggedStructuredTensor.of_parts(values._unnamed(), splits, self._name)

    def _expanded(self, axis: int) -> RaggedStructuredTensor:
        if axis > 1:
            values = self._values._expanded(axis - 1)
            return RaggedStructuredTensor.of_parts(values, self._row_splits, self._name)
        nrows = self.shape[0]
        if nrows is None:
            nrows = tf.size(self._row_splits, self._row_splits.dtype) - 1
        split = self._split([1, nrows] if axis == 0 else [nrows, 1])
        dims = self._dims
        return split._with_dims((*dims[:axis], None, *dims[axis:])) if dims else split


def _gathered_rows(value: Any, numbers: Any, outer: tuple[Any, ...]) -> tuple[Any, list[Any]]:
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
        return RaggedStructuredTensor.of_parts(values, splits[-1], value._name), splits[:-1]
    if isinstance(value, StructuredTensor):
        found: list[list[Any]] = []

        def gathered(part: Any, _: str) -> Any:
            values, splits = _gathered_rows(part, numbers, outer)
            found.append(splits)
            return values

        records: Any = value
        return records.map_parts(gathered), found[0]
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


@register_type_spec(name="extensor.RaggedStructuredTensorSpec")
class RaggedStructuredTensorSpec(StructuredTensorSpec):
    """Describes a RaggedStructuredTensor, or one row of such a tensor.

    If `shape` has one dimension more than `values_spec`, the spec describes a
    RaggedStructuredTensor. If both have the same rank, the spec describes one row that was
    unstacked from a RaggedStructuredTensor: a StructuredTensor that `values_spec` describes. Rows
    may have different lengths, so stacking them gives a ragged tensor again. (Compare
    `tf.RaggedTensorSpec` of ragged rank 0.)

    Args:
        shape: The shape of the collection of records, of known rank.
        values_spec: The spec of the records below the outermost ragged dimension.
        row_splits_dtype: The dtype of the row splits, tf.int64 or tf.int32.
        dims: The names of the dimensions of `shape`, which are not part of equality: a string or
            None for each. Default: those of `values_spec`.

    Raises:
        StructureError: If the rank is unknown or does not fit, or the names do not fit (also a
            ValueError).
        DTypeError: If the dtype of the row splits is not int64 or int32 (also a TypeError).

    >>> step = xt.DenseStructuredTensorSpec([None], {"minutes": tf.TensorSpec([None], tf.int32)})
    >>> spec = xt.RaggedStructuredTensorSpec([None, None], step, tf.int64)
    >>> spec.field_names(), spec.unstacked().shape
    (('minutes',), TensorShape([None]))
    """

    def __init__(
        self,
        shape: Any,
        values_spec: StructuredTensorSpec,
        row_splits_dtype: tf.DType = tf.int64,
        dims: Any = None,
    ) -> None:
        self._shape = known_rank(shape, type(self).__name__)
        if not isinstance(values_spec, StructuredTensorSpec) or values_spec.rank < 1:
            raise StructureError(
                path=f"{type(self).__name__}.values_spec",
                expected="the spec of a StructuredTensor of rank 1 or more",
                received=repr(values_spec),
                mend="Give the spec of the records before they are cut into rows.",
            )
        if self._shape.rank - values_spec.rank not in (0, 1):
            raise StructureError(
                path=f"{type(self).__name__}.shape",
                expected=f"rank {values_spec.rank + 1}, one more than the values",
                received=f"shape {self._shape}",
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
        self._is_row = self._shape.rank == values_spec.rank
        self._name: str | None = None
        if dims is not None:
            names = checked_dims(dims, self._shape.rank, type(self).__name__)
            values_spec = values_spec._with_dims(names if self._is_row else named(names[1:]))
            self._name = names[0] if names and not self._is_row else None
        self._values_spec = values_spec
        self._row_splits_dtype = row_splits_dtype
        nrows = self._shape[0]
        splits = tf.TensorSpec([None if nrows is None else nrows + 1], row_splits_dtype)
        self._components: tuple[tf.TypeSpec, ...] = (
            values_spec.component_specs if self._is_row else (values_spec, splits)
        )

    @property
    def value_type(self) -> type:
        """RaggedStructuredTensor; for one row, the type of the values."""
        return self._values_spec.value_type if self._is_row else RaggedStructuredTensor

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

    @property
    def _dims(self) -> Dims:
        inner = self._values_spec._dims
        if self._is_row or (self._name is None and not inner):
            return inner
        return (self._name, *(inner or (None,) * self._values_spec.rank))

    def _with_dims(self, dims: Dims) -> RaggedStructuredTensorSpec:
        if dims == self._dims:
            return self
        return RaggedStructuredTensorSpec(
            self._shape, self._values_spec, self._row_splits_dtype, dims
        )

    def _like(
        self, shape: Any, values_spec: StructuredTensorSpec, row_splits_dtype: tf.DType
    ) -> RaggedStructuredTensorSpec:
        """Returns a spec of other parts with the same name of the first dimension."""
        dims = None if self._name is None else (self._name, *values_spec.dims)
        return RaggedStructuredTensorSpec(shape, values_spec, row_splits_dtype, dims)

    def _cmp_key(self) -> Any:
        return self._shape, self._values_spec, self._row_splits_dtype

    def serialize(self) -> tuple[Any, ...]:
        """Returns the constructor's arguments; the names of the dimensions only if there are any.

        The values' spec has the names of all dimensions but the first.
        """
        return self._cmp_key() if self._name is None else (*self._cmp_key(), self._dims)

    @classmethod
    def deserialize(cls, serialization: Any) -> RaggedStructuredTensorSpec:
        """Returns the spec that `serialize` described.

        Raises:
            RegistrationError: If another version of extensor wrote more or fewer parts (also a
                ValueError).
        """
        return cls(*saved_parts(cls, serialization, 3, 4))

    def __repr__(self) -> str:
        values = self._values_spec._with_dims(())
        dims = f", dims={self._dims}" if self._dims else ""
        return (
            f"xt.RaggedStructuredTensorSpec({shape_code(self._shape)}, {values!r}, "
            f"{dtype_code(self._row_splits_dtype)}{dims})"
        )

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Returns whether both have compatible shapes, values and row splits."""
        other = spec_or_none(spec_or_value)
        return isinstance(other, RaggedStructuredTensorSpec) and (
            self == other or compatible(self._cmp_key(), other._cmp_key())
        )

    def most_specific_compatible_type(self, other: Any) -> Any:
        """Returns the spec with both sides' shapes merged, or None."""
        if not isinstance(other, RaggedStructuredTensorSpec) or self.rank != other.rank:
            return None
        if self == other:
            return self
        parts: Any = merged(self._cmp_key(), other._cmp_key())
        if parts is None:
            return None
        return RaggedStructuredTensorSpec(*parts)._with_dims(self._dims or other._dims)

    def castable_type(self, spec: tf.TypeSpec) -> StructuredTensorSpec | None:
        """Returns the spec that records of this spec and of another cast to, or None."""
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
            except ProtocolError:  # a field that does not stack cannot be cut into rows either
                return None
        values: Any = castable_type(self._values_spec, inner)
        if values is None:
            return None
        # TensorFlow does not mix row splits of two dtypes.
        dtypes = self._row_splits_dtypes() | spec._row_splits_dtypes()
        dtype = tf.int64 if tf.int64 in dtypes else tf.int32
        shape = self._shape.most_specific_compatible_shape(spec.shape)
        joined = RaggedStructuredTensorSpec(shape, values._with_row_splits_dtype(dtype), dtype)
        return joined._with_dims(self._dims or spec._dims)

    def _cast_records(self, value: Any) -> Any:
        if self._is_row:
            return self._values_spec.cast(value)._with_hint(self)
        value = value._as_ragged(self._row_splits_dtype)
        path = f"{type(self).__name__}.row_splits"
        splits = tf.cast(value._row_splits, self._row_splits_dtype)
        splits = cast_value(self._components[1], splits, path)
        cast = RaggedStructuredTensor.of_parts(self._values_spec.cast(value._values), splits)
        return cast._with_dims(self._dims or value._dims)

    def refined(self, value: Any) -> StructuredTensorSpec:
        """Returns this spec with the static shapes of a value."""
        values = self._values_spec.refined(value if self._is_row else value.values)
        return self._like(value.shape, values, self._row_splits_dtype)

    @property
    def component_specs(self) -> tuple[tf.TypeSpec, ...]:
        """The specs of the values and the row splits; for one row, of the values' components."""
        return self._components

    def to_components(self, value: Any) -> tuple[Any, ...]:
        """Returns the values and the row splits; for one row, the values' components."""
        if self._is_row:
            return self._values_spec.to_components(value)
        return value._values, value._row_splits

    def from_components(self, components: tuple[Any, ...]) -> Any:
        """Returns the RaggedStructuredTensor, or the row, with the given components."""
        if self._is_row:
            return self._values_spec.from_components(components)._with_hint(self)
        return RaggedStructuredTensor.of_parts(components[0], components[1], self._name)

    def stacked(self, num: int | None) -> RaggedStructuredTensorSpec:
        """Returns the spec of `num` stacked values."""
        values = (self._values_spec if self._is_row else self)._any_length()
        return RaggedStructuredTensorSpec(
            tf.TensorShape([num]).concatenate(self._shape), values, self._row_splits_dtype
        )

    def unstacked(self) -> StructuredTensorSpec:
        """Returns the spec of one row."""
        if self._is_row:
            return self._values_spec.unstacked()
        values = self._values_spec._any_length()
        if isinstance(values, RaggedStructuredTensorSpec):
            return values
        return RaggedStructuredTensorSpec(self._shape[1:], values, self._row_splits_dtype)

    @classmethod
    def of_rows(
        cls, shape: tf.TensorShape, records: StructuredTensorSpec, row_splits_dtype: tf.DType
    ) -> Any:
        """Returns the spec of records of a shape in which each inner dimension is ragged.

        Args:
            shape: A shape of rank 1 or more. Rank 1 gives the spec of one row.
            records: The spec of all records, in one dimension.
            row_splits_dtype: The dtype of the row splits.
        """
        values = records._with_row_splits_dtype(row_splits_dtype)
        for axis in range(1, shape.rank):
            values = cls(tf.TensorShape([None] * (axis + 1)), values, row_splits_dtype)
        return cls(shape, values, row_splits_dtype) if shape.rank == 1 else values

    def _ragged_row(self, row_splits_dtype: tf.DType) -> Any:
        own = self._row_splits_dtype  # all inner row splits have the same dtype
        values = self._values_spec.unstacked()._ragged_row(own).stacked(None)
        values = values._with_row_splits_dtype(own)._with_dims(self._values_spec._dims)
        return self._like(self._shape, values, own)

    def _with_record(self, record: Any) -> RaggedStructuredTensorSpec:
        return self._like(self._shape, record, self._row_splits_dtype)

    def _any_length(self) -> StructuredTensorSpec:
        values = self._values_spec._any_length()
        if self._is_row:
            return values
        return self._like(any_length_shape(self._shape), values, self._row_splits_dtype)

    def _with_row_splits_dtype(self, dtype: tf.DType) -> RaggedStructuredTensorSpec:
        return self._like(self._shape, self._values_spec._with_row_splits_dtype(dtype), dtype)

    def _row_splits_dtypes(self) -> set[tf.DType]:
        return {self._row_splits_dtype} | super()._row_splits_dtypes()

    def boxed_tensor_spec(self, minimum_rank: int = 0) -> list[tf.TypeSpec]:
        """Returns one variant TensorSpec for each column of the records."""
        if self._is_row and minimum_rank > 0:
            return self._values_spec.boxed_tensor_spec(minimum_rank)
        count = sum(count for _, count in self._column_boxes)
        return [tf.TensorSpec(None, tf.variant)] * count

    def to_boxed_tensor(self, value: Any, minimum_rank: int = 0) -> list[Any]:
        """Returns each column of the records as a variant tensor."""
        expect_type(self, value)
        if self._is_row and minimum_rank > 0:
            return self._values_spec.to_boxed_tensor(value, minimum_rank)
        boxes: list[Any] = []
        columns = zip(self._column_boxes, self._to_columns(value), strict=True)
        for (spec, _), column in columns:
            boxes.extend(box(spec, column, minimum_rank))
        return boxes

    def _unboxed(self, boxes: list[Any]) -> Any:
        rest = iter(boxes)

        def column(spec: Any, count: int) -> Any:
            own = [next(rest) for _ in range(count)]
            is_ragged = isinstance(spec, tf.RaggedTensorSpec)
            return unbox_rows(spec, own) if is_ragged else unbox(spec, own)

        return self._from_columns(column(spec, count) for spec, count in self._column_boxes)

    @functools.cached_property
    def _column_boxes(self) -> list[tuple[Any, int]]:
        """The spec of each column, and the number of its boxes."""
        return [(spec, len(boxed_specs(spec))) for spec in self._column_specs()]

    def _column_specs(self) -> list[Any]:
        columns = self._values_spec._column_specs()
        if self._is_row:
            dtype = self._row_splits_dtype
            return [
                unstacked(c.__tf_cut_rows__(None, dtype)) if is_cut_by_type(c) else c
                for c in columns
            ]
        rows = self._shape[:1].concatenate([None])
        return [
            column.__tf_cut_rows__(rows[0], self._row_splits_dtype)
            if is_cut_by_type(column)
            else tf.RaggedTensorSpec(
                rows.concatenate(column.shape[1:]),
                column.dtype,
                column.ragged_rank + 1,
                self._row_splits_dtype,
            )
            for column in columns
        ]

    def _to_columns(self, value: Any) -> list[Any]:
        if self._is_row:
            return self._values_spec._to_columns(value)
        splits = value.row_splits
        return [cut(c, splits, Path()) for c in self._values_spec._to_columns(value.values)]

    def _from_columns(self, columns: Iterator[Any]) -> Any:
        if self._is_row:
            return self._values_spec._from_columns(columns)._with_hint(self)
        splits: list[tf.Tensor] = []

        def below() -> Iterator[Any]:
            for column in columns:
                rows = column if isinstance(column, Rows) else uncut_rows(column)
                assert rows is not None
                splits.append(rows[1])
                yield rows[0]

        values = self._values_spec._from_columns(below())
        return self.from_components((values, splits[0]))
