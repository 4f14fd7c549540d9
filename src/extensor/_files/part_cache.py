"""Parts of files that are not local, in a folder of the disk that processes share."""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import threading
import time
import uuid
import zlib
from typing import NamedTuple

from extensor._files.file_path import FilePath
from extensor.errors import AccessError, StructureError

# Each file begins with this, the size of the part and its checksum.
_HEADER = struct.Struct("<8sQI")
_MARK = b"extensor"

_PART, _UNFINISHED = ".part", ".unfinished"

# A process that writes longer than so many seconds was killed.
_ABANDONED = 3600.0


class Cache(NamedTuple):
    """Where parts of files that are not local are kept on a disk: `cache=` of what reads files.

    Several processes may use a folder at once. A part is kept under the ETag of its file, so that a
    file that was replaced is read again. What was not used for longest is deleted first. A
    file of the folder that was damaged is noticed, and its part read again.

    Args:
        folder: The folder. It is made if it does not exist.
        max_bytes: How many bytes the files in it may have together, about. Default: 16 GB.

    >>> import extensor as xt
    >>> xt.data.Cache("parts", max_bytes=1 << 30)
    Cache(folder='parts', max_bytes=1073741824)
    """

    folder: FilePath
    max_bytes: int = 1 << 34


class PartCache:
    """The parts in a folder. Without space on the disk, none are added.

    Args:
        folder: The folder.
        max_bytes: How many bytes the files in it may have together.

    Raises:
        StructureError: If there is a file at the path, or `max_bytes` is not a positive number
            (also a ValueError).
        AccessError: If the folder cannot be made or written to (also a PermissionError).
    """

    def __init__(self, folder: FilePath, max_bytes: int) -> None:
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes <= 0:
            fix = "Give for example xt.data.Cache(folder, max_bytes=1 << 34)."
            raise StructureError("cache, max_bytes", "a number of bytes", repr(max_bytes), fix)
        self.folder = os.path.abspath(os.path.expanduser(os.fspath(folder)))
        self.max_bytes = max_bytes
        self._size: int | None = None  # of all files, as far as this process knows
        self._added = 0  # bytes since they were counted
        self._adding = threading.Lock()
        try:
            os.makedirs(self.folder, exist_ok=True)
        except FileExistsError as error:
            fix = "Give another path."
            raise StructureError(self.folder, "a folder for parts", "a file", fix) from error
        except OSError as error:
            raise _not_writable(self.folder, str(error)) from error
        if not os.access(self.folder, os.W_OK):
            raise _not_writable(self.folder, "a folder without permission")

    def get(self, key: str) -> memoryview | None:
        """Returns a part; None if it is not there, or its file is damaged."""
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                data = memoryview(file.read())
        except OSError:
            return None
        if len(data) >= _HEADER.size:
            mark, size, checksum = _HEADER.unpack_from(data)
            part = data[_HEADER.size :]
            if (mark, size, checksum) == (_MARK, len(part), zlib.crc32(part)):
                with contextlib.suppress(OSError):
                    os.utime(path)  # the time of its last use
                return part
        with contextlib.suppress(OSError):
            os.unlink(path)
        return None

    def add(self, key: str, part: memoryview) -> None:
        """Adds a part, and deletes others if there is no room."""
        size = _HEADER.size + len(part)
        if size <= self.max_bytes:
            with self._adding:  # threads that fetch would all find the same room
                self._add(key, part, size)

    def _add(self, key: str, part: memoryview, size: int) -> None:
        # Other processes add parts too.
        if self._size is None or self._added > self.max_bytes // 64:
            self._count()
        if (self._size or 0) + size > self.max_bytes:
            self._count(self.max_bytes * 7 // 8 - size)
        self._size = (self._size or 0) + size
        self._added += size
        path = self._path(key)
        unfinished = f"{path[: -len(_PART)]}.{uuid.uuid4().hex}{_UNFINISHED}"
        try:
            with open(unfinished, "xb") as file:
                file.write(_HEADER.pack(_MARK, len(part), zlib.crc32(part)))
                file.write(part)
            os.replace(unfinished, path)
        except OSError:  # such as a full disk
            with contextlib.suppress(OSError):
                os.unlink(unfinished)

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, hashlib.sha256(key.encode()).hexdigest()[:40] + _PART)

    def _count(self, room: float = float("inf")) -> None:
        """Counts the bytes of all files, and deletes the oldest ones until they fit."""
        found: list[tuple[float, int, str]] = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.name.endswith((_PART, _UNFINISHED)):
                        status = entry.stat()
                        found.append((status.st_mtime, status.st_size, entry.path))
        total, now = sum(size for _, size, _ in found), time.time()
        for used, size, path in sorted(found):
            is_abandoned = path.endswith(_UNFINISHED) and now - used > _ABANDONED
            if is_abandoned or (total > room and path.endswith(_PART)):
                with contextlib.suppress(OSError):
                    os.unlink(path)
                    total -= size
        self._size, self._added = total, 0


def _not_writable(folder: str, received: str) -> AccessError:
    return AccessError(folder, "a folder that can be written to", received, "Give another cache=.")
