"""Atomic writing of files: a file is written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import uuid
from collections.abc import Generator
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be deleted
    fcntl = None


@contextlib.contextmanager
def atomic_file(path: str) -> Generator[str]:
    """Yields the path of a temporary file, which replaces `path` if no error occurs.

    The temporary file is in the same folder, with the permissions of the file that it replaces.
    After an error it is deleted. If a process was killed, the next call for the same path deletes
    its temporary file.

    Args:
        path: The file to write or replace.

    >>> import os
    >>> from extensor._files.atomic_file import atomic_file
    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "menu.txt")
    >>> with atomic_file(path) as temporary, open(temporary, "w") as file:
    ...     _ = file.write("soup")
    >>> os.listdir(os.path.dirname(path))
    ['menu.txt']
    """
    folder, name = os.path.split(path)
    _delete_abandoned(folder, name)
    temporary, lock = os.path.join(folder, f".{name}.{uuid.uuid4().hex}"), None
    try:
        lock = _create(temporary)
        # Before anything is in it, which others may not read.
        _set_permissions(temporary, path, stat.S_IWUSR)
        yield temporary
        _set_permissions(temporary, path)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(temporary)
        raise
    finally:
        if lock is not None:
            lock.close()


def _set_permissions(temporary: str, path: str, added: int = 0) -> None:
    """Gives a temporary file the permissions of the file at a path, and added ones."""
    with contextlib.suppress(OSError):  # a new file, or a file system without permissions
        os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode) | added)


def _create(path: str) -> IO[bytes]:
    """Creates a temporary file. Returns an open file that holds a lock on it."""
    while True:
        # A file object, because Python closes it if an interrupt occurs before it is returned.
        lock = open(path, "xb")  # noqa: SIM115
        try:
            if _is_locked(lock, path):
                return lock
        except BaseException:
            lock.close()
            raise
        lock.close()


def _is_locked(lock: IO[bytes], path: str) -> bool:
    """Locks a new file; returns whether it is still at the path."""
    if fcntl is None:
        return True
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # Another process may have deleted it before it was locked.
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock.fileno()), os.stat(path))
    return False


def _delete_abandoned(folder: str, name: str) -> None:
    """Deletes temporary files that no process has locked: their processes have ended."""
    temporary = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{32}}")
    for other in os.listdir(folder):
        if temporary.fullmatch(other):
            with contextlib.suppress(OSError):
                _delete_unless_locked(os.path.join(folder, other))


def _delete_unless_locked(path: str) -> None:
    if fcntl is None:
        os.unlink(path)
        return
    with open(path, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
