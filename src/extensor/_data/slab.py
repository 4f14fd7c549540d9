"""Slabs: many batches that are converted at once and cut by TensorFlow without a copy."""

# This file calls methods of records or specs that are private to extensor.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from extensor._protocol.box import box, boxed_specs, stacked_spec, unstacked_spec
from extensor._struct.masked import is_union
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.tensor import StructuredTensor

# So many slabs of a spec are cut op by op. To trace costs as much as about ten slabs then save.
_UNTRACED = 8


def batches_of(records: StructuredTensor, size: int, spec: Any) -> tf.data.Dataset:
    """Returns a dataset of the batches of records. Copies no numbers and no strings.

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
    return tf.data.experimental.from_variant(_slabs(spec).cut(records, nrows // size, size), spec)


@functools.lru_cache(maxsize=128)
def _slabs(spec: Any) -> _Slabs:
    return _Slabs(spec)


class _Slabs:
    """The slabs of one spec.

    An eager op that makes a dataset costs about a millisecond, because TensorFlow builds a function
    for each call. A function of ours is built once.
    """

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self._untraced = _UNTRACED

    def cut(self, records: StructuredTensor, count: int, size: int) -> tf.Tensor:
        """Returns a dataset of `count` batches of `size` records, as a variant."""
        if self._untraced:
            self._untraced -= 1
            return self._dataset(*_Cut(count, size).boxes(records))
        parts = tf.nest.flatten(records, expand_composites=True)
        boxed, dataset = self._functions
        with tf.device("CPU:0"):
            boxes = tf.raw_ops.PartitionedCall(
                args=[tf.constant(count), tf.constant(size), *parts],
                Tout=boxed.output_dtypes,
                f=boxed,
            )
            return tf.raw_ops.PartitionedCall(args=boxes, Tout=[tf.variant], f=dataset)[0]

    def _dataset(self, *boxes: tf.Tensor) -> tf.Tensor:
        shapes = [tensor.shape for tensor in boxed_specs(self._spec)]
        return tf.raw_ops.TensorSliceDataset(components=boxes, output_shapes=shapes)

    @functools.cached_property
    def _functions(self) -> tuple[Any, Any]:
        """The function that makes boxes of records, and that which makes a dataset of boxes.

        They are two, because TensorFlow warns of a variant that it knows to be a ragged tensor
        where the second one uses it.
        """
        records = stacked_spec(unstacked_spec(self._spec, "records"), None, "records")
        number = tf.TensorSpec([], tf.int32)

        def boxed(count: tf.Tensor, size: tf.Tensor, *parts: tf.Tensor) -> list[tf.Tensor]:
            value = tf.nest.pack_sequence_as(records, parts, expand_composites=True)
            return _Cut(count, size).boxes(value)

        def traced(function: Any, *specs: Any) -> Any:
            return tf.function(function, autograph=False).get_concrete_function(*specs)

        with tf.init_scope():
            parts = tf.nest.flatten(records, expand_composites=True)
            first = traced(boxed, number, number, *(tf.TensorSpec(p.shape, p.dtype) for p in parts))
            boxes = [tf.TensorSpec(None, dtype) for dtype in first.output_dtypes]
            return first, traced(self._dataset, *boxes)


class _Cut:
    """Cuts values into batches, as the boxes of stacked values that datasets hold."""

    def __init__(self, count: Any, size: Any) -> None:
        self._count = count
        self._size = size
        self._flat = tf.stack([count, size])
        self._splits: dict[tf.DType, tf.Tensor] = {}

    def boxes(self, value: Any) -> list[tf.Tensor]:
        """Returns the boxes of a value with its first dimension split in two."""
        if isinstance(value, tf.Tensor):
            return [self._cut(value)]
        if isinstance(value, tf.RaggedTensor):
            cut: Any = self._cut(value)
        elif isinstance(value, RaggedStructuredTensor):
            cut = RaggedStructuredTensor._of_parts(value, self._row_splits(value.row_splits.dtype))
        elif not isinstance(value, StructuredTensor) and is_union(value):
            # Its variants have rows of their own, which its boxes cut by the codes.
            cut = value.of_parts(self._cut(value.codes), value.variants, value.names)
        else:
            # Dense records or masked values: the boxes of all components.
            parts = tf.nest.flatten(tf.type_spec_from_value(value).to_components(value))
            return [tensor for part in parts for tensor in self.boxes(part)]
        return box(tf.type_spec_from_value(cut), cut, 1)

    def _cut(self, value: Any) -> Any:
        """Returns a tensor or RaggedTensor with its first dimension split in two."""
        if isinstance(value, tf.RaggedTensor):
            splits = self._row_splits(value.row_splits.dtype)
            return tf.RaggedTensor.from_row_splits(value, splits, validate=False)
        inner = value.shape[1:].as_list()
        shape = tf.concat([self._flat, inner], 0) if inner else self._flat
        # The raw op, because tf.reshape is slower and a slab may have a hundred tensors.
        return tf.raw_ops.Reshape(tensor=value, shape=shape)

    def _row_splits(self, dtype: tf.DType) -> tf.Tensor:
        if dtype not in self._splits:
            numbers = tf.range(tf.cast(self._count, dtype) + 1, dtype=dtype)
            self._splits[dtype] = numbers * tf.cast(self._size, dtype)
        return self._splits[dtype]
