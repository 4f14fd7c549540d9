"""Servers of S3, from an environment of their own: `make store-servers` makes it."""

import functools
import os
import pathlib
import shutil
import tempfile
import urllib.error
import urllib.request
from typing import NamedTuple

import obstore
import pytest
from obstore.store import S3Store

from tests.formats.emulators import Emulator

_FOLDER = pathlib.Path(__file__).parents[2] / ".venv-stores"


class Server(NamedTuple):
    """A server that runs: its address, and the credentials that it takes."""

    address: str
    key: str


def _program(name):
    given = os.environ.get("EXTENSOR_STORE_SERVERS")
    folders = [given] if given else [_FOLDER / "bin", _FOLDER / "node_modules" / ".bin"]
    found = shutil.which(name, path=os.pathsep.join(map(str, folders))) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name}, a server of S3, is not installed: make store-servers.")
    return found


@functools.cache
def moto():
    """Returns moto's server; skips the test if it is not installed."""
    program = _program("moto_server")
    started = Emulator(lambda port: [program, "-H", "127.0.0.1", "-p", str(port)])
    return Server(started.address, "id")


@functools.cache
def s3rver():
    """Returns the server of npm's s3rver, which ignores If-Match; skips if it is not installed."""
    program, folder = _program("s3rver"), tempfile.mkdtemp()
    options = ["-d", folder, "-a", "127.0.0.1", "--silent"]
    started = Emulator(lambda port: [program, *options, "-p", str(port)])
    return Server(started.address, "S3RVER")


class Bucket:
    """A new bucket of the server.

    Args:
        server: The server.
        name: The name of the bucket.
    """

    def __init__(self, server, name):
        self._url = f"http://{server.address}/{name}"
        self.name = name
        self._send("PUT")
        self._store = S3Store(
            name,
            endpoint=f"http://{server.address}",
            access_key_id=server.key,
            secret_access_key=server.key,
            region="us-east-1",
            client_options={"allow_http": True},
        )

    @property
    def keys(self):
        """The names of its objects."""
        text = self._send("GET", "?list-type=2&max-keys=1000").decode()
        return [each.partition("</Key>")[0] for each in text.split("<Key>")[1:]]

    @property
    def uploads(self):
        """The number of its objects that are not complete; 0 of a server that does not tell."""
        try:
            return self._send("GET", "?uploads").decode().count("<UploadId>")
        except urllib.error.HTTPError as error:
            if error.code != 501:
                raise
            return 0

    def put(self, key, data):
        """Writes an object."""
        obstore.put(self._store, key, data)

    def get(self, key):
        """Returns an object."""
        return bytes(obstore.get(self._store, key).bytes())

    def _send(self, method, what=""):
        request = urllib.request.Request(self._url + what, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()
