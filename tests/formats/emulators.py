"""Google's emulators of Spanner and Firestore, and a proxy that cuts connections.

A server is started once in a process, on a free port, and ends with the process.
"""

import atexit
import contextlib
import functools
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

_SDK = Path("/usr/lib/google-cloud-sdk")
_SPANNER = _SDK / "bin/cloud_spanner_emulator/emulator_main"
_FIRESTORE = _SDK / "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"


@functools.cache
def spanner():
    """Returns the address of the emulator of Spanner; skips the test if it is not installed."""
    return spanner_process().address


def spanner_process():
    """Returns a new emulator of Spanner."""
    program = shutil.which("emulator_main") or str(_SPANNER)
    if not Path(program).exists():
        pytest.skip("The emulator of Spanner is not installed: google-cloud-cli-spanner-emulator.")
    return Emulator(lambda port: [program, f"--host_port=127.0.0.1:{port}"])


@functools.cache
def firestore():
    """Returns the address of the emulator of Firestore; skips the test if it is not installed."""
    return firestore_process().address


def firestore_process():
    """Returns a new emulator of Firestore."""
    java = shutil.which("java")
    if java is None or not _FIRESTORE.exists():
        pytest.skip(
            "The emulator of Firestore is not installed: google-cloud-cli-firestore-emulator, java."
        )
    main = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
    command = [java, "-Duser.language=en", "-Xmx512m", "-XX:TieredStopAtLevel=1"]
    command += ["-cp", str(_FIRESTORE), main, "start", "--host=127.0.0.1"]
    return Emulator(lambda port: [*command, f"--port={port}"])


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


class Emulator:
    """A server process.

    Args:
        command: Returns its command line for a port.
    """

    def __init__(self, command):
        for _ in range(3):  # another process may take the port before the server does
            port = free_port()
            self.address = f"127.0.0.1:{port}"
            self.process = subprocess.Popen(
                command(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            atexit.register(self.stop)
            end = time.monotonic() + 120
            while self.process.poll() is None and time.monotonic() < end:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    return
                time.sleep(0.05)
            self.stop()
        raise AssertionError(f"{command(port)[0]} did not start.")

    def stop(self):
        self.process.kill()
        self.process.wait()


class Proxy:
    """Passes connections on to a server, and cuts them.

    Args:
        upstream: The address of the server.
    """

    def __init__(self, upstream):
        self._upstream = upstream.split(":")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._pairs = []
        self._left = self._server = None
        self._lock = threading.Lock()
        self.cuts = 0
        self.latency = 0.0
        """How many seconds pass before the server gets what a client sent."""
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, count, for_ever=False):
        """Cuts all connections once the server has sent so many more bytes.

        Args:
            count: The number of bytes.
            for_ever: Whether the server cannot be reached any more.
        """
        with self._lock:
            self._left, self._for_ever = count, for_ever

    def kill_after(self, count, server):
        """Kills a server once it has sent so many more bytes. What it sent before is passed on.

        Args:
            count: The number of bytes.
            server: The Emulator.
        """
        with self._lock:
            self._left, self._server = count, server

    def close(self):
        # A thread that waits in `accept` keeps the port open without this.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._cut()

    def _cut(self):
        for each in self._pairs:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._pairs.clear()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(tuple(self._upstream))
            except OSError:  # the server is gone
                client.close()
                continue
            self._pairs += [client, server]
            for source, target, counts in ((client, server, False), (server, client, True)):
                threading.Thread(
                    target=self._pass_on, args=(source, target, counts), daemon=True
                ).start()

    def _pass_on(self, source, target, counts):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 12):
                time.sleep(0 if counts else self.latency)
                if counts and self._is_over(len(data)):
                    if self._server is None:
                        self.close() if self._for_ever else self._cut()
                        return
                    self._server.stop()
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def _is_over(self, count):
        with self._lock:
            if self._left is None:
                return False
            self._left -= count
            if self._left > 0:
                return False
            self._left = None
            self.cuts += 1
            return True
