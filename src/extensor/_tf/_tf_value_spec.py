"""Specs of values that are neither tensors nor composite tensors, but convert to them.

| name | why |
| --- | --- |
| `type_spec._TYPE_CONVERSION_FUNCTION_REGISTRY` | What `register_type_spec_from_value_converter` was given. `tf.type_spec_from_value` asks it too, and then takes numbers and lists, which are no such values, for tensors. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from tensorflow.python.framework import type_spec


def converted_spec(value: Any) -> Any:
    """Returns the spec that a registered conversion function makes of a value, or None.

    >>> converted_spec(tf.TensorArray(tf.float32, 2)), converted_spec([1.0])
    (TensorArraySpec(TensorShape(None), tf.float32, False, True), None)
    """
    if value is None:  # for which TensorFlow registers a spec without components
        return None
    # The last that was registered is asked first, as TensorFlow does.
    for kind, convert, takes_subclasses in reversed(type_spec._TYPE_CONVERSION_FUNCTION_REGISTRY):
        if type(value) is kind or (takes_subclasses and isinstance(value, kind)):
            return convert(value)
    return None
