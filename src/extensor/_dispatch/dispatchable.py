"""The protocol of types that say what TensorFlow's operations do with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

_TYPES = "__tf_dispatch_types__"


@runtime_checkable
class DispatchableType(Protocol):
    """What a class defines to say what TensorFlow's operations do with its values.

    When a value of the class is given to an argument of an operation that expects a tensor, or a
    sequence of tensors, the class's `__tf_dispatch__` executes the operation, unless it returns
    `NotImplemented`. The class needs no base class and imports nothing of extensor:

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
            `__tf_dispatch__` is called only if every argument that expects a tensor is of one of
            these types, which mostly saves it from checking. None, and a class without the
            attribute, leaves the check to `__tf_dispatch__`.
    """

    # Neither the attribute nor this method is a member of the protocol to a type checker, and the
    # attribute is none to isinstance: a class need not have it.
    if not TYPE_CHECKING:

        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__(**kwargs)
            # What a protocol that extends this one has, it asks for.
            if not hasattr(cls, _TYPES) and Protocol not in cls.__bases__:
                setattr(cls, _TYPES, None)

    @classmethod
    def __tf_dispatch__(
        cls, op: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Returns the value of `op(*args, **kwargs)`, or `NotImplemented`.

        Args:
            op: The TensorFlow function that was called, as users name it (`tf.math.add`).
            args: Its positional arguments. An argument that may be given by position or by name
                stands here, however the caller gave it, so the first argument is `args[0]`.
            kwargs: Its keyword-only arguments.

        Returns:
            The result of the operation, or `NotImplemented` if this class does not know how to
            apply it to these arguments: the next class is asked, and the operation itself last.
        """
        return NotImplemented
