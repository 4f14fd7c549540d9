"""Batches of extension values of different sizes."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._patches.patch import replaces
from extensor._protocol import dataset_batch
from extensor._tf._tf_data import has_extension


@replaces(
    "tensorflow.python.data.ops.ragged_batch_op._ragged_batch",
    reason="Dataset.ragged_batch makes only tensors ragged, not components.",
    probe="ragged_batches",
)
def ragged_batch(plain: Any) -> Any:
    def _ragged_batch(
        input_dataset: Any,
        batch_size: Any,
        drop_remainder: Any = False,
        row_splits_dtype: Any = tf.int64,
        name: Any = None,
    ) -> Any:
        """Like TensorFlow's function, also for components of extension values."""
        rest = (batch_size, drop_remainder, row_splits_dtype, name)
        if has_extension(input_dataset):
            return dataset_batch.ragged_batch(input_dataset, *rest)
        return plain(input_dataset, *rest)

    return _ragged_batch


@replaces(
    "tensorflow.python.data.ops.padded_batch_op._padded_batch",
    reason="Dataset.padded_batch pads only tensors.",
    probe="padded_batches",
)
def padded_batch(plain: Any) -> Any:
    def _padded_batch(
        input_dataset: Any,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: Any = False,
        name: Any = None,
    ) -> Any:
        """Like TensorFlow's function, also for components of extension values."""
        rest = (batch_size, padded_shapes, padding_values, drop_remainder, name)
        if has_extension(input_dataset):
            return dataset_batch.padded_batch(input_dataset, *rest)
        return plain(input_dataset, *rest)

    return _padded_batch


@replaces(
    "tf.data.Dataset.bucket_by_sequence_length",
    reason="It treats the shapes of extension values as shapes of tensors.",
    probe="buckets",
)
def bucket_by_sequence_length(plain: Any) -> Any:
    def _bucket_by_sequence_length(
        self: Any,
        element_length_func: Any,
        bucket_boundaries: Any,
        bucket_batch_sizes: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: Any = False,
        no_padding: Any = False,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Like TensorFlow's function, also for components of extension values."""
        if has_extension(self) and not no_padding:
            padded_shapes = dataset_batch.bucket_shapes(self.element_spec, padded_shapes)
        sizes = (element_length_func, bucket_boundaries, bucket_batch_sizes)
        padding = (padded_shapes, padding_values, pad_to_bucket_boundary, no_padding)
        return plain(self, *sizes, *padding, *args, **kwargs)

    return _bucket_by_sequence_length
