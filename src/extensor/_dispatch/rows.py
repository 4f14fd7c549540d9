"""What the functions that select and join rows do with a declared type, unless it says otherwise.

The rows are those of tf.data: the elements of `Dataset.from_tensor_slices`, and of `batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._authoring.batch import expect_row, item_of_boxes
from extensor._authoring.rows import concat_rows, stack_rows, take_rows
from extensor._protocol.box import box, unbox, unstacked_spec
from extensor._tf._tf_dispatch import registered_result
from extensor._typing import TensorLike, Value
from extensor.errors import StructureError

Function = Callable[..., Any]


def by_rows(cls: type, op: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
    """Returns the result of an operation on the rows of declared values.

    Functions that are registered by `tf.experimental.dispatch_for_api` have priority.

    Args:
        cls: The declared class.
        op: One of `OPERATIONS`.
        args: Its positional arguments.
        kwargs: Its keyword arguments.

    Returns:
        The result, or `NotImplemented` for arguments that do not select or join rows.
    """
    result = registered_result(op, args, kwargs)
    return OPERATIONS[op](cls, *args) if result is NotImplemented else result


def _stack(cls: type, values: Sequence[Value], axis: TensorLike = 0, *_: object) -> Value:
    return stack_rows(list(values)) if _can_join(cls, values, axis) else NotImplemented


def _concat(cls: type, values: Sequence[Value], axis: TensorLike, *_: object) -> Value:
    return concat_rows(list(values)) if _can_join(cls, values, axis) else NotImplemented


def _can_join(cls: type, values: object, axis: TensorLike) -> bool:
    return (
        isinstance(values, (list, tuple))
        and all(isinstance(value, cls) for value in values)
        and _is_first(axis)
    )


def _is_first(axis: TensorLike) -> bool:
    known = tf.get_static_value(axis) if isinstance(axis, tf.Tensor) else axis
    return known is not None and known == 0


def _unstack(
    cls: type, value: Value, num: int | None = None, axis: TensorLike = 0, *_: object
) -> list[Value] | object:
    spec, boxes = _boxes(value)
    if not boxes or not _is_first(axis):
        return NotImplemented
    if num is None and boxes[0].shape[0] is None:
        expected = "a number of rows that is known while tracing, or num="
        fix = "Give num=, or set the shape of the tensors first with tf.ensure_shape."
        raise StructureError(f"tf.unstack of {cls.__qualname__}", expected, f"{spec}", fix)
    row = unstacked_spec(spec, cls.__qualname__)
    columns = [tf.unstack(part, num) for part in boxes]
    return [unbox(row, list(parts)) for parts in zip(*columns, strict=True)]


def _gather(
    cls: type,
    params: Value,
    indices: TensorLike,
    validate_indices: object = None,
    axis: TensorLike | None = None,
    batch_dims: TensorLike = 0,
    *_: object,
) -> Value:
    if (
        not isinstance(params, cls)
        or isinstance(indices, tf.RaggedTensor)
        or not _is_first(0 if axis is None else axis)
        or not _is_first(batch_dims)
    ):
        return NotImplemented
    positions: tf.Tensor = (
        indices if isinstance(indices, tf.Tensor) else tf.convert_to_tensor(indices)
    )
    return NotImplemented if positions.shape.rank is None else take_rows(params, positions)


def _item(cls: type, tensor: Value, slice_spec: Value, *_: object) -> Value:
    spec, boxes = _boxes(tensor)
    if not boxes or not (isinstance(slice_spec, slice) or _is_number(slice_spec)):
        return NotImplemented
    expect_row(f"{cls.__qualname__}[...]", slice_spec, boxes[0].shape[0])
    return item_of_boxes(spec, boxes, slice_spec)


def _is_number(key: Value) -> bool:
    if isinstance(key, tf.Tensor):
        return key.dtype.is_integer and key.shape.rank == 0
    return isinstance(key, (int, np.integer)) and not isinstance(key, bool)


def _boxes(value: Value) -> tuple[tf.TypeSpec, list[tf.Tensor]]:
    spec = tf.type_spec_from_value(value)
    return spec, box(spec, value, 1)


OPERATIONS: dict[Function, Function] = {
    tf.stack: _stack,
    tf.unstack: _unstack,
    tf.concat: _concat,
    tf.gather: _gather,
    tf.__operators__.getitem: _item,
}
"""The operations on rows, which get the class before the arguments."""
