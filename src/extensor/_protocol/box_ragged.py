"""Boxes of ragged and sparse tensors, for cases that TensorFlow's encoders do not support.

TensorFlow's encoders unstack one dimension. To unstack several, the functions here merge the
leading dimensions, encode along the merged one, and reshape the result. TensorFlow's decoders lose
the inner dimensions of an empty value; the functions here take them from the spec.
"""

# The boxes of TensorFlow's own types have no public name.

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from extensor import _tf
from extensor._typing import TensorLike, Value
from extensor.errors import StructureError


def box_ragged(
    spec: tf.RaggedTensorSpec, value: tf.RaggedTensor, minimum_rank: int
) -> list[tf.Tensor]:
    """Returns a variant tensor of rank `minimum_rank` that holds the rows of a ragged tensor.

    Args:
        spec: The value's spec.
        value: A ragged tensor whose first `minimum_rank - 1` partitions have a uniform row length.
        minimum_rank: The rank of the result.

    Raises:
        StructureError: If the value has fewer partitions, or one of the first `minimum_rank - 1`
            is ragged (also a ValueError).
    """
    if minimum_rank > spec.ragged_rank:
        expected = f"a ragged rank of at least {minimum_rank}, to unstack {minimum_rank} times"
        fix = "Unstack fewer times, or unstack the flat values."
        raise StructureError(type(spec).__qualname__, expected, str(spec), fix)
    leading = [tf.cast(value.nrows(), tf.int64)]
    for axis in range(1, minimum_rank):
        leading.append(tf.cast(_row_length(value, axis), tf.int64))
        value = value.values
    [tensor] = _tf.boxes_to_unstack(tf.type_spec_from_value(value), value)
    return [tf.reshape(tensor, leading)]


def _row_length(value: tf.RaggedTensor, axis: int) -> tf.Tensor:
    """Returns the length that all rows have; raises if their lengths differ."""
    if value.uniform_row_length is not None:
        return value.uniform_row_length
    lengths = value.row_lengths()
    length = tf.reduce_max(tf.concat([lengths, [0]], 0))
    known = tf.get_static_value(lengths)
    if known is not None and len(set(known.tolist())) > 1:
        at = f"RaggedTensor, axis {axis}"
        expected = "rows of the same length, to unstack along the next axis too"
        fix = "Unstack as far as the first ragged axis."
        raise StructureError(at, expected, "rows of different lengths", fix)
    with tf.control_dependencies(
        [tf.debugging.assert_equal(lengths, length, f"Axis {axis} is ragged.")]
    ):
        return tf.identity(length)


def box_sparse(
    spec: tf.SparseTensorSpec, value: tf.SparseTensor, minimum_rank: int
) -> list[tf.Tensor]:
    """Returns a variant tensor that holds the rows of a sparse tensor.

    Args:
        spec: The value's spec.
        value: Any sparse tensor.
        minimum_rank: The number of dimensions to unstack. Each row is a vector of three variants,
            so the result has rank `minimum_rank + 1`.

    Raises:
        StructureError: If the rank of the value is not above `minimum_rank` (also a ValueError).
    """
    if spec.shape.rank is not None and spec.shape.rank <= minimum_rank:
        expected = f"more than {minimum_rank} dimension(s), to unstack {minimum_rank} times"
        fix = "Unstack fewer times: each row must keep at least one dimension."
        raise StructureError(type(spec).__qualname__, expected, str(spec), fix)
    leading, rest = value.dense_shape[:minimum_rank], value.dense_shape[minimum_rank:]
    rows = tf.sparse.reshape(value, tf.concat([[tf.reduce_prod(leading)], rest], 0))
    [tensor] = _tf.boxes_to_unstack(tf.type_spec_from_value(rows), rows)
    return [tf.reshape(tensor, tf.concat([leading, [3]], 0))]


def unbox_ragged(
    spec: tf.TypeSpec, boxes: list[tf.Tensor]
) -> tf.Tensor | tf.RaggedTensor | tf.SparseTensor:
    """Returns the ragged or sparse tensor that a tensor of boxes holds; the boxes may be empty."""
    [tensor] = boxes
    is_sparse = isinstance(spec, tf.SparseTensorSpec)
    # First the check without `tensor.shape`, whose first access is slow for an eager tensor.
    if spec.shape.rank is None or (not is_sparse and spec.shape.rank == spec.ragged_rank + 1):
        return _decode(spec, boxes)
    leading_rank = None if tensor.shape.rank is None else tensor.shape.rank - is_sparse
    if not leading_rank or tensor.shape.num_elements():
        return _decode(spec, boxes)
    sizes = tf.unstack(tf.shape(tensor, tf.int64), tensor.shape.rank)[:leading_rank]
    return tf.cond(
        tf.equal(tf.size(tensor), 0),
        lambda: _empty_sparse(spec, sizes) if is_sparse else _empty_ragged(spec, sizes),
        lambda: _decode(spec, boxes),
    )


class RaggedParts(NamedTuple):
    """The parts of a ragged tensor, for code that needs no RaggedTensor.

    Attributes:
        values: The flat values, or the parts of a ragged tensor of one rank less.
        row_splits: The row splits of the first ragged dimension.
    """

    values: tf.Tensor | RaggedParts
    row_splits: tf.Tensor


