"""spec_from_schema: converts Arrow schemas to specs of StructuredTensors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.location import Location, splits_dtype
from extensor._arrow.reader import records_reader
from extensor._path import Path
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.dense import DenseStructuredTensorSpec


@refuse_deep_nesting("spec_from_schema")
def spec_from_schema(
    schema: pa.Schema,
    nrows: int | None = None,
    row_splits_dtype: tf.DType = tf.int64,
    nulls: Any = "error",
) -> DenseStructuredTensorSpec:
    """Returns the spec of the StructuredTensor that `from_arrow` returns for data of a schema.

    Args:
        schema: The Arrow schema.
        nrows: The number of records, or None if it varies.
        row_splits_dtype: As in `from_arrow`.
        nulls: As in `from_arrow`. The spec of a masked field is the spec of a MaskedTensor.

    Raises:
        UnsupportedTypeError: If a type has no counterpart (also a TypeError).
        StructureError: If two fields have the same name (also a ValueError).

    >>> schema = pa.schema({"title": pa.string(), "steps": pa.list_(pa.string())})
    >>> xt.struct.tree(xt.spec_from_schema(schema))
    records (None,)
    ├── title: string
    └── steps: string[*]
    """
    location = Location(Path(), splits_dtype(row_splits_dtype))
    return records_reader(schema, nulls).spec(nrows, location)
