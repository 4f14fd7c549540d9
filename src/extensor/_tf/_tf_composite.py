"""Which classes TensorFlow takes apart: composite tensors, and containers of its nest.

| name | why |
| --- | --- |
| `CompositeTensor` | TensorFlow asks `isinstance(value, CompositeTensor)` wherever it decides whether a value decomposes into tensors. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import abc
from collections.abc import Mapping, MappingView, Sequence
from typing import Any

from tensorflow.python.framework.composite_tensor import CompositeTensor

from extensor._lookup import class_attribute, defines
from extensor.errors import ProtocolError

PROTOCOL = "__tf_type_spec__"
"""The method that makes a class an extension type."""


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
        defines(cls, PROTOCOL)
        and not class_attribute(cls, "_is_protocol", False)
        and is_container(cls)
    )


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


class Guarded(abc.ABCMeta):
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


class Container(metaclass=Guarded):
    """Has the values whose classes are refused as its instances."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        return cls is Container and is_refused(subclass)
