"""The boxes of ragged and sparse tensors, where TensorFlow's own encoders and decoders end.

The encoders unstack once. To unstack oftener, leading dimensions are made one, along which they
encode, and what comes out gets the shape of those dimensions. The decoders cannot tell the inner
dimensions of no values, which the spec can.
"""

# The boxes of TensorFlow's own types have no public name.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor import _tf
from extensor.errors import StructureError


def box_ragged(spec: tf.RaggedTensorSpec, value: tf.RaggedTensor, minimum_rank: int) -> list[Any]:
    """Returns a ragged tensor as a tensor of its rows, the rows of these, and so on, in boxes.

    Args:
        spec: The value's spec.
        value: Of which the first `minimum_rank - 1` partitions have rows of one length each.
        minimum_rank: The rank of the result.

    Raises:
        StructureError: If it has fewer partitions, or one of these is ragged (also a ValueError).
    """
    if minimum_rank > spec.ragged_rank:
        raise StructureError(
            path=type(spec).__qualname__,
            expected=f"a ragged rank of at least {minimum_rank}, to unstack {minimum_rank} times",
            received=str(spec),
            mend="Unstack fewer times, or unstack the flat values.",
        )
    leading = [tf.cast(value.nrows(), tf.int64)]
    for axis in range(1, minimum_rank):
        leading.append(tf.cast(_row_length(value, axis), tf.int64))
        value = value.values
    [tensor] = _tf.boxes_to_unstack(tf.type_spec_from_value(value), value)
    return [tf.reshape(tensor, leading)]


def _row_length(value: tf.RaggedTensor, axis: int) -> Any:
    """Returns the one length that all rows have."""
    if value.uniform_row_length is not None:
        return value.uniform_row_length
    lengths = value.row_lengths()
    length = tf.reduce_max(tf.concat([lengths, [0]], 0))
    known = tf.get_static_value(lengths)
    if known is not None and len(set(known.tolist())) > 1:
        raise StructureError(
            path=f"RaggedTensor, axis {axis}",
            expected="rows of one length, to unstack along the next axis too",
            received="ragged rows",
            mend="Unstack as far as the first ragged axis.",
        )
    with tf.control_dependencies(
        [tf.debugging.assert_equal(lengths, length, f"Axis {axis} is ragged.")]
    ):
        return tf.identity(length)


def box_sparse(spec: tf.SparseTensorSpec, value: tf.SparseTensor, minimum_rank: int) -> list[Any]:
    """Returns a sparse tensor as a tensor of its rows, the rows of these, and so on, in boxes.

    Args:
        spec: The value's spec.
        value: Any sparse tensor.
        minimum_rank: How many dimensions are unstacked. A box is a vector of three tensors.

    Raises:
        StructureError: If it has no dimension more (also a ValueError).
    """
    if spec.shape.rank is not None and spec.shape.rank <= minimum_rank:
        raise StructureError(
            path=type(spec).__qualname__,
            expected=f"more than {minimum_rank} dimension(s), to unstack {minimum_rank} times",
            received=str(spec),
            mend="Unstack fewer times: what is unstacked has a dimension, too.",
        )
    leading, rest = value.dense_shape[:minimum_rank], value.dense_shape[minimum_rank:]
    rows = tf.sparse.reshape(value, tf.concat([[tf.reduce_prod(leading)], rest], 0))
    [tensor] = _tf.boxes_to_unstack(tf.type_spec_from_value(rows), rows)
    return [tf.reshape(tensor, tf.concat([leading, [3]], 0))]


def unbox_ragged(spec: Any, boxes: list[Any]) -> Any:
    """Returns the ragged or sparse tensor that stands in a tensor of boxes, or of none."""
    [tensor] = boxes
    is_sparse = isinstance(spec, tf.SparseTensorSpec)
    # The shape of an eager tensor takes long the first time that it is asked for.
    if spec.shape.rank is None or (not is_sparse and spec.shape.rank == spec.ragged_rank + 1):
        return _decoded(spec, boxes)
    leading_rank = None if tensor.shape.rank is None else tensor.shape.rank - is_sparse
    if not leading_rank or tensor.shape.num_elements():
        return _decoded(spec, boxes)
    sizes = tf.unstack(tf.shape(tensor, tf.int64), tensor.shape.rank)[:leading_rank]
    return tf.cond(
        tf.equal(tf.size(tensor), 0),
        lambda: _no_sparse(spec, sizes) if is_sparse else _no_ragged(spec, sizes),
        lambda: _decoded(spec, boxes),
    )


def _decoded(spec: Any, boxes: list[Any]) -> Any:
    if isinstance(spec, tf.SparseTensorSpec) or spec.flat_values_spec is not None:
        return _tf.unboxed(spec, boxes)
    # What TensorFlow does, but for checks that take it longer than all else.
    parts = tf.raw_ops.RaggedTensorFromVariant(
        encoded_ragged=boxes[0],
        input_ragged_rank=-1,
        output_ragged_rank=max(spec.ragged_rank, 0),  # less than none where rows were unstacked
        Tvalues=spec.dtype,
        Tsplits=spec.row_splits_dtype,
    )
    return _tf.from_components(spec, [parts.output_dense_values, *parts.output_nested_splits])


def _no_sparse(spec: tf.SparseTensorSpec, sizes: list[Any]) -> Any:
    inner = [size or 0 for size in spec.shape[len(sizes) :]]
    dense_shape = tf.concat([sizes, tf.constant(inner, tf.int64)], 0)
    indices = tf.zeros([0, spec.shape.rank], tf.int64)
    return tf.SparseTensor(indices, tf.zeros([0], spec.dtype), dense_shape)


def _no_ragged(spec: tf.RaggedTensorSpec, sizes: list[Any]) -> Any:
    rows, splits = sizes[0], list[Any]()
    for axis in range(1, spec.ragged_rank + 1):
        length = sizes[axis] if axis < len(sizes) else tf.constant(0, tf.int64)
        splits.append(tf.cast(tf.range(rows + 1) * length, spec.row_splits_dtype))
        rows *= length
    inner = [size or 0 for size in spec.shape[spec.ragged_rank + 1 :]]
    return _tf.from_components(spec, [tf.zeros([0, *inner], spec.dtype), *splits])


def take(boxes: tf.Tensor, positions: Any) -> tf.Tensor:
    """Returns `boxes[positions]`, with the gradient that TensorFlow has for tensors of numbers.

    Its own gradient for variants is wrong: the rows that are not taken are of no size in it.

    Args:
        boxes: A tensor of boxes, of any dtype.
        positions: Positions and slices, as for indexing.

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
    def taken(boxes: Any) -> Any:
        def gradient(upstream: Any) -> Any:
            shape, flat = tf.shape(boxes), tf.reshape(boxes, [-1])
            numbers = tf.range(tf.size(boxes))
            # Only one variant at a time has zeros like it.
            zeros = tf.map_fn(
                tf.zeros_like, flat, fn_output_signature=tf.TensorSpec([], tf.variant)
            )
            places = tf.reshape(tf.reshape(numbers, shape)[positions], [-1])
            return tf.reshape(
                tf.dynamic_stitch([numbers, places], [zeros, tf.reshape(upstream, [-1])]), shape
            )

        return boxes[positions], gradient

    return taken(boxes)
