"""Looking at classes of others without calling anything of theirs.

A metaclass may answer every name, raise what it likes, or leave its classes without a hash: what
`getattr(cls, name, None)`, `cls in a_set` and even `cls.__mro__` do is then up to somebody else.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

_mro: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
_namespace: Callable[[type], MappingProxyType[str, Any]] = vars(type)["__dict__"].__get__

raw_attribute: Callable[[type, str], Any] = type.__getattribute__
"""Returns an attribute of a class, or raises AttributeError. A metaclass's `__getattr__` is not
asked; a descriptor of the class may still raise what it likes."""


def lineage(cls: type) -> tuple[type, ...]:
    """Returns a class and its bases, in the order in which attributes are looked up in them."""
    return _mro(cls)


def namespace(cls: type) -> MappingProxyType[str, Any]:
    """Returns what a class itself defines."""
    return _namespace(cls)


def defines(cls: type, name: str) -> bool:
    """Returns whether a class, or a base of it, defines a name.

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
    """Returns an attribute of a class, or the default where `getattr` finds none or fails."""
    try:
        return raw_attribute(cls, name)
    except Exception:  # of a descriptor of theirs
        return default


def attribute(value: Any, name: str, default: Any = None) -> Any:
    """Returns an attribute of a value, or the default where `getattr` finds none or fails."""
    try:
        return getattr(value, name, default)
    except Exception:  # of a property or a __getattr__ of theirs
        return default
