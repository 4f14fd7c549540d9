"""Unions from Python values and back, and unions with other variants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from extensor._types.masked.item import to_lists
from extensor._types.masked.value import MaskedTensor
from extensor._types.union.check import Rows
from extensor.authoring import cast_value

if TYPE_CHECKING:
    from extensor._types.union.spec import UnionSpec
    from extensor._types.union.value import UnionTensor

NULL = "null"
"""The name of the variant of None."""


def from_values(values: Any, spec: UnionSpec | None = None) -> Any:
    """Returns a union of Python values: a field of records that have these values.

    Args:
        values: A list of values; nested lists for a spec of higher rank, or one value for the spec
            of a single one.
        spec: A UnionSpec. Default: the variants of the values.

    Raises:
        ExtensorError: As `xt.struct.constant` does.
    """
    import extensor as xt  # imports this module

    if spec is not None and not spec.shape.rank:
        record: Any = xt.DenseStructuredTensorSpec([], {"value": spec})
        return xt.struct.constant({"value": values}, record)["value"]
    if spec is not None:
        records: Any = xt.DenseStructuredTensorSpec(spec.shape[:1], {"value": spec})
        return xt.struct.constant([{"value": value} for value in values], records)["value"]
    present = [{"value": value} for value in values if value is not None]
    codes, variants = np.zeros(len(present), np.int8), {}
    if present:
        rows: Any = xt.struct.constant(present, conflicts="union")["value"]
        is_union = hasattr(rows, "variants")
        variants = dict(rows.variants) if is_union else {_name_of(rows, present): rows}
        codes = rows.codes.numpy() if is_union else codes
    is_null = np.array([value is None for value in values], bool)
    if is_null.any():
        all_codes = np.full(len(values), len(variants), np.int8)
        all_codes[~is_null] = codes
        count = int(is_null.sum())
        codes = all_codes
        variants[NULL] = MaskedTensor._of_parts(tf.zeros([count]), tf.zeros([count], tf.bool))
    return codes, variants


def _name_of(rows: Any, records: list[Any]) -> str:
    """Returns the name of the only variant, as `xt.struct.constant` names it beside others.

    Args:
        rows: The rows of the variant.
        records: The records with the values.
    """
    import extensor as xt  # imports this module

    other = 0.5 if getattr(rows, "dtype", None) == tf.bool else True
    both: Any = xt.struct.constant([*records, {"value": other}], conflicts="union")["value"]
    return both.names[0]


def is_null_rows(rows: Rows) -> bool:
    """Returns whether rows are all null, and of the type that the variant of None has.

    A variant with the name of that variant may have values of another type, which may be empty.
    Rows of a spec have no values.
    """
    if not isinstance(rows, MaskedTensor) or not is_null_spec(tf.type_spec_from_value(rows)):
        return False
    known = tf.get_static_value(rows.mask)
    return known is None or not known.any()


def is_null_spec(spec: tf.TypeSpec) -> bool:
    """Returns whether a spec is that of the rows of the variant of None: masked float32."""
    return (
        isinstance(spec, MaskedTensor.Spec)
        and isinstance(spec.values, tf.TensorSpec)
        and spec.values.dtype == tf.float32
        and spec.values.shape.rank == 1
    )


def with_names(value: UnionTensor, spec: UnionSpec) -> UnionTensor:
    """Returns a union with the variants of a spec, or the value itself if they differ more.

    Args:
        value: A UnionTensor.
        spec: A UnionSpec.
    """
    if value.names == spec.names or not set(value.names) <= set(spec.names):
        return value
    table = tf.constant([spec.names.index(name) for name in value.names], tf.int8)
    new = tf.ragged.map_flat_values(
        lambda codes: tf.gather(table, tf.cast(codes, tf.int32)), value.codes
    )
    variants = {
        name: value.variants[name]
        if name in value.variants
        else cast_value(spec.variants[name], [], f"UnionTensor.{name}")
        for name in spec.names
    }
    return value._of_parts(new, variants, spec.names)


def to_py(value: UnionTensor) -> Any:
    """Returns the values of a union as numbers, bytes, lists and dicts."""
    rows = [iter(to_lists(value.variants[name])) for name in value.names]
    return _place(to_lists(value.codes), rows)


def _place(codes: list[Any] | int, rows: list[Any]) -> Any:
    if isinstance(codes, list):
        return [_place(code, rows) for code in codes]
    return next(rows[codes])
