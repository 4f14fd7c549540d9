"""Object stores: S3, Google Cloud Storage, Azure and HTTP servers, by the library obstore.

pyarrow's own client for S3 takes other bytes than those that were asked for, if the answer is short
or has another range. obstore checks the ranges of answers, and repeats requests that fail.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from extensor._files.ranges import Range
from extensor._files.store import Found, Store, replaced_error
from extensor._raised import first_line
from extensor.errors import (
    AccessError,
    ExtensorError,
    MissingDependencyError,
    MissingFileError,
    StoreError,
)

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta

_URL = re.compile(r"(s3|s3a|gs|az|adl|azure|abfs|abfss|https?)://[^/]+", re.IGNORECASE)

# So many bytes of an answer are taken at once.
_PAGE = 1 << 18

# What is larger is written in parts of this size.
_CHUNK = 1 << 23

# A request is repeated if the store is busy, says nothing, or the connection breaks. After
# `retry_timeout` none is repeated, so that it is longer than the wait for an answer.
_RETRIES: dict[str, Any] = {"max_retries": 8, "retry_timeout": timedelta(seconds=300)}


# How long a store may say nothing. A large part over a slow line takes longer as a whole.
_CLIENT: dict[str, Any] = {
    "allow_http": True,
    "read_timeout": timedelta(seconds=120),
    "timeout": timedelta(hours=2),
}


def is_in_object_store(url: str) -> bool:
    """Returns whether a URL is one of an object store, or of an HTTP server without a query."""
    return _URL.match(url) is not None and not ("?" in url and url.startswith("http"))


def object_store(url: str) -> tuple[pafs.FileSystem, str]:
    """Returns the file system of a URL, and the path in it.

    Credentials are those of the environment, such as AWS_ACCESS_KEY_ID, or of AWS's profiles.

    Raises:
        MissingDependencyError: If obstore is not installed (also an ImportError).
    """
    try:
        import obstore.store
    except ImportError as error:
        raise MissingDependencyError(
            url, "obstore, which reads object stores", str(error), 'pip install "extensor[stores]"'
        ) from error
    root = _URL.match(url)
    assert root is not None
    options: dict[str, Any] = {"client_options": _CLIENT, "retry_config": _RETRIES}
    if root[1].lower() in ("s3", "s3a") and _has_profile():
        options["credential_provider"] = _of_profile(url)
    with store_errors(url):
        store = obstore.store.from_url(root[0], **options)
    inner = url[len(root[0]) :].lstrip("/")
    if root[0].startswith("http"):  # names of objects in buckets are no URLs
        inner = unquote(inner)
    return pafs.PyFileSystem(ObjectStore(store, root[0])), inner


def _has_profile() -> bool:
    """Returns whether AWS's credentials are in a file, which obstore does not read."""
    if "AWS_ACCESS_KEY_ID" in os.environ:
        return False
    path = os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
    return "AWS_PROFILE" in os.environ or os.path.exists(os.path.expanduser(path))


def _of_profile(url: str) -> Any:
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError as error:
        expected = "boto3, which reads the profiles of AWS"
        fix = "pip install boto3, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        raise MissingDependencyError(url, expected, str(error), fix) from error
    return Boto3CredentialProvider()


class ObjectStore(Store):
    """An object store of obstore.

    Args:
        store: The store of obstore.
        root: Its URL.
    """

    def __init__(self, store: Any, root: str) -> None:
        super().__init__()
        self.store = store
        self.root = root

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStore) and other.root == self.root

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def url_of(self, path: str) -> str:
        """Returns the URL of an object."""
        return f"{self.root}/{path}"

    def _ask(self, path: str) -> Found:
        import obstore

        with store_errors(self.url_of(path)):
            return self._as_found(obstore.head(self.store, path))

    def _get(self, path: str, each: Range) -> memoryview:
        import obstore

        url, options = self.url_of(path), self._same(path)
        with store_errors(url):
            found = obstore.get(self.store, path, options={**options, "range": each})
            start, end = found.range
            # Arrow's memory is given back when it is free. `found.bytes()` would take it twice.
            data = memoryview(pa.allocate_buffer(end - start)).cast("B")
            count = 0
            for chunk in found.stream(min_chunk_size=_PAGE):
                fits = memoryview(chunk)[: end - start - count]
                data[count : count + len(fits)] = fits
                count += len(chunk)
        now = self._as_found(found.meta)
        if self._known.setdefault(path, now).etag != now.etag:  # some servers do not know If-Match
            raise replaced_error(url)
        if count != end - start:
            received = f"{count} bytes of {end - start}"
            raise StoreError(url, "the bytes that were asked for", received, "Read the file again.")
        return data

    def _as_found(self, meta: ObjectMeta) -> Found:
        etag = meta["e_tag"]
        # Azure lists ETags without the quotes with which it tells those of one object.
        if etag is not None and '"' not in etag and self.root[0] in "aA":
            etag = f'"{etag}"'
        return Found(meta["size"], etag, meta["last_modified"], meta["version"])

    def _same(self, path: str) -> GetOptions:
        """Returns the options by which only the object answers that was found first."""
        found = self._known.get(path)
        return {} if found is None or found.etag is None else {"if_match": found.etag}

    def get_type_name(self) -> str:
        """Returns the name of the file system."""
        return "obstore"

    def _is_folder(self, path: str) -> bool:
        key = path.rstrip("/")
        return not key or next(iter(self._below(key)), None) is not None

    def _below(self, folder: str) -> Generator[ObjectMeta]:
        """Yields the objects below a folder; nothing of a server that does not list."""
        import obstore

        if self.root.startswith("http"):
            return
        folder = "" if folder == "." else folder.rstrip("/")
        prefix = f"{folder}/" if folder else None
        with store_errors(self.url_of(folder)):
            for chunk in obstore.list(self.store, prefix=prefix):
                yield from chunk

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """Returns the files below a folder."""
        found = list(self._below(selector.base_dir))
        if not found and not selector.allow_not_found:
            raise _missing(self.url_of(selector.base_dir))
        if not selector.recursive:
            depth = len(selector.base_dir.rstrip("/").split("/"))
            found = [each for each in found if each["path"].count("/") <= depth]
        self._known.update((each["path"], self._as_found(each)) for each in found)
        return [self._file_info(each["path"]) for each in found]

    def open_output_stream(self, path: str, metadata: Any) -> pa.PythonFile:
        """Opens an object for writing; it exists when it is closed."""
        return pa.PythonFile(self.upload(path), mode="w")

    def upload(self, path: str) -> Upload:
        """Begins to write an object."""
        self._known.pop(path, None)
        return Upload(self.store, path, self.url_of(path))

    def create_dir(self, path: str, recursive: bool) -> None:
        """Does nothing: object stores have no folders."""

    def delete_dir(self, path: str) -> None:
        """Deletes all objects below a folder."""
        import obstore

        found = [each["path"] for each in self._below(path)]
        with store_errors(self.url_of(path)):
            obstore.delete(self.store, found)


