"""Levels of a MultiIndex of rows, and the lists of records that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from extensor.errors import StructureError

if TYPE_CHECKING:
    import pandas as pd

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time

Splits = np.ndarray[Any, Any]
"""The row splits of lists of records."""


def runs_of(index: pd.MultiIndex) -> list[Splits]:
    """Returns the row splits of the lists of rows with equal outer labels, the outermost first."""
    starts: list[Splits] = []
    changed = np.zeros(max(len(index) - 1, 0), bool)
    for codes in index.codes[:-1]:
        changed = changed | (np.diff(codes) != 0)
        begins = np.append([True] * bool(len(index)), changed)
        starts.append(np.append(np.flatnonzero(begins), len(index)).astype(np.int64))
    # Each counts rows; a list of lists counts the lists of the next level.
    return [
        np.searchsorted(starts[i + 1], splits) if i + 1 < len(starts) else splits
        for i, splits in enumerate(starts)
    ]


def is_default_index(index: pd.MultiIndex, splits: list[Splits]) -> bool:
    """Returns whether the labels of a MultiIndex are 0, 1, 2, ... in each list."""
    if any(name is not None for name in index.names):
        return False
    numbers = positions_in(splits, len(index))
    return all(
        index.levels[i].dtype == np.int64
        and np.array_equal(index.get_level_values(i).to_numpy(), numbers[i])
        for i in range(index.nlevels)
    )


def positions_in(splits: list[Splits], count: int) -> list[Splits]:
    """Returns the number of each row in its list, and of each list around it, outermost first.

    Args:
        splits: The row splits of the lists, the innermost first.
        count: The number of rows.
    """
    numbers: list[Splits] = []
    at = np.arange(count)
    for each in splits:
        outer = np.searchsorted(each, at, side="right") - 1
        numbers.append(at - np.asarray(each)[outer])
        at = outer
    return [at, *numbers[::-1]]


def splits_of(lists: pa.Array) -> Splits:
    """Returns the row splits of an array of lists of records.

    Raises:
        StructureError: If a list is empty.
    """
    if pa.types.is_fixed_size_list(lists.type):
        lengths = np.full(len(lists), lists.type.list_size)
    else:
        lengths = np.asarray(pc.call_function("list_value_length", [lists]))
    if len(lengths) and not lengths.all():
        expected = "lists of at least one record, because each record is a row"
        received = f"an empty list, the first is {int(np.argmin(lengths))}"
        fix = "Leave them out, or convert records of rank 1 that have the lists as a field."
        raise StructureError("to_pandas", expected, received, fix)
    return np.append(0, np.cumsum(lengths))
