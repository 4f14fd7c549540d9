"""Many batches that are converted at once, and cut by TensorFlow without a copy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._protocol.box import box, boxed_specs
from extensor._struct.masked import is_union
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.reshape import reshape
from extensor._struct.tensor import StructuredTensor
from extensor._tf import stacked


def batches_of(records: StructuredTensor, size: int, spec: tf.TypeSpec) -> tf.data.Dataset:
    """Returns a dataset of the batches of records. Copies no numbers and no strings.

    Args:
        records: A multiple of `size` records, from `from_arrow`.
        size: The number of records in a batch.
        spec: The spec of a batch.

    >>> from extensor._data.cut_batches import batches_of
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> records = xt.DenseStructuredTensor([4], {"x": [1, 2, 3, 4]})
    >>> spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None], tf.int32)})
    >>> [batch["x"].numpy().tolist() for batch in batches_of(records, 2, spec)]
    [[1, 2], [3, 4]]
    """
    nrows = records.shape[0]
    assert nrows is not None
    boxes = _Cut(nrows // size, size).boxes(records, spec)
    with tf.device("CPU:0"):
        [variant] = tf.raw_ops.PartitionedCall(args=boxes, Tout=[tf.variant], f=_slices(spec))
    return tf.data.experimental.from_variant(variant, spec)


@functools.lru_cache(maxsize=128)
def _slices(spec: tf.TypeSpec) -> Callable[..., tf.Tensor]:
    """Returns a function of the boxes of a stack of batches: the dataset of these, as a variant.

    The op alone takes half a millisecond more for each call, because TensorFlow then makes a
    function for it each time.

    Args:
        spec: The spec of a batch.
    """
    specs = boxed_specs(spec)

    def slices(*boxes: tf.Tensor) -> tf.Tensor:
        shapes = [row.shape for row in specs]
        return tf.raw_ops.TensorSliceDataset(components=boxes, output_shapes=shapes)

    with tf.init_scope():
        function = tf.function(slices, autograph=False)
        return function.get_concrete_function(*(tf.TensorSpec(None, row.dtype) for row in specs))


@functools.lru_cache(maxsize=1024)
def _stack_of(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns the spec of a stack of values: that of each stack would be made anew."""
    return stacked(spec, None)


class _Cut:
    """Cuts values into batches, as the boxes of stacked values that datasets hold."""

    def __init__(self, count: int, size: int) -> None:
        self._count = count
        self._size = size
        self._splits: dict[tf.DType, tf.Tensor] = {}

    def boxes(self, value: Any, spec: Any) -> list[tf.Tensor]:
        """Returns the boxes of a value with its first dimension split in two.

        Args:
            value: The value.
            spec: The spec of a batch of it.
        """
        if isinstance(value, tf.Tensor):
            return [self._cut(value)]
        if isinstance(value, tf.RaggedTensor):
            cut: Any = self._cut(value)
        elif isinstance(value, RaggedStructuredTensor):
            cut = RaggedStructuredTensor._of_parts(value, self._row_splits(value.row_splits.dtype))
        elif not isinstance(value, StructuredTensor) and is_union(value):
            # Its variants have rows of their own, which its boxes cut by the codes.
            cut = value._of_parts(self._cut(value.codes), value.variants, value.names)
        else:
            # Dense records or masked values: the boxes of all components.
            parts = tf.nest.flatten(spec.to_components(value))
            pairs = zip(parts, tf.nest.flatten(spec.component_specs), strict=True)
            return [tensor for part, each in pairs for tensor in self.boxes(part, each)]
        return box(_stack_of(spec), cut, 1)

    def _cut(self, value: tf.Tensor | tf.RaggedTensor) -> Any:
        """Returns a tensor or RaggedTensor with its first dimension split in two."""
        if isinstance(value, tf.RaggedTensor):
            splits = self._row_splits(value.row_splits.dtype)
            return tf.RaggedTensor.from_row_splits(value, splits, validate=False)
        return reshape(value, [self._count, self._size, *value.shape.as_list()[1:]])

    def _row_splits(self, dtype: tf.DType) -> tf.Tensor:
        if dtype not in self._splits:
            numbers = np.arange(self._count + 1) * self._size
            self._splits[dtype] = tf.constant(numbers, dtype)
        return self._splits[dtype]
