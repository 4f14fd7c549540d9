"""The protocol of types that override TensorFlow's operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

_TYPES = "__tf_dispatch_types__"


@runtime_checkable
class DispatchableType(Protocol):
    """The members of a class that overrides TensorFlow's operations for its values.

    If an argument that expects a tensor, or a sequence of tensors, gets a value of the class, the
    class's `__tf_dispatch__` executes the operation, unless it returns `NotImplemented`. The class
    needs no base class and no import of extensor:

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> class Length:
    ...     def __init__(self, metres):
    ...         self.metres = metres
    ...
    ...     __tf_dispatch_types__ = None
    ...
    ...     @classmethod
    ...     def __tf_dispatch__(cls, op, args, kwargs):
    ...         if op is tf.math.abs:
    ...             return Length(op(args[0].metres, *args[1:], **kwargs))
    ...         return NotImplemented
    >>> isinstance(Length(tf.constant(-2.0)), xt.DispatchableType)
    True
    >>> Length.__tf_dispatch__(tf.math.abs, (Length(tf.constant(-2.0)),), {}).metres.numpy().item()
    2.0

    Attributes:
        __tf_dispatch_types__: A class variable of type `tuple[type, ...] | None`. With a tuple,
            `__tf_dispatch__` is called only if every argument that expects a tensor has one of
            these types. With None, or without the attribute, it is always called, and must check
            the types itself.
    """

    # Hidden from type checkers, and the attribute from isinstance: a class need not have it.
    if not TYPE_CHECKING:

        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__(**kwargs)
            # A protocol that extends this one must not get a value: it would become a member.
            if not hasattr(cls, _TYPES) and Protocol not in cls.__bases__:
                setattr(cls, _TYPES, None)

    @classmethod
    def __tf_dispatch__(
        cls, op: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Returns the value of `op(*args, **kwargs)`, or `NotImplemented`.

        Args:
            op: The TensorFlow function that was called, by its public name (`tf.math.add`).
            args: Its positional arguments. An argument that can be passed by position or by name is
                always here, so the first argument is `args[0]`.
            kwargs: Its keyword-only arguments.

        Returns:
            The result of the operation, or `NotImplemented` if this class does not support these
            arguments. Then the next class is called, and last the operation itself.
        """
        return NotImplemented
