"""File systems of fsspec and pyarrow that are not local, of which large ranges are read."""

from __future__ import annotations

import abc
import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import pyarrow as pa
import pyarrow.fs as pafs

from extensor._files.ranges import Range
from extensor._files.store import Found, Store, replaced_error
from extensor._raised import first_line
from extensor.errors import AccessError, ExtensorError, MissingFileError, StoreError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

# Names of what file systems tell of a file, in lower case and without "_" and "-": what no other
# content has, and when it changed.
_TAGS = ("etag", "generation", "md5hash", "contentmd5", "md5", "versionid", "blobid", "sha", "hex")
_TIMES = ("lastmodified", "mtime", "updated", "modified", "modify", "modificationtime", "created")

# How many files are open at once, at most.
_OPEN = 256

# A file that was asked for so many seconds ago is not asked for again, once.
_RECENT = 2.0

# A file system of fsspec that gives an error is asked again, after so many seconds each.
_PAUSES = (0.2, 0.8, 3.2)

_Handle = TypeVar("_Handle")
_T = TypeVar("_T")


def remote_system(system: pafs.FileSystem, url: str, inner: str) -> pafs.FileSystem:
    """Returns a file system that reads as a store; a local one as it is.

    Args:
        system: A file system of pyarrow, or one of fsspec by `pafs.FSSpecHandler`.
        url: The URL of a path in it.
        inner: The path.
    """
    if isinstance(system, pafs.LocalFileSystem):
        return system
    handler = getattr(system, "handler", None)
    before, found, after = url.rpartition(inner)
    kind = FsspecSystem if isinstance(handler, pafs.FSSpecHandler) else ArrowSystem
    return pafs.PyFileSystem(kind(system, before, after if found else ""))


class RemoteSystem(Store, Generic[_Handle]):
    """A file system that is not local. A subclass has `_open`, `_ask`, `_get` and `_is_folder`.

    Args:
        system: The file system.
        before: What is before a path in its URL.
        after: What is after it.
    """

    def __init__(self, system: pafs.FileSystem, before: str, after: str) -> None:
        super().__init__()
        self._system, self._before, self._after = system, before, after
        self._handles: OrderedDict[str, _Handle] = OrderedDict()
        self._opening = threading.Lock()  # of `_handles` and `_locks`
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._asked: dict[str, float] = {}  # when, of files that no pass has read

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteSystem) and other._system == self._system

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def url_of(self, path: str) -> str:
        """Returns the URL of a file."""
        return f"{self._before}{path}{self._after}"

    def meta(self, path: str) -> Found:
        """Returns what the file system said of a file when it was found first; see `Store`."""
        if path not in self._known:
            self._remember(path, self._ask(path))
        return self._known[path]

    def _remember(self, path: str, found: Found) -> None:
        self._known[path] = found
        self._asked[path] = time.monotonic()

    def check(self, path: str) -> None:
        """Raises FormatError if a file was replaced since it was found, by asking for it."""
        if time.monotonic() - self._asked.pop(path, -_RECENT) >= _RECENT:
            self._forget(path)
            if not _is_same(self._ask(path), self.meta(path)):
                raise replaced_error(self.url_of(path))

    @abc.abstractmethod
    def _open(self, path: str) -> _Handle:
        """Opens a file."""

    def _handle(self, path: str) -> _Handle:
        """Returns an open file; each is opened once, also if several threads ask for it."""
        with self._opening:
            lock = self._locks.setdefault(path, threading.Lock())
        with lock:
            with self._opening:
                handle = self._handles.get(path)
                if handle is not None:
                    self._handles.move_to_end(path)
                    return handle
            handle = self._open(path)
            with self._opening:
                # They are closed when nobody reads from them any more.
                while len(self._handles) >= _OPEN:
                    self._handles.popitem(last=False)
                self._handles[path] = handle
            return handle

    def _forget(self, path: str) -> None:
        """Forgets the open file at a path."""
        with self._opening:
            self._handles.pop(path, None)

    @contextlib.contextmanager
    def _errors_of(self, path: str) -> Generator[None]:
        """Replaces the errors of a file system by errors that name the URL."""
        url = self.url_of(path)
        try:
            yield
        except (ExtensorError, MemoryError):
            raise
        except Exception as error:  # the clients of stores have errors of their own
            cause = _cause_of(error)
            if isinstance(cause, FileNotFoundError):
                raise _missing_error(url, "a file") from error
            if isinstance(cause, PermissionError) or getattr(cause, "status", 0) in (401, 403):
                expected = "credentials that may do this"
                fix = "Give the credentials as the file system takes them."
                raise AccessError(url, expected, first_line(cause), fix) from error
            expected = "an answer of the file system"
            again = "Read again; if it stays, look at the file system."
            raise StoreError(url, expected, first_line(cause), again) from error

    # Methods of FileSystemHandler, which are those of the file system.

    def get_type_name(self) -> str:
        """Returns the name of the file system."""
        return self._system.type_name

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """Returns the files and folders below a folder."""
        with self._errors_of(selector.base_dir):
            found: Any = self._system.get_file_info(selector)
        return found

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        """Opens a file for writing."""
        self._drop(path)
        return self._system.open_output_stream(path, metadata=metadata or None)

    def create_dir(self, path: str, recursive: bool) -> None:
        """Makes a folder."""
        self._system.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        """Deletes a folder."""
        self._system.delete_dir(path)

    def delete_file(self, path: str) -> None:
        """Deletes a file."""
        self._drop(path)
        self._system.delete_file(path)

    def move(self, src: str, dest: str) -> None:
        """Renames a file."""
        self._drop(src)
        self._drop(dest)
        self._system.move(src, dest)

    def _drop(self, path: str) -> None:
        self._known.pop(path, None)
        self._forget(path)


