"""Passes over parts that are loaded by number, of which the next one is read in the background."""

from __future__ import annotations

import abc
import contextlib
import functools
import math
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import tensorflow as tf

from extensor._data.position import StartedPass


class ReadAhead(abc.ABC):
    """One pass over a source. A subclass has `_read` and `_close_source`.

    Args:
        parts: The number of parts; infinite if it is not known.
        place: Where the pass begins.
    """

    reads_ahead = True
    """Whether the next part is read in the background."""

    def __init__(self, parts: float = math.inf, place: tuple[int, int] = (0, 0)) -> None:
        self._parts = parts
        self.entry = StartedPass(place)
        self._lock = threading.Lock()  # while a part is read, or the source is closed
        self._ahead: tuple[int, Future[tf.data.Dataset | None]] | None = None
        self._is_closed = False
        self.is_over = False
        """Whether a source of unknown length has ended."""

    def load(self, number: int) -> tf.data.Dataset:
        """Returns a dataset of the batches of a part.

        Args:
            number: The number of the part in the pass.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == number:
            batches = ahead[1].result()
        else:
            if ahead is not None:
                ahead[1].cancel()
            batches = self._load(number)
        self.is_over = batches is None
        self.entry.is_finished = batches is None or number + 1 == self._parts
        if batches is None:
            return empty_dataset()
        if self.reads_ahead and number + 1 < self._parts and not self._is_closed:
            future = _submit(self._load, number + 1)
            self._ahead = None if future is None else (number + 1, future)
        return batches

    def close(self) -> None:
        """Closes the source, at once or when the part that is being read is complete."""
        self._is_closed = True
        self.entry.is_open = False
        if (ahead := self._ahead) is not None:
            ahead[1].cancel()
        if not self._close_if_free():
            self._close_later()

    def finish(self) -> None:
        """Closes the source when the part that is being read is complete, and waits for it."""
        with self._lock:
            self._close_source()

    def _load(self, number: int) -> tf.data.Dataset | None:
        try:
            with self._lock:
                return self._read(number)
        finally:
            if self._is_closed:
                self._close_if_free()

    def _close_if_free(self) -> bool:
        """Closes the source, unless a part is being read; returns whether it did."""
        # Whoever reads closes the source afterwards. Waiting for it could block forever: garbage
        # collection may call this anywhere.
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._ahead = None
            self._close_source()
        finally:
            self._lock.release()
        return True

    def _close_later(self) -> None:  # noqa: B027 - only some sources need it
        """Is called by `close` while a part is read, after which the source is closed."""

    @abc.abstractmethod
    def _read(self, number: int) -> tf.data.Dataset | None:
        """Returns the batches of a part; None after the end of a source of unknown length."""

    @abc.abstractmethod
    def _close_source(self) -> None:
        """Closes the source; does nothing if it is closed. Nothing is read meanwhile."""


@functools.cache
def empty_dataset() -> tf.data.Dataset:
    """Returns a dataset without elements."""
    return tf.data.Dataset.range(0)


def _submit(read: Callable[[int], Any], number: int) -> Future[Any] | None:
    """Reads a part in the background; returns None if Python is exiting."""
    with contextlib.suppress(RuntimeError):
        return _readers().submit(read, number)
    return None


@functools.cache
def _readers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(8, "extensor-read")


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_readers.cache_clear)