def unbox_parts(
    spec: tf.TypeSpec, boxes: list[tf.Tensor]
) -> tf.Tensor | tf.RaggedTensor | RaggedParts:
    """Returns the `RaggedParts` of the ragged tensor in a box; another value as `unbox_ragged`.

    To create a RaggedTensor for each column of records takes longer than to decode it.

    Args:
        spec: The spec of a ragged tensor. With a ragged rank of 0, the result is a tensor.
        boxes: The box.
    """
    if (
        not tf.executing_eagerly()  # a RaggedTensor has the static sizes of the spec
        or spec.flat_values_spec is not None
        or (spec.shape.rank != spec.ragged_rank + 1 and boxes[0].shape.rank)
    ):
        return unbox_ragged(spec, boxes)
    values, splits = _parts(spec, boxes)
    for row_splits in reversed(splits):
        values = RaggedParts(values, row_splits)
    return values


def ragged_of_parts(spec: tf.TypeSpec, parts: Value) -> Value:
    """Returns the ragged tensor of `RaggedParts`; any other value as it is."""
    if not isinstance(parts, RaggedParts):
        return parts
    splits: list[tf.Tensor] = []
    while isinstance(parts, RaggedParts):
        splits.append(parts.row_splits)
        parts = parts.values
    return _tf.from_components(spec, [parts, *splits])


def _decode(spec: tf.TypeSpec, boxes: list[tf.Tensor]) -> Value:
    if isinstance(spec, tf.SparseTensorSpec) or spec.flat_values_spec is not None:
        return _tf.unbox(spec, boxes)
    values, splits = _parts(spec, boxes)
    return _tf.from_components(spec, [values, *splits])


def _parts(spec: tf.RaggedTensorSpec, boxes: list[tf.Tensor]) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Returns the flat values and the row splits of the ragged tensor in a box."""
    # Does the same as TensorFlow, without its checks, which take most of the time.
    parts = tf.raw_ops.RaggedTensorFromVariant(
        encoded_ragged=boxes[0],
        input_ragged_rank=-1,
        output_ragged_rank=max(spec.ragged_rank, 0),  # negative after unstacking
        Tvalues=spec.dtype,
        Tsplits=spec.row_splits_dtype,
    )
    return parts.output_dense_values, list(parts.output_nested_splits)


def _empty_sparse(spec: tf.SparseTensorSpec, sizes: list[tf.Tensor]) -> tf.SparseTensor:
    inner = [size or 0 for size in spec.shape[len(sizes) :]]
    dense_shape = tf.concat([sizes, tf.constant(inner, tf.int64)], 0)
    indices = tf.zeros([0, spec.shape.rank], tf.int64)
    return tf.SparseTensor(indices, tf.zeros([0], spec.dtype), dense_shape)


def _empty_ragged(spec: tf.RaggedTensorSpec, sizes: list[tf.Tensor]) -> Value:
    rows, splits = sizes[0], list[tf.Tensor]()
    for axis in range(1, spec.ragged_rank + 1):
        length = sizes[axis] if axis < len(sizes) else tf.constant(0, tf.int64)
        splits.append(tf.cast(tf.range(rows + 1) * length, spec.row_splits_dtype))
        rows *= length
    inner = [size or 0 for size in spec.shape[spec.ragged_rank + 1 :]]
    return _tf.from_components(spec, [tf.zeros([0, *inner], spec.dtype), *splits])


def take(boxes: tf.Tensor, positions: TensorLike | slice) -> tf.Tensor:
    """Returns `boxes[positions]`, with a correct gradient for variant tensors.

    TensorFlow's gradient for variants is wrong: rows that are not taken lose their size in it.

    Args:
        boxes: A tensor of boxes, of any dtype.
        positions: Positions and slices, as for indexing.

    >>> from extensor._protocol.box_ragged import take
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> rows = tf.ragged.constant([[1.0], [2.0, 3.0]])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(rows)
    ...     box = take(xt.spec_of(rows).to_boxed_tensor(rows, minimum_rank=1), 1)
    ...     row = xt.spec_of(rows).unstacked().from_boxed_tensor(box)
    >>> tape.gradient(row, rows)
    <tf.RaggedTensor [[0.0], [1.0, 1.0]]>
    """
    if boxes.dtype != tf.variant:
        return boxes[positions]

    @tf.custom_gradient
    def taken(boxes: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            shape, flat = tf.shape(boxes), tf.reshape(boxes, [-1])
            numbers = tf.range(tf.size(boxes))
            # tf.zeros_like takes variants of rank 0 only, and those of rows on the CPU only.
            with tf.device("CPU:0"):
                zeros = tf.map_fn(
                    tf.zeros_like, flat, fn_output_signature=tf.TensorSpec([], tf.variant)
                )
            places = tf.reshape(tf.reshape(numbers, shape)[positions], [-1])
            return tf.reshape(
                tf.dynamic_stitch([numbers, places], [zeros, tf.reshape(upstream, [-1])]), shape
            )

        return boxes[positions], gradient

    return taken(boxes)
