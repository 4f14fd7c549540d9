"""Operations on values and masks by item: a number, row, list or record.

The shape of a mask is a prefix of the shape of its values. The inner dimensions are one item, which
is valid or not as a whole.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import tensorflow as tf

from extensor._types.masked.check import Mask, Values, expect_fit, static_shape, with_row_check
from extensor.authoring import (
    cast_value,
    concat_rows,
    cut_rows,
    num_rows,
    rows_spec,
    take_rows,
    uncut_rows,
)
from extensor.errors import NullError, StructureError
from extensor.typing import TensorLike


def is_tensor(values: object) -> bool:
    """Returns whether values are a dense or ragged tensor."""
    return isinstance(values, (tf.Tensor, tf.Variable, tf.RaggedTensor))


def masks_elements(values: Values, mask: Mask) -> bool:
    """Returns whether a mask has one bool for each single number or string."""
    return is_tensor(values) and mask.shape.rank == values.shape.rank


def static_value(number: object) -> Any:
    """Returns an axis, or a list of axes, without a tensor; None if only a graph knows it.

    `tf.get_static_value` alone takes as long as a kernel for what is no tensor.
    """
    return tf.get_static_value(number) if isinstance(number, _TENSORS) else number


_TENSORS = (tf.Tensor, tf.Variable)


def all_valid(values: Values, rank: int | None = None) -> Mask:
    """Returns a mask that is True everywhere.

    Args:
        values: The values of the mask.
        rank: The rank of the mask. Default: the rank of the values.
    """
    if isinstance(values, tf.RaggedTensor) and rank in (None, values.shape.rank):
        return tf.ones_like(values, tf.bool)
    shape = static_shape(values)
    shape = shape if rank is None else shape[:rank]
    rows = None if rank == 1 else uncut_rows(values)
    if rows is not None:
        return cut_rows(all_valid(rows[0], None if rank is None else rank - 1), rows[1])
    if shape.is_fully_defined():
        return tf.ones(shape, tf.bool)
    if isinstance(values, (tf.Tensor, tf.Variable)):
        return tf.ones(tf.shape(values)[:rank], tf.bool)
    if shape.rank == 1:
        return tf.ones(tf.reshape(num_rows(values), [1]), tf.bool)
    expected = f"a mask for values of shape {shape}"
    fix = "Pass a mask, because the sizes are not static."
    raise StructureError("MaskedTensor.mask", expected, "mask=None", fix)


def without_nulls(values: Values, mask: Mask, path: str) -> Values:
    """Returns values all of which must be valid.

    Args:
        values: The values of the mask.
        mask: True where the values are valid.
        path: The name of the values, for the error.

    Raises:
        NullError: If the mask is known, and False somewhere. In a graph that does not know it, an
            assertion with the same message fails when the graph runs.
    """
    flat = getattr(mask, "flat_values", mask)
    known = static_value(flat)
    nulls = tf.math.count_nonzero(~flat) if known is None else int(np.count_nonzero(~known))
    received = "nulls" if known is None else "1 null" if nulls == 1 else f"{nulls} nulls"
    fix = "Replace them with x.fill(value), or remove their rows."
    error = NullError(path, "no nulls", received, fix)
    if known is not None:
        if nulls:
            raise error
        return values
    check = tf.debugging.Assert(nulls == 0, [str(error), "The number of nulls is", nulls])
    with tf.control_dependencies([check]):
        return tf.nest.map_structure(tf.identity, values, expand_composites=True)


def both(inner: Mask, mask: Mask) -> Mask:
    """Returns where two masks of the same rows are True."""
    ragged = isinstance(inner, tf.RaggedTensor) and isinstance(mask, tf.RaggedTensor)
    if not (ragged and inner.ragged_rank == mask.ragged_rank):
        return tf.logical_and(inner, mask)
    # TensorFlow broadcasts ragged tensors, by ops that XLA does not have.
    expect_fit(inner, mask)
    mask = with_row_check(mask, inner)
    return inner.with_flat_values(tf.logical_and(inner.flat_values, mask.flat_values))


def expand_mask(values: Mask, mask: Mask) -> Mask:
    """Returns a mask that broadcasts to dense values; for ragged values, with their row splits."""
    if masks_elements(values, mask) or values.shape.rank is None or mask.shape.rank is None:
        return mask
    if isinstance(values, tf.RaggedTensor):
        return values.with_values(expand_mask(values.values, _repeat_for_rows(values, mask)))
    if mask.shape.rank > 0:
        for _ in range(values.shape.rank - mask.shape.rank):
            mask = tf.expand_dims(mask, -1)
    return mask


def _repeat_for_rows(values: tf.RaggedTensor, mask: Mask) -> Mask:
    """Returns the mask of the `values` of a RaggedTensor, repeated from the mask of its rows."""
    if isinstance(mask, tf.RaggedTensor):
        return mask.values
    if mask.shape.rank == 0:
        mask = tf.broadcast_to(mask, tf.reshape(values.nrows(), [1]))
    if mask.shape.rank == 1:
        return tf.gather(mask, values.value_rowids())
    return tf.reshape(mask, tf.concat([[-1], tf.shape(mask)[2:]], 0))  # rows of one length


def element_mask(values: Mask, mask: Mask) -> Mask:
    """Returns a mask with one bool for each single number or string, repeated within items."""
    if masks_elements(values, mask):
        return mask
    mask = expand_mask(values, mask)
    if isinstance(values, tf.RaggedTensor):
        return values.with_flat_values(broadcast_mask(mask.flat_values, values.flat_values))
    return broadcast_mask(mask, values)


def broadcast_mask(mask: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Returns a mask broadcast to the shape of dense values."""
    if values.shape.is_fully_defined():
        return mask if mask.shape == values.shape else tf.broadcast_to(mask, values.shape)
    return tf.ensure_shape(tf.broadcast_to(mask, tf.shape(values)), values.shape)


