"""Atomic writing of files: a file is written completely or not at all."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Generator, Iterator
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
    _delete_abandoned(path)
    temporary, lock = _create(path)
    try:
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
        lock.close()


def _set_permissions(temporary: str, path: str, added: int = 0) -> None:
    """Gives a temporary file the permissions of the file at a path, and added ones."""
    with contextlib.suppress(OSError):  # a new file, or a file system without permissions
        os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode) | added)


def _temporaries(path: str) -> Iterator[str]:
    """Yields the names for the temporary files of all who write a path at the same time.

    They are few, and known, because it takes long to list a folder of many files.
    """
    folder, name = os.path.split(path)
    return (os.path.join(folder, f".{name}.extensor-{i}") for i in itertools.count())


def _create(path: str) -> tuple[str, IO[bytes]]:
    """Creates a temporary file; returns its path, and an open file that holds a lock on it."""
    names = _temporaries(path)
    while True:
        temporary = next(names)
        with contextlib.suppress(FileExistsError):  # that of another writer
            # A file object, because Python closes it if an interrupt occurs before it is returned.
            lock = open(temporary, "xb")  # noqa: SIM115
            try:
                if _is_locked(lock, temporary):
                    return temporary, lock
            except BaseException:
                lock.close()
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
                raise
            lock.close()


def _is_locked(lock: IO[bytes], path: str) -> bool:
    """Locks an open file; returns whether it is locked, and still at the path."""
    if fcntl is not None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # the other process that has the lock writes or deletes the file
            return False
        except OSError:  # a file system without locks
            return True
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock.fileno()), os.stat(path))
    return False


def _delete_abandoned(path: str) -> None:
    """Deletes temporary files that no process has locked: their processes have ended."""
    for temporary in itertools.takewhile(os.path.lexists, _temporaries(path)):
        with contextlib.suppress(OSError):
            _delete_unless_locked(temporary)


def _delete_unless_locked(path: str) -> None:
    if fcntl is None:
        os.unlink(path)
        return
    with open(path, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its writer may have moved it to the right path, and another may have taken the name.
        if os.path.samestat(os.fstat(lock.fileno()), os.stat(path)):
            os.unlink(path)
