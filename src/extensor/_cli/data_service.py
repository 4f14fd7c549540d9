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

import click
import tensorflow as tf

from extensor._data.stream import register

_Dispatcher = tf.data.experimental.service.DispatchServer
_Worker = tf.data.experimental.service.WorkerServer

_PORT = click.option("--port", type=int, default=0, help="Default: any free port.")


@click.group(
    "data-service",
    short_help="Start a process of tf.data service.",
    epilog="Example: extensor data-service dispatcher --port 5050",
)
def data_service() -> None:
    """Start a process of tf.data service, which reads datasets of xt.data for trainers.

    It prints its address, and runs until it gets SIGINT or SIGTERM.
    """


@data_service.command(
    epilog="Example: extensor data-service dispatcher --port 5050 --work-dir state"
)
@_PORT
@click.option(
    "--work-dir",
    metavar="FOLDER",
    help="For the state, so that a dispatcher with this port and folder can be started again.",
)
def dispatcher(port: int, work_dir: str | None) -> None:
    """Divide datasets among workers."""
    server = started_dispatcher(port, work_dir)
    _serve(server, f"dispatcher: {server.target}")


@data_service.command(
    epilog="Example: extensor data-service worker --dispatcher host:5050 --port 5051"
)
@click.option("--dispatcher", metavar="HOST:PORT", required=True, help="Of the dispatcher.")
@_PORT
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="By which trainers reach this worker; %port% is its port. Default: localhost:%port%.",
)
def worker(dispatcher: str, port: int, address: str | None) -> None:
    """Read and convert records."""
    _serve(started_worker(dispatcher, port, address), f"worker: of {dispatcher}")


def started_dispatcher(port: int = 0, work_dir: str | None = None) -> _Dispatcher:
    """Returns a dispatcher that runs, until it is deleted."""
    service = tf.data.experimental.service
    return service.DispatchServer(
        service.DispatcherConfig(
            port=port,
            protocol="grpc",
            work_dir=work_dir,
            fault_tolerant_mode=work_dir is not None,
        )
    )


def started_worker(dispatcher: str, port: int = 0, address: str | None = None) -> _Worker:
    """Returns a worker that runs, until it is deleted."""
    register()
    service = tf.data.experimental.service
    return service.WorkerServer(
        service.WorkerConfig(
            dispatcher_address=dispatcher.rpartition("://")[2],
            worker_address=address,
            port=port,
            protocol="grpc",
        )
    )


_held: list[Any] = []
"""The server of this process. A local variable would be deleted before the process ends, and a
worker that is deleted waits for its dispatcher."""


def _serve(server: _Dispatcher | _Worker, line: str) -> None:
    _held.append(server)
    signal.signal(signal.SIGTERM, _exit)
    signal.signal(signal.SIGINT, _exit)
    click.echo(line)
    threading.Event().wait()  # not server.join(), which no signal ends


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(0)
