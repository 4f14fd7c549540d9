"""Checks of the arguments that the functions of `xt.data` share."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

from extensor.errors import StructureError

_LIMIT = 1 << 31
"""So that the number of batches of a pass fits int64."""


def positive(value: Any, name: str, fix: str) -> int:
    """Returns a positive number below 2**31 as an int.

    Raises:
        StructureError: If it is anything else (also a ValueError).
    """
    number = 0
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        number = int(value)
    if not 0 < number < _LIMIT:
        raise StructureError(
            f"xt.data: {name}",
            "a positive number" + (" below 2**31" if number > 0 else ""),
            repr(value),
            fix,
        )
    return number


def listed(columns: Any) -> tuple[Any, bool]:
    """Returns the argument `columns` of readers, and whether models choose the fields: "auto"."""
    if isinstance(columns, str) and columns == "auto":
        return None, True
    is_list = isinstance(columns, Iterable) and not isinstance(columns, (str, bytes))
    return (list(columns) if is_list else columns), False
