"""Alignment of LabeledTensors: broadcasting and matching axes by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._types.labeled import naming
from extensor._types.labeled.value import LabeledTensor, Op
from extensor.dispatch import follows_protocol
from extensor.errors import StructureError


def broadcast(function: Op, operands: Sequence[Any], path: str) -> LabeledTensor | tf.Tensor:
    """Returns the result of an elementwise function of operands that are broadcast by name.

    Args:
        function: Takes as many tensors, whose shapes broadcast.
        operands: At least one LabeledTensor, and scalars; if no operand has axes, any other values
            too.
        path: The name of the operation, for errors.

    Returns:
        A LabeledTensor with the axes of all operands, in order of first appearance. If no operand
        has axes and one has another type, the function's own result. NotImplemented if an operand
        has axes and another one has a type that overrides operations.

    Raises:
        StructureError: If two sizes of an axis differ, or an operand has unnamed axes (also a
            ValueError).
    """
    labeled = [x for x in operands if isinstance(x, LabeledTensor)]
    axes = tuple(dict.fromkeys(name for x in labeled for name in x.axes))
    for operand in operands:
        if isinstance(operand, LabeledTensor):
            continue
        if not _is_scalar(operand) or overrides_operations(operand):
            if not axes:
                plain = (x.values if isinstance(x, LabeledTensor) else x for x in operands)
                return function(*plain)
            if overrides_operations(operand):
                return NotImplemented
            raise _unnamed_error(path, labeled[0], operand)
    rest = iter(check_sizes(labeled, path))
    tensors = [_spread(next(rest), axes) if isinstance(x, LabeledTensor) else x for x in operands]
    return LabeledTensor._of_parts(function(*tensors), axes)


def overrides_operations(operand: object) -> bool:
    """Returns whether a value has another type that overrides operations."""
    return not isinstance(operand, LabeledTensor) and follows_protocol(type(operand))


def transpose_to(x: LabeledTensor, axes: Sequence[str]) -> tf.Tensor:
    """Returns the values of a tensor with its axes in the given order."""
    if x.axes == tuple(axes):
        return x.values
    order = [x.axes.index(name) for name in axes]
    if not isinstance(x.values, tf.Tensor):
        return tf.transpose(x.values, order)
    # The kernel alone, which takes a third of the time.
    return tf.raw_ops.Transpose(x=x.values, perm=tf.constant(order, tf.int32))


def same_axes(values: Sequence[Any], path: str, but: str | None = None) -> list[tf.Tensor]:
    """Returns the values of tensors with their axes in the order of the first tensor.

    Args:
        values: Values that must be LabeledTensors.
        path: The name of the operation, for errors.
        but: The name of the axis that may differ in size.

    Raises:
        StructureError: If the axes differ, or two sizes of an axis (also a ValueError).
    """
    first = next(x for x in values if isinstance(x, LabeledTensor))
    for x in values:
        if not isinstance(x, LabeledTensor):
            raise _unnamed_error(path, first, x)
        if set(x.axes) != set(first.axes):
            raise naming.mismatch_error(path, first, x)
    return [transpose_to(x, first.axes) for x in check_sizes(values, path, but)]


def check_sizes(
    values: Sequence[LabeledTensor], path: str, but: str | None = None
) -> list[LabeledTensor]:
    """Returns the tensors, after checking that axes of the same name have the same size.

    For sizes that are not static, the tensors depend on assertions.

    Args:
        values: The tensors.
        path: The name of the operation, for errors.
        but: The name of the axis that may differ in size.

    Raises:
        StructureError: If two sizes differ (also a ValueError).
    """
    found: dict[str, tuple[int | None, Any]] = {}
    assertions: list[Any] = []
    for x in values:
        for name, size in zip(x.axes, x.values.shape.as_list(), strict=True):
            if name == but:
                continue
            other, owner = found.setdefault(name, (size, x))
            if size is None or other is None:
                if owner is not x:
                    assertions.append(_assertion(path, name, owner, x))
                if size is not None:
                    found[name] = size, x
            elif size != other:
                raise naming.mismatch_error(path, owner, x, name)
    if not assertions:
        return list(values)
    with tf.control_dependencies(assertions):
        # The graph optimizer keeps the assertions only as inputs of ops that are used.
        return [x._of_parts(tf.identity(x.values), x.axes) for x in values]


def _assertion(path: str, name: str, x: LabeledTensor, y: LabeledTensor) -> tf.Operation:
    a, b = (tf.shape(one.values)[one.axes.index(name)] for one in (x, y))
    return tf.debugging.Assert(
        tf.equal(a, b), [naming.mismatch_error(path, x, y, name).args[0], a, b]
    )


def _spread(x: LabeledTensor, axes: tuple[str, ...]) -> tf.Tensor:
    """Returns the values of a tensor in a shape that broadcasts to the given axes."""
    values = transpose_to(x, [name for name in axes if name in x.axes])
    index = [slice(None) if name in x.axes else tf.newaxis for name in axes]
    while index and index[0] is tf.newaxis:
        index.pop(0)
    return values[tuple(index)] if tf.newaxis in index else values


def _is_scalar(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return False
    shape = getattr(value, "shape", None)
    if shape is None:
        return np.ndim(value) == 0
    return tf.TensorShape(shape).rank == 0


def _unnamed_error(path: str, x: LabeledTensor, other: object) -> StructureError:
    expected = f"a LabeledTensor or a scalar, because another operand has {naming.describe(x)}"
    fix = "Name its axes: xt.types.LabeledTensor(value, ['feature'])."
    return StructureError(path, expected, naming.describe(other), fix)
