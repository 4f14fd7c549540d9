"""Streams from an object store of 50 ms latency, against the same streams from the disk."""

from __future__ import annotations

import atexit
import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import extensor as xt
from bench import recipe
from bench.measure import Call
from bench.row import Row, Within

_BATCH = 1024
_BYTES = 64 << 20
_LATENCY = 0.05


def rows() -> list[Row]:
    kinds: dict[str, tuple[Callable[..., Any], Callable[[Path], Path]]] = {
        "Parquet": (xt.data.parquet, _parquet),
        "JSON": (xt.data.json, _json),
    }
    return [
        Row(
            f"Stream of 64 MB of {kind} from a store, 50 ms a request, vs from the disk",
            Within(1.3),
            functools.partial(_stream, stream=stream, make=make),
        )
        for kind, (stream, make) in kinds.items()
    ]


def _parquet(folder: Path) -> Path:
    """Returns a file of 64 MB, in row groups of 3 MB."""
    path = folder / "store.parquet"
    if not path.exists():
        table = recipe.recipes(20_000)
        with pq.ParquetWriter(path, table.schema) as writer:
            while path.stat().st_size < _BYTES:
                writer.write_table(table, row_group_size=20_000)
    return path


def _json(folder: Path) -> Path:
    path = folder / "store.jsonl"
    if not path.exists():
        part = folder / "part.jsonl"
        xt.write_json(xt.from_arrow(recipe.recipes(5_000)), part)
        text = part.read_bytes()
        path.write_bytes(text * (_BYTES // len(text) + 1))
    return path


def _stream(
    folder: Path, stream: Callable[..., Any], make: Callable[[Path], Path]
) -> tuple[Call, Call]:
    path = make(folder)
    command = [sys.executable, "-m", "tests.files.range_server", str(folder), str(_LATENCY)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    atexit.register(server.kill)
    assert server.stdout is not None
    url = server.stdout.readline().strip()

    def passes(dataset: Any) -> Callable[[], None]:
        def whole() -> None:
            for _ in dataset:
                pass

        return whole

    ours = stream(f"{url}/{path.name}", _BATCH, columns=None)
    peer = stream(path, _BATCH, columns=None)
    if ours.cardinality() != peer.cardinality():
        raise AssertionError("The store lost records.")
    return passes(ours), passes(peer)
