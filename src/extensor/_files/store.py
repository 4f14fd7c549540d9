"""File systems that are not local: large ranges of their files are read, by few requests."""

from __future__ import annotations

import abc
import contextlib
import functools
import numbers
import os
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.fs as pafs

from extensor._files.file_path import FilePath
from extensor._files.part_cache import Cache, PartCache
from extensor._files.ranges import FetchAhead, Range, RangesFile
from extensor.errors import DTypeError, FormatError, MissingFileError, StoreError, StructureError

# How many bytes are read at least where one position after another is read.
_PAGE = 1 << 20

# So many bytes at the end of a file are read together.
_END = 1 << 16

CONNECTIONS = 16
"""How many requests are sent to a store at once."""

READ_AHEAD = 12 << 20
"""How many bytes are fetched before they are asked for, by default."""


class Reading(NamedTuple):
    """How files of stores are read.

    Attributes:
        read_ahead: How many bytes are fetched before they are asked for.
        cache: Where parts are kept; None for nowhere.
    """

    read_ahead: int = READ_AHEAD
    cache: PartCache | None = None


def reading_of(read_ahead: int, cache: FilePath | Cache | None) -> Reading:
    """Returns how files of stores are read, by two arguments of a function that reads files.

    Args:
        read_ahead: How many bytes are fetched before they are asked for.
        cache: Where parts are kept.

    Raises:
        StructureError: If `read_ahead` is no number of bytes, or the cache cannot be a folder (also
            a ValueError).
        DTypeError: If `cache` is neither a path nor a Cache (also a TypeError).
        AccessError: If the folder cannot be written to (also a PermissionError).
    """
    is_number = isinstance(read_ahead, numbers.Integral) and not isinstance(read_ahead, bool)
    if not is_number or read_ahead < 0:
        fix = "Give read_ahead=0 to fetch what is read only."
        raise StructureError("read_ahead", "a number of bytes", repr(read_ahead)[:60], fix)
    if cache is None:
        return Reading(int(read_ahead))
    given = cache if isinstance(cache, Cache) else Cache(cache)
    if not isinstance(given.folder, (str, os.PathLike)):
        expected, fix = "a folder, or an xt.data.Cache", 'Give for example cache="parts".'
        raise DTypeError("cache", expected, repr(cache)[:60], fix)
    return Reading(int(read_ahead), PartCache(*given))


_reading: ContextVar[Reading] = ContextVar("reading", default=Reading())  # noqa: B039


@contextlib.contextmanager
def reading_as(reading: Reading) -> Generator[None]:
    """Lets the stores of URLs that are opened meanwhile read their files so, always."""
    token = _reading.set(reading)
    try:
        yield
    finally:
        _reading.reset(token)


class Found(NamedTuple):
    """What a store says of a file.

    Attributes:
        size: The size in bytes.
        etag: What no other content has; None if there is no such thing.
        changed: When it changed; None if that is not known.
        version: The number of the version, where the store keeps several.
    """

    size: int
    etag: str | None = None
    changed: object = None
    version: str | None = None


