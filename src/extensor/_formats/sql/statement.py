"""What DuckDB and the ADBC drivers have in common: quoted names, errors, readers of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from extensor.errors import StructureError

AsReader = Callable[[pa.Schema, Iterable[pa.RecordBatch]], pa.RecordBatchReader]
"""Makes a reader of a schema and batches, which keeps the errors of the batches."""


def quoted(name: str) -> str:
    """Returns the name of a column or table as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def no_rows() -> StructureError:
    """Returns the error for a statement that has no result."""
    fix = "Run it with the connection itself."
    return StructureError("query", "a query that returns rows", "a statement without a result", fix)
