"""data_service: the processes of tf.data service, a dispatcher and workers.

The datasets of `xt.data` call Python by names. A worker of TensorFlow alone does not know them; one
that has imported extensor does.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any

import tensorflow as tf

from extensor._data.stream import register
from extensor.errors import FormatError

_Dispatcher = tf.data.experimental.service.DispatchServer
_Worker = tf.data.experimental.service.WorkerServer


def started_dispatcher(port: int = 0, work_dir: str | None = None) -> _Dispatcher:
    """Returns a dispatcher that runs, until it is deleted."""
    service = tf.data.experimental.service
    return service.DispatchServer(
        service.DispatcherConfig(
            port=port, protocol="grpc", work_dir=work_dir, fault_tolerant_mode=work_dir is not None
        )
    )


def started_worker(dispatcher: str, port: int = 0, address: str | None = None) -> _Worker:
    """Returns a worker that runs, until it is deleted.

    Raises:
        FormatError: If the address of the dispatcher has no host or no port (also a ValueError).
    """
    host, _, number = dispatcher.rpartition("://")[2].rpartition(":")
    if not host or not number.isdigit():
        fix = "Give the address that the dispatcher prints."
        raise FormatError("--dispatcher", "a host, a colon and a port", repr(dispatcher), fix)
    register()
    service = tf.data.experimental.service
    return service.WorkerServer(
        service.WorkerConfig(
            dispatcher_address=f"{host}:{number}",
            worker_address=address,
            port=port,
            protocol="grpc",
        )
    )


_held: list[Any] = []
"""The server of this process. A local variable would be deleted before the process ends, and a
worker that is deleted waits for its dispatcher."""


def serve(server: _Dispatcher | _Worker, line: str) -> None:
    """Prints a line, and waits until the process gets SIGINT or SIGTERM."""
    _held.append(server)
    signal.signal(signal.SIGTERM, _exit)
    signal.signal(signal.SIGINT, _exit)
    print(line, flush=True)
    threading.Event().wait()  # not server.join(), which no signal ends


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(0)
