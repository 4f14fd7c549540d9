"""Tables of SQL databases, Delta and Iceberg, and Parquet files that are written."""

from __future__ import annotations

import functools
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

import extensor as xt
from bench import recipe
from bench.measure import Call
from bench.row import Row, Within

_COUNT = 50_000


def rows() -> list[Row]:
    what = f"{_COUNT:,} recipes, vs"
    return [
        Row(f"read_database, DuckDB, {what} its reader and from_arrow", Within(1.2), _duckdb),
        Row(f"read_delta, {what} deltalake's reader and from_arrow", Within(1.2), _delta),
        Row(f"read_iceberg, {what} pyiceberg's reader and from_arrow", Within(1.2), _iceberg),
        Row(f"write_parquet, {what} pq.write_table alone", Within(2), _parquet),
    ]


@functools.cache
def _recipes() -> pa.Table:
    return recipe.recipes(_COUNT)


def _check(records: xt.StructuredTensor) -> None:
    if records[-5:].to_py() != xt.from_arrow(_recipes())[-5:].to_py():
        raise AssertionError("The reader changed the records.")


def _duckdb(folder: Path) -> tuple[Call, Call]:
    connection = duckdb.connect()
    recipes = _recipes()
    connection.register("view", recipes)
    connection.execute("create table recipes as from view")
    _check(xt.read_database("from recipes", connection))
    return (
        lambda: xt.read_database("from recipes", connection),
        lambda: xt.from_arrow(connection.execute("from recipes").to_arrow_table()),
    )


def _delta(folder: Path) -> tuple[Call, Call]:
    path = str(folder / "delta")
    deltalake.write_deltalake(path, _recipes())
    _check(xt.read_delta(path))
    return (
        lambda: xt.read_delta(path),
        lambda: xt.from_arrow(deltalake.DeltaTable(path).to_pyarrow_table(), nulls="error"),
    )


def _iceberg(folder: Path) -> tuple[Call, Call]:
    catalog = SqlCatalog(
        "bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )
    catalog.create_namespace("bench")
    table = catalog.create_table("bench.recipes", schema=_recipes().schema)
    table.append(_recipes())
    _check(xt.read_iceberg(table))
    return lambda: xt.read_iceberg(table), lambda: xt.from_arrow(table.scan().to_arrow())


def _parquet(folder: Path) -> tuple[Call, Call]:
    records = xt.from_arrow(_recipes())
    ours, peer = folder / "ours.parquet", folder / "peer.parquet"
    xt.write_parquet(records, ours)
    _check(xt.read_parquet(ours))
    return lambda: xt.write_parquet(records, ours), lambda: pq.write_table(_recipes(), peer)