def fill(mask: Mask, values: Mask, other: TensorLike) -> Mask:
    """Returns values with a scalar in place of those that are not valid.

    The gradient of the replaced values is zero, even if the upstream gradient is NaN.
    """
    mask = expand_mask(values, mask)
    if isinstance(values, tf.RaggedTensor):
        return values.with_flat_values(fill(mask.flat_values, values.flat_values, other))
    return where(mask, values, other)


def where(mask: tf.Tensor, values: tf.Tensor, other: TensorLike) -> tf.Tensor:
    """Returns `tf.where` of dense values: the kernel alone, which takes a third of the time."""
    if not isinstance(values, tf.Tensor) or not isinstance(mask, tf.Tensor):
        return tf.where(mask, values, tf.convert_to_tensor(other, values.dtype))
    if type(other) not in _SCALARS:  # TensorFlow converts these faster in the call of the kernel
        other = tf.convert_to_tensor(other, values.dtype)
    return tf.raw_ops.SelectV2(condition=mask, t=values, e=other)


_SCALARS = frozenset([bool, int, float, str, bytes])


def fill_items(values: Values, mask: Mask, item: object) -> Values:
    """Returns values with a list or record in place of items that are not valid.

    Args:
        values: A value of any type that stacks.
        mask: A vector.
        item: A list or record, or a value that is cast to one.
    """
    rows = uncut_rows(values) if isinstance(mask, tf.RaggedTensor) else None
    if rows is not None:
        return cut_rows(fill_items(rows[0], mask.values, item), rows[1])
    if mask.shape.rank != 1:
        expected = "a mask of rank 1, to fill lists or records"
        received = f"a mask of rank {mask.shape.rank}"
        fix = "Select rows first, or fill each field."
        raise StructureError("MaskedTensor.fill", expected, received, fix)
    spec: Any = rows_spec(tf.type_spec_from_value(values), "MaskedTensor.fill")
    # A list of one item is cast to a batch of one.
    single = cast_value(spec, [item], "MaskedTensor.fill")
    count = num_rows(values)
    both = concat_rows([values, single])
    return take_rows(both, tf.where(mask, tf.range(count), count))


