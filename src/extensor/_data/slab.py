"""Slabs: many batches that are converted at once and cut by TensorFlow without a copy."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._protocol.box import box, boxed_specs
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.tensor import StructuredTensor


def batches_of(records: StructuredTensor, size: int, spec: Any) -> tf.data.Dataset:
    """Returns a dataset of the batches of records. Traces no function and copies nothing.

    Args:
        records: A multiple of `size` records, from `from_arrow`.
        size: The number of records in a batch.
        spec: The spec of a batch.

    >>> from extensor._data.slab import batches_of
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> records = xt.DenseStructuredTensor([4], {"x": [1, 2, 3, 4]})
    >>> spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None], tf.int32)})
    >>> [batch["x"].numpy().tolist() for batch in batches_of(records, 2, spec)]
    [[1, 2], [3, 4]]
    """
    nrows = records.shape[0]
    assert nrows is not None
    boxes = _Cut(nrows // size, size).boxes(records)
    variant = tf.raw_ops.TensorSliceDataset(
        components=boxes, output_shapes=[tensor.shape for tensor in boxed_specs(spec)]
    )
    return tf.data.experimental.from_variant(variant, spec)


class _Cut:
    """Cuts values into batches, as the boxes of stacked values that datasets hold."""

    def __init__(self, count: int, size: int) -> None:
        self._count = count
        self._size = size
        self._flat = tf.constant([count, size])
        self._splits: dict[tf.DType, tf.Tensor] = {}

    def boxes(self, value: Any) -> list[tf.Tensor]:
        """Returns the boxes of a value with its first dimension split in two."""
        if isinstance(value, tf.Tensor):
            inner = value.shape[1:].as_list()
            shape = tf.constant([self._count, self._size, *inner]) if inner else self._flat
            # The raw op, because tf.reshape is slower and a slab may have a hundred tensors.
            return [tf.raw_ops.Reshape(tensor=value, shape=shape)]
        if isinstance(value, tf.RaggedTensor):
            splits = self._row_splits(value.row_splits.dtype)
            cut: Any = tf.RaggedTensor.from_row_splits(value, splits, validate=False)
        elif isinstance(value, RaggedStructuredTensor):
            cut = RaggedStructuredTensor.of_parts(value, self._row_splits(value.row_splits.dtype))
        else:
            # Dense records or masked values: the boxes of all components.
            parts = tf.nest.flatten(tf.type_spec_from_value(value).to_components(value))
            return [tensor for part in parts for tensor in self.boxes(part)]
        return box(tf.type_spec_from_value(cut), cut, 1)

    def _row_splits(self, dtype: tf.DType) -> tf.Tensor:
        if dtype not in self._splits:
            self._splits[dtype] = tf.range(self._count + 1, dtype=dtype) * self._size
        return self._splits[dtype]
