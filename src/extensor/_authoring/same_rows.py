"""Value of a graph whose rows are compared with those of others when the graph runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

from extensor._authoring.comparison import SizeComparison, equal_splits, with_checks
from extensor._authoring.extents import known_sizes, size_at
from extensor._authoring.rows import uncut_rows
from extensor._protocol.run_time_check import LATER, assert_op
from extensor._typing import Value
from extensor.errors import ExtensorError

_Value = TypeVar("_Value", bound=Any)


def with_rows_of(
    value: _Value, like: Any, rank: int, error: Callable[[str], ExtensorError], outer: int = 0
) -> _Value:
    """Returns a value, which fails in a run of a graph where its rows are not those of another.

    Adds one op for each dimension in which they may differ, and none where the ops of the graph
    show that the rows are the same. Outside of a graph it compares nothing: do so in NumPy.

    Args:
        value: A tensor or RaggedTensor.
        like: The other value, of any type that stacks; ragged in the dimensions in which the first
            one is.
        rank: How many dimensions to compare.
        error: Returns the error for a text that says what was received.
        outer: How many dimensions of `like` are outside of those that are compared.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])])
    ... def weighted(x, weights):
    ...     weights = xt.authoring.with_rows_of(weights, x, 1, lambda received: (
    ...         xt.errors.StructureError("weights", "one for each x", received, "Count them.")))
    ...     return x * weights
    >>> weighted(tf.constant([1.0, 2.0]), tf.constant([0.5, 0.25])).numpy()
    array([0.5, 0.5], dtype=float32)
    >>> try:
    ...     weighted(tf.constant([1.0, 2.0]), tf.constant([0.5]))
    ... except tf.errors.InvalidArgumentError as error:
    ...     "weights: expected one for each x, got ] [1] [ instead of ] [2]" in str(error)
    True
    """
    comparison = SizeComparison.in_graph(True)
    if comparison is None:
        return value
    checks = _checks(value, like, rank, error, outer, comparison, make=False)
    if checks is None:
        comparison.use_records()
        checks = _checks(value, like, rank, error, outer, comparison, make=True)
    return with_checks(checks or [], value)


def _checks(
    value: Value,
    like: Value,
    rank: int,
    error: Callable[[str], ExtensorError],
    outer: int,
    comparison: SizeComparison,
    make: bool,
) -> list[Any] | None:
    """Returns the ops that compare rows; see `with_rows_of`.

    If `make` is False, it makes no op, and the result is None if one is needed.
    """
    checks: list[Any] = []
    known, sizes = 0, comparison.sizes
    while rank > 1 and not outer and (own := uncut_rows(value)) and (rows := uncut_rows(like)):
        splits = tf.cast(own[1], rows[1].dtype)
        if not comparison.same_rows(splits, rows[1]):
            if not make:
                return None
            checks += _equal_splits(splits, rows[1], error)
        value, like, rank, known = own[0], rows[0], rank - 1, 1  # as many items of both
    for axis in range(known, rank):
        if not known_sizes(value, axis, sizes) & known_sizes(like, axis + outer, sizes):
            if not make:
                return None
            numbers = size_at(value, axis), size_at(like, axis + outer)
            wrong = error(f"{LATER} instead of {LATER} in dimension {axis + outer}")
            checks += assert_op(tf.equal(*numbers), wrong, numbers)
    return checks


def _equal_splits(
    own: tf.Tensor, expected: tf.Tensor, error: Callable[[str], ExtensorError]
) -> list[Any]:
    counts = [tf.size(splits) - 1 for splits in (own, expected)]
    other_count = error(f"{LATER} rows instead of {LATER}")
    other_row = error(f"row {LATER} of length {LATER} instead of {LATER}")
    return equal_splits(
        own,
        expected,
        lambda: assert_op(tf.equal(*counts), other_count, counts),
        (other_row, lambda *numbers: list(numbers)),
    )
