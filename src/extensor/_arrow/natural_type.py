"""The default Arrow type of a value, used without a schema."""

# This file calls `StructuredTensor._field`, which is faster than `field_value`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._path import Path
from extensor._struct.tensor import StructuredTensor
from extensor.errors import UnsupportedTypeError

NUMBERS: dict[pa.DataType, tf.DType] = {
    pa.int8(): tf.int8,
    pa.int16(): tf.int16,
    pa.int32(): tf.int32,
    pa.int64(): tf.int64,
    pa.uint8(): tf.uint8,
    pa.uint16(): tf.uint16,
    pa.uint32(): tf.uint32,
    pa.uint64(): tf.uint64,
    pa.float16(): tf.float16,
    pa.float32(): tf.float32,
    pa.float64(): tf.float64,
}
"""The Arrow types whose buffers have the layout of tensors, and the tensors' dtypes."""

_FLAT = {dtype: arrow for arrow, dtype in NUMBERS.items()} | {
    tf.bool: pa.bool_(),
    tf.string: pa.string(),
}


def natural_type(value: Any, path: Path, rank: int = 1) -> pa.DataType:
    """Returns the Arrow type of the elements of a field's value.

    Numbers keep their type. Strings become text. Ragged dimensions become `large_list` for int64
    row splits and `list` for int32. Further dense dimensions become `fixed_size_list`.

    Args:
        value: A tensor, ragged tensor or StructuredTensor that holds values.
        path: The path of the field, for errors.
        rank: The number of outer dimensions, which are not part of an element.

    Raises:
        UnsupportedTypeError: If Arrow has no type for the value (also a TypeError).
    """
    if hasattr(value, "row_splits"):
        if rank > 1:
            return natural_type(value.values, path, rank - 1)
        make = pa.large_list if value.row_splits.dtype == tf.int64 else pa.list_
        return make(natural_type(value.values, path))
    if isinstance(value, tf.Variable):
        value = tf.convert_to_tensor(value)
    expect_writable(value, path)
    if len(value.shape) > rank:
        return pa.list_(natural_type(value, path, rank + 1), value.shape[rank])
    if isinstance(value, StructuredTensor):
        fields: list[pa.Field] = []
        for name in value.field_names():
            at = path / name
            fields.append(pa.field(name, natural_type(value._field(name, at), at, rank)))
        return pa.struct(fields)
    return natural_flat_type(value.dtype, path)


def natural_flat_type(dtype: tf.DType, path: Path) -> pa.DataType:
    """Returns the Arrow type of tensors of a dtype; strings become text.

    Raises:
        UnsupportedTypeError: If Arrow has no type for the dtype (also a TypeError).
    """
    if dtype in _FLAT:
        return _FLAT[dtype]
    raise UnsupportedTypeError(
        path=path,
        expected="a dtype that Arrow supports",
        received=dtype.name,
        mend="Cast the field first, such as bfloat16 to float32.",
    )


def expect_writable(value: Any, path: Path) -> None:
    """Raises unless a value is a tensor, a ragged value or records.

    Raises:
        UnsupportedTypeError: If the value has another type (also a TypeError).
    """
    if not (isinstance(value, (tf.Tensor, StructuredTensor)) or hasattr(value, "row_splits")):
        raise UnsupportedTypeError(
            path=path,
            expected="a tensor, a ragged tensor or records",
            received=type(value).__name__,
            mend="Replace the field with its components (with_updates), or remove it (without).",
        )