class ArrowSystem(RemoteSystem[pa.NativeFile]):
    """A file system of pyarrow, such as that of Google Cloud Storage or HDFS.

    pyarrow sends a request to open a file, which also tells its size and ETag. A file is opened
    once, and any number of threads read from it.
    """

    def _open(self, path: str) -> pa.NativeFile:
        with self._errors_of(path):
            return self._system.open_input_file(path)

    def _ask(self, path: str) -> Found:
        handle = self._handle(path)
        with self._errors_of(path):
            size, told = handle.size(), handle.metadata() or {}
            found = _as_found(size, {key: each.decode() for key, each in told.items()})
            if found.etag is None and found.changed is None:
                return Found(size, None, self._system.get_file_info(path).mtime_ns)
            return found

    def _get(self, path: str, each: Range) -> memoryview:
        start, end = each
        handle = self._handle(path)
        with self._errors_of(path):
            return memoryview(handle.read_at(end - start, start))

    def _info(self, path: str) -> pafs.FileInfo:
        try:
            return super()._info(path)
        except StoreError:  # some file systems do not say that it is a folder
            if self._is_folder(path):
                return pafs.FileInfo(path, pafs.FileType.Directory)
            raise

    def _is_folder(self, path: str) -> bool:
        with self._errors_of(path):
            return self._system.get_file_info(path).type == pafs.FileType.Directory


# The locks of file systems of fsspec that get one request after another.
_locks: WeakKeyDictionary[AbstractFileSystem, threading.RLock] = WeakKeyDictionary()


