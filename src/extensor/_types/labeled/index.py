"""Indexing of LabeledTensors: by positions along axes, by lists of positions, by masks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import tensorflow as tf

from extensor._types.labeled import naming
from extensor.errors import DTypeError, RowError, StructureError
from extensor.typing import TensorLike

if TYPE_CHECKING:
    from extensor._types.labeled.value import LabeledTensor, Operand

Array = np.ndarray[Any, Any]

Indexer = Union[int, slice, TensorLike, "LabeledTensor"]
"""What is taken along an axis: a position, a slice, several positions, or bools."""


def select(x: LabeledTensor, indexers: Mapping[Any, Any], path: str) -> LabeledTensor:
    """Returns the part of a tensor at the given positions along the given axes.

    Args:
        x: A LabeledTensor.
        indexers: By axis: a number, a slice, a vector of positions or bools, or a LabeledTensor.
        path: The name of the operation, for errors.
    """
    axes = naming.axis_numbers(x, list(indexers), path)
    basic: list[Any] = [slice(None)] * len(x.axes)
    vectors: dict[str, Any] = {}
    labeled: dict[str, LabeledTensor] = {}
    for number, indexer in zip(axes, indexers.values(), strict=True):
        indexer = _check_indexer(x, number, indexer, path)
        if isinstance(indexer, (int, slice)) or _is_number(indexer):
            basic[number] = indexer
        elif isinstance(indexer, type(x)) and indexer.values.dtype != tf.bool:
            labeled[x.axes[number]] = indexer
        else:
            vectors[x.axes[number]] = indexer
    if any(index != slice(None) for index in basic if isinstance(index, slice)) or not all(
        isinstance(index, slice) for index in basic
    ):
        kept = [n for n, i in zip(x.axes, basic, strict=True) if isinstance(i, slice)]
        x = x._of_parts(x.values[tuple(basic)], tuple(kept))
    for name, indexer in vectors.items():
        number = x.axes.index(name)
        if indexer.dtype == tf.bool:
            x = boolean_mask(x, indexer, number, path)
        else:
            x = take(x, _not_negative(indexer, x, number), number, path)
    # An axis that is replaced is not the axis of this name of another indexer.
    own = {name: f"{name} of the tensor" for name in labeled}
    x = x._of_parts(x.values, tuple(own.get(name, name) for name in x.axes))
    for name, indexer in labeled.items():
        number = x.axes.index(own[name])
        positions = indexer.with_values(_not_negative(indexer.values, x, number))
        x = take(x, positions, number, path)
    return x


def _not_negative(positions: tf.Tensor, x: LabeledTensor, number: int) -> tf.Tensor:
    """Returns positions along an axis, of which negative ones are counted from its end."""
    size = tf.shape(x.values, positions.dtype)[number]
    return tf.where(positions < 0, positions + size, positions)


def _is_number(indexer: Any) -> bool:
    return isinstance(indexer, tf.Tensor) and indexer.shape.rank == 0


def _check_indexer(x: LabeledTensor, number: int, indexer: Any, path: str) -> Indexer:
    """Returns an indexer as an integer, a slice, a tensor, or a LabeledTensor of rank 1 or more."""
    if isinstance(indexer, slice):
        return indexer
    labeled = indexer if isinstance(indexer, type(x)) else None
    if labeled is not None:
        indexer = labeled.values
    if not isinstance(indexer, tf.Tensor):
        array = np.asarray(indexer)
        if array.size == 0 and array.dtype.kind == "f":
            array = array.astype(np.int64)
        if array.dtype.kind not in "iub" or (array.dtype.kind == "b" and array.ndim == 0):
            raise _indexer_error(path, x, number, f"a {type(indexer).__qualname__}")
        _expect_inside(path, x, number, array)
        if array.ndim == 0:
            return int(array)
        indexer = tf.constant(array)
    elif not (indexer.dtype.is_integer or (indexer.dtype == tf.bool and indexer.shape.rank != 0)):
        raise _indexer_error(path, x, number, f"a tensor of {indexer.dtype.name}")
    if indexer.dtype not in (tf.bool, tf.int32, tf.int64):
        indexer = tf.cast(indexer, tf.int64)
    return indexer if labeled is None or indexer.shape.rank == 0 else labeled.with_values(indexer)


def _expect_inside(path: str, x: LabeledTensor, number: int, positions: Array) -> None:
    size = x.values.shape[number]
    if size is None or positions.dtype.kind == "b" or not positions.size:
        return
    wrong = positions[(positions < -size) | (positions >= size)]
    if wrong.size:
        expected = f"0 positions along axis {x.axes[number]!r}"
        if size:
            expected = f"positions from {-size} to {size - 1} along axis {x.axes[number]!r}"
        raise RowError(path, expected, str(wrong.ravel()[0]), f"The size of the axis is {size}.")


def _indexer_error(path: str, x: LabeledTensor, number: int, received: str) -> DTypeError:
    expected = f"a number, a slice, integers or bools for axis {x.axes[number]!r}"
    fix = "A LabeledTensor has no coordinates: give positions, as in x.isel(word=0)."
    return DTypeError(path, expected, received, fix)


def getitem(x: LabeledTensor, key: Any) -> LabeledTensor:
    """Returns `x[key]`."""
    path = "LabeledTensor[...]"
    if isinstance(key, Mapping):
        return select(x, key, path)
    keys = list(key) if isinstance(key, tuple) else [key]
    if sum(one is Ellipsis for one in keys) == 0:
        keys.append(Ellipsis)
    dots = next(i for i, one in enumerate(keys) if one is Ellipsis)
    after = keys[dots + 1 :]
    count = dots + len(after)
    if count > len(x.axes) or any(one is None or one is Ellipsis for one in (*keys[:dots], *after)):
        expected = f"at most one position or slice for each of the {naming.describe(x)}"
        received = f"{count} positions" if count > len(x.axes) else "a new axis, or a second '...'"
        raise RowError(path, expected, received, "Add an axis with tf.expand_dims(x, 'batch').")
    first = len(x.axes) - len(after)
    indexers = {**dict(enumerate(keys[:dots])), **dict(enumerate(after, first))}
    return select(x, indexers, path)


def take(x: LabeledTensor, indices: Operand, number: int, path: str) -> LabeledTensor:
    """Returns the slices at positions along an axis; the axes of the positions replace this axis.

    Args:
        x: A LabeledTensor.
        indices: Positions: a LabeledTensor, or a tensor of rank 0 or 1. Axes that a LabeledTensor
            shares with `x` are batch dimensions.
        number: The number of the axis.
        path: The name of the operation, for errors.
    """
    axes, name = x.axes, x.axes[number]
    if not isinstance(indices, type(x)):
        indices = tf.convert_to_tensor(indices)
        if indices.shape.rank not in (0, 1):
            expected = f"a vector of positions along axis {name!r}, or a LabeledTensor of them"
            fix = "Name its axes: xt.types.LabeledTensor(indices, ['query', 'rank'])."
            raise StructureError(path, expected, naming.describe(indices), fix)
        own = (name,) * indices.shape.rank
        values = tf.gather(x.values, indices, axis=number)
        return x._of_parts(values, (*axes[:number], *own, *axes[number + 1 :]))
    shared = [n for n in indices.axes if n in axes and n != name]
    for n in shared:
        a, b = x.sizes[n], indices.sizes[n]
        if a is not None and b is not None and a != b:
            raise naming.mismatch_error(path, x, indices, n)
    rest = [n for n in axes if n not in shared]
    own = [n for n in indices.axes if n not in shared]
    place = rest.index(name)
    values = tf.gather(
        tf.transpose(x.values, [axes.index(n) for n in (*shared, *rest)]),
        tf.transpose(indices.values, [indices.axes.index(n) for n in (*shared, *own)]),
        axis=len(shared) + place,
        batch_dims=len(shared),
    )
    return x._of_parts(values, (*shared, *rest[:place], *own, *rest[place + 1 :]))


def boolean_mask(x: LabeledTensor, mask: Operand, number: int, path: str) -> LabeledTensor:
    """Returns the slices along an axis for which a mask is True.

    Args:
        x: A LabeledTensor.
        mask: A bool tensor of rank 1, or a bool LabeledTensor with only this axis.
        number: The number of the axis.
        path: The name of the operation, for errors.
    """
    name, size = x.axes[number], x.values.shape[number]
    fits = mask.axes == (name,) if isinstance(mask, type(x)) else mask.shape.rank == 1
    bools = mask.values if isinstance(mask, type(x)) else mask
    if not fits or not bools.shape.is_compatible_with([size]):
        expected = f"one bool for each position along axis {name!r} of {naming.describe(x)}"
        fix = "Pass a mask of rank 1: the result of a larger mask has no names for its axes."
        raise StructureError(path, expected, naming.describe(mask), fix)
    return x._of_parts(tf.boolean_mask(x.values, bools, axis=number), x.axes)
