"""The processes of tf.data service: a dispatcher, and workers that can read datasets of `xt.data`.

The datasets of `xt.data` call Python by names. A worker of TensorFlow alone does not know them; one
that has imported extensor does.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any

import tensorflow as tf

from extensor._data import arrow, json, parquet, proto, tfrecord
from extensor._data.stream import register

SOURCES = (arrow, json, parquet, proto, tfrecord)
"""The modules whose import registers how their datasets are made again in another process."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a dispatcher or a worker until it gets SIGINT or SIGTERM.

    Args:
        arguments: The arguments of the command line. Default: those of the process.
    """
    given = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _exit)
    signal.signal(signal.SIGINT, _exit)
    server = given.start(given)
    print(f"{given.process}: {server}", flush=True)
    threading.Event().wait()  # not server.join(), which no signal ends


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m extensor.data_service",
        description="A process of tf.data service, for datasets of xt.data.",
    )
    processes = parser.add_subparsers(dest="process", required=True)

    dispatcher = processes.add_parser("dispatcher", help="divides datasets among workers")
    dispatcher.add_argument("--port", type=int, default=0, help="default: any free port")
    dispatcher.add_argument(
        "--work-dir",
        help="a folder for the state, so that a dispatcher on this port and with this folder can "
        "be started again and continue",
    )
    dispatcher.set_defaults(start=_dispatcher)

    worker = processes.add_parser("worker", help="reads and converts records")
    worker.add_argument("--dispatcher", required=True, help="host:port of the dispatcher")
    worker.add_argument("--port", type=int, default=0, help="default: any free port")
    worker.add_argument(
        "--address",
        help="host:port by which trainers reach this worker; %%port%% stands for the port "
        "(default: localhost:%%port%%)",
    )
    worker.set_defaults(start=_worker)
    return parser


_held: list[Any] = []
"""The server of this process. It ends when it is deleted."""


def _dispatcher(given: argparse.Namespace) -> str:
    service = tf.data.experimental.service
    config = service.DispatcherConfig(
        port=given.port,
        protocol="grpc",
        work_dir=given.work_dir,
        fault_tolerant_mode=given.work_dir is not None,
    )
    server = service.DispatchServer(config)
    _held.append(server)
    return server.target


def _worker(given: argparse.Namespace) -> str:
    register()
    service = tf.data.experimental.service
    config = service.WorkerConfig(
        dispatcher_address=given.dispatcher.rpartition("://")[2],
        worker_address=given.address,
        port=given.port,
        protocol="grpc",
    )
    _held.append(service.WorkerServer(config))
    return f"of {given.dispatcher}"
