"""Files of any file system: local paths, folders, glob patterns and URLs."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pyarrow as pa
import pyarrow.fs as pafs

from extensor._files.file_path import FilePath
from extensor._files.object_store import is_in_object_store, object_store
from extensor._files.ranges import Block, Fetch, FetchAhead, Range, pieces_of
from extensor._files.remote_system import remote_system
from extensor._files.store import CONNECTIONS, Store, StoredFile, replaced_error, store_of
from extensor._raised import first_line
from extensor.errors import (
    DirectoryError,
    DTypeError,
    ExtensorError,
    FormatError,
    MissingDependencyError,
    MissingFileError,
    StructureError,
)

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|[a-z]+::")
_PATTERN = re.compile(r"[*?[]")

Version = tuple[object, ...]
"""What changes when a file is replaced or written to; see `File.version`."""


@dataclass(frozen=True)
class File:
    """A file, or a folder, in a file system.

    Attributes:
        path: The path as the caller wrote it, for errors.
        system: The file system.
        inner: The path in the file system.
        ahead: What fetches the bytes of an object before they are asked for.
    """

    path: str
    system: pafs.FileSystem
    inner: str
    ahead: FetchAhead | None = field(default=None, compare=False, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether the path is one of the operating system."""
        return isinstance(self.system, pafs.LocalFileSystem)

    def open(self) -> pa.NativeFile:
        """Opens the file for reading at any position.

        Raises:
            MissingFileError, DirectoryError: If there is no such file, or it is a folder.
        """
        with self._name_errors():
            if self.store is not None:
                return pa.PythonFile(StoredFile(self.store, self.inner, self.ahead), mode="r")
            return self.system.open_input_file(self.inner)

    def stream(self, compression: str | None = None) -> pa.NativeFile:
        """Opens the file for reading from its beginning.

        Args:
            compression: The compression to undo, such as "gzip" or "zstd".

        Raises:
            MissingFileError, DirectoryError: As `open`.
        """
        if self.store is None:
            with self._name_errors():
                return self.system.open_input_stream(self.inner, compression)
        stream = self.open()
        return stream if compression is None else pa.CompressedInputStream(stream, compression)

    def blocks(
        self, ranges: Iterable[Sequence[Range]], is_checked: bool = False
    ) -> Iterator[Block]:
        """Yields ranges of a file of a store, each time those that are fetched together.

        Args:
            ranges: The ranges.
            is_checked: Whether the first of them asks whether the file was replaced.
        """
        assert self.store is not None
        name = self.store.url_of(self.inner)
        fetch: Fetch = self._check_and_fetch if is_checked else self.fetch
        for each in ranges:
            yield Block(name, fetch, each)
            fetch = self.fetch

    def _check_and_fetch(self, ranges: Sequence[Range]) -> list[memoryview]:
        assert self.store is not None
        self.store.check(self.inner)
        return self.fetch(ranges)

    def version(self) -> Version:
        """Returns the identity of the file at the path, its size and time of change.

        Of a file of a store there is also its ETag, as when it was found first; it has no identity.
        Only (None,) is returned if there is no file.
        """
        if self.store is not None:
            found = self.store.meta(self.inner)
            return None, found.size, found.changed, found.etag
        try:
            status = os.stat(self.inner)
        except OSError:
            return (None,)
        return (status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns

    def expect_version(self, version: Version) -> None:
        """Raises FormatError if the file at the path is not the one of a version any more."""
        now = self.version()
        if now != version and now != (None,):  # whoever opens it says that there is none
            raise replaced_error(self.path)

    @property
    def store(self) -> Store | None:
        """The store that has the file; None for local files."""
        return store_of(self.system)

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        if self.store is not None:
            return self.store.meta(self.inner).size
        return self.system.get_file_info(self.inner).size

    def fetch(self, ranges: Sequence[Range]) -> list[memoryview]:
        """Returns the bytes of ranges of the file; of a store all at once.

        Raises:
            FormatError: If the file ends before.
        """
        if self.store is not None:
            return self.store.fetch(self.inner, ranges)
        with self.open() as stream:
            found = [stream.read_at(end - start, start) for start, end in ranges]
        if [len(each) for each in found] != [end - start for start, end in ranges]:
            raise replaced_error(self.path)
        return [memoryview(each) for each in found]

    @contextlib.contextmanager
    def _name_errors(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            # File systems raise different errors for a folder.
            if self.system.get_file_info(self.inner).type == pafs.FileType.Directory:
                raise directory_error(self.path, "Give the files in it.") from error
            if not isinstance(error, FileNotFoundError):
                raise
            raise _missing(self.path, "a file") from error


@contextlib.contextmanager
def pyarrow_errors(
    path: str, expected: str, fix: str, errors: tuple[type[Exception], ...]
) -> Generator[None]:
    """Replaces the errors of pyarrow about the content of a file by a FormatError that names it.

    Args:
        path: The file.
        expected: What the file should be.
        fix: What to do.
        errors: The classes of the errors, beside OSError and those for names of columns.
    """
    try:
        yield
    except ExtensorError:
        raise
    # A footer with two names for one column raises a KeyError; a name that is not UTF-8 raises a
    # UnicodeDecodeError.
    except (*errors, OSError, KeyError, UnicodeDecodeError) as error:
        # An OSError with an errno comes from the system (no permission, too many open files).
        if isinstance(error, OSError) and error.errno:
            raise
        reason = first_line(error)
        received = f"a file that cannot be read as one ({reason})"
        raise FormatError(path, expected, received, fix) from error


def file_at(path: FilePath | bytes) -> File:
    """Returns the file at a path or URL.

    Args:
        path: A local path, or a URL of a file system that pyarrow or fsspec supports, such as
            `gs://bucket/name`, `s3://...` or `memory://...`.

    Raises:
        DTypeError: If it is no path (also a TypeError).
        FormatError: If no library supports the URL, or the path is not UTF-8 (also a ValueError).
        MissingDependencyError: If the library of the URL is not installed (also an ImportError).
    """
    try:
        text = os.fsdecode(path)
    except TypeError as error:
        fix = "Give a str or a pathlib.Path."
        raise DTypeError("path", "a path or a URL", f"{type(path).__name__}", fix) from error
    try:
        text.encode()
    except UnicodeEncodeError as error:
        expected, received = "a path in UTF-8, as pyarrow needs it", "a path with other bytes"
        name = os.fsencode(text).decode(errors="backslashreplace")
        raise FormatError(name, expected, received, "Rename the file.") from error
    if is_in_object_store(text):
        return File(text, *object_store(text))
    if not _URL.match(text):
        return File(text, pafs.LocalFileSystem(), os.path.expanduser(text))
    try:
        system, inner = pafs.FileSystem.from_uri(text)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a URL that pyarrow does not know
        system, inner = _by_fsspec(text)
    return File(text, remote_system(system, text, inner), inner)


def _by_fsspec(url: str) -> tuple[pafs.FileSystem, str]:
    try:
        import fsspec
    except ImportError as error:
        expected = "fsspec, because pyarrow does not support this URL"
        fix = 'pip install "extensor[fsspec]"'
        raise MissingDependencyError(url, expected, "no module named 'fsspec'", fix) from error
    try:
        system, inner = fsspec.core.url_to_fs(url)
    except ImportError as error:
        fix = "Install the package that fsspec names."
        raise MissingDependencyError(url, "the library of this URL", str(error), fix) from error
    except ValueError as error:
        expected = "a URL of a file system that pyarrow or fsspec supports"
        raise FormatError(url, expected, str(error), "Check the part before ://.") from error
    return pafs.PyFileSystem(pafs.FSSpecHandler(system)), inner


def files_at(
    paths: FilePath | File | Iterable[FilePath], suffixes: tuple[str, ...] = ()
) -> list[File]:
    """Returns the files at paths, in order; those of a folder or pattern are sorted by path.

    Args:
        paths: One path, URL or glob pattern (`*`, `?`, `[...]`, `**`), or several. A folder stands
            for all files below it, except those whose name, or whose folder's name, begins with
            "." or "_".
        suffixes: The suffixes of the files of a folder, such as `(".json", ".jsonl")`; all files
            if empty.

    Raises:
        DTypeError: If `paths` is not a path or a list of paths (also a TypeError).
        MissingFileError: If a path does not exist (also a FileNotFoundError).
        StructureError: If there is no file (also a ValueError).
    """
    if isinstance(paths, (str, bytes, os.PathLike, File)):
        paths = cast("list[FilePath]", [paths])
    if not isinstance(paths, Iterable):
        fix = "Give a path as a str or a pathlib.Path."
        raise DTypeError("paths", "a path, or a list of paths", type(paths).__name__, fix)
    given = [path if isinstance(path, File) else file_at(path) for path in paths]
    look_up(given)
    found = [file for each in given for file in _expand(each, suffixes)]
    if not found:
        expected, fix = f"at least one file{_as_list(suffixes)}", "Check the folder or the pattern."
        raise StructureError(
            ", ".join(file.path for file in given) or "paths", expected, "none", fix
        )
    look_up(found)  # those of a folder, where listing it tells no sizes
    return found


def look_up(files: Sequence[File]) -> None:
    """Asks stores for the sizes of files, many at a time; each file remembers its own."""
    asked = [file for file in files if file.store is not None and not file.store.knows(file.inner)]
    if len(asked) > 1:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda file: file.system.get_file_info(file.inner), asked))


