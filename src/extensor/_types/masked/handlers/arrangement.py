"""Operations that move, repeat, select or combine the values of MaskedTensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import tensorflow as tf

from extensor._types.masked import item
from extensor._types.masked.value import MaskedTensor
from extensor.authoring import batch_item, concat_rows, cut_rows, stack_rows, take_rows
from extensor.dispatch import implements
from extensor.errors import DTypeError


def _both(x: Any, change: Callable[[Any], Any], items: bool = False) -> Any:
    """Returns a MaskedTensor with the same change applied to values and mask.

    Args:
        x: A MaskedTensor.
        change: Takes values, or a mask, and returns a value, or a list of values.
        items: Whether the change applies to a mask of lower rank than the values without expanding
            it.
    """
    if not item.is_tensor(x.values):
        return NotImplemented
    values, mask = change(x.values), change(x.mask if items else item.elements(x.values, x.mask))
    if isinstance(values, list):
        pairs = zip(cast("list[Any]", values), mask, strict=True)
        return [MaskedTensor.of_parts(*pair) for pair in pairs]
    return MaskedTensor.of_parts(values, mask)


@implements(
    *(tf.reshape, tf.transpose, tf.tile, tf.squeeze, tf.broadcast_to, tf.roll, tf.slice),
    *(tf.strided_slice, tf.gather_nd, tf.reverse_sequence, tf.repeat, tf.linalg.matrix_transpose),
    *(tf.image.flip_left_right, tf.image.flip_up_down, tf.image.rot90, tf.image.transpose),
    on=MaskedTensor,
)
def rearrange(op: Any, x: Any, *args: Any) -> Any:
    """Returns rearranged values with a mask that is rearranged in the same way."""
    if not isinstance(x, MaskedTensor) or any(isinstance(arg, MaskedTensor) for arg in args):
        return NotImplemented
    return _both(x, lambda part: op(part, *args))


@implements(tf.reverse, tf.expand_dims, on=MaskedTensor)
def rearrange_along(op: Any, x: Any, axis: Any, *args: Any) -> Any:
    """Returns reversed values, or values with one more dimension."""
    place = item.static(axis)
    if place is None or x.shape.rank is None:
        return rearrange(op, x, axis, *args)
    rank = x.shape.rank + (op is tf.expand_dims)
    places: list[int] = [p + rank if p < 0 else p for p in np.reshape(place, [-1]).tolist()]
    outer = x.mask.shape.rank
    items = outer is not None and all(p < outer + (op is tf.expand_dims) for p in places)
    axis = places[0] if op is tf.expand_dims else places
    return _both(x, lambda part: op(part, axis), items)


@implements(tf.unstack, on=MaskedTensor)
def unstack(value: Any, num: Any = None, axis: Any = 0, *_: Any) -> Any:
    """Returns the slices along an axis."""
    axis, items = _outer(value, axis)
    return _both(value, lambda part: tf.unstack(part, num, axis), items)


@implements(tf.split, on=MaskedTensor)
def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None, *_: Any) -> Any:
    """Returns the parts of values that are split along an axis."""
    if not isinstance(value, MaskedTensor):
        return NotImplemented
    axis, items = _outer(value, axis)
    return _both(value, lambda part: tf.split(part, num_or_size_splits, axis, num), items)


def _outer(x: Any, axis: Any) -> tuple[Any, bool]:
    """Returns the axis, not negative if it is static, and whether the mask has this axis."""
    known, rank = item.static(axis), x.shape.rank
    if known is None or (known < 0 and rank is None):
        return axis, False
    known = int(known) + (rank if known < 0 else 0)
    return known, x.mask.shape.rank is not None and known < x.mask.shape.rank


@implements(tf.gather, on=MaskedTensor)
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: Any = 0,
    *_: Any,
) -> Any:
    """Returns the values, rows or records at the given indices."""
    if not isinstance(params, MaskedTensor) or isinstance(indices, MaskedTensor):
        return NotImplemented
    axis, items = _outer(params, batch_dims if axis is None else axis)
    if item.is_tensor(params.values):
        return _both(
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
        return MaskedTensor.of_parts(values, mask)
    indices = tf.convert_to_tensor(indices)
    if axis != 0 or batch_dims or indices.shape.rank != 1:
        return NotImplemented
    return _take(params, indices)


def _take(x: Any, places: Any) -> Any:
    return MaskedTensor.of_parts(take_rows(x.values, places), tf.gather(x.mask, places))


@implements(tf.boolean_mask, on=MaskedTensor)
def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: Any = "boolean_mask") -> Any:
    """Returns the values, rows or records for which `mask` is True and valid."""
    chosen = mask.fill(False) if isinstance(mask, MaskedTensor) else tf.convert_to_tensor(mask)
    if not isinstance(tensor, MaskedTensor):
        return tf.boolean_mask(tensor, chosen, axis, name)
    axis, items = _outer(tensor, axis or 0)
    if item.is_tensor(tensor.values):
        if isinstance(tensor.values, tf.RaggedTensor):
            if axis != 0 or chosen.shape.rank != 1:
                return NotImplemented
            return _take(tensor, tf.where(chosen)[:, 0])
        outer = tensor.mask.shape.rank
        items = items and chosen.shape.rank is not None and axis + chosen.shape.rank <= outer
        return _both(tensor, lambda part: tf.boolean_mask(part, chosen, axis), items)
    if axis != 0 or chosen.shape.rank != 1:
        return NotImplemented
    return _take(tensor, tf.where(chosen)[:, 0])


@implements(tf.__operators__.getitem, on=MaskedTensor)
def getitem(tensor: Any, slice_spec: Any, var: Any = None) -> Any:
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
    if item.is_whole(values, mask) or outer is None:
        return MaskedTensor.of_parts(values[keys], mask[keys])
    places = [key for key in keys if not isinstance(key, str)]
    if any(key is None or key is Ellipsis for key in places):
        if not item.is_tensor(values):
            return NotImplemented
        return MaskedTensor.of_parts(values[keys], item.elements(values, mask)[keys])
    key = keys[0] if len(keys) == 1 else keys
    part = values[key] if hasattr(values, "__getitem__") else batch_item(values, key)
    places = tuple(places[:outer])
    return MaskedTensor.combined(part, mask[places] if places else mask)


def _holds_records(values: Any) -> bool:
    while isinstance(values, MaskedTensor):
        values = values.values
    return not item.is_tensor(values)


def _array_key(key: Any) -> Any:
    """Returns a key of positions or bools, as records take them, as a tensor; else None."""
    if isinstance(key, list):
        items: list[Any] = key
        is_array = bool(items) and all(type(each) in (int, bool) for each in items)
        return tf.constant(items) if is_array else None
    is_array = isinstance(key, (tf.Tensor, np.ndarray)) and len(key.shape) == 1
    if is_array or isinstance(key, tf.RaggedTensor):
        return key if isinstance(key, tf.RaggedTensor) else tf.convert_to_tensor(key)
    return None


def _at_array(x: Any, key: Any) -> Any:
    """Returns the records, or the items of each list of records, that a key chooses."""
    if not isinstance(key, tf.RaggedTensor):
        return boolean_mask(x, key) if key.dtype == tf.bool else gather(x, key)
    chosen = x.values[key]
    if x.mask.shape.rank == 1:  # each list stays where it is
        return MaskedTensor.combined(chosen, x.mask)
    if key.dtype == tf.bool:
        return MaskedTensor.of_parts(chosen, tf.ragged.boolean_mask(x.mask, key))
    return MaskedTensor.of_parts(chosen, tf.gather(x.mask, key, batch_dims=1))


def _expect_positions(slice_spec: Any) -> None:
    """Raises if a key of tensors is none of those that TensorFlow has."""
    keys: Any = slice_spec if isinstance(slice_spec, (list, tuple)) else [slice_spec]
    for key in keys:
        is_array = isinstance(key, (tf.Tensor, np.ndarray)) and len(key.shape) > 0
        if is_array or isinstance(key, tf.RaggedTensor):
            raise DTypeError(
                "MaskedTensor[...]",
                "ints, slices, ... or None",
                f"{type(key).__name__} of shape {key.shape}",
                "Use tf.gather for positions, tf.boolean_mask for bools.",
            )


@implements(tf.pad, on=MaskedTensor)
def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    constant_values: Any = 0,
    *_: Any,
) -> Any:
    """Returns padded values; padding is valid only if it repeats valid values."""
    if not isinstance(tensor, MaskedTensor) or not isinstance(tensor.values, tf.Tensor):
        return NotImplemented
    if isinstance(constant_values, MaskedTensor):
        return NotImplemented
    mask = item.elements(tensor.values, tensor.mask)
    values = tf.pad(tensor.values, paddings, mode, constant_values)
    if mode.upper() == "CONSTANT":
        return MaskedTensor.of_parts(values, tf.pad(mask, paddings, mode, False))
    # TensorFlow has no kernel for mirror padding of bools.
    numbers = tf.pad(tf.cast(mask, tf.int32), paddings, mode)
    return MaskedTensor.of_parts(values, tf.cast(numbers, tf.bool))


@implements(tf.concat, on=MaskedTensor)
def concat(values: Any, axis: Any, *_: Any) -> Any:
    """Returns concatenated values; all plain values are valid."""
    if not isinstance(values, (list, tuple)):
        return values if isinstance(values, MaskedTensor) else NotImplemented
    aligned = _aligned(cast("Any", values), axis)
    if aligned is None:
        return NotImplemented
    parts, masks, place = aligned
    if not all(map(item.is_tensor, parts)):
        if place != 0:
            return NotImplemented
        return MaskedTensor.of_parts(concat_rows(parts), tf.concat(masks, 0))
    return MaskedTensor.of_parts(tf.concat(parts, place), tf.concat(masks, place))


@implements(tf.stack, on=MaskedTensor)
def stack(values: Any, axis: Any = 0, *_: Any) -> Any:
    """Returns values stacked along a new dimension; all plain values are valid."""
    if not isinstance(values, (list, tuple)):
        return NotImplemented
    aligned = _aligned(cast("Any", values), axis, 1)
    if aligned is None:
        return NotImplemented
    parts, masks, place = aligned
    if not all(map(item.is_tensor, parts)):
        if place != 0:
            return NotImplemented
        return MaskedTensor.of_parts(stack_rows(parts), tf.stack(masks))
    return MaskedTensor.of_parts(tf.stack(parts, place), tf.stack(masks, place))


def _aligned(values: Any, axis: Any, new: int = 0) -> tuple[list[Any], list[Any], Any] | None:
    """Returns values, masks of the same form, and the axis; None if this is not possible.

    Args:
        values: MaskedTensors and plain values.
        axis: The axis of the concatenation or stack.
        new: The number of dimensions that the operation adds.
    """
    masked = [value for value in values if isinstance(value, MaskedTensor)]
    first = masked[0]
    parts: list[Any] = []
    for value in values:
        if isinstance(value, MaskedTensor):
            value = value.values
        elif item.is_tensor(first.values) and not item.is_tensor(value):
            value = tf.convert_to_tensor(value, first.dtype)
        parts.append(value)
    known, rank = item.static(axis), first.shape.rank
    if known is not None and known < 0 and rank is not None:
        known += rank + new
    outer: Any = {value.mask.shape.rank for value in masked}
    in_items = len(outer) == 1 and None not in outer and known is not None and known >= 0
    [outer, *_] = outer
    in_items = in_items and known < outer + new
    masks: list[Any] = []
    for value, part in zip(values, parts, strict=True):
        mask = value.mask if isinstance(value, MaskedTensor) else None
        if mask is None:
            masks.append(item.all_valid(part, outer if in_items else None))
        elif in_items:
            masks.append(mask)
        elif item.is_tensor(part):
            masks.append(item.elements(part, mask))
        else:
            return None
    return parts, masks, axis if known is None else known
