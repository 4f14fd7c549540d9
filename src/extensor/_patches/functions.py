"""Patches of the functions and operators of TensorFlow that types can override."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import tensorflow as tf

from extensor._dispatch.call import interception
from extensor._dispatch.operation import FUNCTIONS, Operation, operation_of
from extensor._dispatch.operators import answers
from extensor._patches.code import intercept, intercept_operator
from extensor._patches.patch import Patch

_CLASSES = (tf.Tensor, tf.Variable, tf.RaggedTensor, tf.SparseTensor)


def functions() -> Iterator[Patch]:
    """Yields a patch for each function that takes tensors."""
    for public in FUNCTIONS.values():
        operation = operation_of(public.function)
        if operation.places:
            yield Patch(
                f"tf.{public.name}",
                "Types with __tf_dispatch__ override it.",
                "dispatch",
                _intercept_operation,
                functools.partial(_intercept_operation, operation),
            )


def operators() -> Iterator[Patch]:
    """Yields a patch for each operator of TensorFlow's own classes."""
    for cls in _CLASSES:
        for name, answer in answers():
            if name in vars(cls):
                yield Patch(
                    f"tf.{cls.__name__}.{name}",
                    "It converts the other operand to a tensor before it calls a function that "
                    "types override, or calls another function than users do.",
                    "operators",
                    intercept_operator,
                    functools.partial(intercept_operator, cls, name, answer),
                )


def _intercept_operation(operation: Operation) -> None:
    intercept(
        operation.public,
        functools.partial(interception, operation),
        [place for place, nested in operation.places if nested],
        operation.any_iterable,
    )
