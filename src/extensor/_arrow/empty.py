"""Arrays of no values, of any Arrow type: Arrow makes none with runs or unions inside."""

from __future__ import annotations

import pyarrow as pa


def empty_array(arrow: pa.DataType) -> pa.Array:
    """Returns an array of no values.

    >>> import pyarrow as pa
    >>> from extensor._arrow.empty import empty_array
    >>> len(empty_array(pa.list_(pa.dense_union([pa.field("x", pa.int64())]))))
    0
    """
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow, empty_array(arrow.storage_type))
    if pa.types.is_run_end_encoded(arrow):
        ends = pa.array([], arrow.run_end_type)
        return pa.RunEndEncodedArray.from_arrays(ends, empty_array(arrow.value_type))
    if not pa.types.is_nested(arrow):
        return pa.nulls(0, arrow)
    children = [empty_array(arrow.field(i).type) for i in range(arrow.num_fields)]
    others = [pa.py_buffer(bytes(8))] * (arrow.num_buffers - 1)  # such as the first offset
    return pa.Array.from_buffers(arrow, 0, [None, *others], children=children)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Returns a batch of no records."""
    return pa.RecordBatch.from_arrays([empty_array(each.type) for each in schema], schema=schema)
