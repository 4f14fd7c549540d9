"""Operations along an axis of dense MaskedTensors: scaling, sorting, norms, losses.

Values that are not valid have no effect: the result is that of the valid values alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor._types.masked import item
from extensor._types.masked.handlers.reduction import valid_mask, within_items
from extensor._types.masked.value import Axes, MaskedTensor, Op, Operand
from extensor.authoring import required
from extensor.dispatch import implements, named_arguments
from extensor.errors import StructureError
from extensor.typing import TensorLike

# Each with the number that takes the place of values that are not valid. The mask stays.
_SAME_MASK: dict[Any, float] = {
    tf.nn.softmax: -np.inf,
    tf.nn.log_softmax: -np.inf,
    tf.nn.l2_normalize: 0,
    tf.nn.dropout: 0,
    tf.nn.experimental.stateless_dropout: 0,
}


def _is_dense(*values: object) -> bool:
    """Returns whether values have no mask, or a mask of a tensor of known rank."""
    return all(
        not isinstance(value, MaskedTensor)
        or (isinstance(value.values, tf.Tensor) and value.values.shape.rank is not None)
        for value in values
    )


@implements(*_SAME_MASK, on=MaskedTensor)
def keep_mask(op: Op, x: MaskedTensor, *args: object) -> MaskedTensor:
    """Returns the valid values, scaled or chosen among themselves, with the same mask."""
    if not isinstance(x, MaskedTensor):
        return NotImplemented
    is_ragged = isinstance(x.values, tf.RaggedTensor) and op is tf.nn.softmax
    if not is_ragged and not _is_dense(x):
        return NotImplemented
    return MaskedTensor._of_parts(op(item.fill(x.mask, x.values, _SAME_MASK[op]), *args), x.mask)


@implements(tf.norm, on=MaskedTensor)
def norm(
    tensor: MaskedTensor,
    ord: str | float = "euclidean",
    axis: Axes = None,
    keepdims: bool | None = False,
    *_: object,
) -> MaskedTensor:
    """Returns the norm of the valid values along one or two axes."""
    if not _is_dense(tensor):
        return NotImplemented
    keepdims = bool(keepdims)
    values = tf.norm(item.fill(tensor.mask, tensor.values, 0), ord, axis, keepdims)
    return MaskedTensor._of_parts(values, valid_mask(tf.norm, tensor, axis, keepdims))


@implements(tf.nn.moments, on=MaskedTensor)
def moments(
    x: MaskedTensor, axes: Axes, shift: TensorLike | None = None, keepdims: bool = False, *_: object
) -> tuple[MaskedTensor, MaskedTensor]:
    """Returns the mean and the variance of the valid values along some axes."""
    return tf.reduce_mean(x, axes, keepdims), tf.math.reduce_variance(x, axes, keepdims)


# Sorting: values that are not valid come last.


@implements(tf.argsort, on=MaskedTensor)
def argsort(
    values: MaskedTensor, axis: int = -1, direction: str = "ASCENDING", *_: object
) -> tf.Tensor:
    """Returns the positions of the values in order, as a plain tensor."""
    if not _sorts(values, axis):
        return NotImplemented
    if within_items(values, axis):
        return tf.argsort(item.fill(values.mask, values.values, 0), axis, direction, True)
    lines, mask = (_along_last(part, axis) for part in _elements(values))
    return _along_last(_order(lines, mask, direction), axis)


@implements(tf.sort, on=MaskedTensor)
def sort(
    values: MaskedTensor, axis: int = -1, direction: str = "ASCENDING", *_: object
) -> MaskedTensor:
    """Returns the valid values in order, before those that are not valid."""
    if not _sorts(values, axis):
        return NotImplemented
    if within_items(values, axis):
        filled = item.fill(values.mask, values.values, 0)
        return MaskedTensor._of_parts(tf.sort(filled, axis, direction), values.mask)
    lines, mask = (_along_last(part, axis) for part in _elements(values))
    order = _order(lines, mask, direction)
    parts = (_along_last(_gather_last(part, order), axis) for part in (lines, mask))
    return MaskedTensor._of_parts(*parts)


@implements(tf.nn.top_k, on=MaskedTensor)
def top_k(
    input: MaskedTensor,
    k: TensorLike = 1,
    sorted: bool = True,
    index_type: tf.DType = tf.int32,
    *_: object,
) -> tuple[MaskedTensor, ...]:
    """Returns the largest valid values along the last axis, and their positions."""
    if not isinstance(input, MaskedTensor) or not _sorts(input, -1):
        return NotImplemented
    lines, mask = _elements(input)
    expected = f"0 or more values, at most those of the last axis of shape {lines.shape}"
    wrong = StructureError("tf.nn.top_k: k", expected, f"{k}", "Give a smaller number.")
    count = tf.convert_to_tensor(k)
    fits = tf.logical_and(count >= 0, count <= tf.shape(lines, count.dtype)[-1])
    with tf.control_dependencies(required(fits, wrong)):
        order = tf.identity(_order(lines, mask, "DESCENDING")[..., :k])
    valid = _gather_last(mask, order)
    return tuple(
        MaskedTensor._of_parts(part, valid)
        for part in (_gather_last(lines, order), tf.cast(order, index_type))
    )


def _sorts(x: MaskedTensor, axis: Axes) -> bool:
    is_number = _is_dense(x) and (x.dtype.is_floating or x.dtype.is_integer)
    return is_number and isinstance(item.static_value(axis), (int, np.integer))


def _elements(x: MaskedTensor) -> tuple[Any, Any]:
    return x.values, item.element_mask(x.values, x.mask)


def _along_last(values: tf.Tensor, axis: int) -> tf.Tensor:
    """Returns values with an axis and the last one swapped; the same call swaps them back."""
    rank = values.shape.rank
    axis = axis % rank
    if axis == rank - 1:
        return values
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return tf.transpose(values, order)


def _order(lines: tf.Tensor, mask: tf.Tensor, direction: str) -> tf.Tensor:
    """Returns the positions of the valid values in order, then those of the others."""
    order = tf.argsort(item.where(mask, lines, 0), -1, direction, stable=True)
    # A second sort, because a valid value may be the largest number that there is.
    last = tf.argsort(tf.cast(~_gather_last(mask, order), tf.int32), -1, stable=True)
    return _gather_last(order, last)


def _gather_last(lines: tf.Tensor, order: tf.Tensor) -> tf.Tensor:
    return tf.gather(lines, order, batch_dims=order.shape.rank - 1)


# Classes.


@implements(tf.one_hot, on=MaskedTensor)
def one_hot(indices: Operand, depth: TensorLike, *args: Any) -> MaskedTensor:
    """Returns a vector of each index, valid where the index is."""
    if not isinstance(indices, MaskedTensor) or not _is_dense(indices):
        return NotImplemented
    filled = item.fill(indices.mask, indices.values, -1)
    values = tf.one_hot(filled, depth, *args)
    axis = named_arguments(tf.one_hot, (indices, depth, *args)).get("axis")
    if axis is None or axis in (-1, filled.shape.rank):
        return MaskedTensor._of_parts(values, indices.mask)
    mask = tf.expand_dims(item.element_mask(indices.values, indices.mask), axis)
    return MaskedTensor._of_parts(values, item.broadcast_mask(mask, values))


@implements(tf.nn.softmax_cross_entropy_with_logits, on=MaskedTensor)
def cross_entropy(labels: Operand, logits: Operand, axis: Axes = -1, *_: object) -> MaskedTensor:
    """Returns the cross entropy of the classes that are valid in both."""
    if not _is_dense(labels, logits):
        return NotImplemented
    masks = [one.mask for one in (labels, logits) if isinstance(one, MaskedTensor)]
    values = [getattr(one, "values", one) for one in (labels, logits)]
    both = masks[0]
    if len(masks) == 2:
        ranks = [mask.shape.rank for mask in masks]
        if ranks[0] != ranks[1]:
            masks = [item.element_mask(values[1], mask) for mask in masks]
        both = tf.logical_and(*masks)
    joint = MaskedTensor._of_parts(tf.convert_to_tensor(values[1]), both)
    probabilities = tf.convert_to_tensor(values[0], joint.dtype)
    loss = tf.nn.softmax_cross_entropy_with_logits(
        item.fill(both, probabilities, 0), _without_invalid_classes(joint), axis
    )
    return MaskedTensor._of_parts(loss, valid_mask(tf.reduce_max, joint, axis, False))


@implements(tf.nn.sparse_softmax_cross_entropy_with_logits, on=MaskedTensor)
def sparse_cross_entropy(labels: Operand, logits: Operand, *_: object) -> MaskedTensor:
    """Returns the cross entropy of each label, valid where the label and its class are."""
    if not _is_dense(labels, logits):
        return NotImplemented
    numbers, valid = labels, True
    if isinstance(labels, MaskedTensor):
        numbers = item.fill(labels.mask, labels.values, 0)
        valid = item.element_mask(labels.values, labels.mask)
    numbers = tf.convert_to_tensor(numbers)
    if not isinstance(logits, MaskedTensor):
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(numbers, logits)
        return MaskedTensor._of_parts(loss, valid)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(numbers, _without_invalid_classes(logits))
    of_class = item.element_mask(logits.values, logits.mask)
    of_class = tf.gather(of_class, numbers, batch_dims=numbers.shape.rank)
    return MaskedTensor._of_parts(loss, tf.logical_and(of_class, valid))


def _without_invalid_classes(logits: MaskedTensor) -> tf.Tensor:
    """Returns logits in which the probability of each class that is not valid is zero."""
    # Not infinity, because infinity times a label of zero is NaN.
    return item.fill(logits.mask, logits.values, logits.dtype.min / 4)


# Products, in which values that are not valid count as zero.


@implements(tf.matmul, on=MaskedTensor)
def matmul(a: Operand, b: Operand, *options: bool) -> MaskedTensor:
    """Returns the product, with zero for invalid values; valid if any pair of factors is valid."""
    for one in (a, b):
        if isinstance(one, MaskedTensor) and not isinstance(one.values, tf.Tensor):
            return NotImplemented
    values = tf.matmul(_or_zero(a), _or_zero(b), *options)
    given = named_arguments(tf.matmul, (a, b, *options))
    transposed = [bool(given.get(f"transpose_{x}") or given.get(f"adjoint_{x}")) for x in "ab"]
    if isinstance(a, MaskedTensor) and isinstance(b, MaskedTensor):
        valid = [tf.cast(item.element_mask(one.values, one.mask), tf.float32) for one in (a, b)]
        return MaskedTensor._of_parts(values, tf.matmul(*valid, *transposed) > 0)
    if isinstance(a, MaskedTensor):
        any_valid = tf.reduce_any(item.element_mask(a.values, a.mask), -2 if transposed[0] else -1)
        mask = any_valid[..., tf.newaxis]
    else:
        any_valid = tf.reduce_any(item.element_mask(b.values, b.mask), -1 if transposed[1] else -2)
        mask = any_valid[..., tf.newaxis, :]
    return MaskedTensor._of_parts(values, item.broadcast_mask(mask, values))


def _or_zero(one: Operand) -> TensorLike:
    return item.fill(one.mask, one.values, 0) if isinstance(one, MaskedTensor) else one
