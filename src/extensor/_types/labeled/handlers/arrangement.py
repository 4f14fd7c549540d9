"""Operations that move elements of LabeledTensors, add or drop axes, or join tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from extensor._types.labeled import index, naming
from extensor._types.labeled.align import overrides_operations, same_axes
from extensor._types.labeled.value import LabeledTensor
from extensor.dispatch import implements, name_of
from extensor.errors import StructureError

# The order and the number of axes.


@implements(tf.transpose, on=LabeledTensor)
def transpose(a: Any, perm: Any = None, conjugate: bool = False, *_: Any) -> Any:
    """Returns a tensor with its axes in another order; in reverse order if `perm` is None."""
    if not isinstance(a, LabeledTensor):
        return NotImplemented
    rank = len(a.axes)
    order = list(range(rank))[::-1] if perm is None else naming.numbers(a, perm, "tf.transpose")
    if len(order) != rank:
        raise StructureError(
            "tf.transpose",
            f"an order of all {naming.describe(a)}",
            f"({', '.join(a.axes[i] for i in order)})",
            "Name all axes, or write x.transpose('word', ...).",
        )
    if conjugate or not isinstance(a.values, tf.Tensor):
        values = tf.transpose(a.values, order, conjugate)
    else:  # the kernel alone, which takes a third of the time
        values = tf.raw_ops.Transpose(x=a.values, perm=tf.constant(order, tf.int32))
    return a.of_parts(values, [a.axes[i] for i in order])


@implements(tf.linalg.matrix_transpose, on=LabeledTensor)
def matrix_transpose(a: Any, name: Any = None, conjugate: bool = False) -> Any:
    """Returns a tensor with its last two axes swapped."""
    rank = len(a.axes)
    if rank < 2:
        raise StructureError(
            "tf.linalg.matrix_transpose",
            "at least 2 axes",
            naming.describe(a),
            "Add an axis with tf.expand_dims(x, 'batch').",
        )
    return transpose(a, [*range(rank - 2), rank - 1, rank - 2], conjugate)


@implements(tf.expand_dims, on=LabeledTensor)
def expand_dims(input: Any, axis: Any, *_: Any) -> Any:
    """Returns a tensor with a new first axis of size 1."""
    name = naming.new(input.axes, axis, "tf.expand_dims")
    return input.of_parts(input.values[tf.newaxis], (name, *input.axes))


@implements(tf.squeeze, on=LabeledTensor)
def squeeze(input: Any, axis: Any = None, *_: Any) -> Any:
    """Returns a tensor without axes of size 1."""
    sizes = input.values.shape.as_list()
    if axis is None:
        dropped = [i for i, size in enumerate(sizes) if size == 1]
    else:
        dropped = naming.numbers(input, axis, "tf.squeeze")
    wrong = [i for i in range(len(sizes)) if i in dropped and sizes[i] not in (1, None)]
    wrong += [i for i in range(len(sizes)) if axis is None and sizes[i] is None]
    if wrong:
        raise StructureError(
            "tf.squeeze",
            f"size 1 of axis {input.axes[wrong[0]]!r}",
            naming.describe(input),
            "Name the axes of size 1." if axis is None else "Slice it, or reduce it.",
        )
    left = [name for i, name in enumerate(input.axes) if i not in dropped]
    return input.of_parts(tf.squeeze(input.values, dropped) if dropped else input.values, left)


@implements(tf.unstack, on=LabeledTensor)
def unstack(value: Any, num: Any = None, axis: Any = 0, *_: Any) -> Any:
    """Returns the slices of a tensor along an axis."""
    number = naming.number(value, axis, "tf.unstack")
    left = [name for i, name in enumerate(value.axes) if i != number]
    return [value.of_parts(part, left) for part in tf.unstack(value.values, num, number)]


@implements(tf.split, on=LabeledTensor)
def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None, *_: Any) -> Any:
    """Returns the parts of a tensor that is split along an axis."""
    if not isinstance(value, LabeledTensor):
        return NotImplemented
    number = naming.number(value, axis, "tf.split")
    parts = tf.split(value.values, num_or_size_splits, number, num)
    return [value.of_parts(part, value.axes) for part in parts]


@implements(tf.one_hot, on=LabeledTensor)
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    *_: Any,
) -> Any:
    """Returns a one-hot tensor with a new last axis of size `depth`."""
    if not isinstance(indices, LabeledTensor):
        return NotImplemented
    name = naming.new(indices.axes, axis, "tf.one_hot")
    values = tf.one_hot(indices.values, depth, on_value, off_value, dtype=dtype)
    return indices.of_parts(values, (*indices.axes, name))


# Elements at some positions.


@implements(tf.__operators__.getitem, on=LabeledTensor)
def getitem(tensor: Any, slice_spec: Any, *_: Any) -> Any:
    """Returns the part of a tensor at the given positions."""
    if not isinstance(tensor, LabeledTensor):
        return NotImplemented
    return index.by_position(tensor, slice_spec)


@implements(tf.gather, on=LabeledTensor)
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: Any = 0,
    *_: Any,
) -> Any:
    """Returns the slices at the given positions along an axis."""
    if not isinstance(params, LabeledTensor):
        params = tf.convert_to_tensor(params)
        if params.shape.rank != 1:
            raise StructureError(
                "tf.gather",
                f"a vector or LabeledTensor, for indices with {naming.describe(indices)}",
                naming.describe(params),
                "Name its axes: xt.types.LabeledTensor(params, ['word', 'feature']).",
            )
        return indices.of_parts(tf.gather(params, indices.values), indices.axes)
    if batch_dims:
        raise naming.names_error(
            "tf.gather", params, "Omit batch_dims: axes that both have are batch dimensions."
        )
    number = naming.number(params, 0 if axis is None else axis, "tf.gather")
    return index.take(params, indices, number, "tf.gather")


@implements(tf.boolean_mask, on=LabeledTensor)
def boolean_mask(tensor: Any, mask: Any, axis: Any = None, *_: Any) -> Any:
    """Returns the slices along an axis for which a mask of this axis is True."""
    if not isinstance(tensor, LabeledTensor):
        return NotImplemented
    if not isinstance(mask, LabeledTensor):
        mask = tf.convert_to_tensor(mask)
        axis = 0 if axis is None else axis
    elif axis is None:
        axis = mask.axes[0] if len(mask.axes) == 1 else 0
    number = naming.number(tensor, axis, "tf.boolean_mask")
    return index.masked(tensor, mask, number, "tf.boolean_mask")


@implements(tf.repeat, on=LabeledTensor)
def repeat(input: Any, repeats: Any, axis: Any = None, *_: Any) -> Any:
    """Returns a tensor with its elements repeated along an axis."""
    if not isinstance(input, LabeledTensor):
        return NotImplemented
    if axis is None:
        raise naming.names_error("tf.repeat", input, "Name the axis to repeat along.")
    number = naming.number(input, axis, "tf.repeat")
    return input.of_parts(tf.repeat(input.values, repeats, number), input.axes)


def _by_axis(x: Any, given: Any, default: Any, path: str) -> Any:
    """Returns a list with an item for each axis, from a dict by name; other values unchanged."""
    if not isinstance(given, Mapping):
        return given
    numbers = naming.numbers(x, list(given), path)
    found = [default] * len(x.axes)
    for number, one in zip(numbers, given.values(), strict=True):
        found[number] = one
    return found


@implements(tf.tile, on=LabeledTensor)
def tile(input: Any, multiples: Any, *_: Any) -> Any:
    """Returns a tensor repeated as a whole along its axes."""
    if not isinstance(input, LabeledTensor):
        return NotImplemented
    multiples = _by_axis(input, multiples, 1, "tf.tile")
    return input.of_parts(tf.tile(input.values, multiples), input.axes)


@implements(tf.pad, on=LabeledTensor)
def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, *_: Any
) -> Any:
    """Returns a tensor with elements added before and after along its axes."""
    if not isinstance(tensor, LabeledTensor):
        return NotImplemented
    paddings = _by_axis(tensor, paddings, (0, 0), "tf.pad")
    return tensor.of_parts(tf.pad(tensor.values, paddings, mode, constant_values), tensor.axes)


@implements(tf.slice, on=LabeledTensor)
def slice_(input_: Any, begin: Any, size: Any, *_: Any) -> Any:
    """Returns a block of a tensor."""
    if not isinstance(input_, LabeledTensor):
        return NotImplemented
    return input_.of_parts(tf.slice(input_.values, begin, size), input_.axes)


# Several tensors.


def _listed(values: Any) -> list[Any]:
    return [values] if isinstance(values, LabeledTensor) else list(values)


def _first(values: list[Any]) -> LabeledTensor | None:
    # A nested list may contain the LabeledTensors further inside.
    return next((x for x in values if isinstance(x, LabeledTensor)), None)


@implements(tf.concat, on=LabeledTensor)
def concat(values: Any, axis: Any, *_: Any) -> Any:
    """Returns tensors with the same axes, concatenated along one of them."""
    values = _listed(values)
    first = _first(values)
    if first is None or any(map(overrides_operations, values)):
        return NotImplemented
    number = naming.number(first, axis, "tf.concat")
    parts = same_axes(values, "tf.concat", but=first.axes[number])
    return first.of_parts(tf.concat(parts, number), first.axes)


@implements(tf.stack, on=LabeledTensor)
def stack(values: Any, axis: Any = None, *_: Any) -> Any:
    """Returns tensors with the same axes, stacked along a new first axis."""
    values = _listed(values)
    first = _first(values)
    if first is None or any(map(overrides_operations, values)):
        return NotImplemented
    name = naming.new(first.axes, axis, "tf.stack")
    return first.of_parts(tf.stack(same_axes(values, "tf.stack")), (name, *first.axes))


_REFUSED = {
    tf.reshape: "Reshape x.values, and name the axes of the result.",
    tf.broadcast_to: "Broadcast by name: x + tf.zeros_like(y) has the axes of both.",
    tf.gather_nd: "Use x.isel(word=..., feature=...) for positions along several axes.",
    tf.strided_slice: "Use x.isel(word=slice(0, 4, 2)).",
}


@implements(*_REFUSED, on=LabeledTensor)
def refuse(op: Any, *args: Any) -> Any:
    """Raises an error that names an alternative."""
    x = next((x for x in args if isinstance(x, LabeledTensor) and x.axes), None)
    if x is None:
        return NotImplemented
    raise naming.names_error(name_of(op), x, _REFUSED[op])
