"""Constructors: which arguments they take, and where a value keeps them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._tf._tf_probability import signature_of
from extensor.errors import ArgumentError

_MISSING = object()

_STATIC_NAMES = (
    "_composite_tensor_shape_parameters",
    "_composite_tensor_shape_params",  # as TensorFlow Probability's own classes have it
    "_composite_tensor_prefer_static_fields",  # as TensorFlow's linear operators have it
)
"""Attributes that name the arguments to keep static where their values are known."""


class Constructor:
    """How a class makes its values: the arguments that it takes.

    Args:
        cls: Any class.
        omitted: Names of arguments that are left to their defaults.
        ignored: Names of arguments that are left to their defaults if they are among `**kwargs`.

    Raises:
        ArgumentError: If the arguments are not known by name, or one that is omitted has no
            default (also a TypeError and a ValueError). Where the class has an attribute
            `parameters`, its values may know the names, so they are asked.
    """

    def __init__(self, cls: type, omitted: Collection[str], ignored: Collection[str] = ()) -> None:
        made: Any = cls
        self.init = made.__init__
        """What to ask whether the class has been given another constructor since."""
        by_new = made.__init__ is object.__init__ and made.__new__ is not object.__new__
        self._function: Any = made.__new__ if by_new else made.__init__
        self._cls = cls
        self._refused: str | None = None  # *args, if they are in the way
        self._keywords: str | None = None  # the name of **kwargs
        self.defaults: dict[str, Any] = {}
        """What the arguments with a default are if they are not given."""
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
                    raise ArgumentError(
                        path=f"{cls.__qualname__}.{name}",
                        expected="a default, because this argument is omitted from the spec",
                        received="none",
                        mend="Give it one, or take it out of omit_kwargs.",
                    )
                continue
            names.append(name)
            if parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(name)
            if parameter.default is not parameter.empty:
                self.defaults[name] = parameter.default
        self.names = tuple(names)
        """The arguments that are not omitted, in their order."""
        self._places = [(name, f"_{name}") for name in names if name != self._keywords]
        self._not_keywords = {*names, *omitted, *ignored}
        self._positional = tuple(positional)

    def _nameless(self, parameter: str) -> ArgumentError:
        return ArgumentError(
            path=f"{self._cls.__qualname__}.{self._function.__name__}",
            expected="arguments that each have a name",
            received=f"{parameter}: *args and **kwargs are not supported",
            mend="Write out the arguments that the constructor takes, or, for **kwargs, give the "
            "class a property `parameters` that returns a dict of all arguments.",
        )

    def _parameters(self) -> list[inspect.Parameter]:
        if self._function in (object.__init__, object.__new__):
            return []
        try:
            known = signature_of(self._function) or inspect.signature(self._function)
            return list(known.parameters.values())[1:]
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                path=f"{self._cls.__qualname__}.{self._function.__name__}",
                expected="a constructor whose signature is known",
                received=f"{type(error).__name__}: {error}",
                mend="Derive a class with an __init__ of its own.",
            ) from error

    def arguments_of(self, value: Any) -> dict[str, Any]:
        """Returns what a value was given for each argument, by name.

        Raises:
            ArgumentError: If one is found nowhere (also a TypeError and a ValueError).
        """
        if self._refused is not None:
            raise self._nameless(self._refused)
        found: dict[str, Any] = {}
        for name, private in self._places:
            argument = getattr(value, name, _MISSING)
            if argument is _MISSING:
                argument = getattr(value, private, _MISSING)
            if argument is _MISSING or type(argument) is types.MethodType:
                argument = argument_of(value, name)  # which takes longer
            found[name] = argument
        if self._keywords is not None:
            found[self._keywords] = self._keywords_of(value)
        return found

    def argument_of(self, value: Any, name: str) -> Any:
        """Returns what a value was given for one argument, or for all those of `**kwargs`."""
        return self._keywords_of(value) if name == self._keywords else argument_of(value, name)

    def _keywords_of(self, value: Any) -> dict[str, Any]:
        """Returns the arguments among `**kwargs`, which `parameters` of the value names."""
        parameters = getattr(value, "parameters", None)
        if not isinstance(parameters, Mapping):
            raise self._nameless(f"**{self._keywords}")
        # `parameters = dict(locals())` has them all under one name.
        given = parameters.get(self._keywords)
        names: Any = given if isinstance(given, Mapping) else parameters
        return {
            name: argument_of(value, name, names[name])
            for name in names
            if name not in self._not_keywords
        }

    def call(self, arguments: dict[str, Any]) -> Any:
        """Returns the value that is made of the given arguments."""
        if self._keywords is not None:
            arguments |= arguments.pop(self._keywords)
        if not self._positional:
            return self._cls(**arguments)
        return self._cls(*[arguments.pop(name) for name in self._positional], **arguments)


def argument_of(value: Any, name: str, given: Any = _MISSING) -> Any:
    """Returns what a value was given for an argument of its constructor.

    Args:
        value: Keeps it as the attribute `x`, as `_x`, or as `parameters["x"]`; the first of them
            that it has counts. A method `x` of the value's own does not.
        name: The argument's name, `x`.
        given: What to return if it is found nowhere.

    Raises:
        ArgumentError: If it is found nowhere (also a TypeError and a ValueError).
    """
    public = getattr(value, name, _MISSING)
    if public is not _MISSING and not _is_own_method(public, value):
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
    where = "the attribute" if public is _MISSING else "the attribute, which is a method,"
    raise ArgumentError(
        path=f"{cls}.{name}",
        expected="the value that this argument of the constructor was given",
        received=f"none: looked for {where} `{name}`, the attribute `_{name}`, and the key "
        f"{name!r} in `parameters`",
        mend=f"Keep it in __init__, self._{name} = {name}; or, if it has a default, leave it to "
        f"that: omit_kwargs=({name!r},).",
    )


def _is_own_method(found: Any, value: Any) -> bool:
    return type(found) is types.MethodType and found.__self__ is value


def static_names(value: Any) -> Collection[str]:
    """Returns which arguments of a value are kept static where their values are known."""
    for attribute in _STATIC_NAMES:
        try:
            names = getattr(value, attribute, None)
        except NotImplementedError:  # so says a distribution that does not annotate its parameters
            continue
        if names is not None:
            return (names,) if isinstance(names, str) else names
    return ()


def static_value(tensor: Any) -> Any:
    """Returns what is known of a tensor before the graph runs, or the tensor itself.

    An array without dimensions stands for a number, which keeps its dtype.
    """
    known = tf.get_static_value(tensor) if isinstance(tensor, tf.Tensor) else None
    return tensor if known is None else np.asarray(known)