def rank_of(value: object) -> int | None:
    """Returns the rank of a tensor, of an array, or of nested lists; a dict is one record."""
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", value)
        return 1 + (rank_of(items[0]) or 0) if items else 1
    shape = getattr(value, "shape", ())
    return static_shape(value).rank if isinstance(shape, tf.TensorShape) else len(shape)


def values_to_fill(values: Values, mask: Mask, value: object) -> tuple[Any, Any]:
    """Returns values and the mask of all items that a value can replace.

    Of masks inside one another, the inner ones have more dimensions. Their items are not valid
    either where an outer mask is False.

    Args:
        values: The values, perhaps a MaskedTensor.
        mask: Their mask.
        value: A number, a list or a record.
    """
    rank = rank_of(value)
    while hasattr(values, "mask"):
        items = static_shape(values).rank, values.mask.shape.rank
        if rank is None or None in items or rank > items[0] - items[1]:
            break
        mask = tf.logical_and(values.mask, expand_mask(values.mask, mask))
        values = values.values
    return values, mask


def without_none(plain: Any, spec: tf.TypeSpec, depth: int) -> tuple[Any, Any]:
    """Returns nested lists with other items in place of None, and a mask of the same lists.

    Args:
        plain: Nested lists of items.
        spec: The spec of the values.
        depth: The number of nested lists around an item.

    Returns:
        The mask is None if no item is None.
    """
    mask = _not_none(plain, depth)
    return (plain, None) if _all(mask) else (_fill(plain, mask, _neutral(spec, depth)), mask)


def _not_none(plain: Any, depth: int) -> list[Any] | bool:
    if depth and isinstance(plain, (list, tuple)):
        return [_not_none(item, depth - 1) for item in cast("list[Any]", plain)]
    return plain is not None


def _all(mask: list[Any] | bool) -> bool:
    return all(map(_all, mask)) if isinstance(mask, list) else mask


def _fill(plain: Any, mask: list[Any] | bool, neutral: object) -> Any:
    if isinstance(mask, list):
        pairs = zip(plain, mask, strict=True)
        return [_fill(item, valid, neutral) for item, valid in pairs]
    return plain if mask else neutral


def _neutral(spec: Any, depth: int) -> Any:
    """Returns a Python value for an item that is not valid: zeros, empty strings, empty lists.

    Args:
        spec: The spec of the values.
        depth: The number of dimensions of the values that are not part of an item.
    """
    shape = static_shape(spec)
    if shape.rank is not None and shape.rank > depth:
        return [_neutral(spec, depth + 1)] * (shape[depth] or 0)
    if hasattr(spec, "field_names"):
        return {name: _neutral(spec.field_spec((name,)), depth) for name in spec.field_names()}
    if hasattr(spec, "mask"):
        return None
    return "" if spec.dtype == tf.string else spec.dtype.as_numpy_dtype().item()


def to_py(values: Values, mask: Mask) -> Any:
    """Returns values as numbers, lists and dicts, with None for items that are not valid."""
    plain = to_lists(values)
    if isinstance(mask, tf.Tensor) and mask.shape.rank == 1:  # in a third of the time
        items = list(plain)
        for i in np.flatnonzero(~mask.numpy()).tolist():
            items[i] = None
        return items
    return _with_none(plain, to_lists(mask))


def to_lists(values: Any) -> Any:
    """Returns a value as lists of its Python values."""
    if hasattr(values, "to_py"):
        return values.to_py()
    if isinstance(values, tf.RaggedTensor):
        return values.to_list()
    plain = values.numpy()
    return plain.tolist() if hasattr(plain, "tolist") else plain


def _with_none(plain: Any, mask: list[Any] | bool) -> Any:
    if isinstance(mask, list):
        bools = mask
        pairs = zip(plain, bools, strict=True)
        if not bools or isinstance(bools[0], bool):
            return [item if valid else None for item, valid in pairs]
        return [_with_none(item, valid) for item, valid in pairs]
    return plain if mask else None
