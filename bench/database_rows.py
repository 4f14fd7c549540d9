"""Rows of databases: a whole read, against what the client needs to fetch the same rows.

A row whose server is not installed is missing, with the reason.
"""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa
import pytest

import extensor as xt
from bench import recipe
from bench.measure import Call
from bench.row import Row, Within
from tests.formats import emulators, postgres, test_firestore, test_spanner

_T = TypeVar("_T")
_SPANNER, _FIRESTORE, _SQL = 50_000, 3_000, 50_000


def rows() -> list[Row]:
    return [
        # The conversion may take half of the time of the fetch.
        Row("read_spanner: 50,000 rows of 5 columns vs the client", Within(1.5), _spanner),
        Row("read_firestore: 3,000 documents vs the client", Within(1.5), _firestore),
        Row("read_database, PostgreSQL: 50,000 rows vs the driver", Within(1.5), _postgresql),
        Row("write_database, PostgreSQL: 50,000 rows vs the driver", Within(2), _to_postgresql),
        Row("write_database, DuckDB: 50,000 recipes vs a table from Arrow", Within(2), _to_duckdb),
    ]


def _installed(start: Callable[[], _T]) -> _T:
    try:
        return start()
    except pytest.skip.Exception as error:
        raise ImportError(str(error)) from None


def _spanner(folder: Path) -> tuple[Call, Call]:
    columns = {
        "k": "INT64",
        "x": "FLOAT64",
        "s": "STRING(MAX)",
        "b": "BYTES(MAX)",
        "l": "ARRAY<INT64>",
    }
    address = _installed(emulators.spanner)
    database = test_spanner.new_database(address, test_spanner.create("t", columns))
    table = pa.table(
        {
            "k": range(_SPANNER),
            "x": [i / 7 for i in range(_SPANNER)],
            "s": [f"row {i}" for i in range(_SPANNER)],
            "b": [b"%d" % i for i in range(_SPANNER)],
            "l": [[i, i + 1] for i in range(_SPANNER)],
        }
    )
    xt.write_spanner(xt.from_arrow(table), "t", database)
    query = "SELECT k, x, s, b, l FROM t ORDER BY k"
    if not xt.to_arrow(xt.read_spanner(database, query)).equals(
        table.combine_chunks().to_batches()[0]
    ):
        raise AssertionError("read_spanner changed the rows.")

    def fetch() -> object:
        with database.snapshot() as snapshot:
            return list(snapshot.execute_sql(query, lazy_decode=True))

    return lambda: xt.read_spanner(database, query), fetch


def _firestore(folder: Path) -> tuple[Call, Call]:
    collection = test_firestore.client(_installed(emulators.firestore)).collection("bench")
    table = pa.table(
        {
            "id": [f"{i:06}" for i in range(_FIRESTORE)],
            "k": range(_FIRESTORE),
            "m": [{"x": i / 7, "s": f"row {i}"} for i in range(_FIRESTORE)],
            "l": [[{"a": i}, {"a": i + 1}] for i in range(_FIRESTORE)],
        }
    )
    xt.write_firestore(xt.from_arrow(table), collection, id_field="id")
    if xt.read_firestore(collection)["k"].numpy().tolist() != list(range(_FIRESTORE)):
        raise AssertionError("read_firestore changed the documents.")
    return (
        lambda: xt.read_firestore(collection),
        lambda: [document.to_dict() for document in collection.stream()],
    )


def _table() -> pa.Table:
    return pa.table(
        {
            "k": range(_SQL),
            "x": [i / 7 for i in range(_SQL)],
            "s": [f"row {i}" for i in range(_SQL)],
            "l": [[i, i + 1] for i in range(_SQL)],
        }
    )


def _connection() -> tuple[Any, pa.Table]:
    """Returns a connection to a new server with the table `them`, and that table."""
    opened = contextlib.ExitStack()
    atexit.register(opened.close)
    server = _installed(lambda: opened.enter_context(postgres.server()))
    connection = opened.enter_context(server.connect())
    table = _table()
    xt.write_database(xt.from_arrow(table), "them", connection)
    found = xt.read_database("select * from them", connection, schema=table.schema)
    if xt.to_arrow(found).to_pylist() != table.to_pylist():
        raise AssertionError("The database changed the records.")
    return connection, table


def _postgresql(folder: Path) -> tuple[Call, Call]:
    connection, _ = _connection()

    def fetch() -> pa.Table:
        with connection.cursor() as cursor:
            cursor.execute("select * from them")
            return cursor.fetch_arrow_table()

    return lambda: xt.read_database("select * from them", connection), fetch


def _to_postgresql(folder: Path) -> tuple[Call, Call]:
    connection, table = _connection()
    records = xt.from_arrow(table)

    def ingest() -> None:
        with connection.cursor() as cursor:
            cursor.adbc_ingest("theirs", table, "replace")
        connection.commit()

    return lambda: xt.write_database(records, "ours", connection, if_exists="replace"), ingest


def _to_duckdb(folder: Path) -> tuple[Call, Call]:
    connection = duckdb.connect()
    table = recipe.recipes(_SQL)
    records = xt.from_arrow(table)
    connection.register("view", table)
    return (
        lambda: xt.write_database(records, "ours", connection, if_exists="replace"),
        lambda: connection.execute("create or replace table theirs as from view"),
    )
