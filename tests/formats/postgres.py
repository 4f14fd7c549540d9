"""A PostgreSQL server on loopback, of its own, for the tests."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

USER, PASSWORD = "tester", "secret"


def _binaries():
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("postgres")
    places += [Path(found).parent] if found else []
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    return None


class Server:
    """A running server.

    Attributes:
        uri: Its URI, with the password.
    """

    def __init__(self, folder, binaries):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.uri = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"
        self._log = folder / "log"
        options = {"cwd": folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}}
        if os.geteuid() == 0:  # the server refuses to run as root
            owner = pwd.getpwnam("postgres")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            options |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        password = folder / "password"
        password.write_text(f"{PASSWORD}\n")
        password.chmod(0o644)
        data = folder / "data"
        rules = ["-A", "scram-sha-256", "-N", "-E", "UTF8"]
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", USER, f"--pwfile={password}", *rules],
            check=True,
            capture_output=True,
            timeout=120,
            **options,
        )
        address = ["-h", "127.0.0.1", "-p", str(self.port), "-k", folder]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [binaries / "postgres", "-D", data, "-F", *address],
                stdout=log,
                stderr=log,
                **options,
            )

    def connect(self):
        """Returns a connection, once the server accepts one."""
        import adbc_driver_postgresql.dbapi

        for _ in range(200):
            if self._process.poll() is not None:
                break
            with contextlib.suppress(adbc_driver_postgresql.dbapi.Error):
                return adbc_driver_postgresql.dbapi.connect(self.uri)
            time.sleep(0.1)
        raise AssertionError(f"PostgreSQL does not answer: {self._log.read_text()[-2000:]}")

    def kill(self):
        """Ends the server at once, with its connections."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(60)


@contextlib.contextmanager
def server():
    """Yields a Server, which ends afterwards; skips the test where PostgreSQL is not installed."""
    pytest.importorskip("adbc_driver_postgresql", reason="its driver is not installed")
    binaries = _binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed (apt install postgresql)")
    with tempfile.TemporaryDirectory() as folder:
        running = Server(Path(folder), binaries)
        try:
            running.connect().close()
            yield running
        finally:
            running.kill()
