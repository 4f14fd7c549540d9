"""Damaged files of Delta and Iceberg tables are refused by name, or read as their library does."""

import functools
import pathlib
import random
import tempfile

import pyarrow as pa
import pytest

import extensor as xt
from tests.fuzz import cases
from tests.fuzz.mutation import damaged

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

TABLE = pa.table(
    {
        "i": pa.array(range(2**53 + 1, 2**53 + 21), pa.int64()),
        "s": [f"word {i}" for i in range(20)],
        "l": [[{"a": float(i)}] * (i % 3) for i in range(20)],
    }
)


def test_damaged_tables_are_refused_or_read_as_their_library_reads_them():
    ends = cases.run(__name__, cases.seeds(1000))
    assert {"refused", "read"} <= set(ends)


@functools.cache
def _delta():
    """Returns the folder of a table, and how it is read by us and by its library."""
    import deltalake

    folder = tempfile.mkdtemp(prefix="extensor-delta-")
    for start in (0, 10):
        deltalake.write_deltalake(folder, TABLE.slice(start, 10), mode="append")
    return (
        pathlib.Path(folder),
        lambda: xt.read_delta(folder),
        lambda: deltalake.DeltaTable(folder).to_pyarrow_table(),
    )


@functools.cache
def _iceberg():
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import StaticTable

    folder = tempfile.mkdtemp(prefix="extensor-iceberg-")
    catalog = SqlCatalog(
        "it", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )
    catalog.create_namespace("it")
    table = catalog.create_table("it.it", schema=TABLE.schema)
    for start in (0, 10):
        table.append(TABLE.slice(start, 10))
    path = table.metadata_location
    catalog.engine.dispose()
    return (
        pathlib.Path(folder, "warehouse"),
        lambda: xt.read_iceberg(path),
        lambda: StaticTable.from_metadata(path).scan().to_arrow(),
    )


def case(seed):
    dice = random.Random(seed)
    folder, ours, theirs = dice.choice([_delta, _iceberg])()
    path = dice.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    whole = path.read_bytes()
    footer = max(len(whole) - 400, 0)
    path.write_bytes(damaged(dice, whole, [(0, 200), (footer, len(whole))]))
    try:
        try:
            found = rows(ours().to_py())
        except xt.errors.ExtensorError:
            return "refused"
        if found != rows(TABLE.to_pylist()):
            with cases.theirs("the library"):
                assert found == rows(theirs().to_pylist())
    finally:
        path.write_bytes(whole)
    return "read"


def rows(records):
    return sorted(map(repr, records))