def _as_list(suffixes: tuple[str, ...]) -> str:
    """Returns suffixes in parentheses, without those of compressed files."""
    plain = [s for s in suffixes if not any(s.startswith(f"{other}.") for other in suffixes)]
    return f" ({', '.join(plain)})" if plain else ""


def _expand(file: File, suffixes: tuple[str, ...]) -> list[File]:
    info = file.system.get_file_info(file.inner)
    if info.type == pafs.FileType.File:
        return [file]
    if info.type == pafs.FileType.Directory:
        return [
            each
            for each in _below(file, file.inner)
            if each.inner.endswith(suffixes or "")
            and not is_hidden(each.inner.removeprefix(file.inner))
        ]
    if _PATTERN.search(file.inner):
        return _matching(file)
    raise _missing(file.path, "a file, a folder, or a pattern")


def _matching(file: File) -> list[File]:
    """Returns the files that a pattern matches, sorted by path.

    As in a shell, a name that begins with "." is matched only by a "." in the pattern.
    """
    if file.is_local and not file.inner.endswith("/"):  # without "./" and "//", as paths are listed
        file = replace(file, inner=pathlib.PurePath(file.inner).as_posix())
    folder = re.split(_PATTERN, file.inner, maxsplit=1)[0].rpartition("/")[0]
    pattern, has_dots = _regex(file.inner), "/." in "/" + file.inner.removeprefix(folder)
    return [
        each
        for each in _below(file, folder or ".")
        if pattern.fullmatch(each.inner)
        and (has_dots or "/." not in "/" + each.inner.removeprefix(folder))
    ]


