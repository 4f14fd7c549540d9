"""Records from TensorFlow's own tf.experimental.StructuredTensor, and back."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._path import Path
from extensor._struct import index
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.row_splits import first_sizes, outer_sizes
from extensor._struct.tensor import StructuredTensor
from extensor._tf import BaseResourceVariable
from extensor._typing import FieldValue
from extensor.errors import DTypeError, UnsupportedTypeError


def from_tf(value: tf.experimental.StructuredTensor) -> StructuredTensor:
    """Returns a tf.experimental.StructuredTensor as records. The tensors are shared.

    A dimension of static size becomes dense, any other dimension after the first ragged.

    Args:
        value: A tf.experimental.StructuredTensor of any rank.

    Raises:
        DTypeError: If it is another value (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> theirs = tf.experimental.StructuredTensor.from_pyval([{"x": [1, 2]}, {"x": [3]}])
    >>> xt.struct.from_tf(theirs).to_py()
    [{'x': [1, 2]}, {'x': [3]}]
    """
    if not isinstance(value, tf.experimental.StructuredTensor):
        expected = "a tf.experimental.StructuredTensor"
        fix = "xt.from_arrow and xt.StructuredTensorSpec.cast read other values."
        raise DTypeError("xt.struct.from_tf", expected, type(value).__name__, fix)
    partitions = value.row_partitions
    flat: Any = value.merge_dims(0, value.rank - 1) if value.rank > 1 else value
    fields = {name: _ours(flat.field_value(name)) for name in flat.field_names()}
    counter = None if fields else tf.zeros([flat.nrows()] if flat.rank else [], tf.bool)
    records: Any = DenseStructuredTensor._of_parts(flat.rank, fields, counter)
    for partition in reversed(partitions):
        length = partition.static_uniform_row_length
        if length is None:
            records = RaggedStructuredTensor._of_parts(records, partition.row_splits())
        else:
            nrows = partition.static_nrows
            records = records._split_outer([partition.nrows() if nrows is None else nrows, length])
    return records


def _ours(value: FieldValue) -> FieldValue:
    return from_tf(value) if isinstance(value, tf.experimental.StructuredTensor) else value


def to_tf(records: StructuredTensor) -> tf.experimental.StructuredTensor:
    """Returns records as a tf.experimental.StructuredTensor. The tensors are shared.

    Args:
        records: A StructuredTensor whose fields are tensors, RaggedTensors and records.

    Raises:
        DTypeError: If it is another value (also a TypeError).
        UnsupportedTypeError: If a field has another type (also a TypeError).

    >>> import extensor as xt
    >>> records = xt.DenseStructuredTensor([2], {"x": [1, 2]})
    >>> xt.struct.to_tf(records).to_pyval()
    [{'x': 1}, {'x': 2}]
    """
    if not isinstance(records, StructuredTensor):
        expected = "a StructuredTensor of extensor"
        fix = "Make records first, such as by xt.from_arrow."
        raise DTypeError("xt.struct.to_tf", expected, type(records).__name__, fix)
    return _theirs(records, Path())


def _theirs(value: FieldValue, at: Path) -> tf.experimental.StructuredTensor | FieldValue:
    if isinstance(value, RaggedStructuredTensor):
        return _cut(
            _theirs(value.values, at),
            tf.experimental.RowPartition.from_row_splits(value.row_splits, validate=False),
        )
    if isinstance(value, DenseStructuredTensor):
        if value.rank < 2:
            fields = {n: _theirs(value._field(n, at / n), at / n) for n in value.field_names()}
            nrows = None if fields or not value.rank else outer_sizes(value, 1)[0]
            return tf.experimental.StructuredTensor.from_fields(fields, value.shape, nrows)
        sizes = first_sizes(value, value.rank)
        result, nrows = _theirs(index.merge_outer_dims(value, sizes), at), 1
        counts: list[Any] = []
        for size in sizes[:-1]:
            nrows = nrows * size
            counts.append(nrows)
        for count, length in reversed(list(zip(counts, sizes[1:], strict=True))):
            count, length = (tf.cast(size, tf.int64) for size in (count, length))
            partition = tf.experimental.RowPartition.from_uniform_row_length(
                length, count * length, count
            )
            result = _cut(result, partition)
        return result
    if isinstance(value, BaseResourceVariable):
        return tf.convert_to_tensor(value)
    if isinstance(value, (tf.Tensor, tf.RaggedTensor)):
        return value
    expected = "a field of tensors, RaggedTensors or records"
    fix = "Leave it out with records.without, or convert it with with_updates."
    raise UnsupportedTypeError(f"xt.struct.to_tf: {at}", expected, type(value).__name__, fix)


def _cut(
    values: FieldValue, partition: tf.experimental.RowPartition
) -> tf.experimental.StructuredTensor | FieldValue:
    return values.partition_outer_dimension(partition)
