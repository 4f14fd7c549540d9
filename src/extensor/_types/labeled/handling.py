"""How the handlers of LabeledTensors are entered, and what their operations are called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from extensor._dispatch.handlers import implements
from extensor._dispatch.operation import operation_of
from extensor._types.labeled.tensor import LabeledTensor


def handles(*ops: Any) -> Callable[[Any], Any]:
    """Makes a function the handler of operations, or of kinds of these, for LabeledTensors."""
    return implements(*ops, on=LabeledTensor)


def arguments_of(op: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    """Returns the arguments of a call by the names of their parameters."""
    return dict(zip(operation_of(op).public.parameters, args, strict=False))


def path_of(op: Any) -> str:
    """Returns what to call an operation in an error.

    >>> from extensor._types.labeled.handling import path_of
    >>> path_of(tf.math.reduce_sum)
    'tf.reduce_sum'
    """
    return repr(operation_of(op))
