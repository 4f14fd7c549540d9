"""Nests of tensors and extension values, and their specs."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._tf import CompositeTensor


def tensor_or_value(value: Any) -> Any:
    """Returns an extension value as it is, and anything else as a tensor."""
    return value if isinstance(value, CompositeTensor) else tf.convert_to_tensor(value)


def nested_specs(values: Any) -> Any:
    """Returns the specs of a nest of values."""
    return tf.nest.map_structure(
        lambda value: tf.type_spec_from_value(tensor_or_value(value)), values
    )
