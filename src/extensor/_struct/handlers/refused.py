"""Raises errors for operations that compute with values, because records are not numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._dispatch.handlers import handle
from extensor._dispatch.known_types import overrides_now
from extensor._dispatch.operation import name_of
from extensor._struct.refusal import refusal
from extensor._struct.tensor import StructuredTensor

# They take values of any type.
_TAKE_ANY_VALUE = frozenset(
    [
        *(tf.identity, tf.identity_n, tf.stop_gradient, tf.tuple),
        *(tf.Assert, tf.debugging.assert_proper_iterable, tf.print),
        *(tf.case, tf.cond, tf.foldl, tf.foldr, tf.scan, tf.numpy_function, tf.py_function),
    ]
)


def dispatch(
    cls: type, op: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> object:
    """Returns the result of a handler for records; without one, raises DTypeError."""
    result = handle(cls, op, args, kwargs)
    if result is not NotImplemented or op in _TAKE_ANY_VALUE:
        return result
    records = next(
        (arg for arg in tf.nest.flatten(list(args)) if isinstance(arg, StructuredTensor)), None
    )
    if records is None:
        return result
    name = name_of(op)
    raise refusal(
        records, name, lambda field: f"{name}({field}, ...)", strings=name.startswith("tf.strings.")
    )


StructuredTensor.__tf_dispatch__ = classmethod(dispatch)  # type: ignore[attr-defined]
StructuredTensor.__tf_dispatch_types__ = None  # type: ignore[attr-defined]
for _cls in (StructuredTensor, *StructuredTensor.__subclasses__()):
    overrides_now(_cls)
