"""Masks of a graph, whose rows are compared with those of their values when the graph runs.

Outside of a graph, a MaskedTensor compares them when it is made. In a graph their sizes may not be
known then, so they are compared when the value becomes a field of records.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._authoring.rows import uncut_rows
from extensor._path import Path
from extensor._protocol.run_time_check import LATER, asserted
from extensor._struct.comparison import Comparison, after, equal_splits
from extensor._struct.extents import sizes_of
from extensor._struct.field import shape_of
from extensor._struct.masked import is_masked
from extensor._struct.row_splits import outer_sizes
from extensor.errors import StructureError


def with_own_rows(value: Any, at: Path, comparison: Comparison | None) -> Any:
    """Returns a field's value, which fails in a run where its mask has other rows than its values.

    Args:
        value: The value.
        at: Its path.
        comparison: What is known of sizes; None compares nothing.
    """
    if comparison is None or isinstance(value, (tf.Tensor, tf.RaggedTensor)):
        return value
    if not is_masked(value):
        return value
    values = with_own_rows(value.values, at, comparison)
    checks = _checks(values, value.mask, at, comparison, make=False)
    if checks is None:
        comparison.recall()
        checks = _checks(values, value.mask, at, comparison, make=True)
    return type(value).of_parts(values, after(checks or [], value.mask))


def _checks(
    values: Any, mask: Any, at: Path, comparison: Comparison, make: bool
) -> list[Any] | None:
    """Returns the ops that compare the rows of a mask with those of its values.

    Args:
        values: The values.
        mask: The mask.
        at: The path of the value.
        comparison: What is known of sizes.
        make: Whether to make ops. Otherwise the result is None if one is needed.
    """
    checks: list[Any] = []
    known, sizes = comparison.known, comparison.sizes
    while (rows := uncut_rows(values)) and (own := uncut_rows(mask)):
        if not comparison.same_rows(own[1], rows[1]):
            if not make:
                return None
            key = id(sizes.source(own[1])), id(sizes.source(rows[1]))
            checks += comparison.once(key, lambda a=own[1], b=rows[1]: _other_rows(a, b, at))
        values, mask, known = rows[0], own[0], 1  # as many rows of values as of the mask
    for axis in range(known, shape_of(mask).rank or 0):
        if sizes_of(mask, axis, sizes) & sizes_of(values, axis, sizes):
            continue
        if not make:
            return None
        counts = [outer_sizes(part, axis + 1)[axis] for part in (values, mask)]
        error = _error(at, f"{LATER} values and {LATER} bools in dimension {axis}")
        checks += asserted(tf.equal(*counts), error, counts)
    return checks


def _other_rows(own: Any, expected: Any, at: Path) -> list[Any]:
    counts = [tf.size(splits) - 1 for splits in (expected, own)]
    other_count = _error(at, f"{LATER} rows of values and {LATER} rows of bools")
    other_row = _error(at, f"in row {LATER} {LATER} bools for {LATER} values")
    return equal_splits(
        own,
        expected,
        lambda: asserted(tf.equal(*counts), other_count, counts),
        (other_row, lambda *numbers: list(numbers)),
    )


def _error(at: Path, received: str) -> StructureError:
    return StructureError(
        at,
        "a mask with the rows of its values",
        received,
        "Make the mask from the values, such as `values > 0`; a mask does not broadcast.",
    )
