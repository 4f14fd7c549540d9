"""JSON lines of recipes, read and written."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import polars
import pyarrow.json
import tensorflow as tf

import extensor as xt
from bench import recipe
from bench.measure import Call, cpu_medians
from bench.row import Faster, Row, Within

_COUNT = 50_000
_PYTHON_COUNT = 1_000


def rows() -> list[Row]:
    return [
        Row(f"read_json, {_COUNT:,} recipes, vs pyarrow.json alone", Within(1.3), _against_arrow),
        Row(
            f"read_json, {_COUNT:,} recipes, vs json.loads and tf from_pyval of "
            f"{_PYTHON_COUNT:,}, scaled up",
            Faster(10),
            _against_python,
            peer_scale=_COUNT / _PYTHON_COUNT,
        ),
        Row(
            f"write_json, {_COUNT:,} recipes, vs json.dumps(to_pylist()) of {_PYTHON_COUNT:,}, "
            "scaled up",
            Faster(2),
            _write,
            peer_scale=_COUNT / _PYTHON_COUNT,
        ),
        *(
            Row(
                f"write_json, {count:,} recipes, CPU, vs polars write_ndjson",
                Within(1.2),
                partial(_against_polars, count),
                statistic=cpu_medians,
            )
            for count in (20_000, _COUNT)
        ),
    ]


def _file(folder: Path) -> Path:
    path = folder / "recipes.jsonl"
    if not path.exists():
        table = recipe.recipes(_COUNT)
        xt.write_json(xt.from_arrow(table), path)
        read = xt.to_arrow(xt.read_json(path, schema=table.schema))
        if not read.equals(table.combine_chunks().to_batches()[0]):
            raise AssertionError("write_json or read_json changed the records.")
    return path


def _against_arrow(folder: Path) -> tuple[Call, Call]:
    path = _file(folder)
    return lambda: xt.read_json(path), lambda: pyarrow.json.read_json(path)


def _against_python(folder: Path) -> tuple[Call, Call]:
    path = _file(folder)
    from_pyval = tf.experimental.StructuredTensor.from_pyval
    few = path.read_bytes().splitlines()[:_PYTHON_COUNT]
    return lambda: xt.read_json(path), lambda: from_pyval(list(map(json.loads, few)))


def _write(folder: Path) -> tuple[Call, Call]:
    table = recipe.recipes(_COUNT)
    records, few = xt.from_arrow(table), table.slice(0, _PYTHON_COUNT)

    def dumps() -> None:
        with (folder / "python.jsonl").open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in few.to_pylist())

    return lambda: xt.write_json(records, folder / "written.jsonl"), dumps


def _against_polars(count: int, folder: Path) -> tuple[Call, Call]:
    table = recipe.recipes(count)
    records, frame = xt.from_arrow(table), polars.DataFrame(table)
    ours, peer = folder / "ours.jsonl", folder / "polars.jsonl"
    xt.write_json(records, ours)
    frame.write_ndjson(peer)
    if ours.read_bytes() != peer.read_bytes():
        raise AssertionError("write_json and polars write different texts.")
    return lambda: xt.write_json(records, ours), lambda: frame.write_ndjson(peer)
