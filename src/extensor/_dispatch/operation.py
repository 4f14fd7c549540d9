"""TensorFlow's functions that types can override, and the arguments of their calls."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from extensor._dispatch.parameter import takes_tensors
from extensor._tf._tf_dispatch import PublicFunction, public_functions
from extensor._typing import Nest, Value
from extensor.errors import ProtocolError

# They may return None, and so may all assertions but two.
_MAY_RETURN_NONE = frozenset(
    "Assert case cond io.write_file no_op numpy_function print py_function".split()
)
_RETURN_THEIR_ARGUMENT = ("debugging.assert_all_finite", "debugging.assert_same_float_dtype")

# The function that users call, for operators that call another function of TensorFlow.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "__operators__.add": tf.add,
    "__operators__.eq": tf.equal,
    "__operators__.ne": tf.not_equal,
}


# Their sequence may be any iterable; TensorFlow converts it to a list.
_ANY_ITERABLE = ("add_n",)

_NOT_GIVEN = object()


class Operation:
    """A function of TensorFlow that types can override.

    Attributes:
        public: The function and its signature.
        name: Its shortest public name under `tf`.
        function: The function as users call it: the same object under all its names, and `tf.add`
            for the operator `+`.
        tensors: The parameters that take a tensor (False) or a sequence of tensors (True).
        places: The same, by the positions of the parameters.
        required: The number of parameters without a default.
        may_return_none: Whether it may return None.
        any_iterable: Whether its sequences may be other iterables than lists and tuples.
    """

    __slots__ = (
        *("_index", "any_iterable", "function", "may_return_none", "name", "places", "public"),
        *("required", "tensors"),
    )

    def __init__(self, public: PublicFunction) -> None:
        self.public = public
        self.name = public.name
        self.function = _OPERATORS.get(public.name, public.function)
        self.tensors = takes_tensors(public)
        self.places = [(public.parameters.index(p), nested) for p, nested in self.tensors.items()]
        self.required = len(public.parameters) - len(public.defaults)
        self.may_return_none = self.name in _MAY_RETURN_NONE or (
            "assert_" in self.name and self.name not in _RETURN_THEIR_ARGUMENT
        )
        self.any_iterable = self.name in _ANY_ITERABLE
        self._index = {name: place for place, name in enumerate(public.parameters)}

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """Returns the arguments of a call by position, up to the last one that was passed.

        Defaults fill the gaps.

        Args:
            args: The positional arguments.
            kwargs: The keyword arguments.

        Returns:
            The shortest tuple that contains all passed arguments; None if the call is invalid.
        """
        if self.public.variadic:
            return args
        required, defaults = self.required, self.public.defaults
        count = len(args)
        if not kwargs:
            if not required <= count <= required + len(defaults):
                return None
            if self.public.fills_in:
                while count > required and args[count - 1] is defaults[count - 1 - required]:
                    count -= 1
            return args[:count]
        values = [*args, *[_NOT_GIVEN] * (required - count), *defaults[max(0, count - required) :]]
        last = count
        for name, value in kwargs.items():
            place = self._index.get(name, -1)
            if place < count:
                return None
            values[place] = value
            last = max(last, place + 1)
        if len(values) > len(self.public.parameters) or any(
            value is _NOT_GIVEN for value in values
        ):
            return None
        return tuple(values[:last])

    def tensor_arguments(self, args: tuple[Any, ...]) -> Iterator[Value]:
        """Yields the arguments of a call for parameters that take tensors, left to right.

        The items of nested sequences of tensors are yielded one by one.
        """
        count = len(args)
        for place, nested in self.places:
            if self.public.variadic and place == len(self.public.parameters) - 1:
                yield from items(args[place:])
            elif place < count:
                yield from items(args[place]) if nested else (args[place],)


def items(value: Nest) -> Iterator[Value]:
    """Yields the items of a nested list or tuple, or the value itself if it is neither."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from items(item)
    else:
        yield value


FUNCTIONS: dict[Callable[..., Any], PublicFunction] = {
    public.function: public for public in public_functions()
}
"""All functions of TensorFlow that types can override."""


@functools.cache
def _operation_of(function: Callable[..., Any]) -> Operation:
    return Operation(FUNCTIONS[function])


def operation_of(function: object) -> Operation:
    """Returns the operation of a function of TensorFlow.

    Raises:
        ProtocolError: If types cannot override the function.
    """
    if inspect.isfunction(function) and function in FUNCTIONS:
        return _operation_of(function)
    expected = "a function of TensorFlow that types can override, such as tf.add"
    received = "a function without a dispatcher" if callable(function) else type(function).__name__
    fix = "For an operator, pass its function: tf.add for +, tf.__operators__.getitem for x[i]."
    raise ProtocolError(
        getattr(function, "__qualname__", None) or repr(function), expected, received, fix
    )


def tensor_parameters(op: Callable[..., Any]) -> tuple[str, ...]:
    """Returns the parameters of an operation that take a tensor, or a sequence of tensors.

    Only values in these parameters override the operation.

    Args:
        op: A function of TensorFlow that types can override, under any of its names.

    Returns:
        The names of the parameters, in their order.

    Raises:
        ProtocolError: If types cannot override the function.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.tensor_parameters(tf.add)
    ('x', 'y')
    >>> xt.dispatch.tensor_parameters(tf.reduce_sum)
    ('input_tensor',)
    >>> xt.dispatch.tensor_parameters(tf.concat)
    ('values',)
    """
    return tuple(operation_of(op).tensors)


def named_arguments(op: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """Returns the arguments of a call by the names of the parameters.

    Args:
        op: A function of TensorFlow that types can override.
        args: The positional arguments that a handler got.

    Raises:
        ProtocolError: If types cannot override the function.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.named_arguments(tf.reduce_sum, ([1, 2], 0))
    {'input_tensor': [1, 2], 'axis': 0}
    """
    return dict(zip(operation_of(op).public.parameters, args, strict=False))


def name_of(op: Callable[..., Any]) -> str:
    """Returns the shortest public name of an operation, for errors.

    Args:
        op: A function of TensorFlow that types can override, under any of its names.

    Raises:
        ProtocolError: If types cannot override the function.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.name_of(tf.math.reduce_sum)
    'tf.reduce_sum'
    """
    return repr(operation_of(op))
