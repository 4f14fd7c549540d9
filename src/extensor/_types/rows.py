"""Rows of differing lengths, one after another in flat values, for the types that hold some.

A batch of such rows has a shape, its rows counted in row-major order: `row_splits` of
`prod(shape) + 1` numbers tell where each begins and ends in the flat values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._protocol.box import box, stacked_spec, unbox, unstacked_spec
from extensor.errors import DTypeError, StructureError


def splits_of(lengths: tf.Tensor) -> tf.Tensor:
    """Returns the row splits of rows of the given lengths, whatever the shape of these.

    >>> from extensor._types.rows import splits_of
    >>> splits_of(tf.constant([[2, 0], [1, 3]])).numpy()
    array([0, 2, 2, 3, 6], dtype=int32)
    """
    flat = tf.reshape(lengths, [-1])
    return tf.concat([tf.zeros([1], flat.dtype), tf.cumsum(flat)], 0)


def row_ids(row_splits: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Returns for each value the number of its row, as int64.

    Args:
        row_splits: The row splits.
        values: A vector of as many values as there are, of any dtype.

    >>> from extensor._types.rows import row_ids
    >>> row_ids(tf.constant([0, 2, 2, 3]), tf.constant([7, 8, 9])).numpy()
    array([0, 0, 2])
    """
    # tf.repeat, and what TensorFlow's RaggedTensor does with it, takes memory for as many values
    # as if all rows were as long as the longest.
    sparse = tf.raw_ops.RaggedTensorToSparse(rt_nested_splits=[row_splits], rt_dense_values=values)
    return sparse.sparse_indices[:, 0]


def cut(values: Any, row_splits: tf.Tensor, sizes: Sequence[Any]) -> Any:
    """Returns flat values cut into rows: a ragged tensor; of no sizes, the one row as it is.

    Args:
        values: A tensor or RaggedTensor.
        row_splits: Where rows begin and end.
        sizes: The sizes of the batch of rows: integers, or scalar tensors.
    """
    if not sizes:
        return values
    if isinstance(values, tf.RaggedTensor):
        row_splits = tf.cast(row_splits, values.row_splits.dtype)
    rows = tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
    sizes = [tf.cast(size, row_splits.dtype) for size in sizes]
    for axis in range(len(sizes) - 1, 0, -1):
        rows = tf.RaggedTensor.from_uniform_row_length(
            rows,
            sizes[axis],
            nrows=tf.cast(count_of(sizes[:axis]), row_splits.dtype),
            validate=False,
        )
    return rows


def sizes_of(shape: tf.TensorShape, sizes: tf.Tensor) -> list[Any]:
    """Returns the sizes of a batch, each as an integer where that is known statically."""
    return [s if s is not None else sizes[i] for i, s in enumerate(shape.as_list())]


def count_of(sizes: Sequence[Any]) -> tf.Tensor:
    """Returns the product of some sizes, as int64; 1 of none."""
    return tf.reduce_prod([tf.constant(1, tf.int64), *(tf.cast(s, tf.int64) for s in sizes)])


# Checks.


def index_vector(value: Any, path: str) -> tf.Tensor:
    """Returns a vector of integers as a tensor: of int64, unless an array or tensor is of int32.

    Args:
        value: A list, array or tensor.
        path: What to call it.

    Raises:
        DTypeError: If it holds anything else than such integers (also a TypeError).
        StructureError: If it is no vector (also a ValueError).
    """
    tensor = integers(value, path)
    if tensor.shape.rank not in (1, None):
        raise StructureError(
            path=path,
            expected="a vector",
            received=f"shape {tensor.shape}",
            mend="Give one integer for each place, in one dimension.",
        )
    return tensor


