"""`python -m bench`: the table of all rows."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import traceback
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

# TensorFlow reads both at its first import: no log lines between the rows, and the same device on
# every machine.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import pyarrow as pa
import tensorflow as tf

from bench import (
    arrow_rows,
    auto_rows,
    backend_rows,
    command_rows,
    data_rows,
    database_rows,
    dispatch_rows,
    field_rows,
    file_rows,
    format_rows,
    growth,
    growth_rows,
    json_rows,
    keras_rows,
    labeled_rows,
    layer_rows,
    masked_rows,
    pandas_rows,
    path_rows,
    peak_rows,
    plain_rows,
    proto_rows,
    pruning_rows,
    python_rows,
    static_rows,
    store_rows,
    string_rows,
    struct_rows,
    table_rows,
    tfrecord_rows,
    type_rows,
    types_rows,
)
from bench.peak_rows import PeakRow
from bench.row import ProcessRow, Row

_HEADER = ("row", "ours", "peer", "ratio", "limit", "verdict")
_VERDICTS = {True: "ok", False: "SHORT", None: "-"}


@dataclass(frozen=True)
class _Result:
    """A measured row; times in seconds, memory in MB, None if the row could not run."""

    row: str
    ours: float | None
    peer: float | None
    ratio: float | None
    limit: str
    verdict: str
    unit: str

    def cells(self) -> tuple[str, ...]:
        return (
            self.row,
            _quantity(self.ours, self.unit),
            _quantity(self.peer, self.unit),
            "-" if self.ratio is None else f"{self.ratio:.3g}",
            self.limit,
            self.verdict,
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("filter", nargs="*", help="measure only rows with one of these in the name")
    parser.add_argument("--seconds", type=float, default=3, help="about how long to measure a row")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there as well")
    options = parser.parse_args()

    # pyarrow warns about unversioned capsules, but TensorFlow does not read newer ones yet.
    warnings.filterwarnings("ignore", message="Exporting an unversioned DLPack capsule")
    # TensorFlow warns about repeated tracing, which one row measures.
    tf.get_logger().setLevel("ERROR")

    rows: list[Row | ProcessRow | PeakRow] = [
        row
        for row in (
            *arrow_rows.rows(),
            *json_rows.rows(),
            *string_rows.rows(),
            *pruning_rows.rows(),
            *tfrecord_rows.rows(),
            *struct_rows.rows(),
            *field_rows.rows(),
            *python_rows.rows(),
            *path_rows.rows(),
            *type_rows.rows(),
            *types_rows.rows(),
            *masked_rows.rows(),
            *static_rows.rows(),
            *labeled_rows.rows(),
            *format_rows.rows(),
            *pandas_rows.rows(),
            *auto_rows.rows(),
            *data_rows.rows(),
            *file_rows.rows(),
            *peak_rows.rows(),
            *store_rows.rows(),
            *database_rows.rows(),
            *table_rows.rows(),
            *command_rows.rows(),
            *dispatch_rows.rows(),
            *plain_rows.rows(),
            *proto_rows.rows(),
            *keras_rows.rows(),
            *layer_rows.rows(),
            *backend_rows.rows(),
        )
        if _is_chosen(row.name, options.filter)
    ]
    growths = [each for each in growth_rows.growths() if _is_chosen(each.title, options.filter)]
    if not rows and not growths:
        parser.error(f"No row has {' or '.join(map(repr, options.filter))} in its name.")
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for number, row in enumerate(rows, 1):
            print(f"[bench] {number}/{len(rows)} {row.name}", file=sys.stderr, flush=True)
            results.append(_measure(row, Path(folder), options.seconds))
            # What is measured stays known if a later row ends the process.
            print(f"[bench]   {'  '.join(results[-1].cells()[1:])}", file=sys.stderr, flush=True)
        times = []
        for number, each in enumerate(growths, 1):
            print(f"[bench] {number}/{len(growths)} {each.title}", file=sys.stderr, flush=True)
            times.append(_times(each, Path(folder), options.seconds))

    if rows:
        lines = [_HEADER, *(result.cells() for result in results)]
        print(_table(lines, options.markdown), end="\n\n")
    for table in _growth_tables(growths, times):
        print(_table(table, options.markdown), end="\n\n")
    print(f"Medians of interleaved repetitions. {_machine()}.")
    if options.json:
        report = {
            "machine": _machine(),
            "rows": [asdict(result) for result in results],
            "growths": [
                {"axis": each.axis, "name": each.name, "sizes": each.sizes, "seconds": of_sizes}
                for each, of_sizes in zip(growths, times, strict=True)
            ],
        }
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return int(any(result.ratio is None for result in results) or None in times)


def _is_chosen(name: str, parts: list[str]) -> bool:
    return not parts or any(part.lower() in name.lower() for part in parts)


def _times(each: growth.Growth, folder: Path, seconds: float) -> list[float] | None:
    try:
        return each.measure(folder, seconds)
    except Exception as error:  # the others still run
        traceback.print_exception(error)
        return None


def _growth_tables(
    growths: list[growth.Growth], times: list[list[float] | None]
) -> list[list[tuple[str, ...]]]:
    """Returns the lines of a table for each axis and its sizes."""
    tables: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for each, of_sizes in zip(growths, times, strict=True):
        lines = tables.setdefault(growth.header(each), [growth.header(each)])
        lines.append(growth.cells(each, of_sizes, _duration))
    return list(tables.values())


def _measure(row: Row | ProcessRow | PeakRow, folder: Path, seconds: float) -> _Result:
    try:
        ours, peer = row.measure(folder, seconds)
    except Exception as error:
        # If one row fails, the others still run.
        verdict = "missing" if isinstance(error, ImportError | AttributeError) else "error"
        print(f"[bench] {verdict}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        if verdict == "error":
            traceback.print_exception(error)
        return _Result(row.name, None, None, None, str(row.limit), verdict, row.unit)
    return _Result(
        row.name,
        ours,
        peer,
        row.limit.ratio(ours, peer),
        str(row.limit),
        _VERDICTS[row.limit.holds(ours, peer)],
        row.unit,
    )


def _table(lines: list[tuple[str, ...]], markdown: bool) -> str:
    if markdown:
        numbers = len(lines[0]) - 3 if lines[0] == _HEADER else len(lines[0]) - 2
        rule = ("---", *("---:",) * numbers, *("---",) * (len(lines[0]) - 1 - numbers))
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (lines[0], rule, *lines[1:]))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in lines
    )


def _quantity(value: float | None, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value is not None and unit != "s" else _duration(value)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def _machine() -> str:
    return (
        f"TensorFlow {tf.__version__}, pyarrow {pa.__version__}, NumPy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPU cores"
    )


if __name__ == "__main__":
    sys.exit(main())
