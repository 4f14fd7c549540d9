"""Constructors: the arguments that they take, and where a value stores these arguments."""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._lookup import defines
from extensor._tf._tf_probability import signature_of
from extensor._typing import Nest, Value
from extensor.errors import ArgumentError

_MISSING = object()

_STATIC_NAMES = (
    "_composite_tensor_shape_parameters",
    "_composite_tensor_shape_params",  # in TensorFlow Probability's own classes
    "_composite_tensor_prefer_static_fields",  # in TensorFlow's linear operators
)
"""Attributes with the names of arguments that are static data if their values are known."""


class Constructor:
    """The constructor of a class and its arguments.

    Args:
        cls: Any class.
        omitted: Names of arguments that keep their defaults.
        ignored: Names of arguments that keep their defaults if they are among `**kwargs`.

    Raises:
        ArgumentError: If the names of arguments are unknown, or an omitted argument has no default
            (also a TypeError and a ValueError). A class with an attribute `parameters` may have
            `*args` and `**kwargs`: names are then read from each value.
    """

    def __init__(self, cls: type, omitted: Collection[str], ignored: Collection[str] = ()) -> None:
        made: Any = cls
        self.init = made.__init__
        """The `__init__` of the class; another one later means that the class was changed."""
        by_new = made.__init__ is object.__init__ and made.__new__ is not object.__new__
        self._function: Any = made.__new__ if by_new else made.__init__
        self._cls = cls
        self._refused: str | None = None  # the name of *args, which raises for each value
        self._keywords: str | None = None  # the name of **kwargs
        self.defaults: dict[str, Any] = {}
        """The default values of arguments, by name."""
        names: list[str] = []
        positional: list[str] = []
        for parameter in self._parameters():
            name = parameter.name
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                if name in omitted:
                    continue
                is_positional = parameter.kind is parameter.VAR_POSITIONAL
                if not hasattr(cls, "parameters"):
                    raise self._nameless(f"*{name}" if is_positional else f"**{name}")
                if is_positional:
                    self._refused = f"*{name}"
                else:
                    self._keywords = name
                    self.defaults[name] = {}
                    names.append(name)
                continue
            if name in omitted:
                if parameter.default is parameter.empty:
                    at = f"{cls.__qualname__}.{name}"
                    expected = "a default, because this argument is omitted from the spec"
                    fix = "Add a default, or remove the argument from omit_kwargs."
                    raise ArgumentError(at, expected, "a required argument", fix)
                continue
            names.append(name)
            if parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(name)
            if parameter.default is not parameter.empty:
                self.defaults[name] = parameter.default
        self.names = tuple(names)
        """The arguments that are not omitted, in their order."""
        self._of_class = frozenset(name for name in names if _is_of_class(cls, name))
        self._static_names = [name for name in _STATIC_NAMES if defines(cls, name)]
        self._places = [(name, f"_{name}") for name in names if name != self._keywords]
        self._not_keywords = {*names, *omitted, *ignored}
        self._positional = tuple(positional)

    def _nameless(self, parameter: str) -> ArgumentError:
        at = f"{self._cls.__qualname__}.{self._function.__name__}"
        fix = (
            "*args and **kwargs are not supported: name each argument, or, for **kwargs, "
            "add to the class a property `parameters` that returns a dict of all arguments."
        )
        return ArgumentError(at, "a constructor with named arguments only", parameter, fix)

    def _parameters(self) -> list[inspect.Parameter]:
        if self._function in (object.__init__, object.__new__):
            return []
        try:
            known = signature_of(self._function) or inspect.signature(self._function)
            return list(known.parameters.values())[1:]
        except (TypeError, ValueError) as error:
            at = f"{self._cls.__qualname__}.{self._function.__name__}"
            expected = "a constructor with a readable signature"
            fix = "Derive a class that defines __init__."
            raise ArgumentError(at, expected, f"{type(error).__name__}: {error}", fix) from error

    def arguments_of(self, value: object) -> dict[str, Nest]:
        """Returns the constructor arguments of a value, by name.

        Raises:
            ArgumentError: If an argument is not found (also a TypeError and a ValueError).
        """
        if self._refused is not None:
            raise self._nameless(self._refused)
        found: dict[str, Nest] = {}
        for name, private in self._places:
            argument = getattr(value, name, _MISSING)
            if argument is _MISSING:
                argument = getattr(value, private, _MISSING)
            if argument is _MISSING or type(argument) is types.MethodType or name in self._of_class:
                argument = self.argument_of(value, name)  # slower, but also handles methods
            found[name] = argument
        if self._keywords is not None:
            found[self._keywords] = self._keywords_of(value)
        return found

    def argument_of(self, value: object, name: str) -> Nest:
        """Returns one argument of a value, or the dict of its `**kwargs`."""
        if name == self._keywords:
            return self._keywords_of(value)
        return argument_of(value, name, of_class=name in self._of_class)

    def _keywords_of(self, value: object) -> dict[str, Nest]:
        """Returns the `**kwargs` of a value; their names are in `value.parameters`."""
        parameters = getattr(value, "parameters", None)
        if not isinstance(parameters, Mapping):
            raise self._nameless(f"**{self._keywords}")
        # `parameters = dict(locals())` has all of `**kwargs` under one key.
        given = parameters.get(self._keywords)
        names: Any = given if isinstance(given, Mapping) else parameters
        return {
            name: argument_of(value, name, names[name])
            for name in names
            if name not in self._not_keywords
        }

    def static_names(self, value: object) -> Collection[str]:
        """Returns the names of arguments that are static data if their values are known."""
        own = getattr(value, "__dict__", ())
        for attribute in _STATIC_NAMES:
            # Not an attribute that the class computes for any name.
            if attribute not in self._static_names and attribute not in own:
                continue
            try:
                names = getattr(value, attribute, None)
            except NotImplementedError:  # a distribution that does not annotate its parameters
                continue
            if names is not None:
                return (names,) if isinstance(names, str) else names
        return ()

    def call(self, arguments: dict[str, Nest]) -> Value:
        """Returns a new value, constructed with the given arguments."""
        if self._keywords is not None:
            arguments |= arguments.pop(self._keywords)
        if not self._positional:
            return self._cls(**arguments)
        return self._cls(*[arguments.pop(name) for name in self._positional], **arguments)