def integers(value: Any, path: str) -> tf.Tensor:
    """Returns integers of any shape as a tensor; otherwise as `index_vector`."""
    if not isinstance(value, (tf.Tensor, np.ndarray)):
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise StructureError(
                path=path,
                expected="integers",
                received="lists of different lengths",
                mend="Give one integer for each place.",
            ) from error
        is_integer = array.dtype.kind == "i" or array.size == 0
        value = array.astype(np.int64) if is_integer else array
    if value.dtype not in (np.int64, np.int32, tf.int64, tf.int32):
        raise DTypeError(
            path=path,
            expected="int64 or int32",
            received=value.dtype.name,
            mend="Give integers: tf.cast(value, tf.int64) makes them.",
        )
    return tf.convert_to_tensor(value)


# Values of any type, row by row of their first dimension.


def count_values(value: Any) -> tf.Tensor:
    """Returns the size of the first dimension of a value of any type that stacks, as int64."""
    if isinstance(value, tf.RaggedTensor):
        return value.nrows(tf.int64)
    if not isinstance(value, tf.Tensor):
        value = box(tf.type_spec_from_value(value), value, 1)[0]
    return tf.shape(value, tf.int64)[0]


def any_length(spec: tf.TypeSpec, path: str) -> Any:
    """Returns the spec of flat values with their number left open."""
    return stacked_spec(unstacked_spec(spec, path), None, path)


def static_count(value: Any) -> int | None:
    """Returns the same as an integer, where it is known without an op in a graph."""
    shape: Any = getattr(value, "shape", None)
    if isinstance(shape, tf.TensorShape):
        return shape[0] if shape.rank else None
    if tf.executing_eagerly():
        return int(count_values(value))
    return None


def take(value: Any, positions: tf.Tensor) -> Any:
    """Returns what stands at some positions of a value of any type that stacks.

    >>> from extensor._types.rows import take
    >>> take(tf.ragged.constant([[1, 2], [], [3]]), [2, 0])
    <tf.RaggedTensor [[3], [1, 2]]>
    """
    if isinstance(value, (tf.Tensor, tf.RaggedTensor)):
        return tf.gather(value, positions)
    spec: Any = tf.type_spec_from_value(value)
    boxes = [tf.gather(part, positions) for part in box(spec, value, 1)]
    return unbox(any_length(spec, type(spec).__qualname__), boxes)


def reduced(values: tf.Tensor, ids: tf.Tensor, count: tf.Tensor, reduction: str) -> tf.Tensor:
    """Returns values put together by number; where there are none, zero.

    Args:
        values: A tensor of shape `[n, ...]`.
        ids: A number for each of them, below `count`.
        count: How many numbers there are.
        reduction: sum, mean, max or min.

    Raises:
        DTypeError: If the reduction is another, or the values are no numbers (also a TypeError).
    """
    segment = _REDUCTIONS.get(reduction)
    if segment is None:
        raise DTypeError(
            path="reduction",
            expected=f"one of {', '.join(_REDUCTIONS)}",
            received=repr(reduction),
            mend="Check the spelling.",
        )
    is_number = isinstance(values, tf.Tensor) and values.dtype not in (tf.string, tf.bool)
    if not is_number or (reduction == "mean" and values.dtype.is_integer):
        kind = f"{values.dtype.name}" if isinstance(values, tf.Tensor) else type(values).__name__
        raise DTypeError(
            path="values",
            expected=f"a tensor of numbers {'with a point ' * (reduction == 'mean')}to reduce",
            received=kind,
            mend="Cast or flatten them first.",
        )
    result = segment(values, ids, count)
    if reduction in ("sum", "mean"):
        return result
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(ids), ids, count)
    is_some = tf.reshape(lengths > 0, tf.concat([[-1], tf.ones_like(tf.shape(values)[1:])], 0))
    return tf.where(is_some, result, tf.zeros_like(result))


_REDUCTIONS: dict[str, Callable[..., tf.Tensor]] = {
    "sum": tf.math.unsorted_segment_sum,
    "mean": tf.math.unsorted_segment_mean,
    "max": tf.math.unsorted_segment_max,
    "min": tf.math.unsorted_segment_min,
}
