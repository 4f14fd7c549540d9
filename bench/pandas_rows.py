"""Conversion of DataFrames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import extensor as xt
from bench.measure import Call
from bench.row import Row, Within

_COUNT = 1_000_000


def rows() -> list[Row]:
    what = f"{_COUNT:,} rows of 4 int64 and 4 float64, vs to_numpy()"
    return [
        Row(f"from_pandas, {what}", Within(1.5), _in),
        Row(f"to_pandas, {what}", Within(1.5), _out),
    ]


def _frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    integers = {f"i{k}": random.integers(0, 1 << 40, _COUNT) for k in range(4)}
    floats = {f"f{k}": random.random(_COUNT) for k in range(4)}
    return pd.DataFrame(integers | floats)


def _in(folder: Path) -> tuple[Call, Call]:
    frame = _frame()
    if not np.array_equal(xt.from_pandas(frame)["f3"], frame["f3"]):
        raise AssertionError("from_pandas changed the numbers.")
    return lambda: xt.from_pandas(frame), frame.to_numpy


def _out(folder: Path) -> tuple[Call, Call]:
    frame = _frame()
    records = xt.from_pandas(frame)
    if not records.to_pandas().equals(frame):
        raise AssertionError("to_pandas changed the numbers.")
    return records.to_pandas, frame.to_numpy
