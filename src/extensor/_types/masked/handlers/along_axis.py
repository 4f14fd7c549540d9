"""Operations along an axis of dense MaskedTensors: scaling, sorting, norms, losses.

Values that are not valid have no effect: the result is that of the valid values alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor._types.masked import item
from extensor._types.masked.handlers.reduction import valid_results, within_items
from extensor._types.masked.value import MaskedTensor
from extensor.dispatch import implements

# Each with the number that takes the place of values that are not valid. The mask stays.
_SAME_MASK: dict[Any, float] = {
    tf.nn.softmax: -np.inf,
    tf.nn.log_softmax: -np.inf,
    tf.nn.l2_normalize: 0,
    tf.nn.dropout: 0,
    tf.nn.experimental.stateless_dropout: 0,
}


def _is_dense(*values: Any) -> bool:
    """Returns whether values have no mask, or a mask of a tensor of known rank."""
    return all(
        not isinstance(value, MaskedTensor)
        or (isinstance(value.values, tf.Tensor) and value.values.shape.rank is not None)
        for value in values
    )


@implements(*_SAME_MASK, on=MaskedTensor)
def scaled(op: Any, x: Any, *args: Any) -> Any:
    """Returns the valid values, scaled or chosen among themselves, with the same mask."""
    if not isinstance(x, MaskedTensor):
        return NotImplemented
    is_ragged = isinstance(x.values, tf.RaggedTensor) and op is tf.nn.softmax
    if not is_ragged and not _is_dense(x):
        return NotImplemented
    return MaskedTensor.of_parts(op(item.choose(x.mask, x.values, _SAME_MASK[op]), *args), x.mask)


@implements(tf.norm, on=MaskedTensor)
def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = False, *_: Any
) -> Any:
    """Returns the norm of the valid values along one or two axes."""
    if not _is_dense(tensor):
        return NotImplemented
    keepdims = bool(keepdims)
    values = tf.norm(item.choose(tensor.mask, tensor.values, 0), ord, axis, keepdims)
    return MaskedTensor.of_parts(values, valid_results(tf.norm, tensor, axis, keepdims))


@implements(tf.nn.moments, on=MaskedTensor)
def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, *_: Any) -> Any:
    """Returns the mean and the variance of the valid values along some axes."""
    return tf.reduce_mean(x, axes, keepdims), tf.math.reduce_variance(x, axes, keepdims)


# Sorting: values that are not valid come last.


@implements(tf.argsort, on=MaskedTensor)
def argsort(values: Any, axis: Any = -1, direction: str = "ASCENDING", *_: Any) -> Any:
    """Returns the positions of the values in order, as a plain tensor."""
    if not _sorts(values, axis):
        return NotImplemented
    if within_items(values, axis):
        return tf.argsort(item.choose(values.mask, values.values, 0), axis, direction, True)
    lines, mask = (_along_last(part, axis) for part in _elements(values))
    return _along_last(_order(lines, mask, direction), axis)


@implements(tf.sort, on=MaskedTensor)
def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", *_: Any) -> Any:
    """Returns the valid values in order, before those that are not valid."""
    if not _sorts(values, axis):
        return NotImplemented
    if within_items(values, axis):
        filled = item.choose(values.mask, values.values, 0)
        return MaskedTensor.of_parts(tf.sort(filled, axis, direction), values.mask)
    lines, mask = (_along_last(part, axis) for part in _elements(values))
    order = _order(lines, mask, direction)
    parts = (_along_last(_taken(part, order), axis) for part in (lines, mask))
    return MaskedTensor.of_parts(*parts)


@implements(tf.nn.top_k, on=MaskedTensor)
def top_k(input: Any, k: Any = 1, sorted: bool = True, index_type: Any = tf.int32, *_: Any) -> Any:
    """Returns the largest valid values along the last axis, and their positions."""
    if not isinstance(input, MaskedTensor) or not _sorts(input, -1):
        return NotImplemented
    lines, mask = _elements(input)
    order = _order(lines, mask, "DESCENDING")[..., :k]
    valid = _taken(mask, order)
    return tuple(
        MaskedTensor.of_parts(part, valid)
        for part in (_taken(lines, order), tf.cast(order, index_type))
    )


def _sorts(x: Any, axis: Any) -> bool:
    is_number = _is_dense(x) and (x.dtype.is_floating or x.dtype.is_integer)
    return is_number and isinstance(item.static(axis), (int, np.integer))


def _elements(x: Any) -> tuple[Any, Any]:
    return x.values, item.elements(x.values, x.mask)


def _along_last(values: Any, axis: int) -> Any:
    """Returns values with an axis and the last one swapped; the same call swaps them back."""
    rank = values.shape.rank
    axis = axis % rank
    if axis == rank - 1:
        return values
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return tf.transpose(values, order)


def _order(lines: Any, mask: Any, direction: str) -> Any:
    """Returns the positions of the valid values in order, then those of the others."""
    order = tf.argsort(item.selected(mask, lines, 0), -1, direction, stable=True)
    # A second sort, because a valid value may be the largest number that there is.
    last = tf.argsort(tf.cast(~_taken(mask, order), tf.int32), -1, stable=True)
    return _taken(order, last)


def _taken(lines: Any, order: Any) -> Any:
    return tf.gather(lines, order, batch_dims=order.shape.rank - 1)


# Classes.


@implements(tf.one_hot, on=MaskedTensor)
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    *args: Any,
) -> Any:
    """Returns a vector of each index, valid where the index is."""
    if not isinstance(indices, MaskedTensor) or not _is_dense(indices):
        return NotImplemented
    filled = item.choose(indices.mask, indices.values, -1)
    values = tf.one_hot(filled, depth, on_value, off_value, axis, *args)
    if axis is None or axis in (-1, filled.shape.rank):
        return MaskedTensor.of_parts(values, indices.mask)
    mask = tf.expand_dims(item.elements(indices.values, indices.mask), axis)
    return MaskedTensor.of_parts(values, item.spread(mask, values))


@implements(tf.nn.softmax_cross_entropy_with_logits, on=MaskedTensor)
def cross_entropy(labels: Any, logits: Any, axis: Any = -1, *_: Any) -> Any:
    """Returns the cross entropy of the classes that are valid in both."""
    if not _is_dense(labels, logits):
        return NotImplemented
    masks = [one.mask for one in (labels, logits) if isinstance(one, MaskedTensor)]
    values = [getattr(one, "values", one) for one in (labels, logits)]
    both = masks[0]
    if len(masks) == 2:
        ranks = [mask.shape.rank for mask in masks]
        if ranks[0] != ranks[1]:
            masks = [item.elements(values[1], mask) for mask in masks]
        both = tf.logical_and(*masks)
    joint = MaskedTensor.of_parts(tf.convert_to_tensor(values[1]), both)
    probabilities = tf.convert_to_tensor(values[0], joint.dtype)
    loss = tf.nn.softmax_cross_entropy_with_logits(
        item.choose(both, probabilities, 0), _least(joint), axis
    )
    return MaskedTensor.of_parts(loss, valid_results(tf.reduce_max, joint, axis, False))


@implements(tf.nn.sparse_softmax_cross_entropy_with_logits, on=MaskedTensor)
def sparse_cross_entropy(labels: Any, logits: Any, *_: Any) -> Any:
    """Returns the cross entropy of each label, valid where the label and its class are."""
    if not _is_dense(labels, logits):
        return NotImplemented
    numbers, valid = labels, True
    if isinstance(labels, MaskedTensor):
        numbers = item.choose(labels.mask, labels.values, 0)
        valid = item.elements(labels.values, labels.mask)
    numbers = tf.convert_to_tensor(numbers)
    if not isinstance(logits, MaskedTensor):
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(numbers, logits)
        return MaskedTensor.of_parts(loss, valid)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(numbers, _least(logits))
    of_class = item.elements(logits.values, logits.mask)
    of_class = tf.gather(of_class, numbers, batch_dims=numbers.shape.rank)
    return MaskedTensor.of_parts(loss, tf.logical_and(of_class, valid))


def _least(logits: Any) -> Any:
    """Returns logits in which the probability of each class that is not valid is zero."""
    # Not infinity, because infinity times a label of zero is NaN.
    return item.choose(logits.mask, logits.values, logits.dtype.min / 4)
