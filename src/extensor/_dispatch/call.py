"""Dispatches a call to the handlers of the types of its arguments.

This module handles calls with a value of an unknown type: it finds the types that follow the
protocol, calls their handlers in order, and processes the results.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from types import MethodType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from extensor._declare.fields import is_declared
from extensor._dispatch.handlers import FROM_TABLE, handle, handler_of
from extensor._dispatch.known_types import PLAIN, is_plain, overrides_nothing
from extensor._dispatch.operation import Operation, items
from extensor._lookup import class_attribute, lineage, namespace, raw_attribute
from extensor._protocol.lossless import expect_no_nulls, may_have_nulls
from extensor._tf._tf_dispatch import converts_to_tensor
from extensor._typing import Nest, Value
from extensor.errors import ExtensorError, ProtocolError

_PROTOCOL = "__tf_dispatch__"
_TYPES = "__tf_dispatch_types__"
_UNSET = object()
_NO_TENSORS = (type(None), slice, type(Ellipsis))  # items of x[...] that are not tensors

Function = Callable[..., Any]
Arguments = tuple[Any, ...]
Keywords = dict[str, Any]
Found = tuple[MethodType | None, Any]
"""A handler and its arguments; or None and the result."""


NOT_OVERRIDDEN = object()
"""The result for a call that TensorFlow's own function must handle."""


class Interception(NamedTuple):
    """The callbacks that handle the calls of a function with values of unknown types.

    Attributes:
        function: The operation that handlers get as an argument.
        find_handler: Takes the positional and the keyword arguments of the call. It returns a
            handler and its arguments; or None and the result, which is `NOT_OVERRIDDEN` to call
            the function itself.
        failed: Takes the error that a handler raised, and the handler, before the error propagates.
        declined: Takes a handler, its result, which is None or NotImplemented, and the arguments
            of the call. It returns the result, or `NOT_OVERRIDDEN`.
    """

    function: Function
    find_handler: Callable[[Arguments, Keywords], Found]
    failed: Callable[[Exception, MethodType], None]
    declined: Callable[[MethodType, object, Arguments, Keywords], Value]


def follows_protocol(kind: type) -> bool:
    """Returns whether a class overrides TensorFlow's operations, by `__tf_dispatch__`.

    Args:
        kind: Any class, with any metaclass.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.follows_protocol(xt.types.MaskedTensor), xt.dispatch.follows_protocol(tf.Tensor)
    (True, False)
    """
    if class_attribute(kind, _PROTOCOL) is not None:
        return True
    overrides_nothing(kind)
    return False


def interception(operation: Operation, plain: Function) -> Interception:
    """Returns the callbacks for the calls of an operation.

    Args:
        operation: The operation.
        plain: The original function.
    """
    places = [place for place, _ in operation.places]
    fewest, most = operation.required, len(operation.public.parameters)
    fills_in = operation.public.fills_in

    def answer(args: Arguments, kwargs: Keywords) -> Found:
        # The fast path: an operation without sequences of tensors, called with values of one type
        # and no array that may have nulls.
        # All other calls go to `_answer`.
        given: Arguments | None = args
        count = len(args)
        if kwargs or fills_in or not fewest <= count <= most:
            given = operation.given(args, kwargs)
            if given is None:
                return None, NOT_OVERRIDDEN
            count = len(given)
        only: Any = None
        alone, may_fail = True, False
        try:
            for place in places:
                if place < count:
                    kind = type(given[place])
                    if kind is only:
                        continue
                    if kind in PLAIN:
                        alone = False
                        may_fail = may_fail or may_have_nulls(kind)
                    elif only is None:
                        only = kind
                    else:  # of several types
                        only = object
                        break
            if only is None:
                return None, _not_overridden(args, kwargs)
            # A metaclass may define every attribute, or raise another error than AttributeError.
            look = getattr if type(only) is type else raw_attribute
            handler = look(only, _PROTOCOL)
            allowed = look(only, _TYPES)
        except Exception:  # no or incomplete protocol, or no hash
            handler = allowed = None  # not `_answer` here: errors of handlers would have a context
        if (
            type(handler) is not MethodType
            or handler.__self__ is not only
            or may_fail
            or (allowed is not None and not (alone and type(allowed) is tuple))
        ):
            return None, _answer(operation, plain, given, args, kwargs)
        return handler, given

    def answer_nested(args: Arguments, kwargs: Keywords) -> Found:
        given = operation.given(args, kwargs)
        if given is None:
            return None, NOT_OVERRIDDEN
        return None, _answer(operation, plain, given, args, kwargs)

    def answer_iterables(args: Arguments, kwargs: Keywords) -> Found:
        # A generator can be read only once, so the call continues with lists.
        args = tuple(map(_as_list, args))
        kwargs = {name: _as_list(value) for name, value in kwargs.items()}
        _, result = answer_nested(args, kwargs)
        return None, plain(*args, **kwargs) if result is NOT_OVERRIDDEN else result

    def failed(error: Exception, handler: MethodType) -> None:
        kind: Any = handler.__self__
        _add_origin(error, operation, kind)

    def declined(handler: MethodType, answer: object, args: Arguments, kwargs: Keywords) -> Value:
        kind: Any = handler.__self__
        if answer is None:
            return _check_none(operation, kind)
        return _call_plain(operation, plain, [_how_declined(operation, kind)], args, kwargs)

    if operation.any_iterable:
        find_handler = answer_iterables
    else:
        find_handler = answer_nested if any(nested for _, nested in operation.places) else answer
    return Interception(operation.function, find_handler, failed, declined)


