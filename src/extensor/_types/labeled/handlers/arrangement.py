"""Operations that move elements of LabeledTensors, add or drop axes, or join tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from extensor._types.labeled import index, naming
from extensor._types.labeled.align import overrides_operations, same_axes, transpose_to
from extensor._types.labeled.naming import Axes, Axis
from extensor._types.labeled.value import LabeledTensor, Op, Operand
from extensor.dispatch import implements, name_of, named_arguments
from extensor.errors import StructureError

# The order and the number of axes.


@implements(tf.transpose, on=LabeledTensor)
def transpose(
    a: LabeledTensor, perm: Axes | None = None, conjugate: bool = False, *_: object
) -> LabeledTensor:
    """Returns a tensor with its axes in another order; in reverse order if `perm` is None."""
    if not isinstance(a, LabeledTensor):
        return NotImplemented
    rank = len(a.axes)
    order = (
        list(range(rank))[::-1] if perm is None else naming.axis_numbers(a, perm, "tf.transpose")
    )
    if len(order) != rank:
        received = f"({', '.join(a.axes[i] for i in order)})"
        fix = "Name all axes, or write x.transpose('word', ...)."
        raise StructureError("tf.transpose", f"an order of all {naming.describe(a)}", received, fix)
    names = [a.axes[i] for i in order]
    values = tf.transpose(a.values, order, conjugate) if conjugate else transpose_to(a, names)
    return a._of_parts(values, names)


@implements(tf.linalg.matrix_transpose, on=LabeledTensor)
def matrix_transpose(
    a: LabeledTensor, name: str | None = None, conjugate: bool = False
) -> LabeledTensor:
    """Returns a tensor with its last two axes swapped."""
    rank = len(a.axes)
    if rank < 2:
        expected, fix = "at least 2 axes", "Add an axis with tf.expand_dims(x, 'batch')."
        raise StructureError("tf.linalg.matrix_transpose", expected, naming.describe(a), fix)
    return transpose(a, [*range(rank - 2), rank - 1, rank - 2], conjugate)


@implements(tf.expand_dims, on=LabeledTensor)
def expand_dims(input: LabeledTensor, axis: str, *_: object) -> LabeledTensor:
    """Returns a tensor with a new first axis of size 1."""
    name = naming.new_name(input.axes, axis, "tf.expand_dims")
    return input._of_parts(input.values[tf.newaxis], (name, *input.axes))


@implements(tf.squeeze, on=LabeledTensor)
def squeeze(input: LabeledTensor, axis: Axes | None = None, *_: object) -> LabeledTensor:
    """Returns a tensor without axes of size 1."""
    sizes = input.values.shape.as_list()
    if axis is None:
        dropped = [i for i, size in enumerate(sizes) if size == 1]
    else:
        dropped = naming.axis_numbers(input, axis, "tf.squeeze")
    wrong = [i for i in range(len(sizes)) if i in dropped and sizes[i] not in (1, None)]
    wrong += [i for i in range(len(sizes)) if axis is None and sizes[i] is None]
    if wrong:
        expected = f"size 1 of axis {input.axes[wrong[0]]!r}"
        fix = "Name the axes of size 1." if axis is None else "Slice it, or reduce it."
        raise StructureError("tf.squeeze", expected, naming.describe(input), fix)
    left = [name for i, name in enumerate(input.axes) if i not in dropped]
    return input._of_parts(tf.squeeze(input.values, dropped) if dropped else input.values, left)


@implements(tf.unstack, on=LabeledTensor)
def unstack(
    value: LabeledTensor, num: int | None = None, axis: Axis = 0, *_: object
) -> list[LabeledTensor]:
    """Returns the slices of a tensor along an axis."""
    number = naming.axis_number(value, axis, "tf.unstack")
    left = [name for i, name in enumerate(value.axes) if i != number]
    return [value._of_parts(part, left) for part in tf.unstack(value.values, num, number)]


@implements(tf.one_hot, on=LabeledTensor)
def one_hot(indices: Operand, *args: Any) -> LabeledTensor:
    """Returns a one-hot tensor with a new last axis of size `depth`."""
    if not isinstance(indices, LabeledTensor):
        return NotImplemented
    given = named_arguments(tf.one_hot, (indices.values, *args))
    name = naming.new_name(indices.axes, given.pop("axis", None), "tf.one_hot")
    return indices._of_parts(tf.one_hot(**given), (*indices.axes, name))


# Elements at some positions.


@implements(tf.__operators__.getitem, on=LabeledTensor)
def getitem(tensor: LabeledTensor, slice_spec: Any, *_: object) -> LabeledTensor:
    """Returns the part of a tensor at the given positions."""
    if not isinstance(tensor, LabeledTensor):
        return NotImplemented
    return index.getitem(tensor, slice_spec)


@implements(tf.gather, on=LabeledTensor)
def gather(params: Operand, indices: Operand, *args: Any) -> LabeledTensor:
    """Returns the slices at the given positions along an axis."""
    given = named_arguments(tf.gather, (params, indices, *args))
    if not isinstance(params, LabeledTensor):
        params = tf.convert_to_tensor(params)
        if params.shape.rank != 1:
            expected = f"a vector or LabeledTensor, for indices with {naming.describe(indices)}"
            fix = "Name its axes: xt.types.LabeledTensor(params, ['word', 'feature'])."
            raise StructureError("tf.gather", expected, naming.describe(params), fix)
        return indices._of_parts(tf.gather(params, indices.values), indices.axes)
    if given.get("batch_dims"):
        raise naming.names_error(
            "tf.gather", params, "Omit batch_dims: axes that both have are batch dimensions."
        )
    axis = given.get("axis")
    number = naming.axis_number(params, 0 if axis is None else axis, "tf.gather")
    return index.take(params, indices, number, "tf.gather")


@implements(tf.boolean_mask, on=LabeledTensor)
def boolean_mask(
    tensor: LabeledTensor, mask: Operand, axis: Axis | None = None, *_: object
) -> LabeledTensor:
    """Returns the slices along an axis for which a mask of this axis is True."""
    if not isinstance(tensor, LabeledTensor):
        return NotImplemented
    if not isinstance(mask, LabeledTensor):
        mask = tf.convert_to_tensor(mask)
        axis = 0 if axis is None else axis
    elif axis is None:
        axis = mask.axes[0] if len(mask.axes) == 1 else 0
    number = naming.axis_number(tensor, axis, "tf.boolean_mask")
    return index.boolean_mask(tensor, mask, number, "tf.boolean_mask")


# Several tensors.


@implements(tf.concat, tf.stack, on=LabeledTensor)
def join(
    op: Op, values: LabeledTensor | Sequence[Operand], axis: Axis | None = None, *_: object
) -> LabeledTensor:
    """Returns tensors with the same axes, concatenated along one of them, or a new first one."""
    values = [values] if isinstance(values, LabeledTensor) else list(values)
    first = next((x for x in values if isinstance(x, LabeledTensor)), None)
    if first is None or any(map(overrides_operations, values)):  # or it is in a nested list
        return NotImplemented
    if op is tf.stack:
        name = naming.new_name(first.axes, axis, "tf.stack")
        return first._of_parts(tf.stack(same_axes(values, "tf.stack")), (name, *first.axes))
    number = naming.axis_number(first, axis, "tf.concat")
    parts = same_axes(values, "tf.concat", but=first.axes[number])
    return first._of_parts(tf.concat(parts, number), first.axes)


_REFUSED = {
    tf.reshape: "Reshape x.values, and name the axes of the result.",
    tf.broadcast_to: "Broadcast by name: x + tf.zeros_like(y) has the axes of both.",
    tf.gather_nd: "Use x.isel(word=..., feature=...) for positions along several axes.",
    tf.strided_slice: "Use x.isel(word=slice(0, 4, 2)).",
}


@implements(*_REFUSED, on=LabeledTensor)
def refuse(op: Op, *args: object) -> LabeledTensor:
    """Raises an error that names an alternative."""
    x = next((x for x in args if isinstance(x, LabeledTensor) and x.axes), None)
    if x is None:
        return NotImplemented
    raise naming.names_error(name_of(op), x, _REFUSED[op])
