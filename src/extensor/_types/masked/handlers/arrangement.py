"""Operations that move, repeat, select or combine the values of MaskedTensors, and conversion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import tensorflow as tf

from extensor._types.masked import item
from extensor._types.masked.check import Mask, Values
from extensor._types.masked.value import Axes, MaskedTensor, Op, Operand
from extensor.authoring import (
    batch_item,
    cast_value,
    castable_type,
    concat_rows,
    cut_rows,
    lossless,
    num_rows,
    stack_rows,
    take_rows,
)
from extensor.dispatch import implements, named_arguments
from extensor.errors import DTypeError
from extensor.typing import DTypeLike, TensorLike


def _change_both(x: MaskedTensor, change: Callable[[Any], Any], items: bool = False) -> Any:
    """Returns a MaskedTensor with the same change applied to values and mask.

    Args:
        x: A MaskedTensor.
        change: Takes values, or a mask, and returns a value, or a list of values.
        items: Whether the change applies to a mask of lower rank than the values without expanding
            it.
    """
    if not item.is_tensor(x.values):
        return NotImplemented
    values, mask = (
        change(x.values),
        change(x.mask if items else item.element_mask(x.values, x.mask)),
    )
    if isinstance(values, list):
        pairs = zip(cast("list[Any]", values), mask, strict=True)
        return [MaskedTensor._of_parts(*pair) for pair in pairs]
    return MaskedTensor._of_parts(values, mask)


@implements(
    *(tf.reshape, tf.transpose, tf.tile, tf.broadcast_to, tf.roll, tf.slice),
    *(tf.strided_slice, tf.gather_nd, tf.reverse_sequence, tf.repeat, tf.linalg.matrix_transpose),
    *(tf.image.flip_left_right, tf.image.flip_up_down, tf.image.rot90, tf.image.transpose),
    on=MaskedTensor,
)
def rearrange(op: Op, x: MaskedTensor, *args: object) -> MaskedTensor:
    """Returns rearranged values with a mask that is rearranged in the same way."""
    if not isinstance(x, MaskedTensor) or any(isinstance(arg, MaskedTensor) for arg in args):
        return NotImplemented
    outer = x.mask.shape.rank
    if op is tf.tile and isinstance(x.values, tf.RaggedTensor) and outer is not None:
        multiples: Any = args[0]
        return MaskedTensor._of_parts(
            tf.tile(x.values, multiples), tf.tile(x.mask, multiples[:outer])
        )
    return _change_both(x, lambda part: op(part, *args))


@implements(tf.reverse, tf.expand_dims, tf.squeeze, on=MaskedTensor)
def rearrange_along(op: Op, x: MaskedTensor, axis: Axes = None, *args: object) -> MaskedTensor:
    """Returns reversed values, or values with one more dimension, or fewer."""
    place = item.static_value(axis)
    if place is None or x.shape.rank is None:
        return rearrange(op, x, axis, *args)
    rank = x.shape.rank + (op is tf.expand_dims)
    places: list[int] = [p + rank if p < 0 else p for p in np.reshape(place, [-1]).tolist()]
    outer = x.mask.shape.rank
    of_mask = [outer is not None and p < outer + (op is tf.expand_dims) for p in places]
    axis = places[0] if op is tf.expand_dims else places
    if isinstance(x.values, tf.RaggedTensor) and outer is not None and not all(of_mask):
        # An element mask would lose null lists.
        if not any(of_mask):
            return MaskedTensor._of_parts(op(x.values, axis), x.mask)
        inner = rearrange_along(op, x, [p for p in places if p >= outer])
        return rearrange_along(op, inner, [p for p in places if p < outer])
    return _change_both(x, lambda part: op(part, axis), all(of_mask))


@implements(tf.unstack, tf.split, on=MaskedTensor)
def split(
    op: Op, value: MaskedTensor, number: TensorLike | None = None, axis: Axes = 0, *args: object
) -> list[MaskedTensor]:
    """Returns the slices along an axis, or the parts of values that are split along it."""
    if not isinstance(value, MaskedTensor):
        return NotImplemented
    axis, items = _axis_of_mask(value, axis)
    if op is tf.unstack and not isinstance(value.values, tf.Tensor):
        if axis != 0:
            return NotImplemented
        number = value.shape[0] if number is None else number
        return [value[row] for row in tf.unstack(tf.range(num_rows(value)), number)]
    return _change_both(value, lambda part: op(part, number, axis, *args), items)


def _axis_of_mask(x: MaskedTensor, axis: Axes, new: int = 0) -> tuple[Any, bool]:
    """Returns the axis, not negative if it is static, and whether the mask has this axis.

    Args:
        x: A MaskedTensor.
        axis: The axis of an operation.
        new: The number of dimensions that the operation adds.
    """
    known, rank, outer = item.static_value(axis), x.shape.rank, x.mask.shape.rank
    if known is None or (known < 0 and rank is None):
        return axis, False
    known = int(known) + (rank + new if known < 0 else 0)
    return known, outer is not None and known < outer + new


@implements(tf.gather, on=MaskedTensor)
def gather(params: MaskedTensor, indices: Operand, *args: Any) -> MaskedTensor:
    """Returns the values, rows or records at the given indices."""
    if not isinstance(params, MaskedTensor) or isinstance(indices, MaskedTensor):
        return NotImplemented
    given = named_arguments(tf.gather, (params, indices, *args))
    axis, batch_dims = given.get("axis"), given.get("batch_dims", 0)
    axis, items = _axis_of_mask(params, batch_dims if axis is None else axis)
    if item.is_tensor(params.values):
        return _change_both(
            params, lambda part: tf.gather(part, indices, axis=axis, batch_dims=batch_dims), items
        )
    outer = params.mask.shape.rank
    if outer is not None and outer <= batch_dims:  # each row stays where it is
        chosen = tf.gather(params.values, indices, axis=axis, batch_dims=batch_dims)
        return MaskedTensor.combined(chosen, params.mask)
    if isinstance(indices, tf.RaggedTensor):
        if (axis, batch_dims) == (1, 1):
            return _at_array(params, indices)
        if axis != 0 or batch_dims:
            return NotImplemented
        taken = _take(params, indices.flat_values)
        values, mask = taken.values, taken.mask
        for splits in reversed(indices.nested_row_splits):
            values, mask = cut_rows(values, splits), cut_rows(mask, splits)
        return MaskedTensor._of_parts(values, mask)
    indices = tf.convert_to_tensor(indices)
    if axis != 0 or batch_dims or indices.shape.rank != 1:
        return NotImplemented
    return _take(params, indices)


def _take(x: MaskedTensor, places: tf.Tensor) -> MaskedTensor:
    return MaskedTensor._of_parts(take_rows(x.values, places), tf.gather(x.mask, places))


@implements(tf.boolean_mask, on=MaskedTensor)
def boolean_mask(
    tensor: Operand, mask: Operand, axis: Axes = None, name: str | None = "boolean_mask"
) -> MaskedTensor | tf.Tensor:
    """Returns the values, rows or records for which `mask` is True and valid."""
    chosen = mask.fill(False) if isinstance(mask, MaskedTensor) else tf.convert_to_tensor(mask)
    if not isinstance(tensor, MaskedTensor):
        return tf.boolean_mask(tensor, chosen, axis, name)
    axis, items = _axis_of_mask(tensor, axis or 0)
    if item.is_tensor(tensor.values) and not isinstance(tensor.values, tf.RaggedTensor):
        outer = tensor.mask.shape.rank
        items = items and chosen.shape.rank is not None and axis + chosen.shape.rank <= outer
        return _change_both(tensor, lambda part: tf.boolean_mask(part, chosen, axis), items)
    if axis != 0 or chosen.shape.rank != 1:
        return NotImplemented
    return _take(tensor, tf.where(chosen)[:, 0])


@implements(tf.__operators__.getitem, on=MaskedTensor)
def getitem(tensor: MaskedTensor, slice_spec: Any, var: object = None) -> MaskedTensor:
    """Returns some values, rows or records, or a field of records."""
    if not isinstance(tensor, MaskedTensor) or isinstance(slice_spec, MaskedTensor):
        return NotImplemented
    values, mask, outer = tensor.values, tensor.mask, tensor.mask.shape.rank
    array = _array_key(slice_spec)
    if array is not None and _holds_records(values):
        return _at_array(tensor, array)
    _expect_positions(slice_spec)
    is_many = isinstance(slice_spec, (list, tuple))
    keys: tuple[Any, ...] = tuple(cast("Any", slice_spec)) if is_many else (slice_spec,)
    if any(isinstance(key, MaskedTensor) for key in keys):
        return NotImplemented
    if item.masks_elements(values, mask) or outer is None:
        return MaskedTensor._of_parts(values[keys], mask[keys])
    places = [key for key in keys if not isinstance(key, str)]
    if any(key is None or key is Ellipsis for key in places):
        if not item.is_tensor(values):
            return NotImplemented
        if isinstance(values, tf.RaggedTensor):
            return MaskedTensor.combined(
                values[keys], mask[_keys_of_mask(keys, values.shape.rank, outer)]
            )
        return MaskedTensor._of_parts(values[keys], item.element_mask(values, mask)[keys])
    key = keys[0] if len(keys) == 1 else keys
    part = values[key] if hasattr(values, "__getitem__") else batch_item(values, key)
    places = tuple(places[:outer])
    return MaskedTensor.combined(part, mask[places] if places else mask)


def _keys_of_mask(keys: Sequence[Any], rank: int, outer: int) -> tuple[Any, ...]:
    """Returns the keys of the outer dimensions; those of new ones behind these are among them."""
    missing = rank - sum(key is not None and key is not Ellipsis for key in keys)
    found: list[Any] = []
    for key in keys:
        found += [slice(None)] * missing if key is Ellipsis else [key]
    ends = [i for i, key in enumerate(found) if key is not None][outer:]
    return tuple(found[: ends[0]] if ends else found)


def _holds_records(values: Values) -> bool:
    while isinstance(values, MaskedTensor):
        values = values.values
    return not item.is_tensor(values)


def _array_key(key: Any) -> Mask | None:
    """Returns a key of positions or bools, as records take them, as a tensor; else None."""
    if isinstance(key, list):
        items: list[Any] = key
        is_array = bool(items) and all(type(each) in (int, bool) for each in items)
        return tf.constant(items) if is_array else None
    is_array = isinstance(key, (tf.Tensor, np.ndarray)) and len(key.shape) == 1
    if is_array or isinstance(key, tf.RaggedTensor):
        return key if isinstance(key, tf.RaggedTensor) else tf.convert_to_tensor(key)
    return None


def _at_array(x: MaskedTensor, key: Mask) -> MaskedTensor:
    """Returns the records, or the items of each list of records, that a key chooses."""
    if not isinstance(key, tf.RaggedTensor):
        return boolean_mask(x, key) if key.dtype == tf.bool else gather(x, key)
    chosen = x.values[key]
    if x.mask.shape.rank == 1:  # each list stays where it is
        return MaskedTensor.combined(chosen, x.mask)
    if key.dtype == tf.bool:
        return MaskedTensor._of_parts(chosen, tf.ragged.boolean_mask(x.mask, key))
    return MaskedTensor._of_parts(chosen, tf.gather(x.mask, key, batch_dims=1))


def _expect_positions(slice_spec: Any) -> None:
    """Raises if a key of tensors is none of those that TensorFlow has."""
    keys: Any = slice_spec if isinstance(slice_spec, (list, tuple)) else [slice_spec]
    for key in keys:
        is_array = isinstance(key, (tf.Tensor, np.ndarray)) and len(key.shape) > 0
        if is_array or isinstance(key, tf.RaggedTensor):
            received = f"{type(key).__name__} of shape {key.shape}"
            fix = "Use tf.gather for positions, tf.boolean_mask for bools."
            raise DTypeError("MaskedTensor[...]", "ints, slices, ... or None", received, fix)


@implements(tf.pad, on=MaskedTensor)
def pad(
    tensor: MaskedTensor,
    paddings: TensorLike,
    mode: str = "CONSTANT",
    value: object = 0,
    *_: object,
) -> MaskedTensor:
    """Returns padded values; padding is valid only if it repeats valid values."""
    if not isinstance(tensor, MaskedTensor) or not isinstance(tensor.values, tf.Tensor):
        return NotImplemented
    if isinstance(value, MaskedTensor):
        return NotImplemented
    mask = item.element_mask(tensor.values, tensor.mask)
    values = tf.pad(tensor.values, paddings, mode, value)
    if mode.upper() == "CONSTANT":
        return MaskedTensor._of_parts(values, tf.pad(mask, paddings, mode, False))
    # TensorFlow has no kernel for mirror padding of bools.
    numbers = tf.pad(tf.cast(mask, tf.int32), paddings, mode)
    return MaskedTensor._of_parts(values, tf.cast(numbers, tf.bool))


_OF_ROWS = {tf.concat: concat_rows, tf.stack: stack_rows}


@implements(*_OF_ROWS, on=MaskedTensor)
def join(op: Op, values: object, axis: Axes = 0, *_: object) -> MaskedTensor:
    """Returns values concatenated, or stacked along a new dimension; all plain values are valid."""
    if not isinstance(values, (list, tuple)):
        return values if op is tf.concat and isinstance(values, MaskedTensor) else NotImplemented
    masked = [value for value in values if isinstance(value, MaskedTensor)]
    if len(set(map(_mask_ranks, masked))) > 1 and not all(
        isinstance(value.values, tf.Tensor) for value in masked
    ):
        spec: Any = tf.type_spec_from_value(values[0])
        for value in values[1:]:
            spec = spec and castable_type(spec, tf.type_spec_from_value(value))
        return op([cast_value(spec, value) for value in values], axis) if spec else NotImplemented
    aligned = _parts_to_join(cast("Any", values), axis, int(op is tf.stack))
    if aligned is None:
        return NotImplemented
    parts, masks, place = aligned
    if all(map(item.is_tensor, parts)):
        return MaskedTensor._of_joined(op(parts, place), op, masks, place)
    if place != 0:
        return NotImplemented
    are_masked = all(isinstance(part, MaskedTensor) for part in parts)
    joined = op(parts, 0) if are_masked else _OF_ROWS[op](parts)
    return MaskedTensor._of_joined(joined, op, masks)


def _mask_ranks(value: Any) -> tuple[int | None, ...]:
    """Returns the rank of the mask of a value, and those of the masks in it."""
    if not isinstance(value, MaskedTensor):
        return ()
    return (value.mask.shape.rank, *_mask_ranks(value.values))


def _parts_to_join(
    values: Sequence[Values | TensorLike], axis: Axes, new: int
) -> tuple[list[Any], list[Any], Any] | None:
    """Returns values, masks of the same form, and the axis; None if this is not possible.

    Args:
        values: MaskedTensors and plain values.
        axis: The axis of the concatenation or stack.
        new: The number of dimensions that the operation adds.
    """
    masked = [value for value in values if isinstance(value, MaskedTensor)]
    first = masked[0]
    ranks = {value.mask.shape.rank for value in masked}
    place, in_items = _axis_of_mask(first, axis, new)
    in_items = in_items and len(ranks) == 1
    parts: list[Any] = []
    masks: list[Any] = []
    for value in values:
        if not isinstance(value, MaskedTensor):
            if item.is_tensor(first.values) and not item.is_tensor(value):
                value = tf.convert_to_tensor(value, first.dtype)
            parts.append(value)
            masks.append(item.all_valid(value, first.mask.shape.rank if in_items else None))
            continue
        parts.append(value.values)
        if in_items:
            masks.append(value.mask)
        elif item.is_tensor(value.values):
            masks.append(item.element_mask(value.values, value.mask))
        else:
            return None
    return parts, masks, place


# Conversion to tensors, which have no mask.


_PATH = "tf.convert_to_tensor"


@implements(tf.convert_to_tensor, on=MaskedTensor)
def convert_to_tensor(value: MaskedTensor, dtype: DTypeLike | None = None, *_: object) -> tf.Tensor:
    """Returns the values; nothing may be null."""
    inner = value
    while isinstance(inner, MaskedTensor):
        inner = inner.values
    if not isinstance(inner, tf.Tensor):
        return NotImplemented
    values = value.unmasked(_PATH)
    if dtype is None:
        return values
    dtype = tf.dtypes.as_dtype(dtype)
    return tf.cast(lossless(values, dtype, _PATH), dtype)
