"""Datasets that raise an error."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._protocol.box import boxed_specs
from extensor._raised import error_of_text, marked
from extensor._tf._tf_named_function import call_named, function_of_dataset, name_function

_NAME = "extensor.data.fail"


def failing_dataset(error: BaseException, spec: Any) -> tf.data.Dataset:
    """Returns a dataset that raises an error in place of its first element.

    Args:
        error: The error.
        spec: The spec of the elements that it does not have.
    """
    specs = boxed_specs(spec)
    variant = tf.raw_ops.FlatMapDataset(
        input_dataset=tf.raw_ops.TensorDataset(
            components=[np.array(str(marked(error)))], output_shapes=[[]]
        ),
        other_arguments=[],
        f=_function(),
        output_types=[tensor.dtype for tensor in specs],
        output_shapes=[tensor.shape for tensor in specs],
    )
    return tf.data.experimental.from_variant(variant, spec)


def _fail(message: tf.Tensor) -> tf.Tensor:
    raise error_of_text(message.numpy().decode())


@functools.cache
def _function() -> Any:
    name_function(_NAME, _fail, tf.variant)

    def fail(message: Any) -> Any:
        returned = call_named(_NAME, [message], tf.variant)
        returned.set_shape([])
        return returned

    with tf.init_scope():
        message = tf.TensorSpec([], tf.string)
        return function_of_dataset(fail, message)
