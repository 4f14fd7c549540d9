"""Reading and writing of Arrow files; conversion of Awkward Arrays and of datasets."""

from __future__ import annotations

from pathlib import Path

import awkward as ak
import datasets
import pyarrow as pa

import extensor as xt
from bench import recipe
from bench.measure import Call
from bench.row import Row, Within

_COUNT = 50_000


def rows() -> list[Row]:
    what = f"{_COUNT:,} recipes, vs"
    return [
        Row(f"read_arrow, {what} pyarrow's reader and from_arrow", Within(1.2), _in),
        Row(f"write_arrow, {what} to_arrow and pyarrow's writer", Within(1.2), _out),
        Row(f"write_arrow, {what} pyarrow's writer alone", Within(2), _out_alone),
        Row(f"from_awkward, {what} ak.to_arrow and from_arrow", Within(1.2), _awkward),
        Row(f"from_huggingface, {what} its table and from_arrow", Within(1.2), _huggingface),
    ]


def _huggingface(folder: Path) -> tuple[Call, Call]:
    dataset = datasets.Dataset(recipe.recipes(_COUNT))
    peer = dataset.with_format("arrow")
    if xt.from_huggingface(dataset)[-5:].to_py() != xt.from_arrow(peer[:])[-5:].to_py():
        raise AssertionError("from_huggingface changed the records.")
    return lambda: xt.from_huggingface(dataset), lambda: xt.from_arrow(peer[:])


def _write(batch: pa.RecordBatch, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def _in(folder: Path) -> tuple[Call, Call]:
    path = folder / "recipes.arrow"
    records = xt.from_arrow(recipe.recipes(_COUNT))
    xt.write_arrow(records, path)
    if xt.read_arrow(path)[-5:].to_py() != records[-5:].to_py():
        raise AssertionError("The file does not hold the records.")
    return lambda: xt.read_arrow(path), lambda: xt.from_arrow(_read(path))


def _out(folder: Path) -> tuple[Call, Call]:
    records = xt.from_arrow(recipe.recipes(_COUNT))
    ours, peer = folder / "ours.arrow", folder / "peer.arrow"
    _write(xt.to_arrow(records), peer)
    xt.write_arrow(records, ours)
    if not _read(ours).equals(_read(peer)):
        raise AssertionError("The file does not hold the records.")
    return lambda: xt.write_arrow(records, ours), lambda: _write(xt.to_arrow(records), peer)


def _out_alone(folder: Path) -> tuple[Call, Call]:
    ours, _ = _out(folder)
    batch = xt.to_arrow(xt.from_arrow(recipe.recipes(_COUNT)))
    return ours, lambda: _write(batch, folder / "peer.arrow")


def _awkward(folder: Path) -> tuple[Call, Call]:
    array = ak.from_arrow(recipe.recipes(_COUNT))
    if xt.from_awkward(array[-5:]).to_py() != xt.from_arrow(ak.to_arrow(array[-5:])).to_py():
        raise AssertionError("from_awkward changed the records.")
    return lambda: xt.from_awkward(array), lambda: xt.from_arrow(ak.to_arrow(array))
