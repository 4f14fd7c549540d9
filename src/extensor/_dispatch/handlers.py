"""Handlers of operations, one by one, in a table that a class carries."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from extensor._dispatch import kind
from extensor._dispatch.dispatchable import DispatchableType
from extensor._dispatch.known_types import overrides_now
from extensor._dispatch.operation import operation_of
from extensor.errors import ProtocolError

_F = TypeVar("_F", bound=Callable[..., Any])
Function = Callable[..., Any]

_TABLE = "__tf_dispatch_handlers__"
_PROTOCOL = "__tf_dispatch__"
_KINDS = frozenset(function for name, function in vars(kind).items() if name.startswith("is_"))


class _Handler(NamedTuple):
    """What handles some operations for a class.

    Attributes:
        function: A function, or a class or static method.
        wants_op: Whether it is called with the operation first.
    """

    function: Any
    wants_op: bool

    def __call__(self, cls: type, op: Function, args: tuple[Any, ...], kwargs: Any) -> Any:
        function = self.function
        if isinstance(function, classmethod | staticmethod):
            function = function.__get__(None, cls)
        return function(op, *args, **kwargs) if self.wants_op else function(*args, **kwargs)


class _Table:
    """The handlers of a class: of operations one by one, and of kinds of operations."""

    def __init__(self) -> None:
        self.ops: dict[Function, _Handler] = {}
        self.kinds: dict[Function, _Handler] = {}


class _InBody:
    """Stands in the body of a class until the class is made, and enters its handler then."""

    def __init__(self, function: Any, ops: tuple[Function, ...]) -> None:
        self.function, self.ops = function, ops

    def __set_name__(self, owner: type, name: str) -> None:
        method = self.function
        if not isinstance(method, classmethod | staticmethod):
            method = staticmethod(method)
        setattr(owner, name, method)
        _enter(owner, self.function, self.ops)


def _enter(cls: Any, function: Any, ops: tuple[Function, ...]) -> None:
    table = vars(cls).get(_TABLE)
    if table is None:
        table = _Table()
        setattr(cls, _TABLE, table)
    parameters = [*inspect.signature(getattr(function, "__func__", function)).parameters]
    first = parameters[isinstance(function, classmethod) :][:1]
    handler = _Handler(function, wants_op=first == ["op"])
    for op in ops:
        (table.kinds if op in _KINDS else table.ops)[op] = handler
    own = inspect.getattr_static(cls, _PROTOCOL, None)
    if own is None or own is inspect.getattr_static(DispatchableType, _PROTOCOL):
        setattr(cls, _PROTOCOL, FROM_TABLE)
        overrides_now(cls)


def implements(*ops: Function, on: type | None = None) -> Callable[[_F], _F]:
    """Makes a function the handler of operations for values of a class.

    In the body of a class it stands above a static or class method, which is a handler for that
    class then:

    >>> class Masked:
    ...     def __init__(self, values, mask):
    ...         self.values, self.mask = values, mask
    ...
    ...     @xt.dispatch.implements(tf.tile)
    ...     @staticmethod
    ...     def tile(input, multiples, name=None):
    ...         return Masked(tf.tile(input.values, multiples), tf.tile(input.mask, multiples))
    ...
    ...     @xt.dispatch.implements(xt.dispatch.is_unary_elementwise_op)
    ...     @classmethod
    ...     def each(cls, op, x, *args, **kwargs):
    ...         return cls(op(x.values, *args, **kwargs), x.mask)
    >>> masked = Masked(tf.constant([4.0]), tf.constant([True]))
    >>> tf.sqrt(tf.tile(masked, [2])).values.numpy()
    array([2., 2.], dtype=float32)

    Elsewhere it says which class:

    >>> @xt.dispatch.implements(tf.shape, tf.size, on=Masked)
    ... def of_values(op, input, *args, **kwargs):
    ...     return op(input.values, *args, **kwargs)
    >>> tf.size(masked).numpy().item()
    1

    The handler is called with the arguments of the operation, in their places. If its first
    parameter (after `cls`) is called `op`, it gets the operation before them.

    A class without a `__tf_dispatch__` gets one, which looks in the tables of the class and of its
    bases. An operation of its own is found before a kind of operations, and a subclass's handler
    before that of its base. In a `__tf_dispatch__` of your own, `xt.dispatch.handle` does that.

    Args:
        *ops: Functions of TensorFlow, or what says yes of many: `is_unary_elementwise_op` and its
            kin.
        on: The class, outside its body.

    Returns:
        The decorator, which returns the function as it is.

    Raises:
        ProtocolError: if one of `ops` is not to be overridden.
    """
    for op in ops:
        if op not in _KINDS:
            operation_of(op)
    if not ops:
        raise ProtocolError(
            path="implements",
            expected="at least one operation",
            received="none",
            mend="Name what the function handles: @xt.dispatch.implements(tf.tile).",
        )

    def decorate(function: Any) -> Any:
        if on is None:
            return _InBody(function, ops)
        _enter(on, function, ops)
        return function

    return decorate


def handle(cls: type, op: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns what the handler of an operation returns, or `NotImplemented` if there is none.

    For a `__tf_dispatch__` that does something before, or instead:

    >>> class Logged:
    ...     def __init__(self, values):
    ...         self.values = values
    ...
    ...     @xt.dispatch.implements(tf.square)
    ...     @staticmethod
    ...     def square(x, name=None):
    ...         return Logged(tf.square(x.values))
    ...
    ...     @classmethod
    ...     def __tf_dispatch__(cls, op, args, kwargs):
    ...         print("called:", op.__name__)
    ...         return xt.dispatch.handle(cls, op, args, kwargs)
    >>> tf.square(Logged(3.0)).values.numpy().item()
    called: square
    9.0

    Args:
        cls: The class in whose table, and in whose bases' tables, the handler is looked for.
        op: The operation.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
    """
    handler = handler_of(cls, op)
    return NotImplemented if handler is None else handler(cls, op, args, kwargs)


def handler_of(cls: type, op: Function) -> Callable[..., Any] | None:
    """Returns what handles an operation for a class, with the class and the operation first."""
    tables = [vars(base)[_TABLE] for base in cls.__mro__ if _TABLE in vars(base)]
    for table in tables:
        if op in table.ops:
            return table.ops[op]
    for table in tables:
        for is_kind, handler in table.kinds.items():
            if is_kind(op):
                return handler
    return None


FROM_TABLE: Any = classmethod(handle)
"""The `__tf_dispatch__` that a class gets with its first handler."""
