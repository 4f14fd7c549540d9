"""The shape of records, merged from the shapes of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._authoring.rows import uncut_rows
from extensor._count_text import count_text
from extensor._memory import array_over
from extensor._path import Path
from extensor._protocol.box import box
from extensor._protocol.row_splits import first_difference
from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._protocol.symbolic import is_symbolic
from extensor._struct.field import shape_of
from extensor._struct.masked import is_masked
from extensor._struct.parts import row_parts
from extensor._typing import DTypeLike, FieldValue, ShapeLike
from extensor.errors import DTypeError, StructureError


def shape_of_known_rank(shape: ShapeLike, owner: str) -> tf.TensorShape:
    """Returns a shape as a TensorShape of known rank.

    Raises:
        StructureError: If the rank is unknown (also a ValueError).
    """
    static = tf.TensorShape(shape)
    if static.rank is None:
        fix = "Write None for a dimension of unknown size, such as [None] for a batch."
        raise StructureError(f"{owner}.shape", "a shape of known rank", "shape <unknown>", fix)
    return static


def checked_splits_dtype(dtype: DTypeLike, argument: str = "row_splits_dtype") -> tf.DType:
    """Returns the dtype that an argument gives for row splits.

    Raises:
        DTypeError: If the dtype is neither int64 nor int32 (also a TypeError).
    """
    found = tf.dtypes.as_dtype(dtype)
    if found not in (tf.int64, tf.int32):
        fix = "Leave it out for int64."
        raise DTypeError(argument, "int64 or int32", found.name, fix)
    return found


def common_shape(shape: tf.TensorShape, fields: Mapping[str, Any]) -> tf.TensorShape:
    """Returns `shape` merged with the outer dimensions of all fields.

    Raises:
        StructureError: If the fields do not have the same rows, or rows of different lengths (also
            a ValueError).
    """
    return merge_shape(shape, {}, fields, Path())


def merge_shape(
    shape: tf.TensorShape, kept: Mapping[str, Any], added: Mapping[str, Any], at: Path
) -> tf.TensorShape:
    """Returns `shape`, the shape of records, merged with the outer dimensions of fields.

    Runs no op. Reads row splits only of an eager ragged value in records of rank 2 or more.

    Args:
        shape: The shape of the records.
        kept: Fields that were merged into the shape before.
        added: The other fields.
        at: The path of the records, for errors.

    Raises:
        StructureError: As for `common_shape`.
    """
    rank = shape.rank
    if rank == 0:
        return shape
    found, sizes = shape, shape.as_list()
    for name, value in added.items():
        if _outer_sizes(value, rank) == sizes:  # most fields
            continue
        for value_shape in _outer_shapes(value, rank):
            merged = _merge(found, value_shape, rank)
            if merged is None:
                raise _other_sizes(at / name, found, value_shape, shape, {**kept, **added})
            found, sizes = merged, merged.as_list()
        _expect_mask_of_records(value, rank, at / name)
    if rank > 1:
        fields = {**kept, **added}
        for axis in range(1, rank):
            found = _with_rows(found, axis, fields, at)
    return found


def _outer_sizes(value: FieldValue, rank: int) -> list[int | None] | None:
    """Returns the first sizes of a tensor, or the number of rows of a RaggedTensor; else None.

    The shape of a RaggedTensor is created again each time that it is read, which is slow.
    """
    if isinstance(value, tf.Tensor):
        return None if value.shape.rank is None else value.shape.as_list()[:rank]
    if rank == 1 and isinstance(value, tf.RaggedTensor):
        count = value.row_splits.shape[0]
        return [None if count is None else count - 1]
    return None


def _outer_shapes(value: FieldValue, rank: int) -> list[tf.TensorShape]:
    """Returns the shape of a value; of a type without a shape, the outer sizes of its parts."""
    shape = shape_of(value)
    if shape.rank is not None or isinstance(value, tf.Tensor) or is_symbolic(value):
        return [shape]
    spec: Any = tf.type_spec_from_value(value)
    if not isinstance(spec, StackableTypeSpec):
        return [shape]
    parts = row_parts(value)
    if parts is None:
        parts = box(spec, value, rank) if tf.executing_eagerly() else []
    inner = [each for part in parts for each in _outer_shapes(part, rank)]
    return [each[:rank] for each in inner if (each.rank or 0) >= rank]


def _expect_mask_of_records(value: FieldValue, rank: int, path: Path) -> None:
    """Raises StructureError if a mask has fewer dimensions than the records that get it."""
    while not isinstance(value, tf.Tensor) and is_masked(value):
        mask = shape_of(value.mask)
        if mask.rank is not None and mask.rank < rank:
            expected = f"a mask with the {rank} dimensions of the records"
            fix = (
                "Mask single values: "
                "MaskedTensor(values, tf.broadcast_to(mask[:, tf.newaxis], tf.shape(values)))."
            )
            raise StructureError(path, expected, f"a mask of shape {mask}", fix)
        value = value.values


def _merge(shape: tf.TensorShape, value: tf.TensorShape, rank: int) -> tf.TensorShape | None:
    """Returns the shape of records merged with a field's shape; None if they disagree."""
    if value.rank is None:
        return shape
    if value.rank < rank:
        return None
    unknown = False
    for axis in range(rank):
        size, other = shape[axis], value[axis]
        if size != other:
            if size is None:
                unknown = True
            elif other is not None:
                return None
    return shape.merge_with(value[:rank]) if unknown else shape