def _as_list(value: Nest) -> Nest:
    """Returns an iterable that is neither a sequence nor a tensor as a list; others unchanged."""
    kind = type(value)
    if isinstance(value, (str, list, tuple, tf.Tensor, np.ndarray)) or follows_protocol(kind):
        return value
    try:
        return list(value)
    except TypeError:
        return value


def _not_overridden(args: Arguments, kwargs: Keywords) -> object:
    """Caches the types in a call, and returns `NOT_OVERRIDDEN`."""
    for value in items([*args, *kwargs.values()]):
        follows_protocol(type(value))
    return NOT_OVERRIDDEN


def _answer(
    operation: Operation, plain: Function, given: Arguments, args: Arguments, kwargs: Keywords
) -> Value:
    """Returns the result of the first type that handles the call.

    Args:
        operation: The operation.
        plain: The original function.
        given: The arguments by position.
        args: The positional arguments of the call.
        kwargs: The keyword arguments of the call.
    """
    tensors = list(operation.tensor_arguments(given))
    kinds = _kinds(tensors)
    if not kinds:
        return _not_overridden(args, kwargs)
    for tensor in tensors:
        if type(tensor) not in kinds:
            expect_no_nulls(tensor, operation)
    keywords = kwargs if operation.public.variadic else {}
    declined: list[str] = []
    for kind in kinds:
        handler: Any = class_attribute(kind, _PROTOCOL)
        allowed: Any = class_attribute(kind, _TYPES, _UNSET)
        if handler is None:  # a declared class without the protocol, whose rows can be selected
            handler, allowed = functools.partial(handle, kind), None
        elif type(handler) is not MethodType or allowed is _UNSET:
            allowed = _check(kind)
        refused = None if allowed is None else _how_refused(operation, given, kind, allowed)
        if refused:
            declined.append(refused)
            continue
        try:
            result = handler(operation.function, given, dict(keywords))
        except Exception as error:
            _add_origin(error, operation, kind)
            raise
        if result is not NotImplemented:
            return _check_none(operation, kind) if result is None else result
        declined.append(_how_declined(operation, kind))
    return _call_plain(operation, plain, declined, args, kwargs)


def _kinds(tensors: Iterable[object]) -> list[type]:
    """Returns the types that follow the protocol or are declared, in the order of precedence."""
    found: list[type] = []
    for tensor in tensors:
        kind = type(tensor)
        for other in found:  # a class may have no hash
            if kind is other:
                break
        else:
            found.append(kind)
    kinds = [k for k in found if not is_plain(k) and (follows_protocol(k) or is_declared(k))]
    return kinds if len(kinds) < 2 else by_precedence(kinds)


def _call_plain(
    operation: Operation, plain: Function, declined: list[str], args: Arguments, kwargs: Keywords
) -> Value:
    """Returns the result of the operation itself, after all types declined."""
    try:
        return plain(*args, **kwargs)
    except Exception as error:
        _add(error, " ".join([f"{operation} was not overridden.", *declined]))
        raise


