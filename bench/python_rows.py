"""Python records to StructuredTensors and back, compared to Arrow."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa

import extensor as xt
from bench import recipe
from bench.measure import Call
from bench.row import Row, Within

_CAST, _MIXED = 10_000, 20_000


def rows() -> list[Row]:
    return [
        Row(
            f"spec.cast of {_CAST:,} Python recipes, vs Table.from_pylist and from_arrow",
            Within(1.5),
            _cast,
        ),
        Row(
            f"spec.cast of {_CAST:,} flat Python records, vs Table.from_pylist and from_arrow",
            Within(1.5),
            _cast_flat,
        ),
        Row(f"to_py of {_MIXED:,} mixed rows, vs to_pylist of Arrow", Within(1.2), _to_py),
    ]


def _casting(table: pa.Table) -> tuple[Call, Call]:
    records, spec = table.to_pylist(), xt.spec_from_schema(table.schema)
    if spec.cast(records).to_py(text=True) != records:
        raise AssertionError("spec.cast changed the records.")
    peer = lambda: xt.from_arrow(pa.Table.from_pylist(records, table.schema))  # noqa: E731
    return lambda: spec.cast(records), peer


def _cast(folder: Path) -> tuple[Call, Call]:
    return _casting(recipe.recipes(_CAST))


def _cast_flat(folder: Path) -> tuple[Call, Call]:
    return _casting(flat(_CAST))


def flat(count: int) -> pa.Table:
    """Returns records with an id, four numbers, a bool and a string."""
    numbers = recipe.numbers(count, 4)
    ids = pa.array(range(count), pa.int64())
    names = pa.array([f"record {i}" for i in range(count)])
    table = pa.table(
        {"id": ids, "name": names, "even": pa.array([i % 2 == 0 for i in range(count)])}
    )
    return pa.table(
        [*table.columns, *numbers.columns], [*table.column_names, *numbers.column_names]
    )


def mixed(count: int) -> pa.Table:
    """Returns records with numbers, text, lists, records, lists of records, and nulls."""
    draw = random.Random(0)

    def record(i: int) -> dict[str, Any]:
        steps = [{"minutes": draw.random(), "tool": "pan"} for _ in range(draw.randrange(3))]
        return {
            "id": i,
            "title": f"recipe {i}",
            "score": None if i % 3 == 0 else draw.random(),
            "tags": ["quick"] * draw.randrange(4),
            "author": {"name": "Ada", "age": draw.randrange(90)},
            "steps": steps,
        }

    return pa.Table.from_pylist([record(i) for i in range(count)])


def _to_py(folder: Path) -> tuple[Call, Call]:
    table = mixed(_MIXED)
    records = xt.from_arrow(table, nulls={"score": "mask"})
    if records.to_py(text=True) != table.to_pylist():
        raise AssertionError("to_py changed the records.")
    return lambda: records.to_py(text=True), table.to_pylist