def _other_sizes(
    path: Path,
    found: tf.TensorShape,
    received: tf.TensorShape,
    given: tf.TensorShape,
    fields: Mapping[str, Any],
) -> StructureError:
    """Returns the error for a field of other sizes than the records.

    Args:
        path: The path of the field.
        found: The shape of the records so far.
        received: The shape of the field.
        given: The shape that the caller gave, without what fields add.
        fields: All fields, to name the one that the sizes come from.
    """
    whose = ", the shape of the records"
    rank = given.rank
    if _merge(given, received, rank) is not None:
        for name, value in fields.items():
            if _merge(received[:rank], shape_of(value), rank) is None:
                whose = f", as that of {Path(name)}"
                break
    return other_sizes(path, f"{found}{whose}", str(received))


def other_sizes(path: Path, expected: str, received: str) -> StructureError:
    """Returns the error for a field of another shape than the records."""
    fix = "Give every field one value for each record."
    return StructureError(
        path, f"a value whose shape begins with {expected}", f"shape {received}", fix
    )


def _with_rows(
    shape: tf.TensorShape, axis: int, fields: Mapping[str, Any], at: Path
) -> tf.TensorShape:
    """Returns a shape with the size that the rows of all fields have along an axis."""
    size, source = shape[axis], None  # the field that the size comes from
    seen: list[Any] = []
    for name, value in fields.items():
        splits = row_splits_at(value, axis)
        if splits is None or any(splits is other for other in seen):
            continue
        if not hasattr(splits, "numpy") or splits.shape[0] == 1:  # part of a graph, or no rows
            continue
        seen.append(splits)
        lengths = np.diff(array_over(splits))
        if size is None:
            size, source = int(lengths[0]), name
        row = first_difference(lengths, size)
        if row is None:
            continue
        if source == name:
            raise rows_of_many_lengths(at / name, shape, size, row, lengths[row])
        dense = (n for n, v in fields.items() if n != name and _size(v, axis) == size)
        whose = length_text(next(dense, None), shape, size)
        if source is not None:
            whose = f"those of {Path(source)}"
        raise other_rows(at / name, whose, row, lengths[row])
    return tf.TensorShape([*shape[:axis], size, *shape[axis + 1 :]])


_RAGGED_FIX = (
    "Records in rows of different lengths are made by RaggedStructuredTensor.from_row_splits."
)


def length_text(name: str | None, shape: tf.TensorShape, size: int | str) -> str:
    """Returns words for the length of rows that a field has, or the shape of records."""
    if name is None:
        return f"the shape {shape} says ({_elements(size)})"
    return f"those of {Path(name)} ({_elements(size)})"


def other_rows(path: Path, whose: str, row: int | str | None, length: int | str) -> StructureError:
    """Returns the error for a row of a field whose length is not that of other rows."""
    expected = f"rows as long as {whose}"
    return StructureError(path, expected, f"row {row} of {_elements(length)}", _RAGGED_FIX)


def rows_of_many_lengths(
    path: Path,
    shape: tf.TensorShape | str,
    first: int | str,
    row: int | str | None,
    length: int | str,
) -> StructureError:
    """Returns the error for a field whose rows differ in length, in dense records."""
    expected = f"rows of one length, because the records have shape {shape}"
    received = f"row 0 of {_elements(first)} and row {row} of {_elements(length)}"
    return StructureError(path, expected, received, _RAGGED_FIX)


def _elements(count: int | str) -> str:
    return count_text(count, "elements")


def _size(value: FieldValue, axis: int) -> int | None:
    shape = shape_of(value)
    return shape[axis] if shape.rank is not None and shape.rank > axis else None


def row_splits_at(value: FieldValue, axis: int) -> tf.Tensor | None:
    """Returns the row splits of one dimension of a value, or None if it is not ragged there."""
    rows = uncut_rows(value) if axis else None
    for _ in range(axis - 1):
        rows = None if rows is None else uncut_rows(rows[0])
    return None if rows is None else rows[1]
