"""Dense records from ragged ones: rows filled up to the longest one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._path import Path
from extensor._struct import index
from extensor._struct.field import expect_mapping
from extensor._struct.records import RecordsBase
from extensor._struct.row_splits import first_sizes
from extensor._struct.spec import resolve
from extensor._tf import BaseResourceVariable
from extensor._typing import FieldValue
from extensor.errors import DTypeError, UnsupportedTypeError

if TYPE_CHECKING:
    from extensor._struct.dense import DenseStructuredTensor
    from extensor._struct.tensor import StructuredTensor


def to_dense(
    records: StructuredTensor, default_values: Mapping[Any, Any] | None, masked: bool
) -> Any:
    """Returns ragged records as dense ones; see `StructuredTensor.to_dense`."""
    if default_values is None:
        default_values = {}
    expect_mapping(default_values, "default_values", "from paths to values", '{"minutes": -1}')
    defaults = _by_names(records, default_values)
    if hasattr(records, "row_splits"):
        numbers, flat = _rows(records)
        dense: Any = _fill(flat, numbers, defaults, ())._with_dims(records._dims)
        mask: Any = None
        if masked:
            mask = numbers.with_flat_values(tf.ones_like(numbers.flat_values, tf.bool)).to_tensor()
    else:
        dense, mask = records, None
    if not masked:
        return dense
    from extensor._types.masked.value import MaskedTensor

    return MaskedTensor._of_parts(dense, mask)


def _rows(records: StructuredTensor) -> tuple[Any, Any]:
    """Returns the number of each item in ragged rows, and the items: records of rank 1 or more."""
    if not hasattr(records, "row_splits"):
        return index.range_of_shape(first_sizes(records, 1)), records
    numbers, flat = _rows(records.values)
    return tf.RaggedTensor.from_row_splits(numbers, records.row_splits, validate=False), flat


def _by_names(records: StructuredTensor, defaults: Mapping[Any, Any]) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for path, default in defaults.items():
        names = resolve(path, records._names())
        records._require(names)
        spec = records.__tf_type_spec__().field_spec(names)
        if not isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec)):
            expected = "the path of a field of tensors"
            fix = "Give a default value for each field inside the records."
            raise DTypeError(Path(*names), expected, f"{type(spec).__name__}", fix)
        found[names] = default
    return found


def _fill(
    flat: Any, numbers: tf.RaggedTensor, defaults: dict[Any, Any], at: tuple[str, ...]
) -> DenseStructuredTensor:
    """Returns records in one dimension, in rows of one length, filled with default values.

    Args:
        flat: Dense records of rank 1 or more.
        numbers: The number of each record, a RaggedTensor.
        defaults: The value of a field in the filled records, by the names of its path.
        at: The names of the path of the records.
    """
    places = None

    def fill(part: FieldValue, name: str) -> FieldValue:
        nonlocal places
        path = (*at, name)
        splits: Any = getattr(part, "row_splits", None)
        if isinstance(part, RecordsBase) and splits is None:
            return _fill(part, numbers, defaults, path)
        if isinstance(part, (tf.Tensor, BaseResourceVariable)):
            default = defaults.get(path)
            rows = numbers.with_flat_values(tf.convert_to_tensor(part))
            return rows.to_tensor(default)
        if path in defaults:
            expected = "no default value, because missing records get an empty list"
            fix = "Leave it out, or fill the list by its own to_tensor."
            raise DTypeError(Path(*path), expected, "a default value for a list", fix)
        if splits is None:
            expected = "a field of tensors, lists or records"
            fix = "Leave it out with records.without."
            raise UnsupportedTypeError(Path(*path), expected, type(part).__name__, fix)
        if places is None:
            count = tf.size(splits, numbers.dtype) - 1
            places = numbers.to_tensor(count)
        return index.gather(_with_empty_row(part), places)

    return flat._map_parts(fill, (*[None] * numbers.shape.rank, *range(1, flat.rank)))


def _with_empty_row(value: FieldValue) -> FieldValue:
    ragged: Any = value
    splits = tf.concat([ragged.row_splits, ragged.row_splits[-1:]], 0)
    if not isinstance(value, tf.RaggedTensor):
        return type(value)._of_parts(value.values, splits)
    return tf.RaggedTensor.from_row_splits(value.values, splits, validate=False)
