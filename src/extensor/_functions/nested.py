"""Nests of tensors and extension values, and their specs."""

from __future__ import annotations

import tensorflow as tf

from extensor._tf import CompositeTensor
from extensor._typing import Nest, Value


def tensor_or_value(value: Value) -> Value:
    """Returns an extension value as it is, and anything else as a tensor."""
    return value if isinstance(value, CompositeTensor) else tf.convert_to_tensor(value)


def nested_specs(values: Nest) -> Nest:
    """Returns the specs of a nest of values."""
    return tf.nest.map_structure(
        lambda value: tf.type_spec_from_value(tensor_or_value(value)), values
    )
