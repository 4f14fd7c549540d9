"""Checks of the arguments that the functions of `xt.data` share."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

from extensor.errors import StructureError


def positive(value: Any, name: str, mend: str) -> int:
    """Returns a positive number as an int.

    Raises:
        StructureError: If it is anything else (also a ValueError).
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise StructureError(
            path=f"xt.data: {name}", expected="a positive number", received=repr(value), mend=mend
        )
    return int(value)


def listed(columns: Any) -> tuple[Any, bool]:
    """Returns the argument `columns` of readers, and whether models choose the fields: "auto"."""
    if isinstance(columns, str) and columns == "auto":
        return None, True
    is_list = isinstance(columns, Iterable) and not isinstance(columns, (str, bytes))
    return (list(columns) if is_list else columns), False
