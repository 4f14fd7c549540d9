"""Specs: the jobs of those that are TensorFlow's own, and what a spec of ours is one of.

| name | why |
| --- | --- |
| `BatchableTypeSpec` | `Dataset.batch`, `map_fn` and `vectorized_map` stack values of these specs only. |
| `VariableSpec` and `BaseResourceVariable` | A field that holds a variable is described by the first, so that the variable survives tf.function; the second is what is asked of every component to find one. |
| `TypeSpec._to_components` and its kin | The jobs of TensorFlow's own specs have private names only; the laws hold for them too, so `extensor.testing` calls every spec's jobs by these. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from tensorflow.python.framework.type_spec import BatchableTypeSpec
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable, VariableSpec

__all__ = [
    "BaseResourceVariable",
    "BatchableTypeSpec",
    "VariableSpec",
    "component_specs",
    "deserialize",
    "from_components",
    "serialize",
    "stacked",
    "to_components",
    "unstacked",
]


def serialize(spec: Any) -> Any:
    """Returns the static parts of any spec."""
    return spec._serialize()


def deserialize(spec_class: Any, serialization: Any) -> Any:
    """Returns the spec of a class that `serialize` described."""
    return spec_class._deserialize(serialization)


def component_specs(spec: Any) -> Any:
    """Returns the nest of specs of what `to_components` returns."""
    return spec._component_specs


def to_components(spec: Any, value: Any) -> Any:
    """Returns the components of a value of any spec."""
    return spec._to_components(value)


def from_components(spec: Any, components: Any) -> Any:
    """Returns the value of any spec that is made of the given components."""
    return spec._from_components(components)


def stacked(spec: Any, num: int | None) -> Any:
    """Returns the spec of `num` stacked values of any spec that stacks."""
    return spec._batch(num)


def unstacked(spec: Any) -> Any:
    """Returns the spec of one of the values that are stacked in a value of any spec."""
    return spec._unbatch()