_METHODS = (types.FunctionType, classmethod, staticmethod)


def _is_of_class(cls: type, name: str) -> bool:
    """Returns whether a name is that of a method or a constant of a class, not of its values."""
    found = inspect.getattr_static(cls, name, _MISSING)
    return found is not _MISSING and (
        isinstance(found, _METHODS) or not hasattr(type(found), "__get__")
    )


def argument_of(value: object, name: str, given: Nest = _MISSING, of_class: bool = False) -> Nest:
    """Returns a constructor argument of a value.

    The argument `x` is read from the attribute `x`, else `_x`, else `parameters["x"]`. Methods are
    skipped, and a constant of the class is the last choice.

    Args:
        value: A value.
        name: The name of the argument.
        given: The result if the argument is not found.
        of_class: Whether the class has a method or a constant of this name.

    Raises:
        ArgumentError: If the argument is not found (also a TypeError and a ValueError).
    """
    public = getattr(value, name, _MISSING)
    if of_class and name not in getattr(value, "__dict__", ()):
        if given is _MISSING and not (
            isinstance(inspect.getattr_static(type(value), name, None), _METHODS)
            or _is_init_only(type(value), name)
        ):
            given = public
    elif public is not _MISSING and not _is_own_method(public, value):
        return public
    private = getattr(value, "_" + name, _MISSING)
    if private is not _MISSING and not _is_own_method(private, value):
        return private
    parameters = getattr(value, "parameters", None)
    if isinstance(parameters, Mapping) and name in parameters:
        return parameters[name]
    if given is not _MISSING:
        return given
    cls = type(value).__qualname__
    attribute = "an attribute" if public is _MISSING else "an attribute (other than a method)"
    expected = "the value of this constructor argument"
    received = (
        f"a value without {attribute} `{name}`, an attribute `_{name}`, or a key "
        f"{name!r} in `parameters`"
    )
    init = "__post_init__" if dataclasses.is_dataclass(value) else "__init__"
    fix = (
        f"Store it in {init}: self._{name} = {name}. Or, if it has a default, omit it: "
        f"omit_kwargs=({name!r},)."
    )
    raise ArgumentError(f"{cls}.{name}", expected, received, fix)


def _is_init_only(cls: type, name: str) -> bool:
    """Returns whether a name is an InitVar, of which a dataclass has the default, but no value."""
    fields = getattr(cls, "__dataclass_fields__", ())
    return name in fields and all(field.name != name for field in dataclasses.fields(cls))


def _is_own_method(found: object, value: object) -> bool:
    return type(found) is types.MethodType and found.__self__ is value


def static_value(tensor: Nest) -> Nest:
    """Returns the static value of a tensor as an array, or the tensor if its value is unknown.

    A scalar becomes an array of rank 0, which keeps the dtype.
    """
    known = tf.get_static_value(tensor) if isinstance(tensor, tf.Tensor) else None
    return tensor if known is None else np.asarray(known)
