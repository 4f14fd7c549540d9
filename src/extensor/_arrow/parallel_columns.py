"""Conversion of columns: large ones in parallel threads, the others one after the other."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from extensor._memory import keep_freed_memory

# Columns of strings with more bytes than this are converted in parallel. Copying strings takes
# most of the time, in ops and NumPy loops that release the GIL.
LARGE = 1 << 19

_thread = threading.local()


def convert_columns(convert: Callable[[int], Any], count: int, sizes: dict[int, int]) -> list[Any]:
    """Returns `[convert(i) for i in range(count)]`, with large columns converted in parallel.

    The pool starts with the largest column. The calling thread starts with the smallest, so it
    works too instead of waiting.

    Args:
        convert: Takes the number of a column.
        count: The number of columns.
        sizes: The size in bytes of each large column.
    """
    done: dict[int, Any] = {}
    if len(sizes) > 1 and not hasattr(_thread, "works_for_pool"):
        large = sorted(sizes, key=lambda i: -sizes[i])
        begun: dict[int, Future[Any]] = {}
        with contextlib.suppress(RuntimeError):  # Python is exiting: this thread converts all
            begun |= ((i, _pool().submit(convert, i)) for i in large)
        done = {i: convert(i) for i in reversed(begun) if begun[i].cancel()}
        done |= {i: begun[i].result() for i in begun if i not in done}
    return [done[i] if i in done else convert(i) for i in range(count)]


def convert_and_free(
    convert: Callable[[int], Any], columns: list[Any], sizes: dict[int, int]
) -> list[Any]:
    """Returns `convert_columns(convert, len(columns), sizes)`, where `convert` frees its column.

    Columns that are a large part of all are converted one after the other: more memory at once
    takes time that a second thread cannot save. The one with most bytes in one buffer is first: its
    copies need memory for a while, and there is most at the beginning.

    Args:
        convert: Takes the number of a column.
        columns: The columns.
        sizes: The size in bytes of each large column.
    """
    large = [i for i in sizes if sizes[i] * 4 > sum(sizes.values())]
    longest = {i: max(each.size for each in columns[i].buffers() if each) for i in large}
    done = {i: convert(i) for i in sorted(large, key=lambda i: -longest[i])}
    small = {i: size for i, size in sizes.items() if i not in done}
    return convert_columns(lambda i: done[i] if i in done else convert(i), len(columns), small)


def free_unused() -> None:
    """Gives the memory that Arrow's allocator keeps for later back to the system."""
    pa.default_memory_pool().release_unused()


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Returns the thread pool for large columns. Its threads must not wait for each other."""
    keep_freed_memory()
    return ThreadPoolExecutor(
        max_workers=max(1, min(4, os.cpu_count() or 1) - 1),  # the calling thread works too
        thread_name_prefix="extensor-arrow",
        initializer=lambda: setattr(_thread, "works_for_pool", True),
    )
