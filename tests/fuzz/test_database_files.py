"""Damaged files of DuckDB are refused by name, or their records are those of DuckDB itself."""

import functools
import os
import pathlib
import random
import tempfile

import pyarrow as pa
import pytest

import extensor as xt
from tests.fuzz import cases
from tests.fuzz.mutation import damaged

duckdb = pytest.importorskip("duckdb", reason="its library is not installed")

TABLE = pa.table(
    {
        "i": pa.array(range(3000), pa.int64()),
        "s": [f"word {i} " * (i % 5) for i in range(3000)],
        "l": [[{"a": float(i)}] * (i % 3) for i in range(3000)],
    }
)
QUERY = "select * from it order by i"


def test_damaged_files_are_refused_or_read_as_duckdb_reads_them():
    ends = cases.run(__name__, cases.seeds(1000))
    assert "refused" in ends


@functools.cache
def _file():
    path = pathlib.Path(tempfile.mkdtemp(prefix="extensor-duckdb-"), "it.db")
    xt.write_database(xt.from_arrow(TABLE), "it", f"duckdb:{path}")
    return path.read_bytes()


def case(seed):
    dice = random.Random(seed)
    whole = _file()
    # Three headers of 4 KiB come first, then blocks of 256 KiB, with a checksum in front.
    blocks = [(at, at + 300) for at in range(12288, len(whole), 262144)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "it.db")
        pathlib.Path(path).write_bytes(damaged(dice, whole, [(0, 12288), (0, 64), *blocks]))
        try:
            with cases.theirs("DuckDB"):
                records = xt.read_database(QUERY, f"duckdb:{path}")
        except xt.errors.DatabaseError:
            return "refused"
        found = records.to_py()
        if found != TABLE.to_pylist():
            with duckdb.connect(path, read_only=True) as connection:
                assert found == connection.sql(QUERY).to_arrow_table().to_pylist()
            return "read as DuckDB reads it"
        return "read"
