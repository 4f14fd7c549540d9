"""How a class that defines `__tf_type_spec__` becomes what TensorFlow calls a composite tensor.

| name | why |
| --- | --- |
| `_pywrap_utils.IsCompositeTensor` | TensorFlow's C++ asks `isinstance(value, CompositeTensor)` once for each class, and never again: whether it asked before a class got its spec from somebody else can only be asked here. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.util import _pywrap_utils  # pyright: ignore[reportAttributeAccessIssue]

from extensor._lookup import class_attribute, defines, lineage, namespace
from extensor._tf._tf_alias import tracing_type
from extensor._tf._tf_composite import (
    PROTOCOL,
    CompositeTensor,
    Guarded,
    describes,
    is_container,
    refused,
)
from extensor._tf._tf_gradient import GRADIENT


class _TypeSpecOfValue:
    """Gives TensorFlow `value._type_spec`, which it reads where the protocol has a method.

    Not a data descriptor: a class that keeps an attribute of this name in its instances keeps it.
    """

    def __get__(self, value: Any, owner: type | None = None) -> Any:
        return self if value is None else value.__tf_type_spec__()


def _convert_variables_to_tensors(self: Any) -> Any:
    """Returns the value with variables read, where its spec speaks of a plain tensor."""
    spec = self.__tf_type_spec__()
    read_any = False

    def read(component_spec: Any, component: Any) -> Any:
        nonlocal read_any
        if isinstance(component, tf.Variable) and isinstance(component_spec, tf.TensorSpec):
            read_any = True
            return tf.convert_to_tensor(component)
        return component

    components = tf.nest.map_structure(read, spec._component_specs, spec._to_components(self))
    return spec._from_components(components) if read_any else self


def _shape_invariant_to_type_spec(self: Any, shape: Any) -> Any:
    if shape is None:
        return self.__tf_type_spec__()
    raise NotImplementedError(
        f"{type(self).__name__}: expected a TypeSpec as shape invariant, got a shape. "
        "Give tf.while_loop a TypeSpec for this loop variable."
    )


# What a class is given, save what it has.
MEMBERS: dict[str, Any] = {
    "__composite_gradient__": GRADIENT,
    "__tf_tracing_type__": tracing_type,
    "_type_spec": _TypeSpecOfValue(),
    "_convert_variables_to_tensors": _convert_variables_to_tensors,
    "_shape_invariant_to_type_spec": _shape_invariant_to_type_spec,
    "_consumers": CompositeTensor._consumers,
}


def own_spec(value: Any) -> Any:
    """Returns the spec of any composite tensor, TensorFlow's or ours."""
    return value._type_spec


def variables_read(value: Any) -> Any:
    """Returns any composite tensor with its variables read."""
    return value._convert_variables_to_tensors()


_LEAVES_VARIABLES = (CompositeTensor._convert_variables_to_tensors, _convert_variables_to_tensors)
"""What a class does about its variables if its author wrote nothing about them."""


def equip(cls: Any, spec_of: Callable[[Any], Any], read: Callable[[Any], Any]) -> None:
    """Gives a class two members that TensorFlow asks for.

    Args:
        cls: The class.
        spec_of: Returns the spec of a value.
        read: Returns a value with its variables read, unless the class has a way of its own.
    """
    cls._type_spec = property(spec_of)
    if cls._convert_variables_to_tensors in _LEAVES_VARIABLES:
        cls._convert_variables_to_tensors = read


class _Refused:
    """An attribute of a container that TensorFlow asks of composite tensors."""

    def __get__(self, value: Any, owner: type | None = None) -> Any:
        if value is None:
            return self
        raise refused(type(value))


def admit(cls: type) -> bool:
    """Makes a class that defines `__tf_type_spec__` what TensorFlow means by a composite tensor.

    Args:
        cls: Any class.

    Returns:
        Whether the class follows the protocol.
    """
    if not defines(cls, PROTOCOL):
        return False
    # A protocol has no values of its own, and on Python 3.10 and 3.11 it would ask of every class
    # what is added to it.
    if class_attribute(cls, "_is_protocol", False):
        return False
    if is_container(cls):
        # Not here: TensorFlow's C++ prints what isinstance raises, and goes on.
        for name in MEMBERS:
            setattr(cls, name, _Refused())
        return True
    bases = [base for base in lineage(cls) if base is not CompositeTensor]
    for name, member in MEMBERS.items():
        # What CompositeTensor itself defines is abstract, or as good as that.
        if not any(name in namespace(base) for base in bases):
            setattr(cls, name, member)
    return True


def admit_late(cls: type) -> bool:
    """Admits a class that has come by its `__tf_type_spec__` after its definition.

    Args:
        cls: A class that defines it by now.

    Returns:
        Whether TensorFlow takes its values apart. It does not if it has met the class before.
    """
    if not admit(cls):
        return False
    forget_answers()
    try:
        value = object.__new__(cls)
    except TypeError:  # only its own __new__ makes it
        return True
    return bool(_pywrap_utils.IsCompositeTensor(value))


def forget_answers() -> None:
    """Lets Python ask anew which classes are of an abstract class that it has answered no for."""
    # It forgets when any abstract class gets another one.
    _Forgetful.register(type("Anything", (), {}))


class _Forgetful(abc.ABC):  # noqa: B024 - a class to register others with
    """Has no instance."""


def admitting(abstract: Any, inherited: Callable[[type], Any]) -> Any:
    """Returns a `__subclasshook__` by which an abstract class admits what follows the protocol.

    Python asks a class's `__subclasshook__` once per class met and remembers the answer, so this
    costs nothing afterwards. Subclasses of `abstract` inherit the hook and must not answer to it.

    Args:
        abstract: The class.
        inherited: What it answers of other classes.
    """

    def subclasshook(cls: type, subclass: type) -> Any:
        if cls is abstract and admit(subclass):
            return True
        return inherited(subclass) if cls is abstract else NotImplemented

    return classmethod(subclasshook)  # pyright: ignore[reportArgumentType]


class Extension(metaclass=Guarded):
    """Has the values whose classes follow the protocol as its instances."""


Extension.__subclasshook__ = admitting(Extension, Extension.__subclasshook__)


def describes_extension(spec: Any) -> bool:
    """Returns whether a spec is of values of a class that follows the protocol.

    >>> describes_extension(xt.DenseStructuredTensorSpec([], {})), describes_extension(tf.int32)
    (True, False)
    """
    return describes(spec, Extension)