def _below(file: File, folder: str) -> list[File]:
    """Returns all files below a folder, sorted by path."""
    selector = pafs.FileSelector(folder, recursive=True, allow_not_found=True)
    infos: Any = file.system.get_file_info(selector)
    inner = sorted(
        info.path.removeprefix("./") for info in infos if info.type == pafs.FileType.File
    )
    if file.store is not None:
        return [File(file.store.url_of(path), file.system, path) for path in inner]
    prefix = file.path.removesuffix(file.inner) if file.path.endswith(file.inner) else ""
    return [File(prefix + path, file.system, path) for path in inner]


def is_hidden(path: str) -> bool:
    """Returns whether a name in a path begins with "." or "_": such files are not read."""
    return any(part[0] in "._" for part in path.split("/") if part)


def _regex(pattern: str) -> re.Pattern[str]:
    """Returns the expression of a glob pattern; `**` stands for any number of folders."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", pattern)
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile(
        "".join(
            re.escape(part)
            if i % 2 == 0
            else signs.get(part) or part.replace("[!", "[^")
            for i, part in enumerate(parts)
        )
    )  # fmt: skip


@contextlib.contextmanager
def local_path(file: File) -> Generator[str]:
    """Yields the path of a file, or of a temporary copy if it is not a local one.

    Raises:
        MissingFileError, DirectoryError: As `File.open`.
    """
    if file.is_local:
        with file.open():
            yield file.inner
        return
    with file.stream(None) as stream, tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, "file")
        with open(local, "wb") as copy:
            shutil.copyfileobj(stream, copy, 1 << 20)
        yield local


@contextlib.contextmanager
def fetched_ahead(
    files: Sequence[File], ranges: Iterable[Iterable[Sequence[Range]]] | None = None
) -> Generator[list[File]]:
    """Yields files that are read one after another.

    Those that are not local are fetched in this order, before they are asked for.

    Args:
        files: The files.
        ranges: What is read of each of them, each time the ranges that are fetched together.
            Default: all, from its beginning.
    """
    wanted = map(_pieces, files) if ranges is None else ranges
    blocks = (
        block
        for file, each in zip(files, wanted, strict=True)
        if file.store is not None
        for block in file.blocks(each)
    )
    room = next((file.store.read_ahead for file in files if file.store is not None), 0)
    ahead = FetchAhead(blocks, room)
    try:
        yield [file if file.store is None else replace(file, ahead=ahead) for file in files]
    finally:
        ahead.close()


def _pieces(file: File) -> Iterator[Sequence[Range]]:
    yield from ([each] for each in pieces_of(file.size))


def _missing(path: str, expected: str) -> MissingFileError:
    fix = "Check the path; relative paths start from the working directory."
    return MissingFileError(path, expected, "a path that does not exist", fix)


def directory_error(path: str, fix: str) -> DirectoryError:
    """Returns the error for a folder in the place of a file."""
    return DirectoryError(path, "a file", "a directory", fix)
