"""Tensors brought to the same axes, by the names of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._types.labeled import naming
from extensor._types.labeled.value import LabeledTensor
from extensor.dispatch import follows_protocol
from extensor.errors import StructureError


def broadcast(function: Callable[..., Any], operands: Sequence[Any], path: str) -> Any:
    """Returns what an elementwise function makes of operands, broadcast by name.

    Args:
        function: Is called with as many tensors, whose shapes broadcast.
        operands: LabeledTensors, at least one, and scalars; if none has axes, anything else too.
        path: What to call the operation.

    Returns:
        A LabeledTensor that has the axes of all, in the order in which they first appear. Labeled
        scalars beside values of other types are scalars, and the result is what the function makes
        of them. NotImplemented if there are axes, and a type that may know what to do with them.

    Raises:
        StructureError: If an axis has two sizes, or an operand has axes without names (also a
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
            raise _nameless(path, labeled[0], operand)
    rest = iter(checked(labeled, path))
    tensors = [_spread(next(rest), axes) if isinstance(x, LabeledTensor) else x for x in operands]
    return LabeledTensor.of_parts(function(*tensors), axes)


def overrides_operations(operand: Any) -> bool:
    """Returns whether a value is of another type that is asked what operations do with it."""
    return not isinstance(operand, LabeledTensor) and follows_protocol(type(operand))


def ordered(x: LabeledTensor, axes: Sequence[str]) -> tf.Tensor:
    """Returns the values of a tensor with its axes in an order."""
    if x.axes == tuple(axes):
        return x.values
    return tf.transpose(x.values, [x.axes.index(name) for name in axes])


def same_axes(values: Sequence[Any], path: str, but: str | None = None) -> list[tf.Tensor]:
    """Returns the values of tensors, with their axes in the order of the first.

    Args:
        values: What should be LabeledTensors.
        path: What to call the operation.
        but: The name of the axis that may have several sizes.

    Raises:
        StructureError: If they have other axes than the first, or an axis has two sizes (also a
            ValueError).
    """
    first = next(x for x in values if isinstance(x, LabeledTensor))
    for x in values:
        if not isinstance(x, LabeledTensor):
            raise _nameless(path, first, x)
        if set(x.axes) != set(first.axes):
            raise naming.apart(path, first, x)
    return [ordered(x, first.axes) for x in checked(values, path, but)]


def checked(
    values: Sequence[LabeledTensor], path: str, but: str | None = None
) -> list[LabeledTensor]:
    """Returns tensors of which axes of one name are of one size.

    Where that is not known yet, they wait for assertions.

    Args:
        values: The tensors.
        path: What to call the operation.
        but: The name of the axis that may have several sizes.

    Raises:
        StructureError: If two differ (also a ValueError).
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
                raise naming.apart(path, owner, x, name)
    if not assertions:
        return list(values)
    with tf.control_dependencies(assertions):
        # Only what takes these is sure to wait, whatever else is simplified in the graph.
        return [x.of_parts(tf.identity(x.values), x.axes) for x in values]


def _assertion(path: str, name: str, x: Any, y: Any) -> Any:
    a, b = (tf.shape(one.values)[one.axes.index(name)] for one in (x, y))
    return tf.debugging.Assert(tf.equal(a, b), [naming.apart(path, x, y, name).args[0], a, b])


def _spread(x: LabeledTensor, axes: tuple[str, ...]) -> tf.Tensor:
    """Returns the values of a tensor in a shape that broadcasts to some axes."""
    values = ordered(x, [name for name in axes if name in x.axes])
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


def _nameless(path: str, x: Any, other: Any) -> StructureError:
    return StructureError(
        path=path,
        expected=f"a LabeledTensor, or a scalar, beside {naming.of(x)}",
        received=naming.of(other),
        mend="Name its axes: xt.types.LabeledTensor(value, ['feature']).",
    )
