"""Records that are nested more deeply than Python can follow."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator

from extensor.errors import StructureError


@contextlib.contextmanager
def refuse_deep_nesting(path: str) -> Generator[None]:
    """Turns a RecursionError into an error that says what to do. Also a decorator.

    Args:
        path: What to call the records.

    Raises:
        StructureError: In place of the RecursionError (also a ValueError).
    """
    try:
        yield
    except RecursionError:
        raise StructureError(
            path=path,
            expected=f"records that Python's recursion limit of {sys.getrecursionlimit()} allows",
            received="more levels of nesting",
            mend="Flatten the schema, or raise the limit with sys.setrecursionlimit.",
        ) from None
