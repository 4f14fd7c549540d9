"""RaggedTensors of row splits that were validated before.

`tf.RaggedTensor.from_row_splits` takes three times as long, even without validation: it opens two
name scopes, and converts both arguments. Records make a RaggedTensor for each field that is read.

| name | why |
| --- | --- |
| `row_partition._row_partition_factory_key` | The argument `internal` that the constructor of row partitions demands. That of RaggedTensors takes True. |
| `RaggedTensor._values`, `RaggedTensor._row_partition` | The constructor reads the shape of ragged values, which takes the square of their ragged rank. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.ops.ragged import row_partition

from extensor._typing import Value


def ragged_tensor(values: Value, row_splits: tf.Tensor) -> tf.RaggedTensor:
    """Returns values cut into rows, as `tf.RaggedTensor.from_row_splits` without validation.

    Args:
        values: A tensor or RaggedTensor, or what converts to one.
        row_splits: An int64 or int32 vector.

    >>> from extensor._tf._tf_ragged import ragged_tensor
    >>> import tensorflow as tf
    >>> ragged_tensor(tf.constant([5, 20, 8]), tf.constant([0, 2, 3]))
    <tf.RaggedTensor [[5, 20], [8]]>
    """
    is_ragged = isinstance(values, tf.RaggedTensor)
    if not (
        isinstance(row_splits, tf.Tensor)
        and (is_ragged or isinstance(values, tf.Tensor))
        and (not is_ragged or values.row_splits.dtype == row_splits.dtype)
    ):
        # It converts the arguments, or raises the error that users know.
        return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
    make: Any = tf.RaggedTensor
    key: Any = row_partition._row_partition_factory_key
    rows = row_partition.RowPartition(row_splits=row_splits, internal=key)
    if not is_ragged:
        return make(values, rows, internal=True)
    result: Any = object.__new__(tf.RaggedTensor)
    result._values = values
    result._row_partition = rows
    return result
