"""Makes a class that defines `__tf_type_spec__` a composite tensor for TensorFlow.

| name | why |
| --- | --- |
| `_pywrap_utils.IsCompositeTensor` | TensorFlow's C++ caches `isinstance(value, CompositeTensor)` for each class forever. Only this function shows whether it cached the answer before a class got its spec; it also answers `xt.nest.flatten` sooner than `isinstance`. |
| `VariableSpec.alias_id` | The number of a variable among the variable arguments of a call. With it, a variable that is passed twice is one variable in the graph. TensorFlow does not set it for variables in extension values: passed twice, they became two variables, with reads and writes in any order. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.util import _pywrap_utils  # pyright: ignore[reportAttributeAccessIssue]

from extensor._lookup import class_attribute, defines, lineage, namespace
from extensor._tf._tf_composite import (
    PROTOCOL,
    CompositeTensor,
    Guarded,
    declared_spec,
    describes,
    is_container,
    refusal,
)
from extensor._tf._tf_gradient import GRADIENT
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


class _TypeSpecOfValue:
    """The attribute `value._type_spec` that TensorFlow reads; it calls `__tf_type_spec__`.

    Not a data descriptor: an instance attribute of this name has priority.
    """

    def __get__(self, value: Value, owner: type | None = None) -> tf.TypeSpec:
        return self if value is None else declared_spec(value)


def _convert_variables_to_tensors(self: Value) -> Value:
    """Returns the value with variables read, for components with a TensorSpec."""
    spec = self.__tf_type_spec__()
    read_any = False

    def read(component_spec: tf.TypeSpec, component: Value) -> Value:
        nonlocal read_any
        if isinstance(component, tf.Variable) and isinstance(component_spec, tf.TensorSpec):
            read_any = True
            return tf.convert_to_tensor(component)
        return component

    components = tf.nest.map_structure(read, spec._component_specs, spec._to_components(self))
    return spec._from_components(components) if read_any else self


def _shape_invariant_to_type_spec(self: Value, shape: tf.TensorShape | None) -> tf.TypeSpec:
    if shape is None:
        return self.__tf_type_spec__()
    # tf.map_fn and tf.while_loop catch this error.
    raise NotImplementedError(
        f"{type(self).__name__}: expected a TypeSpec as shape invariant, got a shape. "
        "Give tf.while_loop a TypeSpec for this loop variable."
    )


# The members that a class gets, unless it defines them.
MEMBERS: dict[str, Any] = {
    "__composite_gradient__": GRADIENT,
    "__tf_tracing_type__": tracing_type,
    "_type_spec": _TypeSpecOfValue(),
    "_convert_variables_to_tensors": _convert_variables_to_tensors,
    "_shape_invariant_to_type_spec": _shape_invariant_to_type_spec,
    "_consumers": CompositeTensor._consumers,
}


def own_spec(value: Value) -> tf.TypeSpec:
    """Returns the spec of any composite tensor, of TensorFlow or extensor."""
    return value._type_spec


def with_own_components(structure: object) -> Any:
    """Returns the components of any composite tensor, and anything else as it is.

    `tf.nest` does so too, in more time.
    """
    if _pywrap_utils.IsCompositeTensor(structure):
        value: Value = structure
        return value._type_spec._to_components(value)
    return structure


def variables_read(value: Value) -> Value:
    """Returns any composite tensor with its variables read."""
    return value._convert_variables_to_tensors()


_LEAVES_VARIABLES = (CompositeTensor._convert_variables_to_tensors, _convert_variables_to_tensors)
"""The defaults of `_convert_variables_to_tensors`."""


def equip(
    cls: Any, spec_of: Callable[[Value], tf.TypeSpec], read: Callable[[Value], Value] | None = None
) -> None:
    """Sets members of a class that TensorFlow uses.

    Args:
        cls: The class.
        spec_of: Returns the spec of a value.
        read: Returns a value with its variables read; not used if the class defines this itself.
            Default: as `admit` sets it.
    """
    cls._type_spec = property(spec_of)
    if read is not None and cls._convert_variables_to_tensors in _LEAVES_VARIABLES:
        cls._convert_variables_to_tensors = read


class _Refused:
    """A member of composite tensors that raises an error for container classes."""

    def __get__(self, value: object, owner: type | None = None) -> _Refused:
        if value is None:
            return self
        raise refusal(type(value))


def admit(cls: type) -> bool:
    """Equips a class that defines `__tf_type_spec__` as a composite tensor.

    Args:
        cls: Any class.

    Returns:
        Whether the class follows the protocol.
    """
    if not defines(cls, PROTOCOL):
        return False
    # A typing.Protocol has no values, and on Python 3.10 and 3.11 isinstance would require the
    # added members.
    if class_attribute(cls, "_is_protocol", False):
        return False
    if is_container(cls):
        # No error here: TensorFlow's C++ prints an error from isinstance, and continues.
        for name in MEMBERS:
            setattr(cls, name, _Refused())
        return True
    bases = [base for base in lineage(cls) if base is not CompositeTensor]
    for name, member in MEMBERS.items():
        # The members of CompositeTensor itself are abstract, or unusable.
        if not any(name in namespace(base) for base in bases):
            setattr(cls, name, member)
    return True


def admit_late(cls: type) -> bool:
    """Admits a class that got its `__tf_type_spec__` after its definition.

    Args:
        cls: A class that defines it now.

    Returns:
        Whether TensorFlow decomposes its values. It does not if it has cached another answer for
        the class before.
    """
    if not admit(cls):
        return False
    forget_answers()
    try:
        value = object.__new__(cls)
    except TypeError:  # it needs its own __new__
        return True
    return bool(_pywrap_utils.IsCompositeTensor(value))


def forget_answers() -> None:
    """Clears Python's caches of negative answers of abstract classes."""
    # Registering a class with any ABC clears them.
    _Forgetful.register(type("Anything", (), {}))


class _Forgetful(abc.ABC):  # noqa: B024 - a class to register others with
    """An ABC without instances."""


def admitting(abstract: Any, inherited: Callable[[type], bool]) -> Any:
    """Returns a `__subclasshook__` for an abstract class that accepts classes with the protocol.

    Python calls `__subclasshook__` once for each class and caches the answer, so later checks cost
    nothing. Subclasses of `abstract` inherit the hook, and it must not apply to them.

    Args:
        abstract: The abstract class.
        inherited: Its original hook, used for other classes.
    """

    def subclasshook(cls: type, subclass: type) -> bool:
        if cls is abstract and admit(subclass):
            return True
        return inherited(subclass) if cls is abstract else NotImplemented

    return classmethod(subclasshook)  # pyright: ignore[reportArgumentType]


class Extension(metaclass=Guarded):
    """An abstract class of all values that follow the protocol."""


Extension.__subclasshook__ = admitting(Extension, Extension.__subclasshook__)


def describes_extension(spec: object) -> bool:
    """Returns whether a spec describes values of a class that follows the protocol.

    >>> from extensor._tf._tf_protocol import describes_extension
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> describes_extension(xt.DenseStructuredTensorSpec([], {})), describes_extension(tf.int32)
    (True, False)
    """
    return describes(spec, Extension)
