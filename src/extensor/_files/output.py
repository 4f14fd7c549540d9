"""Files that are written completely or not at all: of bytes, of text, and folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator
from typing import IO, Any

import pyarrow as pa
import pyarrow.fs as pafs

from extensor._files.atomic_file import atomic_file
from extensor._files.compression import compression_of_name
from extensor._files.file_path import FilePath
from extensor._files.files import File, directory_error, file_at
from extensor._files.object_store import ObjectStore, Upload
from extensor.errors import FormatError, MissingFileError, StructureError


@contextlib.contextmanager
def atomic_output(path: FilePath) -> Generator[pa.NativeFile]:
    """Yields a stream that becomes the file at a path if no error occurs.

    A local file is replaced at once, when it is complete; so is an object of a store. Other file
    systems write it under another name first, and move it.

    Raises:
        MissingFileError: If the folder does not exist (also a FileNotFoundError).
        DirectoryError: If the path is a folder (also an IsADirectoryError).
        FormatError: If the path is a device or pipe (also a ValueError).
    """
    file = file_at(path)
    if file.is_local:
        with _atomic_local(file) as unfinished, pa.OSFile(unfinished, "wb") as stream:
            yield stream
        return
    if file.system.get_file_info(file.inner).type == pafs.FileType.Directory:
        raise directory_error(file.path, "Give the name of a file in it.")
    if isinstance(file.store, ObjectStore):
        upload = file.store.upload(file.inner)
        try:
            with pa.PythonFile(_NotClosed(upload), mode="w") as stream:
                yield stream
        except BaseException:
            upload.abort()
            raise
        upload.close()
        return
    unfinished = f"{file.inner}.unfinished"
    try:
        with file.system.open_output_stream(unfinished) as stream:
            yield stream
    except BaseException:
        with contextlib.suppress(OSError):
            file.system.delete_file(unfinished)
        raise
    file.system.move(unfinished, file.inner)


class _NotClosed:
    """An object that is written, whose end is not that of its stream: writers close that always."""

    closed = False

    def __init__(self, upload: Upload) -> None:
        self.write, self.flush = upload.write, upload.flush

    def close(self) -> None:
        """Ends the stream."""
        self.closed = True


@contextlib.contextmanager
def atomic_path(path: FilePath) -> Generator[str]:
    """Yields a path of the operating system, for a writer that takes no stream.

    What is written there becomes the file at `path` if no error occurs, as by `atomic_output`.

    Raises:
        MissingFileError, DirectoryError, FormatError: As `atomic_output`.
    """
    file = file_at(path)
    if file.is_local:
        with _atomic_local(file) as unfinished:
            yield unfinished
        return
    with tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, "file")
        yield local
        with atomic_output(path) as stream, open(local, "rb") as source:
            shutil.copyfileobj(source, stream)


@contextlib.contextmanager
def atomic_folder(path: FilePath) -> Generator[tuple[pafs.FileSystem, str]]:
    """Yields a file system and a new folder in it, which becomes the one at `path`.

    A local folder appears at once, if no error occurs. In other file systems, which cannot move
    folders, its files appear one by one; after an error they are deleted.

    Raises:
        StructureError: If there is a file, or a folder with files, at the path (also a ValueError).
        MissingFileError: If a local folder does not exist in which it should be (also a
            FileNotFoundError).
    """
    file = file_at(path)
    inner = file.inner.rstrip("/")
    kind = file.system.get_file_info(inner).type
    is_folder = kind == pafs.FileType.Directory
    below: Any = pafs.FileSelector(inner, allow_not_found=True, recursive=True)
    infos: Any = file.system.get_file_info(below) if is_folder else []
    # Object stores keep folders that have no file.
    is_full = any(file.is_local or info.type == pafs.FileType.File for info in infos)
    if is_full or not (is_folder or kind == pafs.FileType.NotFound):
        expected = "a path that does not exist, or an empty folder"
        received = "a folder with files" if is_folder else "a file"
        fix = "Delete it first, or give another path."
        raise StructureError(file.path, expected, received, fix)
    if not file.is_local:
        try:
            yield file.system, inner
        except BaseException:
            with contextlib.suppress(OSError):
                file.system.delete_dir(inner)
            raise
        return
    inner = os.path.realpath(inner)
    outer = os.path.dirname(inner)
    if not os.path.isdir(outer):
        raise _no_folder(file.path, outer)
    with tempfile.TemporaryDirectory(
        dir=outer, prefix=f".{os.path.basename(inner)}."
    ) as unfinished:
        # In a folder of its own, because the temporary one is private to the user.
        made = os.path.join(unfinished, "folder")
        os.mkdir(made)
        yield file.system, made
        os.rename(made, inner)


@contextlib.contextmanager
def text_output(path: FilePath | IO[Any]) -> Generator[Any]:
    """Yields a stream for text in UTF-8, as bytes.

    Args:
        path: The file, or a binary or text file object.

    Raises:
        The errors of `atomic_output`.
    """
    if not isinstance(path, (str, os.PathLike)):
        yield _Encoded(path) if hasattr(path, "encoding") else path
        return
    with packed_output(path) as stream:
        yield stream


@contextlib.contextmanager
def packed_output(path: FilePath) -> Generator[pa.NativeFile]:
    """Yields a stream as `atomic_output`, which compresses by a suffix of the path, such as .gz."""
    with atomic_output(path) as stream:
        compression = compression_of_name(os.fsdecode(path))
        if compression is None:
            yield stream
            return
        with pa.CompressedOutputStream(stream, compression) as packed:
            yield packed


class _Encoded:
    """A text file object as a binary one."""

    closed = False

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: bytes) -> None:
        """Writes text in UTF-8."""
        self._file.write(bytes(text).decode())


@contextlib.contextmanager
def _atomic_local(file: File) -> Generator[str]:
    # Replaces the file that a link points to, not the link.
    path = os.path.realpath(file.inner)
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        raise directory_error(file.path, "Give the name of a file in it.")
    if os.path.exists(path) and not os.path.isfile(path):
        expected = "a file, or a path that does not exist"
        received = "a device or pipe, which a file cannot replace"
        raise FormatError(file.path, expected, received, "Write to a file.")
    if not os.path.isdir(folder):
        raise _no_folder(file.path, folder)
    with atomic_file(path) as unfinished:
        yield unfinished


def _no_folder(path: str, folder: str) -> MissingFileError:
    expected, received = "a path in an existing folder", f"{folder}, which does not exist"
    return MissingFileError(path, expected, received, "Create the folder first.")
