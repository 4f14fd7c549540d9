"""What stands for the arguments of a constructor in a spec: a TypeSpec for each tensor in them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from extensor import _tf
from extensor._declare.derived_spec import part_of
from extensor._declare.static_data import (
    FrozenDict,
    FrozenList,
    FrozenPartial,
    Itself,
    freeze,
)
from extensor._protocol.lossless import is_tensor_like
from extensor._protocol.registry import register_type_spec
from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._protocol.tree import Static, rebuilt
from extensor._tf._tf_value_spec import converted_spec
from extensor.errors import DTypeError

_LEAVES = (type(None), bool, int, float, str, bytes, tf.DType, tf.TensorShape)


def part_of_argument(value: Any, path: str, is_part: bool = False) -> Any:
    """Returns the part that stands for an argument: with a TypeSpec for each tensor in it.

    Args:
        value: Anything. Lists, tuples, namedtuples, mappings and partials are looked into; what
            cannot be hashed is compared by identity.
        path: Where it stands, for errors.
        is_part: Whether TypeSpecs in it stand for tensors already, and are not data.
    """
    if type(value) in _LEAVES or isinstance(value, Static):
        return value
    if isinstance(value, tf.TypeSpec):
        return value if is_part else Static(value)
    if is_tensor_like(value) and not is_part:
        return part_of(value)

    def inner(item: Any, place: str) -> Any:
        return part_of_argument(item, f"{path}{place}", is_part)

    if isinstance(value, (list, tuple)):
        items = [inner(item, f"[{i}]") for i, item in enumerate(value)]
        if hasattr(value, "_fields"):
            return rebuilt(value, items)
        return FrozenList(items) if isinstance(value, (list, FrozenList)) else tuple(items)
    if isinstance(value, Mapping):
        return FrozenDict(
            (freeze(k, f"{path}, a key"), inner(v, f"[{k!r}]")) for k, v in value.items()
        )
    if type(value) is functools.partial:
        return FrozenPartial(
            inner(value.func, ".func"),
            inner(value.args, ".args"),
            inner(value.keywords, ".keywords"),
        )
    # TensorFlow's own function for arrays makes tensors of what is data here.
    spec = None if isinstance(value, np.ndarray) else converted_spec(value)
    if spec is not None:
        return ConvertedSpec(spec)
    try:
        return freeze(value, path)
    except DTypeError:
        if is_tensor_like(value):
            raise
        return Itself(value)


class Converted:
    """Carries a value that is no composite tensor, but that TensorFlow converts to one."""

    __slots__ = ("spec", "value")

    def __init__(self, value: Any, spec: ConvertedSpec) -> None:
        self.value = value
        self.spec = spec

    def __tf_type_spec__(self) -> Any:
        """Returns the spec, around the one that the value converts by."""
        return self.spec


@register_type_spec(name="extensor.ConvertedSpec")
class ConvertedSpec(StackableTypeSpec):
    """The spec of a value that TensorFlow converts by a function that was registered for it.

    Args:
        inner: What the function returned.
    """

    def __init__(self, inner: tf.TypeSpec) -> None:
        self.inner = inner

    @property
    def value_type(self) -> type:
        """What carries the value."""
        return Converted

    @property
    def component_specs(self) -> Any:
        """Those of the spec inside."""
        return _tf.component_specs(self.inner)

    def to_components(self, value: Any) -> Any:
        """Returns the components of the value that is carried."""
        return _tf.to_components(self.inner, value.value)

    def from_components(self, components: Any) -> Any:
        """Returns a carrier with the value that is made of the components."""
        return Converted(_tf.from_components(self.inner, components), self)

    def serialize(self) -> tuple[Any, ...]:
        """Returns the spec inside."""
        return (self.inner,)
