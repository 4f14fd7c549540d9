"""Dimensions of one size: the outer two of a value as one, and the outer one as two.

So dense records become ragged ones, and ragged records whose rows have one length dense ones.
"""

# The stacking of TensorFlow's own types has no public name.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._protocol.box import box, unbox
from extensor._protocol.casting import required
from extensor._struct import partition
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._tf import BaseResourceVariable
from extensor.errors import StructureError

_Sizes = list[Any]
"""Sizes of dimensions: ints, and scalar tensors where a graph does not know them yet."""


def as_ragged(records: Any, row_splits_dtype: tf.DType) -> Any:
    """Returns dense records of rank 2 or more as a RaggedStructuredTensor of equally long rows."""
    sizes: _Sizes = list(records.shape[:2])
    if None in sizes:
        told = tf.unstack(partition.outer_sizes(records, 2), 2)
        sizes = [told[i] if size is None else size for i, size in enumerate(sizes)]
    nrows, length = (tf.cast(size, row_splits_dtype) for size in sizes)
    return RaggedStructuredTensorSpec.ragged_type.of_parts(
        _merged(records, sizes), tf.range(nrows + 1) * length
    )


def as_dense(records: Any, shape: tf.TensorShape) -> Any:
    """Returns records whose rows have one length as a DenseStructuredTensor.

    Args:
        records: A RaggedStructuredTensor.
        shape: The shape that it is going to have; sizes may be unknown.

    Raises:
        StructureError: If rows differ in length; in a graph, an InvalidArgumentError when it runs.
    """
    values = records.values
    if isinstance(values, RaggedStructuredTensorSpec.ragged_type):
        values = as_dense(values, tf.TensorShape([None]).concatenate(shape[2:]))
    splits = records.row_splits
    lengths = splits[1:] - splits[:-1]
    size = shape[1]
    if size is None:
        size = tf.reduce_max(tf.concat([splits[:1], lengths], axis=0))
    wrong = StructureError(
        path=f"records of shape {records.shape}",
        expected="rows of one length" if shape[1] is None else f"rows of {shape[1]} records",
        received="rows of other lengths",
        mend="Slice the rows to one length first, or take ragged records.",
    )
    same = tf.reduce_all(lengths == tf.cast(size, lengths.dtype))
    with tf.control_dependencies(required(same, wrong)):
        if not isinstance(size, int):
            size = int(size) if hasattr(size, "numpy") else tf.identity(size)
        nsplits = splits.shape[0]
        nrows = tf.size(lengths) if nsplits is None else nsplits - 1
    return _split(values, [nrows, size])


def _merged(value: Any, sizes: _Sizes) -> Any:
    """Returns a value with its outer two dimensions, which have these sizes, as one."""
    if isinstance(value, (tf.Tensor, BaseResourceVariable)):
        return _reshaped(value, [sizes[0] * sizes[1]], 2)
    if isinstance(value, tf.RaggedTensor):
        return value.merge_dims(0, 1)
    if isinstance(value, RaggedStructuredTensorSpec.ragged_type):
        return value.values
    if hasattr(value, "map_parts"):
        return value.map_parts(lambda part, name: _merged(part, sizes), value.rank - 1)
    spec = tf.type_spec_from_value(value)
    boxes = [_reshaped(tensor, [sizes[0] * sizes[1]], 2) for tensor in box(spec, value, 2)]
    return unbox(spec._unbatch()._unbatch()._batch(None), boxes)


def _split(value: Any, sizes: _Sizes) -> Any:
    """Returns a value with its outermost dimension as two of these sizes."""
    if isinstance(value, (tf.Tensor, BaseResourceVariable)):
        return _reshaped(value, sizes, 1)
    if isinstance(value, tf.RaggedTensor):
        nrows, length = (tf.cast(size, value.row_splits.dtype) for size in sizes)
        return tf.RaggedTensor.from_uniform_row_length(value, length, nrows, validate=False)
    if isinstance(value, RaggedStructuredTensorSpec.ragged_type):
        nrows, length = (tf.cast(size, value.row_splits.dtype) for size in sizes)
        return type(value).of_parts(value, tf.range(nrows + 1) * length)
    if hasattr(value, "map_parts"):
        return value.map_parts(lambda part, name: _split(part, sizes), value.rank + 1)
    spec = tf.type_spec_from_value(value)
    boxes = [_reshaped(tensor, sizes, 1) for tensor in box(spec, value, 1)]
    nrows, length = (size if isinstance(size, int) else None for size in sizes)
    return unbox(spec._unbatch()._batch(length)._batch(nrows), boxes)


def _reshaped(tensor: Any, outer: _Sizes, count: int) -> tf.Tensor:
    """Returns a tensor with other sizes in place of its first ones."""
    tensor = tf.convert_to_tensor(tensor)
    if None in tensor.shape[count:]:
        inner = tf.shape(tensor)[count:]
    else:
        inner = tensor.shape[count:].as_list()
    shape = tf.concat([tf.stack([tf.cast(s, tf.int32) for s in outer]), inner], axis=0)
    result = tf.reshape(tensor, shape)
    known = [size if isinstance(size, int) else None for size in outer]
    result.set_shape(tf.TensorShape(known).concatenate(tensor.shape[count:]))
    return result
