"""Large columns converted side by side, in threads."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from extensor._arrow.buffers import keep_freed_memory

# Copying strings takes nearly all of the time, in ops and NumPy loops that release the GIL.
# Columns of strings with more bytes than this are converted side by side.
LARGE = 1 << 20

_thread = threading.local()


def side_by_side(convert: Callable[[int], Any], count: int, sizes: dict[int, int]) -> list[Any]:
    """Returns what `convert` makes of each number below `count`.

    Threads take the large tasks from the largest on, this thread from the smallest: it works
    rather than waits.

    Args:
        convert: Takes the number of a column.
        count: How many columns there are.
        sizes: For each column that takes long, how many bytes it has.
    """
    done: dict[int, Any] = {}
    if len(sizes) > 1 and not hasattr(_thread, "works_for_pool"):
        large = sorted(sizes, key=lambda i: -sizes[i])
        begun = {i: _pool().submit(convert, i) for i in large}
        done = {i: convert(i) for i in reversed(large) if begun[i].cancel()}
        done |= {i: begun[i].result() for i in large if i not in done}
    return [done[i] if i in done else convert(i) for i in range(count)]


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Returns the threads that convert large columns. They must not wait for one another."""
    keep_freed_memory()
    return ThreadPoolExecutor(
        max_workers=max(1, min(4, os.cpu_count() or 1) - 1),  # the thread that waits works too
        thread_name_prefix="extensor-arrow",
        initializer=lambda: setattr(_thread, "works_for_pool", True),
    )
