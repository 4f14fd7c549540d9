"""Export of StructuredTensors by the Arrow PyCapsule interface."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from extensor._arrow.write import to_arrow
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError


def array_capsules(records: StructuredTensor, requested_schema: object = None) -> tuple[Any, Any]:
    """Returns records as the capsules of `__arrow_c_array__`.

    Raises:
        DTypeError: If `records` is a single record (also a TypeError).
        The errors of `to_arrow`.
    """
    return _export(records).__arrow_c_array__(requested_schema)


def stream_capsule(records: StructuredTensor, requested_schema: object = None) -> object:
    """Returns records as the capsule of `__arrow_c_stream__`: a stream of one batch.

    Raises:
        The errors of `array_capsules`.
    """
    array = _export(records)
    if isinstance(array, pa.RecordBatch):
        return pa.Table.from_batches([array]).__arrow_c_stream__(requested_schema)
    return pa.chunked_array([array]).__arrow_c_stream__(requested_schema)


def _export(records: StructuredTensor) -> pa.RecordBatch | pa.Array:
    if records.rank == 0:
        expected = "records of rank 1 or more"
        fix = "Use xt.to_arrow, which returns a StructScalar."
        raise DTypeError("Arrow PyCapsule export", expected, "a single record", fix)
    return to_arrow(records)
