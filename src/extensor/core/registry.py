"""Names under which specs are written into a SavedModel."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar, overload

import tensorflow as tf

from extensor._tf import registered_name, registered_spec, replace_registration
from extensor.errors import ProtocolError, RegistrationError

_SpecClass = TypeVar("_SpecClass", bound=type)

# TensorFlow's registry takes names of at least two words. A name without a dot, which is legal
# here, is kept there under this one, so the mapping is injective.
_DOTLESS = "extensor.dotless."
_NAME = re.compile(r"(\w+\.)*\w+")


@overload
def register_type_spec(cls: _SpecClass, name: str | None = None) -> _SpecClass: ...
@overload
def register_type_spec(
    cls: None = None, name: str | None = None
) -> Callable[[_SpecClass], _SpecClass]: ...
def register_type_spec(cls: Any = None, name: str | None = None) -> Any:
    """Registers a globally unique name for a TypeSpec, so that a SavedModel can hold it.

    The registry is TensorFlow's own. May be called, or stand above a class as a decorator, bare
    or with a name. Registering the same pair again changes nothing; a class that is defined anew
    under its old module and name (a notebook cell run again, a module reloaded) takes the place
    of the old one.

    Args:
        cls: A concrete TypeSpec class.
        name: Words of letters, digits and `_`, joined by dots. Default: the class's module and
            name. A name without a dot is kept in TensorFlow's registry with the prefix
            `extensor.dotless.`, because TensorFlow asks for two words.

    Returns:
        The class, unchanged.

    Raises:
        RegistrationError: If another TypeSpec has the name, or the class has another name (also
            a ValueError).
        ProtocolError: If `cls` is not a TypeSpec class (also a TypeError).

    >>> @xt.register_type_spec(name="cookbook.StepSpec")
    ... class StepSpec(xt.TypeSpec):
    ...     value_type = tuple
    ...     component_specs = (tf.TensorSpec([], tf.string),)
    ...
    ...     def to_components(self, value):
    ...         return value
    ...
    ...     def from_components(self, components):
    ...         return components
    ...
    ...     def serialize(self):
    ...         return ()
    >>> xt.register_type_spec(StepSpec, "cookbook.StepSpec") is StepSpec
    True
    """
    if cls is None:
        return lambda decorated: register_type_spec(decorated, name)
    if not (isinstance(cls, type) and issubclass(cls, tf.TypeSpec)):
        raise ProtocolError(
            path="register_type_spec",
            expected="a subclass of TypeSpec",
            received=repr(cls),
            mend="Register the spec of an extension type, not the type itself.",
        )
    default = f"{cls.__module__}.{cls.__name__}"
    _register(cls, default if name is None else name)
    return cls


def _register(cls: type, name: str) -> None:
    if not (isinstance(name, str) and _NAME.fullmatch(name)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RegistrationError(
            path=f"{cls.__qualname__}, registered as {name!r}",
            expected="words of letters, digits and _, joined by dots",
            received=repr(name),
            mend='Give a name: register_type_spec(cls, "my_project.MySpec").',
        )
    key = name if "." in name else _DOTLESS + name
    known = registered_name(cls)
    if known == key:
        if registered_spec(key) is cls:
            return
    elif known is not None:
        raise RegistrationError(
            path=f"{cls.__module__}.{cls.__qualname__}",
            expected=f"the name {known.removeprefix(_DOTLESS)!r}, under which it is registered",
            received=repr(name),
            mend="A TypeSpec has one name: drop one of the two registrations.",
        )
    holder = registered_spec(key)
    if holder is not None and not _redefines(cls, holder):
        raise RegistrationError(
            path=f"{cls.__module__}.{cls.__qualname__}",
            expected="a name that no other TypeSpec has",
            received=f"{name!r}, the name of {holder.__module__}.{holder.__qualname__}",
            mend="Register it under another name.",
        )
    replace_registration(cls, key)


def _redefines(cls: type, holder: type) -> bool:
    """Whether `cls` is what `holder` became when its definition ran again.

    Two classes of one function (`<locals>`) may well live side by side, so they do not count.
    """
    return (
        cls.__module__ == holder.__module__
        and cls.__qualname__ == holder.__qualname__
        and "<locals>" not in cls.__qualname__
    )
