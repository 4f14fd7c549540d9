"""Subject: the values of one type under test, and helpers for their specs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import tensorflow as tf

from extensor import _tf
from extensor._count_text import count_text
from extensor._protocol.spec import TypeSpec
from extensor._testing.variation import generalise, same_numbers, twin, variations
from extensor.errors import ExtensorError, ProtocolError


class Subject:
    """Values of one extension type under test, with their specs.

    Args:
        value_or_values: A value, or a list or tuple of values of one type. A namedtuple is one
            value.

    Raises:
        ProtocolError: If there is no value, a value is a plain tensor or has no TypeSpec, or the
            values have different types (also a TypeError).
    """

    def __init__(self, value_or_values: Any) -> None:
        several = type(value_or_values) in (list, tuple)
        self.values: tuple[Any, ...] = tuple(value_or_values) if several else (value_or_values,)
        self.specs: tuple[Any, ...] = tuple(map(spec_of, self.values))
        classes = sorted({type(spec).__qualname__ for spec in self.specs})
        if len({type(spec) for spec in self.specs}) != 1:
            expected = "one or more values of one type"
            received = f"values with the specs {', '.join(classes)}" if classes else "an empty list"
            raise ProtocolError("xt.testing", expected, received, "Check one type at a time.")

    @property
    def type_name(self) -> str:
        """The name of the type under test."""
        return type(self.values[0]).__name__

    @property
    def pairs(self) -> tuple[tuple[Any, Any], ...]:
        """Each value with its spec."""
        return tuple(zip(self.values, self.specs, strict=True))

    @cached_property
    def pool(self) -> tuple[Any, ...]:
        """Specs to compare: the specs of the values, copies, and specs without static sizes."""
        return (*self.specs, *map(twin, self.specs), *map(generalise, self.specs))

    @cached_property
    def variations(self) -> tuple[tuple[Any, Any], ...]:
        """Pairs of a spec and a spec that differs in one part, for each such part."""
        return tuple((spec, other) for spec in self.specs for other in variations(spec))


def spec_of(value: object) -> tf.TypeSpec:
    """Returns the spec of an extension value.

    Raises:
        ProtocolError: If the value has no spec.
    """
    try:
        spec = tf.type_spec_from_value(value)
    except ExtensorError:  # raised for a rejected class, or by the value itself
        raise
    except (TypeError, ValueError):
        spec = None
    if value is None or not isinstance(spec, tf.TypeSpec) or isinstance(spec, tf.TensorSpec):
        received = "a value without a TypeSpec"
        if isinstance(spec, tf.TensorSpec):
            received = "a plain tensor"
        elif isinstance(spec, type):
            received = f"the class {spec.__qualname__}"
        elif value is not None and spec is not None:
            received = f"a __tf_type_spec__() that returns {type(spec).__qualname__}"
        expected = "an extension type: __tf_type_spec__() returns a TypeSpec"
        fix = "See xt.ExtensionType for a complete example."
        raise ProtocolError(type(value).__name__, expected, received, fix)
    return spec


def common_spec(spec: tf.TypeSpec, other: tf.TypeSpec) -> tf.TypeSpec | None:
    """Returns the most specific spec compatible with both, or None."""
    if isinstance(spec, TypeSpec):
        return spec.most_specific_compatible_type(other)
    return spec.most_specific_common_supertype([other])


def stacks(spec: tf.TypeSpec) -> bool:
    """Returns whether a spec and all its component specs stack."""
    if isinstance(spec, tf.TensorSpec):
        return True
    return isinstance(spec, _tf.BatchableTypeSpec) and all(
        map(stacks, tf.nest.flatten(_tf.component_specs(spec)))
    )


def has_variable(spec: tf.TypeSpec) -> bool:
    """Returns whether a spec has a variable among its components."""
    if isinstance(spec, tf.TensorSpec):
        return False
    return isinstance(spec, _tf.VariableSpec) or any(
        map(has_variable, tf.nest.flatten(_tf.component_specs(spec)))
    )


def leaves(value: object) -> list[Any]:
    """Returns the component tensors of a value, or their specs for a spec."""
    return tf.nest.flatten(value, expand_composites=True)


def difference(value: object, other: object) -> str | None:
    """Returns a description of the first difference of two values without contents, or None."""
    if type(value) is not type(other):
        return f"a {type(other).__name__}"
    a, b = leaves(value), leaves(other)
    if len(a) != len(b):
        return count_text(len(b), "components")
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x is y:
            continue
        if x.dtype != y.dtype or x.shape != y.shape:
            return f"component tensor {i} of dtype {y.dtype.name} and shape {y.shape}"
        if x.dtype not in (tf.variant, tf.resource) and not same_numbers(x.numpy(), y.numpy()):
            return f"different content in component tensor {i}"
    return None


class StrangerSpec(TypeSpec):
    """A spec that is not compatible with any type under test."""

    component_specs: Any = ()

    @property
    def value_type(self) -> type:
        """A class without values."""
        return StrangerSpec

    def to_components(self, value: object) -> tuple[()]:
        """Returns no components: there are no values."""
        return ()

    def from_components(self, components: object) -> tuple[()]:
        """Returns no components: there are no values."""
        return ()

    def serialize(self) -> tuple[Any, ...]:
        """Returns an empty serialization."""
        return ()
