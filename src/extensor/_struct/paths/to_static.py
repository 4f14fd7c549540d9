"""Records of static shapes: each list gets a capacity, and its free places are null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._authoring.comparison import with_checks
from extensor._authoring.rows import row_splits_of
from extensor._choice import expect_one_of
from extensor._count_text import count_text
from extensor._path import Path
from extensor._protocol.casting import required
from extensor._protocol.run_time_check import LATER, assert_op
from extensor._struct import index, reshape
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.field import shape_of
from extensor._struct.masked import combined, is_masked, is_union, under_masks
from extensor._struct.parts import spec_of_parts
from extensor._struct.paths.place import Names, depth_of
from extensor._struct.paths.rows import (
    null_lists_to_empty,
    size_of,
    split_mask,
    take_off_dimension,
    with_rows,
)
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.row_splits import row_lengths_or_zero
from extensor._struct.spec import resolve
from extensor._tf import BaseResourceVariable, stacked
from extensor._typing import FieldValue
from extensor.errors import DTypeError, StructureError

if TYPE_CHECKING:
    from extensor._struct.tensor import StructuredTensor

Sizes = Mapping[Any, "int | Sequence[int]"]
"""The capacity of the lists at each path; several for lists of lists, the outermost first."""


def to_static(
    records: StructuredTensor, padded: Sizes | None, packed: Sizes | None, overflow: str
) -> FieldValue:
    """Returns records of static shapes; see `StructuredTensor.to_static`."""
    return static_and_cut(records, padded, packed, overflow)[0]


def static_and_cut(
    records: StructuredTensor, padded: Sizes | None, packed: Sizes | None, overflow: str
) -> tuple[FieldValue, dict[str, tf.Tensor]]:
    """Returns records of static shapes, and how many items were cut at each path."""
    fix = 'Give "error", or "cut" to leave out the items that do not fit.'
    expect_one_of(("error", "cut"), overflow, "to_static: overflow", fix)
    capacities = _capacities(records, padded, packed)
    task = _Task(capacities, overflow == "cut")
    rows: Any = records
    if records.rank == 0:
        rows = stacked(tf.type_spec_from_value(records), 1).cast(tf.stack([records]))
    if task.cuts:
        for names, counts in items_of_rows(rows).items():
            task.cut[names] = tf.add_n([tf.reduce_sum(each) for each in counts])
    result = task.rows(rows, Path())
    if records.rank == 0:
        result = index.take(result, (0,), Path())
    _expect_used(records, capacities)
    return result, {str(Path(*names)): count for names, count in task.cut.items()}


def num_cut(
    st: StructuredTensor, padded: Sizes | None = None, packed: Sizes | None = None
) -> dict[str, tf.Tensor]:
    """Returns how many items of each list have no place in `st.to_static(padded, packed)`.

    Args:
        st: A StructuredTensor.
        padded: As for `to_static`.
        packed: As for `to_static`.

    Returns:
        An int64 scalar for each path: the number of items in all its lists that
        `to_static(overflow="cut")` leaves out, also because the records that hold them are cut.

    Raises:
        FieldError: If a path does not exist (also a KeyError).
        StructureError: If a list has no capacity, or a capacity is of no list or less than 1 (also
            a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> records = xt.DenseStructuredTensor([2], {"items": tf.ragged.constant([[1, 2, 3], [4]])})
    >>> {path: int(count) for path, count in xt.struct.num_cut(records, {"items": 2}).items()}
    {'items': 1}
    """
    return static_and_cut(st, padded, packed, "cut")[1]


@dataclass
class _Capacity:
    """The capacities of the lists at one path."""

    sizes: list[int]
    is_packed: bool
    levels: int = 0  # for how many levels of lists they are used


def _capacities(
    records: StructuredTensor, padded: Sizes | None, packed: Sizes | None
) -> dict[Names, _Capacity]:
    found: dict[Names, _Capacity] = {}
    for word, sizes in (("padded", padded), ("packed", packed)):
        if sizes is None:
            continue
        if not isinstance(sizes, Mapping):
            fix, expected = f'Write {word}={{"items": 8}}.', "a mapping from paths"
            raise DTypeError(f"to_static: {word}", expected, type(sizes).__name__, fix)
        for path, given in sizes.items():
            names = resolve(path, records._names()) if path != () else ()
            records._require(names)
            if names in found:
                fix = "Pad the lists, or pack them."
                raise StructureError(Path(*names) or "()", "one capacity for the lists", "two", fix)
            found[names] = _Capacity(_integers(given, names), word == "packed")
    return found


def _integers(given: Any, names: Names) -> list[int]:
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    sizes: list[int] = []
    for size in several:
        if isinstance(size, bool) or not hasattr(size, "__index__"):
            fix = "Give an int; for lists of lists, one for each level."
            received = type(size).__name__
            raise DTypeError(Path(*names) or "()", "a capacity: an integer", received, fix)
        if int(size) < 1:
            fix = "Give the size of the longest list, or of all lists of a batch to pack them."
            raise StructureError(Path(*names) or "()", "a capacity of 1 or more", str(size), fix)
        sizes.append(int(size))
    return sizes


def _expect_used(records: StructuredTensor, capacities: dict[Names, _Capacity]) -> None:
    """Raises if there is no list at a path that has a capacity, or there are fewer levels."""
    for names, capacity in capacities.items():
        if 0 < capacity.levels < len(capacity.sizes):
            expected = count_text(capacity.levels, "sizes for the levels of the lists")
            fix = "Leave out those of the innermost lists, or of dimensions of one size."
            raise StructureError(Path(*names) or "()", expected, str(len(capacity.sizes)), fix)
        if not capacity.levels:
            value = records._field_at(names, Path(*names)) if names else records
            is_one = (shape_of(value).rank or 0) <= depth_of(records, names)
            received = "one value a record" if is_one else "a field of one size"
            fix = "Leave out its capacity; of a single record, convert records[:1]."
            raise StructureError(Path(*names) or "()", "the path of a list", received, fix)


@dataclass(frozen=True)
class _Padding:
    """The padded lists around items, outermost first."""

    splits: tuple[tf.Tensor, ...] = ()
    sizes: tuple[int, ...] = ()

    def inside(self, splits: tf.Tensor, size: int) -> _Padding:
        if self.splits and self.splits[0].dtype != splits.dtype:
            splits = tf.cast(splits, self.splits[0].dtype)
        return _Padding((*self.splits, splits), (*self.sizes, size))

    def apply(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns a tensor of one row for each item in the padded lists, with zeros."""
        if not self.sizes:
            return tensor
        inner = tensor.shape[1:]
        dtype = tensor.dtype
        zero = tf.constant("" if dtype == tf.string else dtype.as_numpy_dtype(0), dtype)
        result = tf.raw_ops.RaggedTensorToTensor(
            shape=tf.constant(
                [-1, *self.sizes, *(-1 if n is None else n for n in inner)], tf.int64
            ),
            values=tensor,
            default_value=zero,
            row_partition_tensors=list(self.splits),
            row_partition_types=["ROW_SPLITS"] * len(self.splits),
        )
        count = self.splits[0].shape[0]
        outer = [None if count is None else count - 1, *self.sizes]
        result.set_shape(tf.TensorShape(outer).concatenate(inner))
        return result

    def around(self, rows: FieldValue) -> FieldValue:
        """Returns a value of one row for each place of the padded lists, in their dimensions."""
        if not self.sizes:
            return rows
        splits = self.splits[0]
        known = splits.shape[0]
        count: Any = tf.size(splits) - 1 if known is None else known - 1
        for i in reversed(range(len(self.sizes))):
            outer = count
            for size in self.sizes[:i]:
                outer = outer * size
            rows = reshape.split_outer(rows, [outer, self.sizes[i]])
        return rows


_NO_PADDING = _Padding()


@dataclass
class _Task:
    """One call of `to_static`."""

    capacities: dict[Names, _Capacity]
    cuts: bool
    cut: dict[Names, Any] = field(default_factory=dict[Names, Any])

    def rows(
        self, value: FieldValue, at: Path, level: int = 0, padding: _Padding = _NO_PADDING
    ) -> Any:
        """Returns a value with static shapes, in the padded lists around it.

        Args:
            value: A value of one row for each item.
            at: Its path.
            level: How many lists at this path are around it.
            padding: The padded lists around it.
        """
        value, valid = split_mask(value, 1)
        if valid is not None and _is_list(value):  # a null list may hide items
            value = null_lists_to_empty(combined(value, valid))
        result = self._rows(value, at, level, padding)
        return result if valid is None else combined(result, padding.apply(valid))

    def _rows(self, value: Any, at: Path, level: int, padding: _Padding) -> Any:
        if _is_list(value):
            return self._list(value, at, level, padding)
        if isinstance(value, DenseStructuredTensor):
            axes = (0, *[None] * len(padding.sizes)) if padding.sizes else None
            return value._map_parts(lambda part, name: self._field(part, at, name, padding), axes)
        if isinstance(value, (tf.Tensor, BaseResourceVariable)):
            return padding.apply(tf.convert_to_tensor(value))
        if is_masked(value):
            values = self.rows(value.values, at, level, padding)
            return type(value)._of_parts(values, padding.apply(value.mask))
        return self._other(value, at, padding)

    def _field(self, part: FieldValue, at: Path, name: str, padding: _Padding) -> FieldValue:
        return self.rows(part, at / name if name else at, 0, padding)

    def _other(self, value: Any, at: Path, padding: _Padding) -> Any:
        """Returns a value of another type, whose components are padded."""
        if not padding.sizes and not is_union(value):
            return value
        spec = spec_of_parts(value, at)
        result: Any = spec
        for _ in padding.sizes:
            result = stacked(result, None)
        parts = spec.to_components(value)
        return result.from_components(tf.nest.map_structure(padding.apply, parts))

    def _fixed_size(self, value: Any, at: Path, level: int, padding: _Padding, size: int) -> Any:
        """Returns lists that all have one size, which need no mask."""
        items, rows = take_off_dimension(value)
        return self.rows(items, at, level, padding.inside(rows.row_splits(tf.int64), size))

    def _list(self, value: Any, at: Path, level: int, padding: _Padding) -> Any:
        items, rows = take_off_dimension(value)
        size = shape_of(value)[1]
        if size is not None:
            return self._fixed_size(value, at, level, padding, size)
        splits = rows.row_splits(tf.int64)
        capacity = self._capacity(at, level)
        count = capacity.sizes[level]
        if capacity.is_packed:
            return self._pack(items, splits, at, level, padding, count)
        lengths = padding.apply(splits[1:] - splits[:-1])
        splits = self._check(lengths, splits, at, count)
        self._keep(at, tf.minimum(lengths, count))
        result = self.rows(items, at, level + 1, padding.inside(splits, count))
        return combined(result, tf.sequence_mask(lengths, count))

    def _pack(
        self, items: Any, splits: tf.Tensor, at: Path, level: int, padding: _Padding, count: int
    ) -> Any:
        if padding.sizes:  # the lists of the items that are padding are empty
            lengths = padding.apply(splits[1:] - splits[:-1])
            if self.cuts:  # and those of the items that are cut are left out
                numbers = padding.apply(tf.range(tf.size(splits, splits.dtype) - 1) + 1)
                kept = tf.boolean_mask(numbers, numbers > 0) - 1
                lists = index.gather(with_rows(items, splits), kept)
                items = take_off_dimension(lists)[0]
            splits = row_splits_of(lengths)
        splits = self._fitting(splits, at, count)
        self._keep(at, splits[-1:])
        present = splits[-1]
        if self.cuts:
            items = index.take(items, (slice(0, present),), at)
        items = index.with_zeros(items, tf.cast(count, splits.dtype) - present, count, at)
        result = self.rows(items, at, level + 1)
        result = combined(result, tf.sequence_mask(present, count))
        end = tf.constant([count], splits.dtype)  # the last list has the free places
        return padding.around(with_rows(result, tf.concat([splits[:-1], end], 0)))

    def _capacity(self, at: Path, level: int) -> _Capacity:
        found = self.capacities.get(at.names)
        name = str(at) if at.names else "()"
        if found is None:
            key = repr(str(at)) if at.names else "()"
            fix = f"Give padded={{{key}: the longest list}}, or packed={{{key}: all items}}."
            raise StructureError(name, "a capacity for each list", "none", fix)
        found.levels = max(found.levels, level + 1)
        if level >= len(found.sizes):
            expected = "a capacity for each level of the lists of lists"
            fix = "Give a tuple, the size of the outermost lists first."
            raise StructureError(name, expected, count_text(len(found.sizes), "of them"), fix)
        return found

    def _check(self, lengths: tf.Tensor, splits: tf.Tensor, at: Path, count: int) -> tf.Tensor:
        """Returns row splits that exist only if each list fits; if items are cut, as they are."""
        if self.cuts:
            return splits
        longest = tf.reduce_max(row_lengths_or_zero(splits))
        expected, received = f"lists of at most {count} items", f"one of {LATER}"
        fix = 'Give a larger capacity, or overflow="cut".'
        error = StructureError(at or "()", expected, received, fix)
        return with_checks(assert_op(longest <= count, error, [longest]), splits)

    def _fitting(self, splits: tf.Tensor, at: Path, count: int) -> tf.Tensor:
        """Returns the row splits of packed lists, cut to a number of items or checked."""
        total, rows = splits[-1], tf.size(splits) - 1
        expected = "a record at least, whose list has the free places"
        fix = "Leave out empty batches, or pad the lists: padded=."
        error = StructureError(at or "()", expected, "none", fix)
        checks = required(rows > 0, error)
        if not self.cuts:
            expected = f"at most {count} items in all lists"
            fix = 'Give a larger capacity, or overflow="cut".'
            error = StructureError(at or "()", expected, LATER, fix)
            checks += assert_op(total <= count, error, [total])
        return with_checks(checks, tf.minimum(splits, count) if self.cuts else splits)

    def _keep(self, at: Path, counts: tf.Tensor) -> None:
        """Stores how many items of the lists at a path were not cut."""
        if self.cuts:
            self.cut[at.names] -= tf.reduce_sum(tf.cast(counts, tf.int64))


def items_of_rows(value: Any) -> dict[Names, list[tf.Tensor]]:
    """Returns how many items each row has in all its lists at each path, for each of their levels.

    Args:
        value: A value of one row for each record.
    """
    found: dict[Names, list[tf.Tensor]] = {}
    bounds = tf.range(tf.cast(size_of(value), tf.int64) + 1)
    _add_items_of_rows(value, Path(), bounds, found)
    return found


def _add_items_of_rows(
    value: Any, at: Path, bounds: tf.Tensor, found: dict[Names, list[tf.Tensor]]
) -> None:
    """Adds what `items_of_rows` returns.

    Args:
        value: A value of one row for each item.
        at: Its path.
        bounds: Where the items of each row begin, and where those of the last one end.
        found: What is added to.
    """
    value, valid = split_mask(value, 1)
    if _is_list(value):
        if valid is not None:
            value = null_lists_to_empty(combined(value, valid))
        items, rows = take_off_dimension(value)
        bounds = tf.gather(tf.cast(rows.row_splits(tf.int64), tf.int64), bounds)
        if shape_of(value)[1] is None:
            found.setdefault(at.names, []).append(bounds[1:] - bounds[:-1])
        _add_items_of_rows(items, at, bounds, found)
    elif is_masked(value):
        _add_items_of_rows(value.values, at, bounds, found)
    elif isinstance(value, DenseStructuredTensor):
        for name, part in value._columns.items():
            _add_items_of_rows(part, at / name, bounds, found)


def _is_list(value: FieldValue) -> bool:
    """Returns whether the rows of a value are lists: ragged, or records of rank 2 or more."""
    inner = under_masks(value)
    if isinstance(inner, DenseStructuredTensor):
        return inner.rank > 1
    return isinstance(inner, (tf.RaggedTensor, RaggedStructuredTensor))


def with_null_rows(value: Any, valid: tf.Tensor) -> Any:
    """Returns static records or values whose rows are null, also in fields, where a mask is False.

    Args:
        value: What `to_static` returned, or another value of one row for each record. Lists of
            rows that are not valid have no items.
        valid: The mask, a vector of bools.
    """
    if isinstance(value, DenseStructuredTensor) and value.rank == 1:
        return value._map_parts(lambda part, name: with_null_rows(part, valid) if name else part)
    is_padded = is_masked(value) and (value.mask.shape.rank or 0) > 1
    if is_padded or isinstance(value, (tf.RaggedTensor, RaggedStructuredTensor)):
        return value  # the free places are null already
    return combined(value, valid)
