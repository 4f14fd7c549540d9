"""Errors whose numbers are tensors: those of a graph are known only when it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from extensor._typing import TensorLike
from extensor.errors import ExtensorError

LATER = "\0"
"""Stands in the text of an error for a number that is a tensor."""


def assert_op(
    holds: tf.Tensor | bool,
    error: ExtensorError,
    numbers: Sequence[TensorLike] | Callable[[], Sequence[TensorLike]] = (),
) -> list[tf.Operation]:
    """Returns the op that fails with the text of an error, for `tf.control_dependencies`.

    The op prints brackets around each number. It works in functions that XLA compiles, where no op
    on strings is allowed; XLA itself leaves out all assertions. In eager mode, it returns no op,
    and raises the error.

    Args:
        holds: The condition: a scalar bool tensor.
        error: The error; its text has a `LATER` for each number.
        numbers: Integer scalars, in the order of the text. A function that returns them runs its
            ops only if the condition does not hold.

    >>> import tensorflow as tf
    >>> from extensor._protocol.run_time_check import LATER, assert_op
    >>> from extensor.errors import StructureError
    >>> @tf.function(input_signature=[tf.TensorSpec([None])])
    ... def pair(x):
    ...     count = tf.size(x)
    ...     wrong = StructureError(path="x", expected="2 values", received=f"{LATER} values")
    ...     with tf.control_dependencies(assert_op(count == 2, wrong, [count])):
    ...         return tf.identity(x)
    >>> try:
    ...     pair(tf.zeros([3]))
    ... except tf.errors.InvalidArgumentError as error:
    ...     "assertion failed: [x: expected 2 values, got ] [3] [ values]" in str(error)
    True
    """
    if not isinstance(holds, tf.Tensor) or hasattr(holds, "numpy"):
        if holds:
            return []
        raise _with_numbers(error, numbers() if callable(numbers) else numbers)
    if callable(numbers):
        return [tf.cond(holds, run_checks, lambda: run_checks(assert_op(holds, error, numbers())))]
    texts = str(error).split(LATER)
    data: list[tf.Tensor | str] = [texts[0]]
    for text, number in zip(texts[1:], numbers, strict=True):
        data += [tf.cast(number, tf.int32), text]
    return [tf.debugging.Assert(holds, data, summarize=1)]


def _with_numbers(error: ExtensorError, numbers: Sequence[Any]) -> ExtensorError:
    rest = iter(numbers)
    parts = (error.path, error.expected, error.received, error.fix)
    texts = (each and re.sub(LATER, lambda _: str(int(next(rest))), each) for each in parts)
    return type(error)(*texts)


def run_checks(checks: Sequence[tf.Operation] = ()) -> tf.Tensor:
    """Returns True after checks have run: the result of a branch of `tf.cond`."""
    with tf.control_dependencies(checks):
        return tf.constant(True)
