"""Which classes TensorFlow decomposes: composite tensors, and containers of tf.nest.

| name | why |
| --- | --- |
| `CompositeTensor` | TensorFlow checks `isinstance(value, CompositeTensor)` to decide whether a value decomposes into tensors. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import abc
from collections.abc import Mapping, MappingView, Sequence

import tensorflow as tf
from tensorflow.python.framework.composite_tensor import CompositeTensor

from extensor._lookup import class_attribute, defines, full_name
from extensor._typing import Value
from extensor.errors import ProtocolError

_TypeSpec = tf.TypeSpec

PROTOCOL = "__tf_type_spec__"
"""The method that makes a class an extension type."""


def declared_spec(value: Value) -> tf.TypeSpec:
    """Returns the spec of an extension value, or raises ProtocolError if it is none of its own."""
    spec = value.__tf_type_spec__()
    # tf.TypeSpec is an abstract class: isinstance would call Python, in each call of tf.nest.
    if _TypeSpec in type(spec).__mro__ and type(spec) not in _SPECS_OF_TENSORS:
        return spec
    received = f"the class {spec.__qualname__}" if isinstance(spec, type) else repr(spec)
    fix = "Return a spec that describes the value. See xt.ExtensionType."
    raise ProtocolError(
        f"{type(value).__qualname__}.{PROTOCOL}", "a TypeSpec of its own", received, fix
    )


_SPECS_OF_TENSORS = {tf.TensorSpec, tf.RaggedTensorSpec, tf.SparseTensorSpec, tf.IndexedSlicesSpec}
"""Specs that decompose TensorFlow's values only."""


ATTRS = "__attrs_attrs__"


def is_container(cls: type, attrs: bool = True) -> bool:
    """Returns whether tf.nest treats values of a class as containers.

    tf.nest uses the spec of such a value only with `expand_composites`, so a class that is both a
    container and a composite tensor would behave inconsistently.

    Args:
        cls: Any class.
        attrs: Whether an attrs class counts; `_tf_nest.composite_first` makes it a leaf.
    """
    if issubclass(cls, (str, bytes)):
        return False
    return (
        issubclass(cls, (Sequence, Mapping, MappingView))
        or all(hasattr(cls, name) for name in ("__tf_flatten__", "__tf_unflatten__"))
        # The classes of `_tf_nest.composite_first` have CompositeTensor as a base.
        or (attrs and hasattr(cls, ATTRS) and CompositeTensor not in cls.__mro__)
    )


def refusal(cls: type) -> ProtocolError:
    """Returns the error for an extension type that is a container."""
    at = full_name(cls)
    expected = "a class whose values are leaves of tf.nest"
    fix = "Write a class that has the container as a field."
    return ProtocolError(at, expected, "a container class, which tf.nest flattens", fix)


def refuse(cls: object, attrs: bool = True) -> None:
    """Raises ProtocolError if a class is a container of tf.nest."""
    if isinstance(cls, type) and is_container(cls, attrs):
        raise refusal(cls)


def is_refused(cls: type) -> bool:
    """Returns whether a class follows the protocol and is a container."""
    return (
        defines(cls, PROTOCOL)
        and not class_attribute(cls, "_is_protocol", False)
        and is_container(cls)
    )


def describes(spec: Value, kind: type) -> bool:
    """Returns whether a spec describes values of a class.

    Args:
        spec: Any TypeSpec. Its `value_type` may be missing or not be a class.
        kind: The class.
    """
    try:
        value_type = spec.value_type
        return isinstance(value_type, type) and issubclass(value_type, kind)
    except Exception:  # raised by a property or metaclass of another library
        return False


class Guarded(abc.ABCMeta):
    """A metaclass whose isinstance and issubclass return False instead of raising an error."""

    def __instancecheck__(cls, instance: object) -> bool:
        try:
            return super().__instancecheck__(instance)
        except Exception:  # such as a class without a hash
            return False

    def __subclasscheck__(cls, subclass: type) -> bool:
        try:
            return super().__subclasscheck__(subclass)
        except Exception:  # as above
            return False


class Container(metaclass=Guarded):
    """An abstract class of all values that follow the protocol but are containers."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> bool:
        return cls is Container and is_refused(subclass)
