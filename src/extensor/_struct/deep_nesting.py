"""The error for records that are nested more deeply than Python's recursion limit."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator

from extensor.errors import StructureError


@contextlib.contextmanager
def refuse_deep_nesting(path: str) -> Generator[None]:
    """Replaces a RecursionError by a StructureError. Works as a context manager and a decorator.

    Args:
        path: The path in the error.

    Raises:
        StructureError: Instead of a RecursionError (also a ValueError).
    """
    try:
        yield
    except RecursionError:
        expected = f"records nested within Python's recursion limit, {sys.getrecursionlimit()}"
        fix = "Flatten the schema, or raise the limit with sys.setrecursionlimit."
        raise StructureError(path, expected, "deeper nesting", fix) from None
