"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Generator
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be deleted
    fcntl = None


@contextlib.contextmanager
def whole_file(path: str) -> Generator[str]:
    """Yields the path of an unfinished file, which takes the place of `path` when all went well.

    The unfinished file lies beside the other. After an error it is deleted. What a process that was
    killed has left behind is deleted by the next call for the same path.

    Args:
        path: The file to write or replace.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "menu.txt")
    >>> with whole_file(path) as unfinished, open(unfinished, "w") as file:
    ...     _ = file.write("soup")
    >>> os.listdir(os.path.dirname(path))
    ['menu.txt']
    """
    folder, name = os.path.split(path)
    _delete_abandoned(folder, name)
    unfinished, lock = _begin(folder, name)
    try:
        yield unfinished
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise
    finally:
        lock.close()


def _begin(folder: str, name: str) -> tuple[str, IO[bytes]]:
    """Makes an unfinished file. Returns its path, and an open file that keeps it locked."""
    while True:
        path = os.path.join(folder, f".{name}.{uuid.uuid4().hex}")
        # An object, which Python closes when an interrupt comes before anybody has it.
        lock = open(path, "xb")  # noqa: SIM115
        if fcntl is None:
            return path, lock
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have deleted it before it was locked.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(path)):
                return path, lock
        lock.close()


def _delete_abandoned(folder: str, name: str) -> None:
    """Deletes the unfinished files of processes that have ended: nobody keeps those locked."""
    unfinished = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{32}}")
    for other in os.listdir(folder):
        if unfinished.fullmatch(other):
            with contextlib.suppress(OSError):
                _delete_unless_locked(os.path.join(folder, other))


def _delete_unless_locked(path: str) -> None:
    if fcntl is None:
        os.unlink(path)
        return
    with open(path, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
