"""Items with zeros after them, which take the places of nulls."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._path import Path
from extensor._protocol.stackable_spec import any_length
from extensor._struct.masked import is_union
from extensor._struct.parts import spec_of_parts
from extensor._struct.records import RecordsBase
from extensor._struct.row_splits import cut
from extensor._tf import BaseResourceVariable, stacked, unstacked
from extensor._typing import FieldValue

_ROOT = Path()


def with_zeros(
    items: FieldValue, count: int | tf.Tensor = 1, size: int | None = None, at: Path = _ROOT
) -> FieldValue:
    """Returns items and after them zeros, empty strings or empty lists.

    Args:
        items: A tensor, RaggedTensor, records, masked values, a union or another value whose
            components have its rows, of rank 1 or more.
        count: The number of zeros.
        size: The number of items and zeros, if it is static.
        at: The path of the items, for errors.

    Raises:
        UnsupportedTypeError: If the components of a value do not have its rows (also a TypeError).
    """
    if isinstance(items, (tf.Tensor, BaseResourceVariable)):
        items = tf.convert_to_tensor(items)
        shape: Any = [count, *items.shape[1:]]
        if None in shape or not isinstance(count, int):
            shape = tf.concat([[tf.cast(count, tf.int32)], tf.shape(items)[1:]], 0)
        # No `tf.pad`: a GPU has no kernel for int64, and would copy them to the host and back.
        result = tf.concat([items, tf.zeros(shape, items.dtype)], 0)
        result.set_shape([size, *items.shape[1:]])
        return result

    def more(part: FieldValue, name: str = "") -> FieldValue:
        return with_zeros(part, count, size, at / name if name else at)

    splits: Any = getattr(items, "row_splits", None)
    if splits is not None:
        splits = tf.concat([splits, tf.fill([count], splits[-1])], 0)
        splits.set_shape([None if size is None else size + 1])
        lists = cut(items.values, splits, at)
        return lists._with_dims(items._dims) if isinstance(items, RecordsBase) else lists
    if isinstance(items, RecordsBase):
        records: Any = items
        return records._map_parts(more)
    if is_union(items):
        first, *_ = items.names
        codes, variants = more(items.codes), dict(items.variants)
        if not isinstance(codes, tf.RaggedTensor):  # else, empty lists are after the others
            variants[first] = with_zeros(variants[first], count)
        return items._of_parts(codes, variants, items.names)
    spec = spec_of_parts(items, at)
    result: Any = any_length(spec) if size is None else stacked(unstacked(spec), size)
    return result.from_components(tf.nest.map_structure(more, spec.to_components(items)))