class Store(pafs.FileSystemHandler, abc.ABC):  # pyright: ignore[reportUntypedBaseClass]
    """A file system that is not local, or the part of it below a URL, as pyarrow's one.

    What it lists or opens is remembered, with what tells its content: a file that changes later is
    an error. A subclass has `_ask`, `_get` and the other methods of a FileSystemHandler.
    """

    def __init__(self) -> None:
        self.read_ahead, self._cache = _reading.get()
        self._known: dict[str, Found] = {}

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @abc.abstractmethod
    def url_of(self, path: str) -> str:
        """Returns the URL of a file."""

    @abc.abstractmethod
    def _ask(self, path: str) -> Found:
        """Asks for a file.

        Raises:
            MissingFileError, AccessError, StoreError: If there is none, or the store says no.
        """

    @abc.abstractmethod
    def _get(self, path: str, each: Range) -> memoryview:
        """Returns bytes of a file by one request.

        Raises:
            FormatError: If the file was replaced since it was found, and the store tells.
            MissingFileError, AccessError, StoreError: As `_ask`; StoreError also if there are
                fewer bytes.
        """

    def check(self, path: str) -> None:
        """Raises FormatError if a file was replaced, where only a request of its own tells."""

    def meta(self, path: str) -> Found:
        """Returns what the store said of a file when it was found first.

        Raises:
            MissingFileError, AccessError, StoreError: If there is none, or the store says no.
        """
        if path not in self._known:
            self._known[path] = self._ask(path)
        return self._known[path]

    def knows(self, path: str) -> bool:
        """Returns whether `meta` needs no request."""
        return path in self._known

    def fetch(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """Returns bytes of a file, by one request for each range, all at once.

        Args:
            path: The file.
            ranges: The first byte of each range, and the one after its last.

        Raises:
            FormatError: If the file was replaced since it was found (also a ValueError).
            MissingFileError, AccessError, StoreError: As `meta`.
        """
        if len(ranges) == 1:
            return [self._range(path, ranges[0])]
        with ThreadPoolExecutor(min(CONNECTIONS, max(1, len(ranges)))) as pool:
            return list(pool.map(functools.partial(self._range, path), ranges))

    def tail(self, path: str, size: int) -> memoryview:
        """Returns the last bytes of a file by one request."""
        end = self.meta(path).size
        # An empty object has no range.
        return self._range(path, (max(0, end - size), end)) if end else memoryview(b"")

    def _range(self, path: str, each: Range) -> memoryview:
        """Returns bytes of a file: those that are kept, or by a request."""
        key = None if self._cache is None else self._key(path, each)
        if self._cache is not None and key is not None:
            kept = self._cache.get(key)
            if kept is not None and len(kept) == each[1] - each[0]:
                return kept
        data = self._get(path, each)
        if len(data) != each[1] - each[0]:
            received, fix = f"{len(data)} bytes of {each[1] - each[0]}", "Read the file again."
            raise StoreError(self.url_of(path), "the bytes that were asked for", received, fix)
        if self._cache is not None and key is not None:
            self._cache.add(key, data)
        return data

    def _key(self, path: str, each: Range) -> str | None:
        """Returns the name of a part of a file; None if nothing tells its content."""
        found = self.meta(path)
        tag = found.etag or found.version
        return tag and f"{self.url_of(path)}\n{tag}\n{found.size}\n{each[0]}-{each[1]}"

    # Methods of FileSystemHandler.

    def _refuse(self, *arguments: object, **options: object) -> NoReturn:
        fix = "Use the library of the file system."
        raise StoreError(self.get_type_name(), "files to read or write", "another request", fix)

    # What nobody asks for.
    copy_file = delete_file = move = open_append_stream = _refuse
    delete_dir_contents = delete_root_dir_contents = _refuse

    def normalize_path(self, path: str) -> str:
        """Returns the path as it is."""
        return path

    def get_file_info(self, paths: Iterable[str]) -> list[pafs.FileInfo]:
        """Returns what is at some paths."""
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> pafs.FileInfo:
        key = path.rstrip("/")
        with contextlib.suppress(MissingFileError):
            if key and key == path:
                return self._file_info(path)
        kind = pafs.FileType.Directory if self._is_folder(path) else pafs.FileType.NotFound
        return pafs.FileInfo(path, kind)

    def _file_info(self, path: str) -> pafs.FileInfo:
        return pafs.FileInfo(path, pafs.FileType.File, size=self.meta(path).size)

    @abc.abstractmethod
    def _is_folder(self, path: str) -> bool:
        """Returns whether a path that is no file is a folder."""

    def open_input_file(self, path: str) -> pa.PythonFile:
        """Opens a file for reading at any position."""
        return pa.PythonFile(StoredFile(self, path), mode="r")

    def open_input_stream(self, path: str) -> pa.PythonFile:
        """Opens a file for reading from its beginning."""
        return self.open_input_file(path)


class StoredFile(RangesFile):
    """A file of a store, which reads at least a page by each request.

    Args:
        store: The store.
        path: The file.
        ahead: What fetches its bytes before they are asked for.
    """

    def __init__(self, store: Store, path: str, ahead: FetchAhead | None = None) -> None:
        self._ahead, self._name = ahead, store.url_of(path)
        super().__init__(store.meta(path).size, functools.partial(store.fetch, path), ())

    def _read(self, begin: int, end: int) -> memoryview:
        if self._ahead is not None:
            found = self._ahead.read(self._name, begin, end)
            if found is not None:
                return found
        return super()._read(begin, end)

    def _read_missing(self, begin: int, end: int) -> memoryview:
        if end - begin >= _PAGE:
            return super()._read_missing(begin, end)
        # The footers of files are read backwards.
        start = min(begin, max(0, self._size - _END))
        page = super()._read_missing(start, min(max(end, begin + _PAGE), self._size))
        self._parts = [*self._parts[-1:], (start, page)]
        return page[begin - start : end - start]

    def close(self) -> None:
        """Drops what was read."""
        self._parts = []
        super().close()


def store_of(system: pafs.FileSystem) -> Store | None:
    """Returns the store that a file system is; None of a local one."""
    handler = getattr(system, "handler", None)
    return handler if isinstance(handler, Store) else None


def replaced_error(path: str) -> FormatError:
    """Returns the error for a file that changed since it was opened first."""
    expected = "the file to stay unchanged since it was opened first"
    fix = "Open the files, or make the dataset, again."
    return FormatError(path, expected, "a file that was replaced or written to", fix)
