"""Fields of records by paths that may go through the variants of unions.

The variant `int` of a union `amount` has the path `amount.int`. It is a list of at most one item
for each row of the union, so that a row of another variant has no item.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._authoring.rows import cut_rows, row_splits_of
from extensor._keras.layers.lists import without_masks
from extensor._path import Path
from extensor._struct.spec import StructuredTensorSpec
from extensor._types.masked.value import MaskedTensor
from extensor._types.union.conversion import NULL, is_null_spec
from extensor._types.union.rows import flat_codes
from extensor._types.union.value import UnionTensor
from extensor._typing import Value
from extensor.errors import FieldError


def field_at(records: Value, path: str) -> Value:
    """Returns a field of records.

    Args:
        records: A StructuredTensor.
        path: The path of the field, through variants of unions or not.

    Raises:
        FieldError: If there is no such field or variant (also a KeyError).
    """
    return _field(records, Path.of(path).names, Path())


def variant_specs(spec: Any) -> dict[str, Any]:
    """Returns the specs of the variants of a union that have values, by name."""
    return {
        name: variant
        for name, variant in spec.variants.items()
        if name != NULL or not is_null_spec(variant)
    }


def _field(records: Value, names: tuple[str, ...], above: Path) -> Value:
    at = _place_of_union(records, names)
    if at is None:
        return records[names] if names else records
    for name in names[: at + 1]:
        above = above / name
    return _field(_variant(records[names[:at]], names[at], above), names[at + 1 :], above)


def _place_of_union(records: Value, names: tuple[str, ...]) -> int | None:
    """Returns the number of names that lead to a union, of which a variant follows, or None."""
    if len(names) < 2:
        return None
    spec = tf.type_spec_from_value(records)
    for at, name in enumerate(names):
        spec, _ = without_masks(spec)
        if isinstance(spec, UnionTensor.Spec):
            return at
        if not isinstance(spec, StructuredTensorSpec):
            return None
        spec = spec._record.field_specs.get(name)
    return None


def _variant(union: Value, name: str, path: Path) -> Value:
    """Returns a variant of a union, as a list of at most one item for each row."""
    if isinstance(union, MaskedTensor):
        return MaskedTensor._of_parts(_variant(union.values, name, path), union.mask)
    if name not in union.names:
        expected = f"a variant of the union: {', '.join(union.names)}"
        raise FieldError(str(path), expected, name, "Check the spelling.")
    is_variant = tf.equal(flat_codes(union.codes), union.names.index(name))
    rows = cut_rows(union.variants[name], row_splits_of(tf.cast(is_variant, tf.int64)))
    for splits in reversed(_outer_splits(union.codes)):
        rows = cut_rows(rows, splits)
    return rows


def _outer_splits(codes: tf.Tensor | tf.RaggedTensor) -> list[Any]:
    if isinstance(codes, tf.Tensor):
        rank = codes.shape.rank or 1
        if rank == 1:
            return []
        codes = tf.RaggedTensor.from_tensor(codes, ragged_rank=rank - 1)
    return [tf.cast(splits, tf.int64) for splits in codes.nested_row_splits]