class FsspecSystem(RemoteSystem[IO[bytes]]):
    """A file system of fsspec.

    One that is asynchronous, as those of object stores are, gets many requests at once, each for a
    range. Others may have one connection, or one file in which all of their files are: they get one
    request after another, and a file is opened once.
    """

    def __init__(self, system: pafs.FileSystem, before: str, after: str) -> None:
        super().__init__(system, before, after)
        handler: Any = system.handler  # pyright: ignore[reportAttributeAccessIssue]
        self._fs: Any = handler.fs
        # Not that of the object: a cache of a file system has the attributes of that.
        self._is_async: bool = type(self._fs).async_impl
        self._turn: Any = contextlib.nullcontext()
        if not self._is_async:
            self._turn = _locks.setdefault(self._fs, threading.RLock())
        self._whole: dict[str, bytes] = {}  # files whose size is not known

    @contextlib.contextmanager
    def _errors_of(self, path: str) -> Generator[None]:
        with super()._errors_of(path), self._turn:
            yield

    def _open(self, path: str) -> IO[bytes]:
        from fsspec.caching import BaseCache

        handle = self._fs.open(path, "rb")
        cache = getattr(handle, "cache", None)
        if isinstance(cache, BaseCache):  # it would read more bytes than are asked for
            handle.cache = BaseCache(cache.blocksize, cache.fetcher, cache.size)
        return handle

    def _ask(self, path: str) -> Found:
        return _ask_again(self._ask_once, path)

    def _ask_once(self, path: str) -> Found:
        with self._errors_of(path):
            if path in self._known:
                self._fs.invalidate_cache(path)  # of what was listed
            info = self._fs.info(path)
            if info["type"] == "directory":
                raise _missing_error(self.url_of(path), "a file")
            return self._as_found(path, info)

    def _as_found(self, path: str, info: Mapping[str, Any]) -> Found:
        size = info.get("size")
        if size is None:
            self._whole[path] = self._fs.cat_file(path)
            size = len(self._whole[path])
        return _as_found(size, info)

    def _range(self, path: str, each: Range) -> memoryview:
        return _ask_again(super()._range, path, each)

    def _get(self, path: str, each: Range) -> memoryview:
        start, end = each
        with self._errors_of(path):
            if path in self._whole:
                return memoryview(self._whole[path])[start:end]
            if self._is_async:
                return memoryview(self._fs.cat_file(path, start, end))
            try:
                return _read(self._handle(path), start, end)
            except BaseException:
                self._forget(path)
                raise

    def _info(self, path: str) -> pafs.FileInfo:
        try:
            return self._file_info(path) if self.knows(path) else _ask_again(self._look_up, path)
        except MissingFileError:
            return pafs.FileInfo(path, pafs.FileType.NotFound)

    def _look_up(self, path: str) -> pafs.FileInfo:
        with self._errors_of(path):
            return self._info_of(path, self._fs.info(path))

    def _info_of(self, path: str, info: Mapping[str, Any]) -> pafs.FileInfo:
        """Returns what is at a path, as the file system tells it; files are remembered."""
        if info["type"] != "file":
            is_folder = info["type"] == "directory"
            return pafs.FileInfo(
                path, pafs.FileType.Directory if is_folder else pafs.FileType.Unknown
            )
        if path not in self._known:
            self._remember(path, self._as_found(path, info))
        return self._file_info(path)

    def _is_folder(self, path: str) -> bool:
        with self._errors_of(path):
            return self._fs.isdir(path)

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """Returns the files and folders below a folder."""
        base = selector.base_dir
        with self._errors_of(base):
            if not self._fs.isdir(base):
                if selector.allow_not_found and not self._fs.exists(base):
                    return []
                raise _missing_error(self.url_of(base), "a folder")
            depth = None if selector.recursive else 1
            found: Any = self._fs.find(base, maxdepth=depth, withdirs=True, detail=True)
            return [
                self._info_of(path, info)
                for path, info in found.items()
                if path.strip("/") != base.strip("/")
            ]


def _read(handle: IO[bytes], start: int, end: int) -> memoryview:
    """Returns bytes of a file; fewer only if it ends before."""
    handle.seek(start)
    found, left = list[bytes](), end - start
    while left > 0 and (some := handle.read(left)):
        found.append(some)
        left -= len(some)
    return memoryview(found[0] if len(found) == 1 else b"".join(found))


def _as_found(size: int, told: Mapping[str, Any]) -> Found:
    """Returns what a file system tells of a file, by the names that file systems use."""
    plain = {key.lower().replace("_", "").replace("-", ""): each for key, each in told.items()}
    tag = next((f"{name}={plain[name]}" for name in _TAGS if plain.get(name)), None)
    changed = next((plain[name] for name in _TIMES if plain.get(name)), None)
    # Some list a time as another type than they tell it.
    changed = changed.timestamp() if isinstance(changed, datetime) else changed
    return Found(size, tag, changed)


def _is_same(one: Found, other: Found) -> bool:
    """Returns whether nothing tells that a file changed: its size, its tag, or else its time."""
    if one.size != other.size:
        return False
    if one.etag and other.etag and one.etag.split("=")[0] == other.etag.split("=")[0]:
        return one.etag == other.etag
    return type(one.changed) is not type(other.changed) or one.changed == other.changed


def _ask_again(ask: Callable[..., _T], *arguments: Any) -> _T:
    """Returns what a file system answers; asks again after an error, as not all of them do."""
    for seconds in _PAUSES:
        with contextlib.suppress(StoreError):
            return ask(*arguments)
        time.sleep(seconds)
    return ask(*arguments)


def _cause_of(error: Exception) -> Exception:
    """Returns an error, or the one of an HTTP server that fsspec took for a missing file."""
    cause = error.__cause__
    is_of_http = type(cause).__module__.partition(".")[0] == "aiohttp"
    if isinstance(cause, Exception) and is_of_http and getattr(cause, "status", 0) != 404:
        return cause
    return error


def _missing_error(url: str, expected: str) -> MissingFileError:
    return MissingFileError(url, expected, "a path that does not exist", "Check the path.")
