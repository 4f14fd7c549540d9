"""Elementwise operations on LabeledTensors, which broadcast by name."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from extensor._types.labeled import naming
from extensor._types.labeled.align import broadcast
from extensor._types.labeled.value import LabeledTensor, Op, Operand
from extensor.dispatch import (
    implements,
    is_binary_elementwise_op,
    is_unary_elementwise_op,
    name_of,
    named_arguments,
)
from extensor.errors import StructureError


def _scalars(op: Op, arguments: tuple[Any, ...]) -> list[Any]:
    """Returns the other arguments, with labeled scalars as tensors."""
    for argument in arguments:
        if isinstance(argument, LabeledTensor) and argument.axes:
            raise naming.names_error(
                name_of(op), argument, "Pass a scalar: this argument applies to all elements."
            )
    return [x.values if isinstance(x, LabeledTensor) else x for x in arguments]


@implements(is_unary_elementwise_op, on=LabeledTensor)
def unary(op: Op, *args: Operand) -> LabeledTensor | tf.Tensor:
    """Returns a tensor with the same axes and each element transformed."""
    first, *others = args
    if not isinstance(first, LabeledTensor):
        return op(first, *_scalars(op, tuple(others)))
    others = _scalars(op, tuple(others))
    for place, name in enumerate(named_arguments(op, args)):
        if name == "axis" and others[place - 1] is not None:
            others[place - 1] = naming.axis_number(first, others[place - 1], name_of(op))
    values = op(first.values, *others)
    if not values.shape.is_compatible_with(first.values.shape):
        expected = f"a result of the shape of {naming.describe(first)}"
        fix = "Pass scalars for the other arguments."
        raise StructureError(name_of(op), expected, f"shape {values.shape}", fix)
    return first._of_parts(values, first.axes)


@implements(is_binary_elementwise_op, on=LabeledTensor)
def binary(op: Op, x: Operand, y: Operand, *others: Operand) -> LabeledTensor | tf.Tensor:
    """Returns a tensor with the axes of both operands."""
    if not others and type(x) is type(y) and x.axes == y.axes:
        shape = tf.TensorShape(x.values.shape)  # of a KerasTensor, it is a tuple
        if shape.is_fully_defined() and shape == y.values.shape:  # nothing to broadcast
            return x._of_parts(op(x.values, y.values), x.axes)
    others = tuple(_scalars(op, others))
    if not isinstance(x, LabeledTensor) and not isinstance(y, LabeledTensor):
        return op(x, y, *others)

    def call(x: Operand, y: Operand) -> tf.Tensor:
        if op in _OF_ONE_SHAPE:
            x, y = x + tf.zeros_like(y, x.dtype), y + tf.zeros_like(x, y.dtype)
        return op(x, y, *others)

    return broadcast(call, (x, y), name_of(op))


# TensorFlow does not broadcast their operands.
_OF_ONE_SHAPE = (
    tf.nn.log_poisson_loss,
    tf.nn.sigmoid_cross_entropy_with_logits,
    tf.nn.weighted_cross_entropy_with_logits,
    tf.quantization.fake_quant_with_min_max_args_gradient,
)


@implements(tf.where, on=LabeledTensor)
def where(
    condition: Operand, x: Operand | None = None, y: Operand | None = None, *_: object
) -> LabeledTensor | tf.Tensor:
    """Returns `x` where the condition is True and `y` elsewhere, with the axes of all three."""
    if x is None and y is None:
        return tf.where(condition.values)
    return broadcast(tf.where, (condition, x, y), "tf.where")


@implements(tf.clip_by_value, on=LabeledTensor)
def clip_by_value(
    t: Operand, clip_value_min: Operand, clip_value_max: Operand, *_: object
) -> LabeledTensor | tf.Tensor:
    """Returns values clipped to two limits, with the axes of all three."""

    def clip(t: Operand, low: Operand, high: Operand) -> tf.Tensor:
        return tf.maximum(tf.minimum(t, high), low)

    return broadcast(clip, (t, clip_value_min, clip_value_max), "tf.clip_by_value")


@implements(tf.add_n, on=LabeledTensor)
def add_n(inputs: Iterable[LabeledTensor], *_: object) -> LabeledTensor | tf.Tensor:
    """Returns the sum of tensors, with the axes of all."""
    return functools.reduce(tf.add, inputs)
