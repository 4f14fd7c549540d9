"""Operations on LabeledTensors along axes: those that reduce axes, and those that keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from extensor._types.labeled import naming
from extensor._types.labeled.align import overrides_operations, same_axes
from extensor._types.labeled.naming import Axes, Axis
from extensor._types.labeled.value import LabeledTensor, Op, Operand
from extensor.dispatch import (
    implements,
    is_reduction_op,
    is_shape_only_op,
    name_of,
    named_arguments,
)
from extensor.typing import TensorLike


def _left(x: LabeledTensor, reduced: list[int], keepdims: bool | None) -> tuple[str, ...]:
    """Returns the names of the axes that remain after a reduction."""
    return tuple(n for i, n in enumerate(x.axes) if keepdims or i not in reduced)


def _first(args: tuple[Any, ...]) -> LabeledTensor | None:
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
def reduce(op: Op, *args: Any) -> LabeledTensor:
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
        reduced = [naming.axis_number(x, 0 if axis is None else axis, path)]
        axis = reduced[0]
    elif axis is None:
        reduced = list(range(len(x.axes)))
    else:
        reduced = naming.axis_numbers(x, axis, path)
        # tf.norm refuses a list of one axis, but accepts the axis itself.
        axis = reduced[0] if len(reduced) == 1 else reduced
    left = _left(x, reduced, keepdims)
    if op in _KERNELS and axis is not None and isinstance(x.values, tf.Tensor):
        found = _KERNELS[op](
            input=x.values, axis=axis, keep_dims=bool(keepdims), name=given.get("name")
        )
        return x._of_parts(found, left)
    given = {**given, next(iter(given)): x.values, "axis": axis}
    return x._of_parts(op(**given), left)


@implements(tf.nn.moments, on=LabeledTensor)
def moments(
    x: LabeledTensor,
    axes: Axes,
    shift: TensorLike | None = None,
    keepdims: bool = False,
    *_: object,
) -> tuple[LabeledTensor, ...]:
    """Returns the mean and the variance along some axes."""
    reduced = naming.axis_numbers(x, axes, "tf.nn.moments")
    found = tf.nn.moments(x.values, reduced, keepdims=keepdims)
    return tuple(x._of_parts(part, _left(x, reduced, keepdims)) for part in found)


@implements(tf.nn.zero_fraction, tf.nn.l2_loss, on=LabeledTensor)
def of_all(op: Op, x: LabeledTensor, *others: object) -> LabeledTensor:
    """Returns a scalar computed from all elements."""
    return x._of_parts(op(x.values, *others), ())


@implements(tf.nn.softmax_cross_entropy_with_logits, on=LabeledTensor)
def cross_entropy(
    labels: LabeledTensor, logits: LabeledTensor, axis: Axis = -1, *_: object
) -> LabeledTensor:
    """Returns the cross entropy along an axis of labels and logits with the same axes."""
    if overrides_operations(labels) or overrides_operations(logits):
        return NotImplemented
    path = "tf.nn.softmax_cross_entropy_with_logits"
    ours = same_axes((labels, logits), path)
    reduced = naming.axis_number(labels, axis, path)
    entropy = tf.nn.softmax_cross_entropy_with_logits(*ours, axis=reduced)
    return labels._of_parts(entropy, _left(labels, [reduced], False))


# Operations that keep all axes.

# Arguments with an item for each axis, and the item of the axes that a dict by name leaves out.
_BY_AXIS = {"multiples": 1, "paddings": (0, 0)}


@implements(
    *(tf.cumsum, tf.math.cumprod, tf.math.cumulative_logsumexp),
    *(tf.nn.softmax, tf.nn.log_softmax, tf.nn.l2_normalize, tf.clip_by_norm),
    *(tf.sort, tf.argsort, tf.nn.top_k, tf.reverse, tf.roll),
    *(tf.signal.fftshift, tf.signal.ifftshift),
    *(tf.tile, tf.repeat, tf.pad, tf.slice, tf.split, tf.zeros_like, tf.ones_like),
    on=LabeledTensor,
)
def along(op: Op, *args: Any) -> LabeledTensor | Sequence[LabeledTensor]:
    """Returns a tensor with the same axes, changed along some of them; or several tensors."""
    x = _first(args)
    if x is None:
        return NotImplemented
    given = named_arguments(op, args)
    if op is tf.split:
        given.setdefault("axis", 0)
    for name in ("axis", "axes"):
        axis = given.get(name)
        if axis is not None:
            numbers = naming.axis_numbers(x, axis, name_of(op))
            is_list = naming.is_many(axis) or op is tf.reverse
            given[name] = numbers if is_list else numbers[0]
    if op is tf.repeat and given.get("axis") is None:
        raise naming.names_error("tf.repeat", x, "Name the axis to repeat along.")
    for name, default in _BY_AXIS.items():
        by_name = given.get(name)
        if isinstance(by_name, Mapping):
            numbers = naming.axis_numbers(x, list(by_name), name_of(op))
            items = dict(zip(numbers, by_name.values(), strict=True))
            given[name] = [items.get(number, default) for number in range(len(x.axes))]
    found = op(**{**given, next(iter(given)): x.values})
    if isinstance(found, (list, tuple)):  # of tf.split or tf.nn.top_k
        return tf.nest.map_structure(lambda part: x._of_parts(part, x.axes), found)
    return x._of_parts(found, x.axes)


@implements(tf.linalg.normalize, on=LabeledTensor)
def normalize(
    tensor: LabeledTensor,
    ord: str | float = "euclidean",
    axis: Axes | None = None,
    name: str | None = None,
) -> tuple[LabeledTensor, LabeledTensor]:
    """Returns a tensor divided by its norm along some axes, and the norm."""
    norm = tf.norm(tensor, ord, axis, keepdims=True)
    return tensor._of_parts(tensor.values / norm.values, tensor.axes), norm


# Operations that return sizes.


@implements(is_shape_only_op, on=LabeledTensor)
def shape_only(
    op: Op, x: LabeledTensor | list[Operand], *others: object
) -> tf.Tensor | list[tf.Tensor]:
    """Returns the result for the values, as a tensor without names."""
    if isinstance(x, (list, tuple)):
        return op([y.values if isinstance(y, LabeledTensor) else y for y in x], *others)
    return op(x.values, *others)
