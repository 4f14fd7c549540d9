"""Asks the types of the arguments of a call what the operation does with them.

The whole road of a call that holds a value which may have something to say: which types follow the
protocol, in which order they are asked, and what becomes of their answers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import MethodType
from typing import Any

import tensorflow as tf

from extensor._tf._tf_dispatch import (
    PLAIN,
    Places,
    PublicFunction,
    converts_to_tensor,
    has_nothing_to_say,
    intercept,
)
from extensor.dispatch.operation import FUNCTIONS, Operation, operation_of
from extensor.errors import ExtensorError, ProtocolError

_PROTOCOL = "__tf_dispatch__"
_TYPES = "__tf_dispatch_types__"
_UNSET = object()
_NO_TENSORS = (type(None), slice, type(Ellipsis))  # of what stands in x[...], these are none

Function = Callable[..., Any]


def follows_protocol(kind: type) -> bool:
    """Returns whether a class says what TensorFlow's operations do with its values."""
    if getattr(kind, _PROTOCOL, None) is not None:
        return True
    has_nothing_to_say(kind)
    return False


def _asking(operation: Operation, plain: Function) -> Function:
    """Returns what answers a call of an operation.

    Args:
        operation: The operation.
        plain: Calls its own code.
    """
    function = operation.function

    def answer(args: tuple[Any, ...], tensors: tuple[Any, ...]) -> Any:
        # Most operations take single tensors only, and most calls hold values of one type. What
        # such a call costs counts, so it is answered here, and all others below.
        only: Any = None
        alone = True
        for tensor in tensors:
            kind = type(tensor)
            if kind in PLAIN:
                alone = False
            elif kind is not only:
                if only is not None:
                    return _answer(operation, plain, _kinds(tensors), args, {})
                only = kind
        handler = getattr(only, _PROTOCOL, None)
        allowed = getattr(only, _TYPES, _UNSET)
        if type(handler) is not MethodType or (
            allowed is not None and not (alone and type(allowed) is tuple)
        ):
            return _answer(operation, plain, _kinds(tensors), args, {})
        try:
            result = handler(function, args, {})
        except Exception as error:
            raise _told(error, operation, only)  # noqa: B904 - the same error, with more to say
        if result is NotImplemented:
            return _declined(operation, plain, [_how_declined(only)], args, {})
        return _nothing(operation, only) if result is None else result

    def answer_nested(args: tuple[Any, ...], _: tuple[Any, ...]) -> Any:
        return _answer(operation, plain, _kinds(operation.tensor_arguments(args)), args, {})

    def answer_variadic(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _answer(operation, plain, _kinds(operation.tensor_arguments(args)), args, kwargs)

    if operation.public.variadic:
        return answer_variadic
    return answer_nested if any(nested for _, nested in operation.places) else answer


def _kinds(tensors: Iterable[Any]) -> list[type]:
    """Returns the types that may have something to say, in the order in which they are asked."""
    return by_precedence([k for k in dict.fromkeys(map(type, tensors)) if k not in PLAIN])


def _answer(
    operation: Operation,
    plain: Function,
    kinds: list[type],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    declined: list[str] = []
    for kind in kinds:
        handler: Any = getattr(kind, _PROTOCOL, None)
        if handler is None:
            has_nothing_to_say(kind)
            continue
        allowed: Any = getattr(kind, _TYPES, _UNSET)
        if type(handler) is not MethodType or allowed is _UNSET:
            allowed = _check(kind)
        refused = None if allowed is None else _how_refused(operation, args, kind, allowed)
        if refused:
            declined.append(refused)
            continue
        try:
            result = handler(operation.function, args, dict(kwargs))
        except Exception as error:
            raise _told(error, operation, kind)  # noqa: B904 - as above
        if result is not NotImplemented:
            return _nothing(operation, kind) if result is None else result
        declined.append(_how_declined(kind))
    return _declined(operation, plain, declined, args, kwargs)


def _declined(
    operation: Operation,
    plain: Function,
    declined: list[str],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Returns what the operation itself makes of its arguments."""
    try:
        return plain(*args, **kwargs)
    except Exception as error:
        if declined:
            _add(error, " ".join([f"{operation} was not overridden.", *declined]))
        raise


def _nothing(operation: Operation, kind: type) -> None:
    """Accepts None as a result, if the operation may have none."""
    if not operation.may_return_none:
        raise ProtocolError(
            path=f"{kind.__qualname__}.{_PROTOCOL}",
            expected=f"the value of {operation}, or NotImplemented",
            received="None",
            mend="Return what the handler computed, and NotImplemented for what it does not know.",
        )


def _how_declined(kind: type) -> str:
    return f"{kind.__qualname__} declined: its {_PROTOCOL} returned NotImplemented."


def _told(error: Exception, operation: Operation, kind: type) -> Exception:
    """Returns the error of a handler, which says now where it comes from."""
    _add(error, f"Raised while {kind.__qualname__}.{_PROTOCOL} handled {operation}.")
    return error


def by_precedence(kinds: Sequence[type]) -> list[type]:
    """Returns types in the order in which they are asked.

    A subclass is asked before its superclass, and otherwise the first that stands in the call.

    >>> from extensor.dispatch.ask import by_precedence
    >>> by_precedence([int, str, bool, float])
    [<class 'bool'>, <class 'int'>, <class 'str'>, <class 'float'>]
    """
    ordered: list[type] = []
    for kind in kinds:
        before = (i for i, other in enumerate(ordered) if issubclass(kind, other))
        ordered.insert(next(before, len(ordered)), kind)
    return ordered


def _how_refused(
    operation: Operation, args: tuple[Any, ...], kind: type, allowed: Any
) -> str | None:
    """Returns why a type is not asked, or None if all arguments are of types that it allows."""
    if not (isinstance(allowed, tuple) and all(isinstance(one, type) for one in allowed)):
        raise ProtocolError(
            path=f"{kind.__qualname__}.{_TYPES}",
            expected="a tuple of types, or None",
            received=repr(allowed),
            mend=f"Write {_TYPES} = (tf.Tensor,): the class itself is always one of them.",
        )
    allowed = tuple(dict.fromkeys((kind, *allowed)))
    for value in operation.tensor_arguments(args):
        if isinstance(value, (*_NO_TENSORS, *allowed)):
            continue
        if tf.Tensor in allowed and converts_to_tensor(type(value)):
            continue
        names = ", ".join(one.__qualname__ for one in allowed)
        return (
            f"{kind.__qualname__} was not asked: of the tensors, its {_TYPES} allows {names}, and "
            f"one is a {type(value).__qualname__}."
        )
    return None


def _check(kind: type) -> Any:
    """Sees that a class follows the protocol, and adds what it leaves out.

    Returns:
        Its `__tf_dispatch_types__`.

    Raises:
        ProtocolError: if its `__tf_dispatch__` cannot be called on the class.
    """
    handler = inspect.getattr_static(kind, _PROTOCOL)
    if inspect.isfunction(handler) or not callable(getattr(kind, _PROTOCOL)):
        raise ProtocolError(
            path=f"{kind.__qualname__}.{_PROTOCOL}",
            expected="a classmethod",
            received=f"a {type(handler).__name__}",
            mend="Write @classmethod above it: def __tf_dispatch__(cls, op, args, kwargs).",
        )
    if not hasattr(kind, _TYPES):
        # To find anew that it is missing would take longer than all the rest.
        owner = next((base for base in kind.__mro__ if _PROTOCOL in vars(base)), kind)
        setattr(owner, _TYPES, None)
    return getattr(kind, _TYPES)


def _add(error: Exception, sentence: str) -> None:
    """Adds a sentence to the message of an error, which stays the same object.

    What is not a plain text in a plain place is left alone, and the sentence becomes a note, which
    Python shows below the error from 3.11 on.
    """
    plain = type(error).__str__ in (Exception.__str__, ExtensorError.__str__)
    if plain and len(error.args) == 1 and isinstance(error.args[0], str):
        # An endless recursion passes by here a thousand times.
        if sentence not in error.args[0]:
            error.args = (f"{error.args[0]}\n{sentence}",)
    else:
        error.__dict__.setdefault("__notes__", []).append(sentence)


def _prepare(public: PublicFunction, plain: Function) -> Places:
    operation = operation_of(public.function)
    tensors = [place for place, nested in operation.places if not nested]
    sequences = [place for place, nested in operation.places if nested]
    return Places(tensors, sequences, _asking(operation, plain))


for _public in FUNCTIONS.values():
    intercept(_public, partial(_prepare, _public))
