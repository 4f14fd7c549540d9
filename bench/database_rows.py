"""Rows of databases: a whole read, against what the client needs to fetch the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import extensor as xt
from bench.measure import Call
from bench.row import Row, Within
from tests.formats import emulators, test_firestore, test_spanner

_SPANNER, _FIRESTORE = 50_000, 3_000


def rows() -> list[Row]:
    return [
        # The conversion may take half of the time of the fetch.
        Row("read_spanner: 50,000 rows of 5 columns vs the client", Within(1.5), _spanner),
        Row("read_firestore: 3,000 documents vs the client", Within(1.5), _firestore),
    ]


def _address(start: Call) -> str:
    try:
        return str(start())
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
    address = _address(emulators.spanner)
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
    collection = test_firestore.client(_address(emulators.firestore)).collection("bench")
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
