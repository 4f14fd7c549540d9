"""Runs snippets in processes that have imported TensorFlow, Keras and pyarrow, but not extensor.

The import of these libraries takes most of the time of a short snippet. So one server process
imports them, and forks a child for each snippet. A child runs the snippet as `python -c` does, and
ends as an interpreter ends: with its exit handlers.
"""

import atexit
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

_READY = "ready"


class Server:
    """A process that forks a child for each snippet.

    Nothing of TensorFlow runs in the server, so a child may start the threads of the runtime.
    """

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from tests.prepared_process import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
            start_new_session=True,
        )
        atexit.register(self.close)
        assert self._process.stdout.readline().strip() == _READY

    def run(self, code, env, timeout):
        """Runs a snippet.

        Args:
            code: Python source.
            env: The variables of the child's environment.
            timeout: Seconds after which the child and its children are killed.

        Returns:
            A `subprocess.CompletedProcess` with the output as text.

        Raises:
            subprocess.TimeoutExpired: With the output so far.
        """
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            request = {"code": code, "env": env, "cwd": os.getcwd(), "folder": folder}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            child = int(self._process.stdout.readline())
            expired = threading.Event()
            timer = threading.Timer(timeout, _kill, [child, expired])
            timer.start()
            status = int(self._process.stdout.readline())
            timer.cancel()
            texts = [path.read_bytes().decode(errors="replace") for path in (out, err)]
            if expired.is_set():
                raise subprocess.TimeoutExpired("python", timeout, *map(str.encode, texts))
            return subprocess.CompletedProcess(["python", "-c", code], status, *texts)

    def close(self):
        """Ends the server."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)


def _kill(child, expired):
    expired.set()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def serve():
    """Reads requests from stdin until it is closed. Returns in each child, to run its snippet."""
    import keras  # noqa: F401
    import pyarrow  # noqa: F401
    import tensorflow  # noqa: F401

    assert "extensor" not in sys.modules
    gc.freeze()  # so that no child collects, and so copies, the objects of these modules
    print(_READY, flush=True)
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            _become_python(json.loads(line))
            return
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become_python(request):
    """Makes this process look as if `python -c` had started it, and runs the snippet."""
    os.setsid()
    for number, name, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, f"{request['folder']}/out", os.O_WRONLY | os.O_CREAT),
        (2, f"{request['folder']}/err", os.O_WRONLY | os.O_CREAT),
    ):
        os.dup2(os.open(name, flags), number)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    main = sys.modules["__main__"].__dict__
    del main["serve"]
    exec(compile(request["code"], "<string>", "exec"), main)
