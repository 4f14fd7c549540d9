"""A check that row splits are valid."""

from __future__ import annotations

from typing import Any

from extensor.errors import StructureError


def check_row_splits(splits: Any, count: int | None, path: str) -> None:
    """Checks that row splits begin at 0, never decrease, and end with the number of values.

    Args:
        splits: A NumPy vector of integers.
        count: The number of values; None if it is not known.
        path: The name of the splits in errors.

    Raises:
        StructureError: If the splits are not valid (also a ValueError).

    >>> xt.authoring.check_row_splits(np.array([0, 2, 1]), 1, "Recipe.row_splits")
    Traceback (most recent call last):
    extensor.errors.StructureError: Recipe.row_splits: expected splits that never decrease, got a
    decrease after row 1. ...
    """
    decreases = splits[1:] < splits[:-1]
    if len(splits) == 0:
        expected, received = "at least one split, the number 0", "an empty vector"
    elif splits[0] != 0:
        expected, received = "splits that begin with 0", f"a first split of {splits[0]}"
    elif decreases.any():
        expected = "splits that never decrease"
        received = f"a decrease after row {int(decreases.argmax())}"
    elif count is not None and splits[-1] != count:
        expected = f"splits that end with {count}, the number of values"
        received = f"a last split of {splits[-1]}"
    else:
        return
    raise StructureError(
        path=path,
        expected=expected,
        received=received,
        mend="Row i holds the values from row_splits[i] up to row_splits[i + 1].",
    )


def first_difference(lengths: Any, expected: Any) -> int | None:
    """Returns the first row whose length is not the expected one, or None.

    Args:
        lengths: A NumPy vector of the lengths of rows.
        expected: A vector of as many lengths, or one length.

    >>> first_difference(np.array([2, 1]), np.array([2, 2]))
    1
    """
    differs = lengths != expected
    return int(differs.argmax()) if differs.any() else None
