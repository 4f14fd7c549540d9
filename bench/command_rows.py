"""The command: its help, and the statistics that it prints.

The peer of the statistics is one pass of pyarrow.compute, in memory that grows with the file.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

import extensor as xt
from bench.measure import Call, cpu_medians
from bench.row import ProcessRow, Row, Under, Within

pc: Any = pyarrow.compute

_RUNS = 7
_COUNT = 2_400_000


def rows() -> list[Row | ProcessRow]:
    """Returns the rows of the table."""
    return [
        ProcessRow("extensor --help, CPU of the process, vs import click", Under(0.5), _help),
        *(
            Row(
                f"describe, {_COUNT:,} records of Parquet, {names[0]} and {names[1]}, CPU, vs "
                "pyarrow.compute",
                Within(3),
                partial(_describe, names),
                statistic=cpu_medians,
            )
            for names in (("floats", "50 words"), ("integers", "different words"))
        ),
    ]


def _help() -> tuple[float, float]:
    """Returns the CPU time of the help and of an import of click, in fresh processes."""
    ours = "from extensor_command.main import main; main(['--help'])"
    found = ([], [])
    for _ in range(_RUNS):
        for code, times in zip((ours, "import click"), found, strict=True):
            times.append(_cpu_of(code))
    return statistics.median(found[0]), statistics.median(found[1])


def _cpu_of(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _describe(names: tuple[str, str], folder: Path) -> tuple[Call, Call]:
    path, columns = folder / "described.parquet", list(names)
    if not path.exists():
        pq.write_table(_numbers_and_words(), path)

    def peer() -> None:
        table = pq.read_table(path, columns=columns)
        for column in table.columns:
            is_text = pa.types.is_string(column.type)
            numbers = pc.binary_length(column) if is_text else column
            pc.min_max(numbers)
            pc.mean(numbers)
            pc.approximate_median(numbers)
            pc.value_counts(column)

    return lambda: xt.data.describe(path, columns, progress=False), peer


def _numbers_and_words() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "floats": rng.normal(size=_COUNT),
            "integers": rng.integers(0, 1000, _COUNT),
            "50 words": np.array([f"word {i}" for i in range(50)])[rng.integers(0, 50, _COUNT)],
            "different words": [f"id-{i:08}" for i in rng.permutation(_COUNT)],
        }
    )
