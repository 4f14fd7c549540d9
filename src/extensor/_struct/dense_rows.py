"""Dense records from ragged ones: rows filled up to the longest one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._path import Path
from extensor._struct import index
from extensor._struct.field import expect_mapping
from extensor._struct.row_splits import first_sizes
from extensor._struct.spec import resolve
from extensor.errors import DTypeError

if TYPE_CHECKING:
    from extensor._struct.tensor import StructuredTensor


def to_dense(
    records: StructuredTensor, default_values: Mapping[Any, Any] | None, masked: bool
) -> Any:
    """Returns ragged records as dense ones; see `StructuredTensor.to_dense`."""
    if default_values is None:
        default_values = {}
    expect_mapping(default_values, "default_values", "from paths to values", '{"minutes": -1}')
    dense, mask = records, None
    if hasattr(records, "row_splits"):
        levels = records.rank - records._record.rank
        numbers, flat = index.number_items(records, levels + 1)
        count = tf.cast(first_sizes(flat, 1)[0], numbers.dtype)
        places = numbers.to_tensor(count)  # that of the zero after the records
        dense = index.gather(index.with_zeros(flat), places)._with_dims(records._dims)
        mask = places < count
    for path, default in default_values.items():
        names = resolve(path, records._names())
        value = dense.field_value(names)
        if not isinstance(value, tf.Tensor):
            expected = "the path of a field of tensors"
            fix = "Give a default value for each field inside records; missing lists are empty."
            raise DTypeError(Path(*names), expected, type(value).__name__, fix)
        if mask is not None:
            is_own = mask[(..., *[tf.newaxis] * (value.shape.rank - mask.shape.rank))]
            filled = tf.where(is_own, value, tf.convert_to_tensor(default, value.dtype))
            dense = dense.with_updates({names: filled}, validate=False)
    if not masked:
        return dense
    from extensor._types.masked.value import MaskedTensor

    return MaskedTensor._of_parts(dense, mask)
