"""Specs of values that are neither tensors nor composite tensors, but convert to them.

| name | why |
| --- | --- |
| `type_spec._TYPE_CONVERSION_FUNCTION_REGISTRY` | The converters of `register_type_spec_from_value_converter`. `tf.type_spec_from_value` uses them too, but also converts numbers and lists to tensors. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import tensorflow as tf
from tensorflow.python.framework import type_spec


def converted_spec(value: object) -> tf.TypeSpec | None:
    """Returns the spec that a registered converter returns for a value, or None.

    >>> from extensor._tf._tf_value_spec import converted_spec
    >>> import tensorflow as tf
    >>> converted_spec(tf.TensorArray(tf.float32, 2)), converted_spec([1.0])
    (TensorArraySpec(TensorShape(None), tf.float32, False, True), None)
    """
    if value is None:  # TensorFlow registers a spec without components for None
        return None
    # In reverse order of registration, as TensorFlow does.
    for kind, convert, takes_subclasses in reversed(type_spec._TYPE_CONVERSION_FUNCTION_REGISTRY):
        if type(value) is kind or (takes_subclasses and isinstance(value, kind)):
            return convert(value)
    return None
