"""Tracing types of values with variables, which detect variables that are passed twice.

| name | why |
| --- | --- |
| `VariableSpec.alias_id` | The number of a variable among the variable arguments of a call. With it, a variable that is passed twice is one variable in the graph. TensorFlow does not set it for variables in extension values: passed twice, they became two variables, with reads and writes in any order. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from extensor._lookup import defines
from extensor._tf._tf_composite import PROTOCOL, CompositeTensor, declared_spec
from extensor._tf._tf_spec import VariableSpec
from extensor._typing import Value

_TraceType = tf.types.experimental.TraceType


class _AliasedType(tf.types.experimental.TraceType):
    """The tracing type of a value with variables: its spec, and which variables are the same.

    Args:
        spec: The spec.
        parts: The tracing type of each component that is or contains a variable, else None.
    """

    def __init__(self, spec: tf.TypeSpec, parts: Sequence[_TraceType | None]) -> None:
        self.spec, self.parts = spec, tuple(parts)

    def is_subtype_of(self, other: _TraceType) -> bool:
        if not isinstance(other, _AliasedType):
            return self.spec.is_subtype_of(other)  # of a signature, which allows any aliases
        return self.parts == other.parts and self.spec.is_subtype_of(other.spec)

    def most_specific_common_supertype(self, others: Sequence[_TraceType]) -> _AliasedType | None:
        if not all(
            isinstance(other, _AliasedType) and self.parts == other.parts for other in others
        ):
            return None
        spec = self.spec.most_specific_common_supertype([other.spec for other in others])
        return None if spec is None else _AliasedType(spec, self.parts)

    def placeholder_value(self, placeholder_context: Any) -> Value:
        if placeholder_context.unnest_only:  # for a signature
            return self.spec
        components = [kind.placeholder_value(placeholder_context) for kind in self._kinds()]
        return self.spec._from_components(
            tf.nest.pack_sequence_as(self.spec._component_specs, components)
        )

    def to_tensors(self, value: Value) -> list[tf.Tensor]:
        return self.spec.to_tensors(value)

    def from_tensors(self, tensors: Iterator[tf.Tensor]) -> Value:
        return self.spec.from_tensors(tensors)

    def flatten(self) -> list[_TraceType]:
        return [tensor for kind in self._kinds() for tensor in kind.flatten()]

    def cast(self, value: Value, cast_context: object) -> Value:
        return self.spec.cast(value, cast_context)

    def _kinds(self) -> list[_TraceType]:
        specs = tf.nest.flatten(self.spec._component_specs)
        return [part or spec for part, spec in zip(self.parts, specs, strict=True)]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _AliasedType)
            and self.parts == other.parts
            and self.spec == other.spec
        )

    def __hash__(self) -> int:
        return hash((self.spec, self.parts))

    def __repr__(self) -> str:
        return f"{self.spec!r} of {[part for part in self.parts if part]}"


def _type_of(spec: tf.TypeSpec, value: Value, context: object) -> _TraceType:
    """Returns the tracing type of a value: its spec, if it contains no variables."""
    components = tf.nest.flatten(spec._to_components(value))
    # The fast path: most values have only tensors as components.
    if not any(isinstance(component, CompositeTensor) for component in components):
        return spec
    specs = tf.nest.flatten(spec._component_specs)
    parts = [_part(s, c, context) for s, c in zip(specs, components, strict=True)]
    return _AliasedType(spec, parts) if any(parts) else spec


def _part(spec: tf.TypeSpec, component: Value, context: object) -> _TraceType | None:
    if not isinstance(component, CompositeTensor):
        return None
    if isinstance(spec, VariableSpec):
        return component.__tf_tracing_type__(context)
    if defines(type(component), PROTOCOL):
        found = _type_of(spec, component, context)
        return found if isinstance(found, _AliasedType) else None
    return None


def tracing_type(self: Value, context: object) -> _TraceType:
    """Returns the tracing type of an extension value: its `__tf_tracing_type__`."""
    spec = declared_spec(self)
    own = spec.__tf_tracing_type__(context)
    return _type_of(spec, self, context) if own is spec else own
