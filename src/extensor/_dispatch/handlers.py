"""The table of dispatch handlers of a class, and the functions that use it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import tensorflow as tf

from extensor._authoring.batch import expect_row, item_of_boxes
from extensor._authoring.rows import concat_rows, stack_rows, take_rows
from extensor._declare.fields import is_declared
from extensor._dispatch import kind
from extensor._dispatch.dispatchable import DispatchableType
from extensor._dispatch.known_types import overrides_now
from extensor._dispatch.operation import operation_of
from extensor._lookup import class_attribute
from extensor._protocol.box import box, unbox, unstacked_spec
from extensor._tf._tf_dispatch import registered_result
from extensor._typing import TensorLike, Value
from extensor.errors import ProtocolError, StructureError

_F = TypeVar("_F", bound=Callable[..., Any])
Function = Callable[..., Any]

_TABLE = "__tf_dispatch_handlers__"
_PROTOCOL = "__tf_dispatch__"
_KINDS = frozenset(function for name, function in vars(kind).items() if name.startswith("is_"))


class _Handler(NamedTuple):
    """A dispatch handler of a class.

    Attributes:
        function: A function, or a class or static method.
        wants_op: Whether the first argument is the operation.
    """

    function: Function | classmethod[Any, Any, Any] | staticmethod[Any, Any]
    wants_op: bool

    def __call__(
        self, cls: type, op: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Value:
        function: Any = self.function
        if isinstance(function, classmethod | staticmethod):
            function = function.__get__(None, cls)
        return function(op, *args, **kwargs) if self.wants_op else function(*args, **kwargs)


class _ClassHandlers:
    """The handlers of a class, for single operations and for kinds of operations."""

    def __init__(self) -> None:
        self.ops: dict[Function, _Handler] = {}
        self.kinds: dict[Function, _Handler] = {}


class _HandlerInBody:
    """A handler in the body of a class; it is registered when the class is created."""

    def __init__(self, function: Function, ops: tuple[Function, ...]) -> None:
        self.function, self.ops = function, ops

    @property
    def __name__(self) -> str:
        # staticmethod and classmethod copy it. Python would not call `__set_name__` through them.
        expected, fix = "@staticmethod or @classmethod below @implements", "Swap the two lines."
        raise ProtocolError("implements", expected, "a decorator above @implements", fix)

    def __set_name__(self, owner: type, name: str) -> None:
        method = self.function
        if not isinstance(method, classmethod | staticmethod):
            method = staticmethod(method)
        setattr(owner, name, method)
        _register(owner, self.function, self.ops)


def _register(cls: type, function: Function, ops: tuple[Function, ...]) -> None:
    table = vars(cls).get(_TABLE)
    if table is None:
        table = _ClassHandlers()
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
    """Returns a decorator that registers a function as the handler of operations for a class.

    In the body of a class it decorates a static or class method, which becomes a handler of that
    class:

    >>> import tensorflow as tf
    >>> import extensor as xt
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

    Outside the body, `on` is the class:

    >>> @xt.dispatch.implements(tf.shape, tf.size, on=Masked)
    ... def of_values(op, input, *args, **kwargs):
    ...     return op(input.values, *args, **kwargs)
    >>> tf.size(masked).numpy().item()
    1

    The handler is called with the arguments of the operation in their positions. If its first
    parameter (after `cls`) is named `op`, the operation is passed first.

    A class without a `__tf_dispatch__` gets one, which looks up handlers in the class and its base
    classes. A handler for the operation has priority over a handler for a kind of operations, and a
    handler of a subclass over one of its base class. If you define `__tf_dispatch__` yourself, call
    `xt.dispatch.handle` in it to look up handlers.

    Args:
        *ops: Functions of TensorFlow, or predicates such as `is_unary_elementwise_op`, which select
            many functions.
        on: The class, outside its body.

    Returns:
        The decorator, which returns the function unchanged.

    Raises:
        ProtocolError: If one of `ops` cannot be overridden (also a TypeError).
    """
    for op in ops:
        if not (callable(op) and op in _KINDS):
            operation_of(op)
    if not ops:
        fix = "Pass the operations of the handler: @xt.dispatch.implements(tf.tile)."
        raise ProtocolError("implements", "at least one operation", "no arguments", fix)
    if on is not None and (not isinstance(on, type) or on in (tf.Tensor, tf.Variable)):
        received = on.__qualname__ if isinstance(on, type) else f"a {type(on).__qualname__}"
        fix = "Give the class of the values that override the operations."
        raise ProtocolError("implements, on", "a class of your own", received, fix)

    def decorate(function: Any) -> Any:
        if isinstance(function, _HandlerInBody):  # of another @implements below
            return _HandlerInBody(function.function, (*function.ops, *ops))
        if on is None:
            return _HandlerInBody(function, ops)
        _register(on, function, ops)
        return function

    return decorate


def handle(cls: type, op: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
    """Returns the result of the handler of an operation, or `NotImplemented` if there is none.

    Call it in your own `__tf_dispatch__`:

    >>> import tensorflow as tf
    >>> import extensor as xt
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
        cls: The class; its handlers and those of its base classes are looked up.
        op: The operation.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
    """
    handler = handler_of(cls, op)
    return NotImplemented if handler is None else handler(cls, op, args, kwargs)


def handler_of(cls: type, op: Function) -> Callable[..., Any] | None:
    """Returns the handler of an operation for a class; None if there is none.

    Call it with the class, the operation, its positional and its keyword arguments.
    """
    found = _in_table(cls, op)
    return _by_rows if found is None and op in _OPERATIONS and is_declared(cls) else found


def handles(cls: type, op: Function) -> bool:
    """Returns whether a class itself says what an operation does with its values.

    That is by a registered handler, or by a `__tf_dispatch__` of its own. The rows of declared
    types do not count.

    >>> from extensor._dispatch.handlers import handles
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> handles(xt.types.MaskedTensor, tf.gather), handles(xt.dispatch.OperatorsMixin, tf.gather)
    (True, False)
    """
    dispatch = getattr(class_attribute(cls, _PROTOCOL), "__func__", None)
    if dispatch is handle or dispatch is None:
        return dispatch is handle and _in_table(cls, op) is not None
    return True


def _in_table(cls: type, op: Function) -> Callable[..., Any] | None:
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
"""The `__tf_dispatch__` that a class gets with its first registered handler."""


def _by_rows(cls: type, op: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
    """Returns the result of an operation on the rows of declared values.

    Functions that are registered by `tf.experimental.dispatch_for_api` have priority.

    Args:
        cls: The declared class.
        op: One of `_OPERATIONS`.
        args: Its positional arguments.
        kwargs: Its keyword arguments.

    Returns:
        The result, or `NotImplemented` for arguments that do not select or join rows.
    """
    result = registered_result(op, args, kwargs)
    return _OPERATIONS[op](cls, *args) if result is NotImplemented else result


def _stack(cls: type, values: Sequence[Value], axis: TensorLike = 0, *_: object) -> Value:
    return stack_rows(list(values)) if _can_join(cls, values, axis) else NotImplemented


def _concat(cls: type, values: Sequence[Value], axis: TensorLike, *_: object) -> Value:
    return concat_rows(list(values)) if _can_join(cls, values, axis) else NotImplemented


def _can_join(cls: type, values: object, axis: TensorLike) -> bool:
    return (
        isinstance(values, (list, tuple))
        and all(isinstance(value, cls) for value in values)
        and _is_first(axis)
    )


def _is_first(axis: TensorLike) -> bool:
    known = tf.get_static_value(axis) if isinstance(axis, tf.Tensor) else axis
    return known is not None and known == 0


def _unstack(
    cls: type, value: Value, num: int | None = None, axis: TensorLike = 0, *_: object
) -> list[Value] | object:
    spec, boxes = _boxes(value)
    if not boxes or not _is_first(axis):
        return NotImplemented
    if num is None and boxes[0].shape[0] is None:
        expected = "a number of rows that is known while tracing, or num="
        fix = "Give num=, or set the shape of the tensors first with tf.ensure_shape."
        raise StructureError(f"tf.unstack of {cls.__qualname__}", expected, f"{spec}", fix)
    row = unstacked_spec(spec, cls.__qualname__)
    columns = [tf.unstack(part, num) for part in boxes]
    return [unbox(row, list(parts)) for parts in zip(*columns, strict=True)]


def _gather(
    cls: type,
    params: Value,
    indices: TensorLike,
    validate_indices: object = None,
    axis: TensorLike | None = None,
    batch_dims: TensorLike = 0,
    *_: object,
) -> Value:
    if (
        not isinstance(params, cls)
        or isinstance(indices, tf.RaggedTensor)
        or not _is_first(0 if axis is None else axis)
        or not _is_first(batch_dims)
    ):
        return NotImplemented
    positions: tf.Tensor = (
        indices if isinstance(indices, tf.Tensor) else tf.convert_to_tensor(indices)
    )
    return NotImplemented if positions.shape.rank is None else take_rows(params, positions)


def _item(cls: type, tensor: Value, slice_spec: Value, *_: object) -> Value:
    spec, boxes = _boxes(tensor)
    if not boxes or not (isinstance(slice_spec, slice) or _is_number(slice_spec)):
        return NotImplemented
    expect_row(f"{cls.__qualname__}[...]", slice_spec, boxes[0].shape[0])
    return item_of_boxes(spec, boxes, slice_spec)


def _is_number(key: Value) -> bool:
    if isinstance(key, tf.Tensor):
        return key.dtype.is_integer and key.shape.rank == 0
    if isinstance(key, np.ndarray):
        return key.dtype.kind in "iu" and key.ndim == 0
    return isinstance(key, (int, np.integer)) and not isinstance(key, bool)


def _boxes(value: Value) -> tuple[tf.TypeSpec, list[tf.Tensor]]:
    spec = tf.type_spec_from_value(value)
    return spec, box(spec, value, 1)


_OPERATIONS: dict[Function, Function] = {
    tf.stack: _stack,
    tf.unstack: _unstack,
    tf.concat: _concat,
    tf.gather: _gather,
    tf.__operators__.getitem: _item,
}
"""The operations on rows, which get the class before the arguments."""
