"""Batches of extension values of different sizes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._patches.patch import overrides
from extensor._protocol import dataset_batch
from extensor._tf._tf_data import has_extension


@overrides(
    "tensorflow.python.data.ops.ragged_batch_op._ragged_batch",
    reason="Dataset.ragged_batch makes only tensors ragged, not components.",
    probe="ragged_batches",
)
def ragged_batch(
    input_dataset: tf.data.Dataset, *args: Any, plain: Callable[..., tf.data.Dataset]
) -> tf.data.Dataset:
    """Like TensorFlow's function, also for components of extension values."""
    batch = dataset_batch.ragged_batch if has_extension(input_dataset) else plain
    return batch(input_dataset, *args)


@overrides(
    "tensorflow.python.data.ops.padded_batch_op._padded_batch",
    reason="Dataset.padded_batch pads only tensors.",
    probe="padded_batches",
)
def padded_batch(
    input_dataset: tf.data.Dataset, *args: Any, plain: Callable[..., tf.data.Dataset]
) -> tf.data.Dataset:
    """Like TensorFlow's function, also for components of extension values."""
    batch = dataset_batch.padded_batch if has_extension(input_dataset) else plain
    return batch(input_dataset, *args)


@overrides(
    "tf.data.Dataset.bucket_by_sequence_length",
    reason="It treats the shapes of extension values as shapes of tensors.",
    probe="buckets",
)
def bucket_by_sequence_length(
    self: tf.data.Dataset, *args: Any, plain: Callable[..., tf.data.Dataset], **kwargs: Any
) -> tf.data.Dataset:
    """Like TensorFlow's function, also for components of extension values."""
    if not has_extension(self):
        return plain(self, *args, **kwargs)
    call = inspect.signature(plain).bind(self, *args, **kwargs)
    given = call.arguments
    if not given.get("no_padding"):
        shapes = given.get("padded_shapes")
        given["padded_shapes"] = dataset_batch.bucket_shapes(self.element_spec, shapes)
    return plain(*call.args, **call.kwargs)
