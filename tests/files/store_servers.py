"""A server of object stores, from an environment of its own: `make store-servers` makes it."""

import functools
import os
import pathlib
import shutil
import urllib.request

import obstore
import pytest
from obstore.store import S3Store

from tests.formats.emulators import Emulator

_FOLDER = pathlib.Path(__file__).parents[2] / ".venv-stores" / "bin"


@functools.cache
def moto():
    """Returns the address of moto's server of S3; skips the test if it is not installed."""
    folder = os.environ.get("EXTENSOR_STORE_SERVERS", _FOLDER)
    program = shutil.which("moto_server", path=str(folder)) or shutil.which("moto_server")
    if program is None:
        pytest.skip("moto, a server of S3, is not installed: make store-servers.")
    return Emulator(lambda port: [program, "-H", "127.0.0.1", "-p", str(port)]).address


class Bucket:
    """A new bucket of the server.

    Args:
        address: The address of the server.
        name: The name of the bucket.
    """

    def __init__(self, address, name):
        self._url = f"http://{address}/{name}"
        self.name = name
        self._send("PUT")
        self._store = S3Store(
            name,
            endpoint=f"http://{address}",
            access_key_id="id",
            secret_access_key="secret",
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
        """The number of its objects that are not complete."""
        return self._send("GET", "?uploads").decode().count("<UploadId>")

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
