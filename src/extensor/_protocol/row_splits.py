"""A check that row splits are valid, in NumPy and in a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from extensor._protocol.run_time_check import LATER, assert_op, run_checks
from extensor.errors import StructureError

MAX_INT32 = 2**31 - 1
"""How many values row splits of int32 count."""


def expect_splits_fit(count: int | tf.Tensor, path: object) -> None:
    """Raises StructureError if values are too many for row splits of int32.

    Args:
        count: The number of values; ignored if it is part of a graph.
        path: The path of the lists, for errors.
    """
    known = tf.get_static_value(count) if isinstance(count, tf.Tensor) else count
    if known is not None and known > MAX_INT32:
        expected = "at most 2**31 - 1 values in lists with row splits of int32"
        fix = "Use row splits of int64: records.with_row_splits_dtype(tf.int64)."
        raise StructureError(path, expected, f"{known} values", fix)


class Rule(NamedTuple):
    """One condition for a vector of row splits.

    Attributes:
        expected: What must hold, for errors.
        holds: Takes the splits, and the number of values or None, in NumPy or in a graph.
        received: What splits are for which it does not hold, with a place for a number.
        number: Takes such splits, in NumPy or in a graph, and returns the number.
    """

    expected: str
    holds: Callable[..., Any]
    received: str
    number: Callable[..., Any]


RULES = (
    Rule(
        "splits that begin with 0",
        lambda splits, count: splits[:1] == 0,
        "a first split of {}",
        lambda splits: splits[0],
    ),
    Rule(
        "splits that never decrease",
        lambda splits, count: splits[1:] >= splits[:-1],
        "a decrease after row {}",
        lambda splits: _first(splits[1:] < splits[:-1]),
    ),
    Rule(
        "splits that end with {count}, the number of values",
        lambda splits, count: count is None or splits[-1:] == count,
        "a last split of {}",
        lambda splits: splits[-1],
    ),
)
"""The conditions for row splits that are not empty."""


def check_row_splits(
    splits: np.ndarray[Any, Any] | tf.Tensor, count: int | tf.Tensor | None, path: str
) -> list[tf.Operation]:
    """Checks that row splits begin at 0, never decrease, and end with the number of values.

    Args:
        splits: A NumPy vector of integers, or a vector in a graph.
        count: The number of values: an integer, or a tensor of the dtype of splits in a graph; None
            if it is not known.
        path: The name of the splits in errors.

    Returns:
        The check of a graph, one op, for `tf.control_dependencies`. Empty for a NumPy vector.

    Raises:
        StructureError: If the splits of a NumPy vector are not valid (also a ValueError).

    >>> import numpy as np
    >>> import extensor as xt
    >>> xt.authoring.check_row_splits(np.array([0, 2, 1]), 1, "Recipe.row_splits")
    Traceback (most recent call last):
    extensor.errors.StructureError: Recipe.row_splits: expected splits that never decrease, got a
    decrease after row 1. ...
    """
    if tf.is_tensor(splits):
        return [_check_in_graph(splits, count, path)]
    if len(splits) == 0:
        raise _empty(path)
    for expected, holds, received, number in RULES:
        if not np.all(holds(splits, count)):
            raise _invalid(path, expected.format(count=count), received.format(number(splits)))
    return []


def _check_in_graph(splits: tf.Tensor, count: int | tf.Tensor | None, path: str) -> tf.Operation:
    def find_wrong() -> tf.Tensor:
        with tf.control_dependencies(assert_op(tf.size(splits) > 0, _empty(path))):
            some = tf.identity(splits)
        checks: list[tf.Operation] = []
        for expected, holds, received, number in RULES:
            wrong = _invalid(path, expected.format(count=LATER), received.format(LATER))
            numbers = [count] * ("{count}" in expected) + [number(some)]
            checks += assert_op(tf.reduce_all(holds(some, count)), wrong, numbers)
        return run_checks(checks)

    valid = [tf.reduce_all(rule.holds(splits, count)) for rule in RULES]
    return tf.cond(tf.reduce_all([tf.size(splits) > 0, *valid]), run_checks, find_wrong)


def _first(is_true: np.ndarray[Any, Any] | tf.Tensor) -> int | tf.Tensor:
    """Returns the position of the first True in a vector, in NumPy or in a graph."""
    if isinstance(is_true, tf.Tensor):
        return tf.argmax(tf.concat([tf.cast(is_true, tf.int32), [0]], 0))  # also of no splits
    return int(is_true.argmax())


def _empty(path: str) -> StructureError:
    return _invalid(path, "at least one split, the number 0", "an empty vector")


def _invalid(path: str, expected: str, received: str) -> StructureError:
    fix = "Row i holds the values from row_splits[i] up to row_splits[i + 1]."
    return StructureError(path, expected, received, fix)


def first_difference(
    lengths: np.ndarray[Any, Any], expected: np.ndarray[Any, Any] | int
) -> int | None:
    """Returns the first row whose length is not the expected one, or None.

    Args:
        lengths: A NumPy vector of the lengths of rows.
        expected: A vector of as many lengths, or one length.

    >>> from extensor._protocol.row_splits import first_difference
    >>> import numpy as np
    >>> first_difference(np.array([2, 1]), np.array([2, 2]))
    1
    """
    differs = lengths != expected
    return int(differs.argmax()) if differs.any() else None
