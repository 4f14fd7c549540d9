"""Progress bars, on a terminal and in a notebook."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator
from typing import Any

from extensor._dependency import import_extra
from extensor.errors import MissingDependencyError

_DELAY = 1.0
"""Seconds after which a bar that nobody asked for appears."""


@contextlib.contextmanager
def progress_bar(
    title: str,
    progress: bool | None,
    total: int | None,
    unit: str = " records",
    *,
    extra: str = "progress",
) -> Generator[Callable[[int], Any]]:
    """Shows a progress bar on the standard error.

    Args:
        title: The text before the bar: the name of the function.
        progress: Whether to show the bar. Default: if tqdm is installed, and the standard error is
            a terminal or the output of a notebook; then after a second.
        total: The count at the end, or None if it is not known.
        unit: What is counted.
        extra: The extra that installs tqdm, for the error.

    Yields:
        A function that adds to the count.

    Raises:
        MissingDependencyError: If `progress` is true, and tqdm is not installed (also an
            ImportError).
    """
    tqdm: Any = None
    if progress or (progress is None and _is_seen()):
        try:
            tqdm = import_extra("tqdm", extra, title)
        except MissingDependencyError:
            if progress:
                raise
    if tqdm is None:
        yield no_bar
        return
    delay = 0.0 if progress else _DELAY
    bar = tqdm.tqdm(total=total, unit=unit, unit_scale=True, desc=title, delay=delay)
    try:
        yield bar.update
    except Exception:
        bar.leave = False  # the error is what matters
        raise
    finally:
        bar.close()


def _is_seen() -> bool:
    """Returns whether the standard error is a terminal or the output of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is not None:
        return True
    return sys.stderr is not None and sys.stderr.isatty()


def no_bar(count: int) -> None:
    """Shows nothing."""
