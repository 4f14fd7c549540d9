"""What a tf.Module finds in its attributes.

| name | why |
| --- | --- |
| `data_structures` | What a tf.Module saves is what `sticky_attribute_assignment` finds in its attributes; it does not look for variables inside extension values. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.trackable import data_structures  # pyright: ignore[reportAttributeAccessIssue]

from extensor._tf._tf_protocol import Extension

_plain_sticky_attribute_assignment = data_structures.sticky_attribute_assignment


def _sticky_attribute_assignment(trackable: Any, name: str, value: Any) -> Any:
    """As TensorFlow's own, and tracks the variables inside an extension value."""
    kept = _plain_sticky_attribute_assignment(trackable, name, value)
    # Not where TensorFlow tracks the value itself, or was asked not to.
    if (
        kept is value
        and isinstance(value, Extension)
        and not isinstance(value, data_structures.base.Trackable)
    ):
        variables = list(_variables_inside(value, "component"))
        if variables:
            holder = tf.Module()
            for place, variable in variables:
                setattr(holder, place, variable)
            trackable._track_trackable(holder, name=name, overwrite=True)
    return kept


def _variables_inside(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    components = tf.nest.flatten(value._type_spec._to_components(value))
    for i, component in enumerate(components):
        if isinstance(component, tf.Variable):
            yield f"{place}_{i}", component
        elif isinstance(component, Extension):
            yield from _variables_inside(component, f"{place}_{i}")


data_structures.sticky_attribute_assignment = _sticky_attribute_assignment
