"""Attribute lookup on foreign classes without running their code.

A metaclass may return a value for every name, raise any error, or make its classes unhashable. So
`getattr(cls, name, None)`, `cls in a_set` and even `cls.__mro__` may run foreign code.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

_mro: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
_namespace: Callable[[type], MappingProxyType[str, Any]] = vars(type)["__dict__"].__get__

raw_attribute: Callable[[type, str], Any] = type.__getattribute__
"""Returns an attribute of a class, or raises AttributeError. Does not call a `__getattr__` of the
metaclass. A descriptor of the class may still raise any error."""


def lineage(cls: type) -> tuple[type, ...]:
    """Returns a class and its base classes in the order of attribute lookup."""
    return _mro(cls)


def namespace(cls: type) -> MappingProxyType[str, Any]:
    """Returns the attributes that a class itself defines, without those of its base classes."""
    return _namespace(cls)


def full_name(cls: type) -> str:
    """Returns the module and the name of a class, for errors."""
    return f"{cls.__module__}.{cls.__qualname__}"


def defines(cls: type, name: str) -> bool:
    """Returns whether a class or one of its base classes defines a name.

    >>> from extensor._lookup import defines
    >>> class AnswersAll(type):
    ...     def __getattr__(cls, name):
    ...         return 1
    >>> class Odd(metaclass=AnswersAll):
    ...     here = True
    >>> defines(Odd, "here"), defines(Odd, "there"), hasattr(Odd, "there")
    (True, False, True)
    """
    return any(name in _namespace(base) for base in _mro(cls))


def class_attribute(cls: type, name: str, default: Any = None) -> Any:
    """Returns an attribute of a class, or the default if it does not exist or its lookup fails."""
    try:
        return raw_attribute(cls, name)
    except Exception:  # raised by a descriptor of the class
        return default
