"""How a class that defines `__tf_type_spec__` becomes what TensorFlow calls a composite tensor.

| name | why |
| --- | --- |
| `CompositeTensor` | TensorFlow asks `isinstance(value, CompositeTensor)` wherever it decides whether a value decomposes into tensors. It is an ABCMeta class, so a `__subclasshook__` lets classes in that have no base of ours. |
| `tf.types.experimental.SupportsTracingProtocol` (public; that it is asked first is not) | tf.function asks a value's class for this protocol before anything else asks for CompositeTensor. The same hook stands there, so that tf.function may be the first API that a class meets. |
| `_pywrap_utils.IsCompositeTensor` | TensorFlow's C++ asks `isinstance(value, CompositeTensor)` once for each class, and never again: whether it asked before a class got its spec from somebody else can only be asked here. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, MappingView, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.composite_tensor import CompositeTensor
from tensorflow.python.util import _pywrap_utils  # pyright: ignore[reportAttributeAccessIssue]

from extensor._lookup import class_attribute, defines, lineage, namespace
from extensor.errors import ProtocolError

_PROTOCOL = "__tf_type_spec__"


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


# What a class is given, save what it has. `_tf_alias` and `_tf_gradient` add to it.
MEMBERS: dict[str, Any] = {
    "_type_spec": _TypeSpecOfValue(),
    "_convert_variables_to_tensors": _convert_variables_to_tensors,
    "_shape_invariant_to_type_spec": _shape_invariant_to_type_spec,
    "_consumers": CompositeTensor._consumers,
}


ATTRS = "__attrs_attrs__"


def is_container(cls: type, attrs: bool = True) -> bool:
    """Returns whether TensorFlow's nest takes values of a class apart by itself.

    What it takes apart it does not ask for a spec, save where composite tensors are to be taken
    apart too. A class that is both is half the one and half the other.

    Args:
        cls: Any class.
        attrs: Whether an attrs class counts, which TensorFlow can be kept from taking apart.
    """
    if issubclass(cls, (str, bytes)):
        return False
    return (
        issubclass(cls, (Sequence, Mapping, MappingView))
        or all(hasattr(cls, name) for name in ("__tf_flatten__", "__tf_unflatten__"))
        # What `_tf_nest.composite_first` lets TensorFlow take for composite tensors has this base.
        or (attrs and hasattr(cls, ATTRS) and CompositeTensor not in cls.__mro__)
    )


def refused(cls: type) -> ProtocolError:
    """Returns the error for a class that would be an extension type and is a container."""
    return ProtocolError(
        path=f"{cls.__module__}.{cls.__qualname__}",
        expected="a class whose values are leaves to TensorFlow",
        received="a container, which tf.nest takes apart by itself",
        mend="Make a class of your own that holds the value.",
    )


def refuse(cls: Any, attrs: bool = True) -> None:
    """Raises unless a class may be an extension type: TensorFlow's nest takes no value apart."""
    if isinstance(cls, type) and is_container(cls, attrs):
        raise refused(cls)


def is_refused(cls: type) -> bool:
    """Returns whether a class follows the protocol and is a container."""
    return (
        defines(cls, _PROTOCOL)
        and not class_attribute(cls, "_is_protocol", False)
        and is_container(cls)
    )


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
    if not defines(cls, _PROTOCOL):
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
    # Python forgets for which classes it has answered no when an abstract class gets a new one.
    _Forgetful.register(type("Anything", (), {}))
    try:
        value = object.__new__(cls)
    except TypeError:  # only its own __new__ makes it
        return True
    return bool(_pywrap_utils.IsCompositeTensor(value))


class _Forgetful(abc.ABC):  # noqa: B024 - a class to register others with
    """Has no instance."""


def hook(abstract: type) -> None:
    """Lets `isinstance(value, abstract)` admit classes that follow the protocol.

    Python asks a class's `__subclasshook__` once per class met and remembers the answer, so this
    costs nothing afterwards. Subclasses of `abstract` inherit the hook and must not answer to it.
    """
    inherited: Callable[[type], Any] = abstract.__subclasshook__

    def subclasshook(cls: type, subclass: type) -> Any:
        if cls is abstract and admit(subclass):
            return True
        return inherited(subclass) if cls is abstract else NotImplemented

    abstract.__subclasshook__ = classmethod(subclasshook)  # type: ignore[assignment]


hook(CompositeTensor)
hook(tf.types.experimental.SupportsTracingProtocol)


def describes(spec: Any, kind: type) -> bool:
    """Returns whether a spec is of values of a class.

    Args:
        spec: Any TypeSpec. TensorFlow does not look at its `value_type` where we do, so that it may
            be no class, or not be there.
        kind: The class.
    """
    try:
        value_type = spec.value_type
        return isinstance(value_type, type) and issubclass(value_type, kind)
    except Exception:  # of a property or a metaclass that is not ours
        return False


class _Guarded(abc.ABCMeta):
    """Says no of what Python cannot ask: a class without a hash, or what is no class at all."""

    def __instancecheck__(cls, instance: Any) -> bool:
        try:
            return super().__instancecheck__(instance)
        except Exception:  # of a class of somebody else's
            return False

    def __subclasscheck__(cls, subclass: Any) -> bool:
        try:
            return super().__subclasscheck__(subclass)
        except Exception:  # as above
            return False


class Container(metaclass=_Guarded):
    """Has the values whose classes are refused as its instances."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        return cls is Container and is_refused(subclass)


class Extension(metaclass=_Guarded):
    """Has the values whose classes follow the protocol as its instances."""


hook(Extension)


def describes_extension(spec: Any) -> bool:
    """Returns whether a spec is of values of a class that follows the protocol.

    >>> from extensor._tf._tf_protocol import describes_extension
    >>> describes_extension(xt.DenseStructuredTensorSpec([], {})), describes_extension(tf.int32)
    (True, False)
    """
    return describes(spec, Extension)
