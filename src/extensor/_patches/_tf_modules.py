"""Variables inside extension values that are attributes of a tf.Module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import tensorflow as tf
from tensorflow.python.trackable import base

from extensor._patches.patch import overrides
from extensor._path import Path
from extensor._protocol.named_leaves import Names, named_leaves
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
        variables = list(_variables_inside(value, "component", ()))
        if variables:
            holder = _Variables()
            for _, names, variable in variables:
                setattr(holder, f"component_{Path(*names)}", variable)
            before = {place: variable for place, _, variable in variables}
            object.__setattr__(holder, "_by_position", before)  # is not tracked
            trackable._track_trackable(holder, name=name, overwrite=True)
    return kept


@overrides(
    "tensorflow.python.trackable.data_structures._should_wrap_tuple",
    reason="A tf.Module saves the variables of a tuple that this function accepts; it does not "
    "look inside extension values.",
    probe="tracked_attributes",
)
def should_wrap_tuple(values: tuple[Any, ...], *, plain: Callable[..., bool]) -> bool:
    """Calls TensorFlow's function, and accepts extension values that have variables."""
    return plain(values) or any(
        isinstance(value, Extension) and any(_variables_inside(value, "", ())) for value in values
    )


class _Variables(tf.Module):
    """The variables inside an extension value, by the names of its components."""

    _by_position: Mapping[str, tf.Variable] = MappingProxyType({})

    def _lookup_dependency(self, name: str, *args: Any) -> Any:
        """Returns what a name in a checkpoint means; extensor 0.2 named variables by position."""
        found = super()._lookup_dependency(name, *args)
        return self._by_position.get(name) if found is None else found


def _variables_inside(
    value: Value, place: str, names: Names
) -> Iterator[tuple[str, Names, tf.Variable]]:
    """Yields each variable in a value, with its name by position, and the names on its path."""
    leaves = named_leaves(to_components(own_spec(value), value))
    for i, (own, component) in enumerate(leaves):
        if isinstance(component, tf.Variable):
            yield f"{place}_{i}", (*names, *own), component
        elif isinstance(component, Extension):
            yield from _variables_inside(component, f"{place}_{i}", (*names, *own))
