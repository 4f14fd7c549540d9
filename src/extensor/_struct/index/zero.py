"""Items with a zero before them, which takes the place of a null."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._protocol.stackable_spec import any_length, stacks_by_components
from extensor._struct.masked import is_masked, is_union
from extensor._struct.parts import map_parts
from extensor._struct.records import RecordsBase
from extensor._typing import FieldValue


def with_zero(items: FieldValue) -> FieldValue:
    """Returns items with a zero, an empty string or an empty list before them.

    Args:
        items: A tensor, RaggedTensor, records, masked values, a union or another value that stacks,
            of rank 1 or more.
    """
    if isinstance(items, RecordsBase):
        records: Any = items
        if hasattr(records, "row_splits"):
            splits = records.row_splits
            return records.values.__tf_cut_rows__(tf.concat([splits[:1], splits], 0))
        return records._map_parts(lambda part, _: with_zero(part))
    if isinstance(items, tf.RaggedTensor):
        splits = items.row_splits
        return items.from_row_splits(items.values, tf.concat([splits[:1], splits], 0), False)
    if is_masked(items):
        return type(items)._of_parts(with_zero(items.values), with_zero(items.mask))
    if is_union(items):
        first, *_ = items.names
        codes, variants = with_zero(items.codes), dict(items.variants)
        if not isinstance(codes, tf.RaggedTensor):  # else, an empty list is before the others
            variants[first] = with_zero(variants[first])
        return items._of_parts(codes, variants, items.names)
    if stacks_by_components(spec := tf.type_spec_from_value(items)):
        return map_parts(items, with_zero, any_length(spec), 1)
    items = tf.convert_to_tensor(items)
    shape = tf.concat([[1], tf.shape(items)[1:]], 0)
    zero = tf.fill(shape, "") if items.dtype == tf.string else tf.zeros(shape, items.dtype)
    return tf.concat([zero, items], 0)
