"""The parts of a spec for constructor arguments: a TypeSpec for each tensor, else static data."""

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
    Part,
    freeze,
)
from extensor._protocol.lossless import is_tensor_like
from extensor._protocol.registry import register_type_spec
from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._protocol.tree import Static, with_items
from extensor._tf._tf_value_spec import converted_spec
from extensor._typing import Nest
from extensor.errors import DTypeError

_LEAVES = (type(None), bool, int, float, str, bytes, tf.DType, tf.TensorShape)


def part_of_argument(value: Nest, path: str, is_part: bool = False) -> Part:
    """Returns the part for an argument, with a TypeSpec in place of each tensor.

    Args:
        value: Any object. Lists, tuples, namedtuples, mappings and partials are traversed. An
            object that cannot be hashed is compared by identity.
        path: The path of the argument, for errors.
        is_part: Whether `value` is a part already: its TypeSpecs describe tensors.
    """
    if type(value) in _LEAVES or isinstance(value, Static):
        return value
    if isinstance(value, tf.TypeSpec):
        return value if is_part else Static(value)
    if (is_tensor_like(value) or isinstance(value, tf.Variable)) and not is_part:
        return part_of(value)

    def inner(item: Nest, place: str) -> Part:
        return part_of_argument(item, f"{path}{place}", is_part)

    if isinstance(value, (list, tuple)):
        items = [inner(item, f"[{i}]") for i, item in enumerate(value)]
        if hasattr(value, "_fields"):
            return with_items(value, items)
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
    if isinstance(value, np.generic):  # an array of rank 0, which keeps its dtype
        value = np.asarray(value)
    # NumPy arrays also have a registered conversion in TensorFlow, but here they are static data.
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
    """Wraps a value that is no composite tensor, but that TensorFlow converts to one."""

    __slots__ = ("spec", "value")

    def __init__(self, value: object, spec: ConvertedSpec) -> None:
        self.value = value
        self.spec = spec

    def __tf_type_spec__(self) -> ConvertedSpec:
        """Returns the `ConvertedSpec` of the value."""
        return self.spec


@register_type_spec(name="extensor.ConvertedSpec")
class ConvertedSpec(StackableTypeSpec):
    """The spec of a value that TensorFlow converts with a registered function.

    Args:
        inner: The spec that the function returned.
    """

    def __init__(self, inner: tf.TypeSpec) -> None:
        self.inner = inner

    @property
    def value_type(self) -> type:
        """The wrapper class of values."""
        return Converted

    @property
    def component_specs(self) -> Nest:
        """The component specs of the inner spec."""
        return _tf.component_specs(self.inner)

    def to_components(self, value: Converted) -> Nest:
        """Returns the components of the wrapped value."""
        return _tf.to_components(self.inner, value.value)

    def from_components(self, components: Nest) -> Converted:
        """Returns a wrapper of the value with the given components."""
        return Converted(_tf.from_components(self.inner, components), self)

    def serialize(self) -> tuple[Any, ...]:
        """Returns the inner spec."""
        return (self.inner,)