def _check_none(operation: Operation, kind: type) -> None:
    """Raises ProtocolError unless the operation may return None."""
    if not operation.may_return_none:
        at = f"{kind.__qualname__}.{_PROTOCOL}"
        fix = "Return the result of the handler, or NotImplemented for unsupported arguments."
        raise ProtocolError(at, f"the value of {operation}, or NotImplemented", "None", fix)


def _how_declined(operation: Operation, kind: type) -> str:
    if inspect.getattr_static(kind, _PROTOCOL, FROM_TABLE) is not FROM_TABLE:
        return f"{kind.__qualname__} declined: its {_PROTOCOL} returned NotImplemented."
    if handler_of(kind, operation.function) is None:
        return f"{kind.__qualname__} has no handler for {operation}."
    return f"{kind.__qualname__} declined: its handler for {operation} returned NotImplemented."


def _add_origin(error: Exception, operation: Operation, kind: type) -> None:
    """Adds the handler and the operation to the message of an error."""
    _add(error, f"Raised while {kind.__qualname__}.{_PROTOCOL} handled {operation}.")


def by_precedence(kinds: Sequence[type]) -> list[type]:
    """Returns types in the order in which their handlers are called.

    A subclass comes before its superclasses; otherwise the order is that of the arguments.

    >>> from extensor._dispatch.call import by_precedence
    >>> by_precedence([int, str, bool, float])
    [<class 'bool'>, <class 'int'>, <class 'str'>, <class 'float'>]
    """
    ordered: list[type] = []
    for kind in kinds:
        bases = lineage(kind)
        before = (i for i, other in enumerate(ordered) if any(other is base for base in bases))
        ordered.insert(next(before, len(ordered)), kind)
    return ordered


def _how_refused(operation: Operation, args: Arguments, kind: type, allowed: object) -> str | None:
    """Returns why a type's handler is not called, or None if it allows all argument types."""
    if not (isinstance(allowed, tuple) and all(isinstance(one, type) for one in allowed)):
        at = f"{kind.__qualname__}.{_TYPES}"
        fix = f"Write {_TYPES} = (tf.Tensor,); the class itself is always allowed."
        raise ProtocolError(at, "a tuple of types, or None", repr(allowed), fix)
    allowed = tuple(dict.fromkeys((kind, *allowed)))
    for value in operation.tensor_arguments(args):
        if isinstance(value, (*_NO_TENSORS, *allowed)):
            continue
        if tf.Tensor in allowed and converts_to_tensor(type(value)):
            continue
        names = ", ".join(one.__qualname__ for one in allowed)
        return (
            f"{kind.__qualname__} was not called: its {_TYPES} allows {names}, but an argument is "
            f"a {type(value).__qualname__}."
        )
    return None


def _check(kind: type) -> object:
    """Returns the `__tf_dispatch_types__` of a class, after checking its protocol.

    Raises:
        ProtocolError: If its `__tf_dispatch__` cannot be called on the class.
    """
    handler = inspect.getattr_static(kind, _PROTOCOL)
    if inspect.isfunction(handler) or not callable(getattr(kind, _PROTOCOL)):
        at = f"{kind.__qualname__}.{_PROTOCOL}"
        fix = "Write @classmethod above it: def __tf_dispatch__(cls, op, args, kwargs)."
        raise ProtocolError(at, "a classmethod", f"a {type(handler).__name__}", fix)
    if not hasattr(kind, _TYPES):
        # Set the missing attribute: looking it up again in each call would be slow.
        owner = next((base for base in lineage(kind) if _PROTOCOL in namespace(base)), kind)
        setattr(owner, _TYPES, None)
    return getattr(kind, _TYPES)


def _add(error: Exception, sentence: str) -> None:
    """Adds a sentence to the message of an error in place.

    If the message is not a single string argument, the sentence becomes a note, which Python shows
    from 3.11 on.
    """
    plain = type(error).__str__ in (Exception.__str__, ExtensorError.__str__)
    if plain and len(error.args) == 1 and isinstance(error.args[0], str):
        # An infinite recursion would add it a thousand times.
        if sentence not in error.args[0]:
            error.args = (f"{error.args[0]}\n{sentence}",)
    else:
        error.__dict__.setdefault("__notes__", []).append(sentence)
