"""Registers TypeSpecs: under the names in SavedModels, and for classes that cannot be edited."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

import tensorflow as tf

from extensor._lookup import full_name
from extensor._tf import (
    DOTLESS,
    CompositeTensor,
    admit_late,
    refuse,
    registered_name,
    registered_spec,
    registered_specs,
    replace_registration,
)
from extensor._typing import Value
from extensor.errors import ProtocolError, RegistrationError

_SpecClass = TypeVar("_SpecClass", bound=type)
_Class = TypeVar("_Class", bound=type)

_NAME = re.compile(r"(\w+\.)*\w+")


@overload
def register_type_spec(type_spec_subclass: _SpecClass, name: str | None = None) -> _SpecClass: ...
@overload
def register_type_spec(
    type_spec_subclass: None = None, name: str | None = None
) -> Callable[[_SpecClass], _SpecClass]: ...
def register_type_spec(type_spec_subclass: object = None, name: str | None = None) -> Any:
    """Registers a globally unique name for a TypeSpec, so that it can be stored in a SavedModel.

    The registry is TensorFlow's own. Call the function, or use it as a class decorator, with or
    without a name. Registering the same pair again changes nothing. A class that is defined again
    under its old module and name (a notebook cell that runs again, a reloaded module) replaces
    the old one.

    Args:
        type_spec_subclass: A concrete TypeSpec class.
        name: Words of letters, digits and `_`, joined by dots. Default: the class's module and
            name. A name without a dot is kept in TensorFlow's registry with the prefix
            `extensor.dotless.`, because TensorFlow requires two words.

    Returns:
        The class, unchanged.

    Raises:
        RegistrationError: If another TypeSpec has the name, or the class has another name (also
            a ValueError).
        ProtocolError: If the class is not a TypeSpec, or is abstract (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
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
    cls = type_spec_subclass
    if cls is None:
        return lambda decorated: register_type_spec(decorated, name)
    if not (isinstance(cls, type) and issubclass(cls, tf.TypeSpec)):
        fix = "Register the spec of an extension type, not the type itself."
        raise ProtocolError("register_type_spec", "a subclass of TypeSpec", repr(cls), fix)
    _expect_concrete(cls)
    default = f"{cls.__module__}.{cls.__name__}"
    _register(cls, default if name is None else name)
    return cls


def _expect_concrete(cls: type) -> None:
    if inspect.isabstract(cls):
        received = f"a class without {', '.join(sorted(cls.__abstractmethods__))}"
        fix = "Define these members, or register the subclasses instead."
        raise ProtocolError(full_name(cls), "a concrete TypeSpec", received, fix)


def registered_types() -> dict[str, type]:
    """Returns all registered TypeSpec classes, by name.

    These are your own classes, those of imported libraries, extensor's and TensorFlow's. TypeSpecs
    without a registered name are not included.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> registered_types = xt.registered_types()
    >>> registered_types["tf.RaggedTensorSpec"] is tf.RaggedTensorSpec
    True
    >>> [name for name in registered_types if name.endswith("DenseStructuredTensorSpec")]
    ['extensor.DenseStructuredTensorSpec']
    """
    named = {name.removeprefix(DOTLESS): cls for name, cls in registered_specs().items()}
    return dict(sorted(named.items()))


_PROTOCOL = "__tf_type_spec__"
_lock = threading.RLock()


def register_extension_type(cls: _Class, spec_class: type) -> _Class:
    """Makes a class that you cannot edit an extension type, with a TypeSpec that you write for it.

    The class gets a method `__tf_type_spec__`, which returns `spec_class.from_value(self)`. The
    spec is registered too, under its module and name if it has no name yet.

    Warning:
        Prefer a class of your own that holds the value, or ask the author of the class to add
        `__tf_type_spec__`, which needs no import of extensor. The values must be immutable, and
        all data that changes from run to run must be in tensors. A class has one spec in a
        process: two libraries that register different specs for it cannot be used together, and a
        model that was saved with one spec does not load with the other.

    Args:
        cls: Any class on which attributes can be set. Register it right after you import it,
            before TensorFlow gets a value of it.
        spec_class: A TypeSpec class whose class method `from_value(value)` returns the spec of a
            value. It applies to this class only: register each subclass separately.

    Returns:
        The class.

    Raises:
        RegistrationError: If the class has another spec, or TensorFlow already got a value of it
            (also a ValueError).
        ProtocolError: If one of the two classes cannot be used (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> class Tally:  # of another library
    ...     def __init__(self, count):
    ...         self.count = count
    >>> class TallySpec(xt.TypeSpec):
    ...     value_type = Tally
    ...     component_specs = tf.TensorSpec([], tf.int32)
    ...
    ...     @classmethod
    ...     def from_value(cls, value):
    ...         return cls()
    ...
    ...     def to_components(self, value):
    ...         return value.count
    ...
    ...     def from_components(self, components):
    ...         return Tally(components)
    ...
    ...     def serialize(self):
    ...         return ()
    >>> Tally = xt.register_extension_type(Tally, TallySpec)
    >>> add = tf.function(lambda tally: Tally(tally.count + 1))
    >>> add(Tally(tf.constant(2))).count.numpy().item()
    3
    """
    _expect_spec_class(cls, spec_class)
    _expect_leaf_type(cls)
    with _lock:
        given = getattr(cls, _PROTOCOL, None)
        holder = getattr(given, "spec_class", None)
        own = _PROTOCOL in vars(cls)
        if own and holder is spec_class:
            return cls
        if given is not None and (holder is None or (own and not redefines(spec_class, holder))):
            expected = "a class without a spec"
            if holder is not None:
                expected = f"the spec that is registered for it, {full_name(holder)}"
            received = f"a class with {_PROTOCOL}" if holder is None else full_name(spec_class)
            fix = "Use that spec, or make a class of your own that holds the value."
            raise RegistrationError(full_name(cls), expected, received, fix)
        named = inspect.getattr_static(spec_class, "value_type", None)
        if isinstance(named, type):
            _expect_same(cls, spec_class, named)
        if registered_name(spec_class) is None:
            register_type_spec(spec_class)
        _add_type_spec(cls, spec_class)
    return cls


def _add_type_spec(cls: Any, spec_class: Any) -> None:
    """Adds `__tf_type_spec__` to a class; if it raises, the class is unchanged."""

    def type_spec(self: Value) -> tf.TypeSpec:
        if type(self) is not cls:
            expected = f"a registered class, because its base {full_name(cls)} is registered"
            fix = f"Call xt.register_extension_type({type(self).__name__}, its own TypeSpec)."
            raise ProtocolError(full_name(type(self)), expected, "an unregistered subclass", fix)
        spec = spec_class.from_value(self)
        _expect_same(cls, type(spec), spec.value_type)
        return spec

    type_spec.spec_class = spec_class  # pyright: ignore[reportFunctionMemberAccess]
    before = dict(vars(cls))
    try:
        setattr(cls, _PROTOCOL, type_spec)
    except (TypeError, AttributeError) as error:
        at = full_name(cls)
        received = "a class of a C extension, or of a metaclass that forbids them"
        fix = "Make a class of your own that holds the value."
        raise ProtocolError(at, "a class on which attributes can be set", received, fix) from error
    if _PROTOCOL not in before and not admit_late(cls):
        for name in vars(cls).keys() - before.keys():
            delattr(cls, name)
        expected = "a class of which TensorFlow has seen no value yet"
        received = "a class that TensorFlow has cached as a plain Python object"
        fix = "Register the class right after importing it, before TensorFlow gets a value."
        raise RegistrationError(full_name(cls), expected, received, fix)


def _expect_same(cls: type, spec_class: type, value_type: object) -> None:
    """Raises unless a spec class has this class as its `value_type`."""
    if value_type is not cls:
        received = full_name(value_type) if isinstance(value_type, type) else repr(value_type)
        fix = "Write a TypeSpec for this class, whose from_components returns its values."
        raise ProtocolError(f"{full_name(spec_class)}.value_type", full_name(cls), received, fix)


def _expect_spec_class(cls: object, spec_class: object) -> None:
    if not (isinstance(spec_class, type) and issubclass(spec_class, tf.TypeSpec)):
        expected = "a class and a subclass of TypeSpec"
        fix = "Write a TypeSpec for the class: see xt.ExtensionType."
        raise ProtocolError("register_extension_type", expected, f"{cls!r} and {spec_class!r}", fix)
    _expect_concrete(spec_class)
    if not callable(getattr(spec_class, "from_value", None)):
        at = f"{full_name(spec_class)}.from_value"
        expected = "a class method that returns the spec of a value"
        fix = "Add `@classmethod def from_value(cls, value)`."
        raise ProtocolError(at, expected, "a class without from_value", fix)


def _expect_leaf_type(cls: object) -> None:
    """Raises unless values of a class are plain leaves to TensorFlow."""
    if not isinstance(cls, type):
        received = repr(cls)
    elif issubclass(cls, (tf.Tensor, tf.Variable, tf.TypeSpec)) or (
        issubclass(cls, CompositeTensor) and not hasattr(cls, _PROTOCOL)
    ):
        received = "a class of tensors, variables, TypeSpecs or composite tensors"
    else:
        refuse(cls)
        return
    at = full_name(cls) if isinstance(cls, type) else "register_extension_type"
    fix = "Make a class of your own that holds the value."
    raise ProtocolError(at, "a class whose values are leaves to TensorFlow", received, fix)


def _register(cls: type, name: str) -> None:
    if not (isinstance(name, str) and _NAME.fullmatch(name)):  # pyright: ignore[reportUnnecessaryIsInstance]
        at = f"{cls.__qualname__}, registered as {name!r}"
        expected = "words of letters, digits and _, joined by dots"
        fix = 'Give a name: register_type_spec(cls, "my_project.MySpec").'
        raise RegistrationError(at, expected, repr(name), fix)
    key = name if "." in name else DOTLESS + name
    known = registered_name(cls)
    if known == key:
        if registered_spec(key) is cls:
            return
    elif known is not None:
        expected = f"the name {known.removeprefix(DOTLESS)!r}, under which it is registered"
        fix = "A TypeSpec has one name: remove one of the two registrations."
        raise RegistrationError(full_name(cls), expected, repr(name), fix)
    holder = registered_spec(key)
    if holder is not None and not redefines(cls, holder):
        received = f"{name!r}, the name of {full_name(holder)}"
        fix = "Register it under another name."
        raise RegistrationError(full_name(cls), "a name that no other TypeSpec has", received, fix)
    replace_registration(cls, key)


def redefines(cls: type, holder: type) -> bool:
    """Returns whether `cls` comes from the same definition as `holder`, which ran again.

    False for classes defined in a function (`<locals>`), because several of them may be in use.
    """
    return (
        cls.__module__ == holder.__module__
        and cls.__qualname__ == holder.__qualname__
        and "<locals>" not in cls.__qualname__
    )
