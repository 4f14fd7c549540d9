"""Subject: values of one type under test, and the jobs of their specs under one set of names."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import tensorflow as tf

from extensor import _tf
from extensor._protocol.spec import TypeSpec
from extensor._testing.variation import generalised, same_numbers, twin, variations
from extensor.errors import ExtensorError, ProtocolError


class Subject:
    """Values of one extension type, TensorFlow's own or anybody's, and what the laws ask of them.

    Args:
        value_or_values: A value, or a list or tuple of values of one type. (A namedtuple is a
            value.)

    Raises:
        ProtocolError: If there is no value, a value has no TypeSpec (a plain tensor counts as
            one that has none), or the values are of several types (also a TypeError).
    """

    def __init__(self, value_or_values: Any) -> None:
        several = type(value_or_values) in (list, tuple)
        self.values: tuple[Any, ...] = tuple(value_or_values) if several else (value_or_values,)
        self.specs: tuple[Any, ...] = tuple(map(spec_of, self.values))
        classes = sorted({type(spec).__qualname__ for spec in self.specs})
        if len({type(spec) for spec in self.specs}) != 1:
            raise ProtocolError(
                path="xt.testing",
                expected="one value or more, all of one type",
                received=f"values described by {', '.join(classes)}" if classes else "none",
                mend="Check one type at a time.",
            )

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
        """Specs to compare: of the values, the same made anew, and the same without sizes."""
        return (*self.specs, *map(twin, self.specs), *map(generalised, self.specs))

    @cached_property
    def variations(self) -> tuple[tuple[Any, Any], ...]:
        """Each spec with one that says one thing otherwise, for every such thing."""
        return tuple((spec, other) for spec in self.specs for other in variations(spec))


def spec_of(value: Any) -> Any:
    """Returns the spec of an extension value.

    Raises:
        ProtocolError: If the value has none.
    """
    try:
        spec = tf.type_spec_from_value(value)
    except ExtensorError:  # of a class that is refused, or of the value itself
        raise
    except (TypeError, ValueError):
        spec = None
    if value is None or not isinstance(spec, tf.TypeSpec) or isinstance(spec, tf.TensorSpec):
        received = "no TypeSpec"
        if isinstance(spec, tf.TensorSpec):
            received = "a plain tensor"
        elif isinstance(spec, type):
            received = f"the class {spec.__qualname__}"
        elif value is not None and spec is not None:
            received = f"one that returns a value of {type(spec).__qualname__}"
        raise ProtocolError(
            path=type(value).__name__,
            expected="an extension type: __tf_type_spec__() returns a TypeSpec",
            received=received,
            mend="See xt.ExtensionType for a whole example.",
        )
    return spec


def merged(spec: Any, other: Any) -> Any:
    """Returns the most specific spec compatible with both, or None."""
    if isinstance(spec, TypeSpec):
        return spec.most_specific_compatible_type(other)
    return spec.most_specific_common_supertype([other])


def stacks(spec: Any) -> bool:
    """Returns whether a spec stacks, and all that it is made of."""
    if isinstance(spec, tf.TensorSpec):
        return True
    return isinstance(spec, _tf.BatchableTypeSpec) and all(
        map(stacks, tf.nest.flatten(_tf.component_specs(spec)))
    )


def has_variable(spec: Any) -> bool:
    """Returns whether a variable is among what a spec is made of."""
    if isinstance(spec, tf.TensorSpec):
        return False
    return isinstance(spec, _tf.VariableSpec) or any(
        map(has_variable, tf.nest.flatten(_tf.component_specs(spec)))
    )


def leaves(value: Any) -> list[Any]:
    """Returns the tensors that a value is made of, or their specs if given a spec."""
    return tf.nest.flatten(value, expand_composites=True)


def difference(value: Any, other: Any) -> str | None:
    """Returns in which tensor two values differ, in words without its contents; None if equal."""
    if type(value) is not type(other):
        return f"a {type(other).__name__}"
    a, b = leaves(value), leaves(other)
    if len(a) != len(b):
        return f"{len(b)} component tensors"
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x is y:
            continue
        if x.dtype != y.dtype or x.shape != y.shape:
            return f"component tensor {i} of {y.dtype.name} and shape {y.shape}"
        if x.dtype not in (tf.variant, tf.resource) and not same_numbers(x.numpy(), y.numpy()):
            return f"other numbers in component tensor {i}"
    return None


class StrangerSpec(TypeSpec):
    """The spec of a type that no type under test is compatible with."""

    component_specs: Any = ()

    @property
    def value_type(self) -> type:
        """A class that no value is of."""
        return StrangerSpec

    def to_components(self, value: Any) -> Any:
        """Returns nothing: there is no value."""
        return ()

    def from_components(self, components: Any) -> Any:
        """Returns nothing: there is no value."""
        return ()

    def serialize(self) -> tuple[Any, ...]:
        """Returns no part."""
        return ()
