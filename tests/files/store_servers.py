"""Servers of S3, Azure and Google's store, from an environment that `make store-servers` makes."""

import base64
import functools
import hashlib
import hmac
import json
import os
import pathlib
import shutil
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timezone
from typing import NamedTuple

import obstore
import pytest
from obstore.store import AzureStore, S3Store

from tests.formats.emulators import Emulator

_FOLDER = pathlib.Path(__file__).parents[2] / ".venv-stores"


# The account that azurite has.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class Server(NamedTuple):
    """A server that runs: its address, the credentials that it takes, and the store that it is."""

    address: str
    key: str
    kind: str = "s3"

    @property
    def environment(self):
        """The variables by which obstore finds it, as users set them."""
        if self.kind == "az":
            return {
                "AZURE_STORAGE_ENDPOINT": f"http://{self.address}/{_ACCOUNT}",
                "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
                "AZURE_STORAGE_ACCOUNT_KEY": self.key,
            }
        return {
            "AWS_ENDPOINT": f"http://{self.address}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.key,
            "AWS_REGION": "us-east-1",
        }

    def bucket(self, name):
        """Returns a new bucket, or a container of Azure."""
        return (Container if self.kind == "az" else Bucket)(self, name)


def _program(name):
    given = os.environ.get("EXTENSOR_STORE_SERVERS")
    folders = [given] if given else [_FOLDER / "bin", _FOLDER / "node_modules" / ".bin"]
    found = shutil.which(name, path=os.pathsep.join(map(str, folders))) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name}, a server of a store, is not installed: make store-servers.")
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


@functools.cache
def azurite():
    """Returns the server of npm's azurite, as Azure; skips the test if it is not installed."""
    program = _program("azurite-blob")
    options = ["--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    options += ["--blobHost", "127.0.0.1", "--blobPort"]
    started = Emulator(lambda port: [program, *options, str(port)])
    return Server(started.address, _KEY, "az")


@functools.cache
def google():
    """Returns gcp-storage-emulator, which has Google's JSON API; skips if it is not installed."""
    program = _program("gcp-storage-emulator")
    options = ["start", "--in-memory", "--host=127.0.0.1"]
    started = Emulator(lambda port: [program, *options, f"--port={port}"])
    return Server(started.address, "", "gcs")


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


class Container:
    """A new container of Azure; see `Bucket`."""

    uploads = 0  # Azure deletes the parts of objects that are not complete by itself

    def __init__(self, server, name):
        self.name = name
        place = f"{_ACCOUNT}/{name}"
        now = datetime.now(timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
        headers = {"x-ms-date": now, "x-ms-version": "2021-08-06"}
        lines = ["PUT", *[""] * 11, *(f"{key}:{value}" for key, value in headers.items())]
        text = "\n".join([*lines, f"/{_ACCOUNT}/{place}", "restype:container"])
        made = hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {_ACCOUNT}:{base64.b64encode(made).decode()}"
        headers["Content-Length"] = "0"
        url = f"http://{server.address}/{place}?restype=container"
        with urllib.request.urlopen(urllib.request.Request(url, None, headers, method="PUT")):
            pass
        self._store = AzureStore(
            name,
            endpoint=f"http://{server.address}/{_ACCOUNT}",
            account_name=_ACCOUNT,
            account_key=_KEY,
            client_options={"allow_http": True},
        )

    @property
    def keys(self):
        """The names of its objects."""
        return sorted(each["path"] for chunk in obstore.list(self._store) for each in chunk)

    put, get = Bucket.put, Bucket.get


class GoogleBucket:
    """A new bucket of Google's store; see `Bucket`."""

    def __init__(self, server, name):
        self._root = f"http://{server.address}"
        self.name = name
        self._send("POST", "/storage/v1/b?project=p", json.dumps({"name": name}).encode())

    @property
    def keys(self):
        """The names of its objects."""
        found = json.loads(self._send("GET", f"/storage/v1/b/{self.name}/o"))
        return sorted(each["name"] for each in found.get("items", []))

    def put(self, key, data):
        """Writes an object."""
        name = urllib.parse.quote(key, safe="")
        self._send("POST", f"/upload/storage/v1/b/{self.name}/o?uploadType=media&name={name}", data)

    def get(self, key):
        """Returns an object."""
        name = urllib.parse.quote(key, safe="")
        return self._send("GET", f"/download/storage/v1/b/{self.name}/o/{name}?alt=media")

    def _send(self, method, what, data=None):
        kind = "application/octet-stream" if what.startswith("/upload") else "application/json"
        headers = {"Content-Type": kind}
        request = urllib.request.Request(self._root + what, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()
