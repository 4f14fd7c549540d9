"""The most memory of a process that reads a large Parquet file, and `python -m bench.peak_rows`.

Both sides import TensorFlow, and read a small file first. The system says the peak in /proc, so the
rows need Linux.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

# TensorFlow reads both at its first import.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import extensor as xt
from bench.recipe import recipes
from bench.row import Limit, Within

_RUNS = 3
_ROW_GROUP = 1 << 16


@dataclass(frozen=True)
class PeakRow:
    """Two processes, of which each reads one file.

    Attributes:
        name: What is measured against what.
        limit: The limit of the two peaks.
        table: Makes the table of the file.
    """

    name: str
    limit: Limit
    table: Callable[[], pa.Table]
    unit: ClassVar[str] = "MB"

    def measure(self, folder: Path, seconds: float) -> tuple[float, float]:
        """Returns the median of our peaks and of the peer's, in MB."""
        table = self.table()
        path, small = str(folder / "large.parquet"), str(folder / "small.parquet")
        pq.write_table(table, path, row_group_size=_ROW_GROUP)
        pq.write_table(table.slice(0, 1_000), small)
        found: tuple[list[float], list[float]] = ([], [])
        for _ in range(_RUNS):
            for side, peaks in zip(("ours", "peer"), found, strict=True):
                command = [sys.executable, "-m", "bench.peak_rows", side, small, path]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                peaks.append(float(output))
        return statistics.median(found[0]), statistics.median(found[1])


def rows() -> list[PeakRow]:
    text = "peak memory of a process, vs pq.read_table"
    return [
        PeakRow(f"read_parquet of 1,500,000 recipes, {text}", Within(1.2), _recipes),
        PeakRow(f"read_parquet of 8 columns of 1,500,000 strings, {text}", Within(1.2), _strings),
    ]


def _recipes() -> pa.Table:
    return pa.concat_tables(recipes(50_000, seed) for seed in range(30))


def _strings() -> pa.Table:
    random = np.random.default_rng(0)
    numbers = (pa.array(random.integers(10**9, 10**12, 1_500_000)) for _ in range(8))
    return pa.table({f"text{i}": pc.cast(each, pa.string()) for i, each in enumerate(numbers)})


def main() -> None:
    """Prints the peak of memory of this process in MB."""
    side, *paths = sys.argv[1:]
    kept = [xt.read_parquet(path) if side == "ours" else pq.read_table(path) for path in paths]
    if not len(kept) == len(paths):
        raise AssertionError("A file was not read.")
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("utf-8"))
    assert found is not None
    print(int(found[1]) / 1_000)


if __name__ == "__main__":
    main()
