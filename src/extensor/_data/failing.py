"""Datasets that raise an error."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from extensor._data.dataset_graph import boxes_of
from extensor._raised import error_of_text, mark
from extensor._tf._tf_named_function import call_named, function_of_dataset, name_function

_NAME = "extensor.data.fail"


def failing_dataset(error: BaseException, spec: tf.TypeSpec) -> tf.data.Dataset:
    """Returns a dataset that raises an error in place of its first element.

    Args:
        error: The error.
        spec: The spec of the elements that it does not have.
    """
    message = tf.raw_ops.TensorDataset(components=[np.array(str(mark(error)))], output_shapes=[[]])
    variant = tf.raw_ops.FlatMapDataset(
        input_dataset=message, other_arguments=[], f=_function(), **boxes_of(spec)
    )
    return tf.data.experimental.from_variant(variant, spec)


def _fail(message: tf.Tensor) -> tf.Tensor:
    raise error_of_text(message.numpy().decode())


@functools.cache
def _function() -> Callable[..., tf.Tensor]:
    name_function(_NAME, _fail, tf.variant)

    def fail(message: tf.Tensor) -> tf.Tensor:
        returned = call_named(_NAME, [message], tf.variant)
        returned.set_shape([])
        return returned

    with tf.init_scope():
        return function_of_dataset(fail, tf.TensorSpec([], tf.string))
