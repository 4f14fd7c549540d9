"""Operations on LabeledTensors along axes: those that reduce axes and those that keep them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.labeled import naming
from extensor._types.labeled.align import overrides_operations, same_axes
from extensor._types.labeled.value import LabeledTensor
from extensor.dispatch import implements, is_reduction_op, name_of, named_arguments


def _left(x: Any, reduced: list[int], keepdims: Any) -> tuple[str, ...]:
    """Returns the names of the axes that remain after a reduction."""
    return tuple(n for i, n in enumerate(x.axes) if keepdims or i not in reduced)


def _first(args: tuple[Any, ...]) -> Any:
    return args[0] if isinstance(args[0], LabeledTensor) else None


# Operations that reduce axes.

_OF_ONE_AXIS = (tf.argmax, tf.argmin)

# On a few values, a kernel alone takes two thirds of the time of TensorFlow's function.
_KERNELS: dict[Any, Any] = {
    tf.reduce_sum: tf.raw_ops.Sum,
    tf.reduce_mean: tf.raw_ops.Mean,
    tf.reduce_max: tf.raw_ops.Max,
    tf.reduce_min: tf.raw_ops.Min,
}


@implements(is_reduction_op, on=LabeledTensor)
def reduce(op: Any, *args: Any) -> Any:
    """Returns a tensor without the reduced axes, or with them at size 1."""
    x, path = _first(args), name_of(op)
    if x is None:
        return NotImplemented
    given = named_arguments(op, args)
    axis, keepdims = given.get("axis"), given.get("keepdims", False)
    if type(axis) is str and axis in x.axes:
        axis = x.axes.index(axis)
        reduced = [axis]
    elif op in _OF_ONE_AXIS:
        reduced = [naming.number(x, 0 if axis is None else axis, path)]
        axis = reduced[0]
    elif axis is None:
        reduced = list(range(len(x.axes)))
    else:
        reduced = naming.numbers(x, axis, path)
        # tf.norm refuses a list of one axis, but accepts the axis itself.
        axis = reduced[0] if len(reduced) == 1 else reduced
    left = _left(x, reduced, keepdims)
    if op in _KERNELS and axis is not None and isinstance(x.values, tf.Tensor):
        found = _KERNELS[op](
            input=x.values, axis=axis, keep_dims=bool(keepdims), name=given.get("name")
        )
        return x.of_parts(found, left)
    given = {**given, next(iter(given)): x.values, "axis": axis}
    return x.of_parts(op(**given), left)


@implements(tf.nn.moments, on=LabeledTensor)
def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, *_: Any) -> Any:
    """Returns the mean and the variance along some axes."""
    reduced = naming.numbers(x, axes, "tf.nn.moments")
    found = tf.nn.moments(x.values, reduced, keepdims=keepdims)
    return tuple(x.of_parts(part, _left(x, reduced, keepdims)) for part in found)


@implements(tf.nn.zero_fraction, tf.nn.l2_loss, on=LabeledTensor)
def of_all(op: Any, x: Any, *others: Any) -> Any:
    """Returns a scalar computed from all elements."""
    return x.of_parts(op(x.values, *others), ())


@implements(tf.nn.softmax_cross_entropy_with_logits, on=LabeledTensor)
def cross_entropy(labels: Any, logits: Any, axis: Any = -1, *_: Any) -> Any:
    """Returns the cross entropy along an axis of labels and logits with the same axes."""
    if overrides_operations(labels) or overrides_operations(logits):
        return NotImplemented
    path = "tf.nn.softmax_cross_entropy_with_logits"
    ours = same_axes((labels, logits), path)
    reduced = naming.number(labels, axis, path)
    entropy = tf.nn.softmax_cross_entropy_with_logits(*ours, axis=reduced)
    return labels.of_parts(entropy, _left(labels, [reduced], False))


# Operations that keep all axes.


@implements(
    *(tf.cumsum, tf.math.cumprod, tf.math.cumulative_logsumexp),
    *(tf.nn.softmax, tf.nn.log_softmax, tf.nn.l2_normalize, tf.clip_by_norm),
    *(tf.sort, tf.argsort, tf.reverse, tf.roll, tf.signal.fftshift, tf.signal.ifftshift),
    on=LabeledTensor,
)
def along(op: Any, *args: Any) -> Any:
    """Returns a tensor with the same axes, changed along some of them."""
    x = _first(args)
    if x is None:
        return NotImplemented
    given = named_arguments(op, args)
    name = "axes" if "axes" in given else "axis"
    axis = given.get(name)
    if axis is not None:
        numbers = naming.numbers(x, axis, name_of(op))
        is_list = naming.is_many(axis) or op is tf.reverse
        given[name] = numbers if is_list else numbers[0]
    return x.of_parts(op(**{**given, next(iter(given)): x.values}), x.axes)


@implements(tf.linalg.normalize, on=LabeledTensor)
def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: Any = None) -> Any:
    """Returns a tensor divided by its norm along some axes, and the norm."""
    norm = tf.norm(tensor, ord, axis, keepdims=True)
    return tensor.of_parts(tensor.values / norm.values, tensor.axes), norm


@implements(tf.nn.top_k, on=LabeledTensor)
def top_k(input: Any, *others: Any) -> Any:
    """Returns the largest elements along the last axis, and their positions."""
    if not isinstance(input, LabeledTensor):
        return NotImplemented
    found = tf.nn.top_k(input.values, *others)
    return type(found)(*(input.of_parts(part, input.axes) for part in found))
