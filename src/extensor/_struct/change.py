"""Changes of the numbers of a field without loss: to another unit, scale or dtype."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from extensor._memory import array_over
from extensor._path import PathLike
from extensor._struct import index
from extensor._struct.inside import map_inside
from extensor._struct.masked import is_masked, is_union, under_masks
from extensor._struct.meaning import (
    WHOLE,
    Meaning,
    are_decimals,
    can_change,
    common_meaning,
    different_meanings,
    factor_of,
)
from extensor._struct.row_splits import outer_sizes
from extensor._tf import stacked, unstacked
from extensor._typing import FieldValue
from extensor.errors import DTypeError

if TYPE_CHECKING:
    from extensor._struct.tensor import StructuredTensor


@functools.cache
def holds_dtype(want: tf.DType, have: tf.DType) -> bool:
    """Returns whether a dtype holds the numbers of another one, as NumPy's safe cast.

    int64 becomes float64; an integer that float64 does not hold is found when it is cast.

    >>> from extensor._struct.change import holds_dtype
    >>> import tensorflow as tf
    >>> [holds_dtype(want, tf.int32) for want in (tf.float64, tf.float32)]
    [True, False]
    """
    if want == have:
        return True
    numbers = all(d.is_integer or d.is_floating or d.is_complex for d in (want, have))
    return numbers and bool(np.can_cast(have.as_numpy_dtype, want.as_numpy_dtype))


def changes_without_loss(
    want: tf.TypeSpec, have: tf.TypeSpec, meanings: tuple[Meaning, Meaning]
) -> bool:
    """Returns whether the numbers of a field change to those of another field without loss.

    Args:
        want: The spec of the other field.
        have: The spec of the field.
        meanings: The meaning of the numbers of the other field, and of the field.
    """
    dtypes = dtype_of(want), dtype_of(have)
    if None in dtypes:
        return can_change(*meanings)
    if meanings[0] is None and meanings[1] is not None:  # a decimal of 1.5 is no 15
        is_number = are_decimals(meanings[1]) and meanings[1] != WHOLE
        return dtypes[0] == dtypes[1] and not is_number
    has_units = meanings[0] is not None and meanings[1] is not None
    return can_change(*meanings) and (has_units or holds_dtype(*dtypes))


def wider_of_two(specs: tuple[Any, Any], meanings: tuple[Meaning, Meaning]) -> int | None:
    """Returns which of two fields holds the numbers of both: 0 or 1; None if neither does.

    Args:
        specs: The specs of the fields.
        meanings: What their numbers mean.
    """
    order: tuple[int, ...] = (0, 1)
    if meanings[0] != meanings[1]:
        found, want = common_meaning(*meanings)
        order = (meanings.index(want),) if found else ()
    for want in order:
        have = 1 - want
        if changes_without_loss(specs[want], specs[have], (meanings[want], meanings[have])):
            return want
    return None


def needs_change(want: tf.TypeSpec, have: tf.TypeSpec, meanings: tuple[Meaning, Meaning]) -> bool:
    """Returns whether the numbers of a field have another unit or dtype than wanted."""
    if None not in meanings and meanings[0] != meanings[1]:
        return True
    dtypes = dtype_of(want), dtype_of(have)
    return None not in dtypes and dtypes[0] != dtypes[1]


def dtype_of(value_or_spec: FieldValue | tf.TypeSpec) -> tf.DType | None:
    """Returns the dtype of tensors, also ragged or masked; None for values of other types."""
    inner = under_masks(value_or_spec)
    return inner.dtype if isinstance(inner, _TENSORS) else None


_TENSORS = (tf.Tensor, tf.Variable, tf.RaggedTensor, tf.TensorSpec, tf.RaggedTensorSpec)


def change_numbers(
    value: FieldValue, want: Meaning, have: Meaning, spec: tf.TypeSpec, path: PathLike
) -> FieldValue:
    """Returns a field's value with its numbers changed to another meaning and dtype.

    Args:
        value: A tensor, or a ragged, masked or union value of tensors.
        want: The meaning of the result.
        have: The meaning of the value.
        spec: The spec of the result.
        path: The path of the field, for errors.

    Raises:
        DTypeError: If the change loses information, or a number does not fit. In a graph, numbers
            are not checked (also a TypeError).
    """
    meanings: tuple[Any, Any] = (want, have)
    if not can_change(want, have):
        raise different_meanings(want, have, path)
    if is_union(value):
        wanted, had = (dict[str, Any](each or ()) for each in meanings)
        variants = {
            name: change_numbers(rows, wanted.get(name), had.get(name), spec.variants[name], path)
            if _is_changed(spec.variants[name], rows)
            else rows
            for name, rows in value.variants.items()
        }
        return value._of_parts(value.codes, variants, value.names)
    spec = spec.values if is_masked(spec) else spec
    if is_masked(value):
        return type(value)._of_parts(_change_shown(value, want, have, spec, path), value.mask)
    if isinstance(value, tf.RaggedTensor):
        return map_inside(value, lambda part, _: change_numbers(part, want, have, spec, path))
    if want is None or have is None or want == have:
        return _with_dtype(value, spec.dtype, path)
    return _with_unit(value, want, have, spec.dtype, path)


def _change_shown(
    masked: FieldValue, want: Meaning, have: Meaning, spec: tf.TypeSpec, path: PathLike
) -> FieldValue:
    """Returns the changed values of a MaskedTensor. A number below a null is no error."""
    values = masked.values
    try:
        return change_numbers(values, want, have, spec, path)
    except DTypeError:
        if not isinstance(values, (tf.Tensor, tf.RaggedTensor)):
            raise
        zero = tf.zeros([], values.dtype)
        return change_numbers(masked.fill(zero), want, have, spec, path)


def _with_dtype(value: FieldValue, dtype: tf.DType, path: PathLike) -> tf.Tensor:
    if value.dtype == dtype:
        return value
    cast = tf.cast(value, dtype)
    if value.dtype in (tf.int64, tf.uint64) and hasattr(value, "numpy"):
        back = array_over(tf.cast(cast, value.dtype))
        if (back != array_over(value)).any():
            expected = f"integers that {dtype.name} holds exactly"
            fix = "Choose the dtype where the data is read, with schema=."
            raise DTypeError(path, expected, f"other numbers of {value.dtype.name}", fix)
    return cast


def _is_changed(want: tf.TypeSpec, have: FieldValue | tf.TypeSpec) -> bool:
    """Returns whether the rows of a variant may be changed: they are numbers of a fitting dtype."""
    dtypes = dtype_of(want), dtype_of(have)
    return None not in dtypes and holds_dtype(*dtypes)


def _with_unit(
    value: FieldValue, want: Any, have: Any, dtype: tf.DType, path: PathLike
) -> tf.Tensor:
    """Returns a tensor with its integers changed from one unit to another one."""
    factor = factor_of(want, have)
    days = 0 if factor else want.size // have.size
    if hasattr(value, "numpy"):
        numbers, most = array_over(value), dtype.max // (factor or 1)
        fits = (
            not (numbers % days).any() if days else ((-most <= numbers) & (numbers <= most)).all()
        )
        if not fits:
            expected = f"numbers that {dtype.name} holds as {want}"
            fix = "Choose the type where the data is read, with schema=."
            raise DTypeError(path, expected, f"other numbers: {have}", fix)
    wide = value if value.dtype == tf.int64 else tf.cast(value, tf.int64)
    wide = wide // tf.constant(days, tf.int64) if days else wide * tf.constant(factor, tf.int64)
    return wide if dtype == tf.int64 else tf.cast(wide, dtype)


def with_dtype_of(spec: tf.TypeSpec, like: tf.TypeSpec) -> tf.TypeSpec:
    """Returns the spec of a field with the dtype of another spec of the same kind."""
    like = like.values if is_masked(like) else like
    if is_masked(spec):
        return type(spec)(with_dtype_of(spec.values, like), spec.mask)
    if is_union(spec):
        variants = {
            name: with_dtype_of(spec.variants[name], like.variants[name])
            if name in like.names and _is_changed(like.variants[name], spec.variants[name])
            else spec.variants[name]
            for name in spec.names
        }
        return type(spec)(variants, codes=spec.codes)
    if isinstance(spec, tf.RaggedTensorSpec):
        return tf.RaggedTensorSpec(spec.shape, like.dtype, spec.ragged_rank, spec.row_splits_dtype)
    return tf.TensorSpec(spec.shape, like.dtype)


def with_inner_sizes(spec: tf.TypeSpec, sizes: tf.TensorShape) -> tf.TypeSpec:
    """Returns the spec of a field of tensors with other sizes of its last dimensions."""
    if is_masked(spec):
        return type(spec)(with_inner_sizes(spec.values, sizes), spec.mask)
    shape = spec.shape[: -len(sizes)].concatenate(sizes)
    if isinstance(spec, tf.RaggedTensorSpec):
        return tf.RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    return tf.TensorSpec(shape, spec.dtype)


def null_field(spec: tf.TypeSpec, records: StructuredTensor) -> FieldValue:
    """Returns a field of records in which all values are null.

    Args:
        spec: The spec of the field.
        records: The records.
    """
    row = spec
    for _ in range(records.rank):
        row = unstacked(row)
    one = stacked(row, 1).cast([None])
    sizes = outer_sizes(records, records.rank) if records.rank else []
    return index.gather(one, tf.zeros(sizes, tf.int32))