class Upload:
    """An object that is written: it exists when all of it was sent, and `close` was called.

    Args:
        store: The store of obstore.
        path: The object.
        url: Its URL, for errors.
    """

    closed = False

    def __init__(self, store: Any, path: str, url: str) -> None:
        self._store, self._path, self._url = store, path, url
        self._first: list[bytes] = []  # until it is too large for one request
        self._size = 0
        # What is sent in several requests; None after its end.
        self._rest: queue.Queue[bytes | None] = queue.Queue(2)
        self._is_aborted = False
        self._sent: Future[Any] | None = None

    def write(self, data: Any) -> int:
        """Sends some bytes, now or later."""
        found = bytes(data)
        if self._sent is not None:
            self._give(found)
        else:
            self._first.append(found)
            self._size += len(found)
            if self._size > _CHUNK:
                self._begin()
        return len(found)

    def flush(self) -> None:
        """Does nothing: parts of an object are no object."""

    def close(self) -> None:
        """Completes the object."""
        if self.closed:
            return
        self.closed = True
        if self._sent is None:
            with store_errors(self._url):
                self._put(b"".join(self._first), use_multipart=False)
            return
        self._give(None)
        with store_errors(self._url):
            self._sent.result()

    def abort(self) -> None:
        """Ends without an object; what was sent is dropped."""
        if self.closed:
            return
        self.closed = self._is_aborted = True
        self._first.clear()
        if self._sent is not None:
            with contextlib.suppress(ExtensorError):
                self._give(None)
            self._sent.exception()

    def _begin(self) -> None:
        thread = ThreadPoolExecutor(1, "extensor-upload")
        options = {"use_multipart": True, "chunk_size": _CHUNK, "max_concurrency": 4}
        self._sent = thread.submit(self._put, self._given(), **options)
        thread.shutdown(wait=False)
        first, self._first = self._first, []
        for each in first:
            self._give(each)

    def _put(self, content: bytes | Iterator[bytes], **options: Any) -> None:
        import obstore

        # Of an iterator that raises, obstore deletes what it sent.
        obstore.put(self._store, self._path, content, **options)

    def _given(self) -> Generator[bytes]:
        while (each := self._rest.get()) is not None:
            yield each
        if self._is_aborted:
            raise self._unfinished_error()

    def _give(self, data: bytes | None) -> None:
        assert self._sent is not None
        while True:
            with contextlib.suppress(queue.Full):
                return self._rest.put(data, timeout=0.5)
            if self._sent.done():  # it failed
                with store_errors(self._url):
                    self._sent.result()
                raise self._unfinished_error()

    def _unfinished_error(self) -> StoreError:
        return StoreError(self._url, "a whole object", "a part of it", "Write it again.")


@contextlib.contextmanager
def store_errors(url: str) -> Generator[None]:
    """Replaces the errors of obstore by errors that name the URL.

    Raises:
        MissingFileError: If there is no such object or bucket (also a FileNotFoundError).
        AccessError: If the store does not accept the credentials (also a PermissionError).
        FormatError: If the object was replaced (also a ValueError).
        StoreError: If it does not answer, or answers wrongly (also an OSError).
    """
    from obstore import exceptions

    try:
        yield
    except ExtensorError:
        raise
    except FileNotFoundError as error:
        raise _missing(url) from error
    except exceptions.PreconditionError as error:
        raise replaced_error(url) from error
    except (exceptions.BaseError, OSError) as error:
        denied = exceptions.PermissionDeniedError, exceptions.UnauthenticatedError
        # The class of an error of a list does not say so.
        if isinstance(error, denied) or re.search("status code: 40[13]", str(error)):
            fix = (
                "Set them in the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
            expected = "credentials that may do this"
            raise AccessError(url, expected, first_line(error), fix) from error
        if "NoSuchBucket" in str(error) or "ContainerNotFound" in str(error):
            raise _missing(url) from error
        again = "Read again; if it stays, look at the store."
        raise StoreError(url, "an answer of the store", first_line(error), again) from error


def _missing(url: str) -> MissingFileError:
    fix = "Check the names of the bucket and of the object."
    return MissingFileError(url, "an object", "a path that does not exist", fix)
