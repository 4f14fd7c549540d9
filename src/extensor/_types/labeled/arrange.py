"""Operations that move the elements of a LabeledTensor, or add and drop axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from extensor._types.labeled import check, index
from extensor._types.labeled.handling import handles
from extensor._types.labeled.tensor import LabeledTensor
from extensor.dispatch import name_of
from extensor.errors import StructureError

# The order and the number of axes.


@handles(tf.transpose)
def transpose(a: Any, perm: Any = None, conjugate: bool = False, *_: Any) -> Any:
    """Returns a tensor with its axes in another order; without one, in the reverse order."""
    if not isinstance(a, LabeledTensor):
        return NotImplemented
    rank = len(a.axes)
    order = list(range(rank))[::-1] if perm is None else check.numbers(a, perm, "tf.transpose")
    if len(order) != rank:
        raise StructureError(
            path="tf.transpose",
            expected=f"an order of all {check.of(a)}",
            received=f"({', '.join(a.axes[i] for i in order)})",
            mend="x.transpose('word', ...) leaves the others in their order.",
        )
    return a.of_parts(tf.transpose(a.values, order, conjugate), [a.axes[i] for i in order])


@handles(tf.linalg.matrix_transpose)
def matrix_transpose(a: Any, name: Any = None, conjugate: bool = False) -> Any:
    """Returns a tensor with its last two axes swapped."""
    rank = len(a.axes)
    if rank < 2:
        raise StructureError(
            path="tf.linalg.matrix_transpose",
            expected="two axes or more",
            received=check.of(a),
            mend="tf.expand_dims(x, 'batch') adds one.",
        )
    return transpose(a, [*range(rank - 2), rank - 1, rank - 2], conjugate)


@handles(tf.expand_dims)
def expand_dims(input: Any, axis: Any, *_: Any) -> Any:
    """Returns a tensor with an axis of a new name and of size 1 in front."""
    name = check.new(input.axes, axis, "tf.expand_dims")
    return input.of_parts(input.values[tf.newaxis], (name, *input.axes))


@handles(tf.squeeze)
def squeeze(input: Any, axis: Any = None, *_: Any) -> Any:
    """Returns a tensor without axes of size 1."""
    sizes = input.values.shape.as_list()
    if axis is None:
        dropped = [i for i, size in enumerate(sizes) if size == 1]
    else:
        dropped = check.numbers(input, axis, "tf.squeeze")
    wrong = [i for i in range(len(sizes)) if i in dropped and sizes[i] not in (1, None)]
    wrong += [i for i in range(len(sizes)) if axis is None and sizes[i] is None]
    if wrong:
        raise StructureError(
            path="tf.squeeze",
            expected=f"size 1 of axis {input.axes[wrong[0]]!r}",
            received=check.of(input),
            mend="Name the axes of size 1." if axis is None else "Slice it, or reduce it.",
        )
    left = [name for i, name in enumerate(input.axes) if i not in dropped]
    return input.of_parts(tf.squeeze(input.values, dropped) if dropped else input.values, left)


@handles(tf.unstack)
def unstack(value: Any, num: Any = None, axis: Any = 0, *_: Any) -> Any:
    """Returns the parts of a tensor at each position along an axis."""
    number = check.number(value, axis, "tf.unstack")
    left = [name for i, name in enumerate(value.axes) if i != number]
    return [value.of_parts(part, left) for part in tf.unstack(value.values, num, number)]


@handles(tf.split)
def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None, *_: Any) -> Any:
    """Returns a tensor cut into parts along an axis."""
    if not isinstance(value, LabeledTensor):
        return NotImplemented
    number = check.number(value, axis, "tf.split")
    parts = tf.split(value.values, num_or_size_splits, number, num)
    return [value.of_parts(part, value.axes) for part in parts]


@handles(tf.one_hot)
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    *_: Any,
) -> Any:
    """Returns a tensor with a last axis of a new name, in which one of `depth` stands out."""
    if not isinstance(indices, LabeledTensor):
        return NotImplemented
    name = check.new(indices.axes, axis, "tf.one_hot")
    values = tf.one_hot(indices.values, depth, on_value, off_value, dtype=dtype)
    return indices.of_parts(values, (*indices.axes, name))


# Elements at some positions.


@handles(tf.__operators__.getitem)
def getitem(tensor: Any, slice_spec: Any, *_: Any) -> Any:
    """Returns the part of a tensor by position."""
    if not isinstance(tensor, LabeledTensor):
        return NotImplemented
    return index.by_position(tensor, slice_spec)


@handles(tf.gather)
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    *_: Any,
) -> Any:
    """Returns what stands at some positions along an axis."""
    if not isinstance(params, LabeledTensor):
        params = tf.convert_to_tensor(params)
        if params.shape.rank != 1:
            raise StructureError(
                path="tf.gather",
                expected=f"a vector, or a LabeledTensor, to gather from by {check.of(indices)}",
                received=check.of(params),
                mend="Name its axes: xt.types.LabeledTensor(params, ['word', 'feature']).",
            )
        return indices.of_parts(tf.gather(params, indices.values), indices.axes)
    if batch_dims:
        raise check.refused("tf.gather", params, "Axes that both have are batch_dims by name.")
    number = check.number(params, 0 if axis is None else axis, "tf.gather")
    return index.take(params, indices, number, "tf.gather")


@handles(tf.boolean_mask)
def boolean_mask(tensor: Any, mask: Any, axis: Any = None, *_: Any) -> Any:
    """Returns what a mask of one axis keeps along this axis."""
    if not isinstance(tensor, LabeledTensor):
        return NotImplemented
    if not isinstance(mask, LabeledTensor):
        mask = tf.convert_to_tensor(mask)
        axis = 0 if axis is None else axis
    elif axis is None:
        axis = mask.axes[0] if len(mask.axes) == 1 else 0
    number = check.number(tensor, axis, "tf.boolean_mask")
    return index.masked(tensor, mask, number, "tf.boolean_mask")


@handles(tf.repeat)
def repeat(input: Any, repeats: Any, axis: Any = None, *_: Any) -> Any:
    """Returns a tensor with its elements repeated along an axis."""
    if not isinstance(input, LabeledTensor):
        return NotImplemented
    if axis is None:
        raise check.refused("tf.repeat", input, "Without an axis all become one: name it.")
    number = check.number(input, axis, "tf.repeat")
    return input.of_parts(tf.repeat(input.values, repeats, number), input.axes)


def _by_axis(x: Any, given: Any, default: Any, path: str) -> Any:
    """Returns something for each axis in order, where a dict gives it by name."""
    if not isinstance(given, Mapping):
        return given
    numbers = check.numbers(x, list(given), path)
    found = [default] * len(x.axes)
    for number, one in zip(numbers, given.values(), strict=True):
        found[number] = one
    return found


@handles(tf.tile)
def tile(input: Any, multiples: Any, *_: Any) -> Any:
    """Returns a tensor repeated as a whole along its axes."""
    if not isinstance(input, LabeledTensor):
        return NotImplemented
    multiples = _by_axis(input, multiples, 1, "tf.tile")
    return input.of_parts(tf.tile(input.values, multiples), input.axes)


@handles(tf.pad)
def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, *_: Any
) -> Any:
    """Returns a tensor with elements added before and after along its axes."""
    if not isinstance(tensor, LabeledTensor):
        return NotImplemented
    paddings = _by_axis(tensor, paddings, (0, 0), "tf.pad")
    return tensor.of_parts(tf.pad(tensor.values, paddings, mode, constant_values), tensor.axes)


@handles(tf.slice)
def slice_(input_: Any, begin: Any, size: Any, *_: Any) -> Any:
    """Returns a block of a tensor."""
    if not isinstance(input_, LabeledTensor):
        return NotImplemented
    return input_.of_parts(tf.slice(input_.values, begin, size), input_.axes)


_REFUSED = {
    tf.reshape: "Which axis of the result is which is not known: reshape x.values, and name its "
    "axes.",
    tf.broadcast_to: "Axes broadcast by name: x + tf.zeros_like(y) has the axes of both.",
    tf.gather_nd: "x.isel(word=..., feature=...) takes positions along several axes.",
    tf.strided_slice: "x.isel(word=slice(0, 4, 2)) slices by name.",
}


@handles(*_REFUSED)
def refuse(op: Any, *args: Any) -> Any:
    """Raises an error that says what to do instead."""
    x = next((x for x in args if isinstance(x, LabeledTensor) and x.axes), None)
    if x is None:
        return NotImplemented
    raise check.refused(name_of(op), x, _REFUSED[op])
