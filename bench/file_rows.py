"""Parquet files that are many and small, or wide, and Arrow data in many chunks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import extensor as xt
from bench import recipe
from bench.measure import Call, cpu_medians
from bench.row import Row, Within

_FILES, _ROWS, _BATCH = 1_000, 200, 1_024
_COLUMNS = 1_000
_CHUNKS = 100


def rows() -> list[Row]:
    many = f"{_FILES:,} files of {_ROWS} rows"
    return [
        Row(
            f"Stream of {many}, vs a scan by pyarrow.dataset, CPU time",
            Within(1.5),
            _stream,
            statistic=cpu_medians,
        ),
        Row(
            f"read_parquet of {many}, vs pyarrow.dataset, CPU time",
            Within(1.3),
            _read,
            statistic=cpu_medians,
        ),
        Row(
            f"xt.data.parquet of {many}, made, vs reading the footers once, CPU time",
            Within(3),
            _made,
            statistic=cpu_medians,
        ),
        Row(f"read_parquet of 1 column of {_COLUMNS:,}, vs pq.read_table", Within(1.5), _column),
        Row(f"from_arrow of {_CHUNKS} chunks, vs the same combined", Within(2), _chunks),
    ]


def small_files(folder: Path, count: int = _FILES) -> Path:
    """Returns a folder of small files: six columns of numbers, one of lists and one of strings."""
    found = folder / f"{count} small files"
    if not found.exists():
        found.mkdir()
        random = np.random.default_rng(0)
        starts = pa.array(np.arange(_ROWS + 1) * 3, pa.int32())
        for i in range(count):
            columns = {f"number{k}": random.random(_ROWS, np.float32) for k in range(6)}
            lists = pa.ListArray.from_arrays(starts, pa.array(random.random(3 * _ROWS)))
            names = pa.array([f"record {i}-{k}" for k in range(_ROWS)])
            table = pa.table({**columns, "list": lists, "name": names})
            pq.write_table(table, found / f"{i:06}.parquet")
    return found


def _stream(folder: Path) -> tuple[Call, Call]:
    files = small_files(folder)
    dataset = xt.data.parquet(files, _BATCH)

    def ours() -> None:
        for _ in dataset:
            pass

    def peer() -> None:  # a new dataset reads the footers in each pass, as ours does
        for _ in ds.dataset(files).to_batches(batch_size=_BATCH):
            pass

    return ours, peer


def _read(folder: Path) -> tuple[Call, Call]:
    files = small_files(folder)
    if xt.read_parquet(files).shape != [_FILES * _ROWS]:
        raise AssertionError("read_parquet lost records.")
    return lambda: xt.read_parquet(files), lambda: ds.dataset(files).to_table()


def _made(folder: Path) -> tuple[Call, Call]:
    files = small_files(folder)
    paths = sorted(files.iterdir())
    return (
        lambda: xt.data.parquet(files, _BATCH),
        lambda: [pq.read_metadata(path) for path in paths],
    )


def _column(folder: Path) -> tuple[Call, Call]:
    path = str(folder / "wide.parquet")
    numbers = np.random.default_rng(0).random((_COLUMNS, 10 * _ROWS), np.float32)
    pq.write_table(pa.table({f"f{i}": column for i, column in enumerate(numbers)}), path)
    found = xt.read_parquet(path, ["f500"])["f500"]
    if not np.array_equal(found, numbers[500]):
        raise AssertionError("read_parquet read another column.")
    return lambda: xt.read_parquet(path, ["f500"]), lambda: pq.read_table(path, columns=["f500"])


def chunked(table: pa.Table, count: int) -> pa.Table:
    """Returns a table in so many chunks, each with memory of its own."""
    size = table.num_rows // count
    parts = [table.slice(i * size, size).to_batches()[0] for i in range(count)]
    return pa.Table.from_batches([part.take(pa.array(range(size))) for part in parts])


def _chunks(folder: Path) -> tuple[Call, Call]:
    table = chunked(recipe.recipes(100 * _CHUNKS), _CHUNKS)
    combined = table.combine_chunks()
    return lambda: xt.from_arrow(table), lambda: xt.from_arrow(combined)
