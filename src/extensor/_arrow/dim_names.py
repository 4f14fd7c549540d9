"""The names of dimensions in Arrow data: metadata of schemas and of the items of lists."""

from __future__ import annotations

import pyarrow as pa
import tensorflow as tf

from extensor._struct.dims import Dims
from extensor._typing import FieldValue

_KEY = b"extensor:dim"


def dim_of(field: pa.Field | pa.Schema) -> str | None:
    """Returns the name of the dimension of a list's items, or of the rows of a schema.

    Other metadata is of other programs. So is a name that is not UTF-8, which is left out.
    """
    name = (field.metadata or {}).get(_KEY, b"")
    try:
        return name.decode() or None
    except UnicodeDecodeError:
        return None


def with_dim(field: pa.Field | pa.Schema, name: str | None) -> pa.Field | pa.Schema:
    """Returns a field or schema with a name of its dimension; None removes the name."""
    if name == dim_of(field):
        return field
    metadata = {key: value for key, value in (field.metadata or {}).items() if key != _KEY}
    if name is not None:
        metadata[_KEY] = name.encode()
    return field.with_metadata(metadata) if metadata else field.remove_metadata()


def with_item_dim(value: FieldValue | tf.TypeSpec, name: str | None) -> FieldValue | tf.TypeSpec:
    """Returns lists of records, or their spec, with a name for the dimension of the items."""
    if name is None or not hasattr(value, "_with_dims"):
        return value
    inner: Dims = value._dims[2:] or (None,) * (value.rank - 2)
    return value._with_dims((None, name, *(None if below == name else below for below in inner)))
