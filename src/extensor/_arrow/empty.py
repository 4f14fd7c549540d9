"""A batch of no records, of any Arrow schema: Arrow makes none with runs or unions inside."""

from __future__ import annotations

import pyarrow as pa

from extensor._arrow.nulls import nulls_of


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Returns a batch of no records.

    >>> import pyarrow as pa
    >>> from extensor._arrow.empty import empty_batch
    >>> len(empty_batch(pa.schema({"x": pa.dense_union([pa.field("y", pa.int64())])})))
    0
    """
    return pa.RecordBatch.from_arrays([nulls_of(each.type, 0) for each in schema], schema=schema)
