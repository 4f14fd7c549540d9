"""Variables inside extension values that are attributes of a tf.Module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.trackable import base

from extensor._patches.patch import overrides
from extensor._tf import Extension, own_spec, to_components
from extensor._typing import Value


@overrides(
    "tensorflow.python.trackable.data_structures.sticky_attribute_assignment",
    reason="A tf.Module saves the variables that this function tracks; it does not track variables "
    "inside extension values.",
    probe="tracked_attributes",
)
def sticky_attribute_assignment(
    trackable: Any, name: str, value: Value, *, plain: Callable[..., Value]
) -> Value:
    """Calls TensorFlow's function, and tracks the variables inside an extension value."""
    kept = plain(trackable, name, value)
    # Not if TensorFlow tracks the value itself, or a wrapper excludes it from tracking.
    if kept is value and isinstance(value, Extension) and not isinstance(value, base.Trackable):
        variables = list(_variables_inside(value, "component"))
        if variables:
            holder = tf.Module()
            for place, variable in variables:
                setattr(holder, place, variable)
            trackable._track_trackable(holder, name=name, overwrite=True)
    return kept


def _variables_inside(value: Value, place: str) -> Iterator[tuple[str, tf.Variable]]:
    components = tf.nest.flatten(to_components(own_spec(value), value))
    for i, component in enumerate(components):
        if isinstance(component, tf.Variable):
            yield f"{place}_{i}", component
        elif isinstance(component, Extension):
            yield from _variables_inside(component, f"{place}_{i}")
