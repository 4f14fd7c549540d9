"""What a spec wants of a column of Python values."""

# This file calls methods of records or specs that are private to extensor.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import inner_fields
from extensor._arrow.times_of_text import is_time
from extensor._formats.python import kinds
from extensor._struct.masked import is_union
from extensor._struct.ragged_spec import ListSpec, RaggedStructuredTensorSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import stacked, unstacked


@dataclass(frozen=True)
class Lists:
    """Lists of one length if `dense`, and of this size unless it is None.

    Attributes:
        items: What is wanted of the items.
        dense: Whether all lists have one length.
        size: The length, or None.
        nullable: Whether a list may be null.
    """

    items: Any
    dense: bool
    size: int | None
    nullable: bool = False


@dataclass(frozen=True)
class Fields:
    """Records with exactly these fields."""

    fields: Mapping[str, Any]
    nullable: bool = False


@dataclass(frozen=True)
class Leaf:
    """Numbers, bools or strings of a dtype.

    Attributes:
        dtype: The dtype.
        arrow: The Arrow type that the spec keeps for the field, or None.
        nullable: Whether a value may be null.
    """

    dtype: tf.DType
    arrow: Any = None
    nullable: bool = False

    @property
    def is_time(self) -> bool:
        """Whether the values are timestamps, dates or times."""
        return self.arrow is not None and is_time(self.arrow)


@dataclass(frozen=True)
class Variants:
    """Values of several kinds, each a row of one variant of a union.

    Attributes:
        variants: What is wanted of the rows of each variant, by name.
    """

    variants: Mapping[str, Any]

    @property
    def nullable(self) -> bool:
        """Whether a variant takes nulls."""
        return any(each.nullable for each in self.variants.values())


@dataclass(frozen=True)
class Cast:
    """Values that the spec itself casts, such as those of an extension type.

    Attributes:
        spec: The spec of one value.
        nullable: False: the spec decides what a null is.
    """

    spec: Any
    nullable: bool = False


def collection_levels(spec: StructuredTensorSpec) -> Any:
    """Returns what is wanted of a collection of records: Lists for each dimension, or Fields."""
    return _levels(spec, 0)


def _field(spec: Any, outer: int, arrow: Any) -> Any:
    """Returns what is wanted of a field.

    Args:
        spec: The spec of the field.
        outer: The rank of the records that have the field.
        arrow: The Arrow type of the field, or None.
    """
    from extensor._types.masked.spec import MaskedSpec
    from extensor._types.union.spec import UnionSpec

    if isinstance(spec, MaskedSpec):
        wanted = _field(spec.values, outer, arrow)
        rank = spec.mask.shape.rank
        return Cast(_element(spec, outer)) if rank is None else _masked(wanted, rank - outer)
    if isinstance(spec, StructuredTensorSpec):
        return _levels(spec, outer)
    if isinstance(spec, UnionSpec):
        return _union(spec, outer, arrow)
    plain = isinstance(spec, tf.TensorSpec) or (
        isinstance(spec, tf.RaggedTensorSpec) and spec.flat_values_spec is None
    )
    if not plain or spec.shape.rank is None:
        return Cast(_element(spec, outer))
    kept = _measure(arrow)
    # A decimal of many digits is several integers.
    is_wide = kept is not None and pa.types.is_decimal(kept) and kept.precision > 18
    return _in_lists(Leaf(spec.dtype, kept), spec, outer, spec.shape.rank - is_wide)


def _union(spec: Any, outer: int, arrow: Any) -> Any:
    while arrow is not None and not pa.types.is_union(arrow) and inner_fields(arrow):
        arrow = inner_fields(arrow)[0].type
    kept = {} if arrow is None else {each.name: each.type for each in inner_fields(arrow)}
    rows = {name: _field(each, 1, kept.get(name)) for name, each in spec.variants.items()}
    return _in_lists(Variants(rows), spec, outer, spec.shape.rank)


def _levels(spec: StructuredTensorSpec, outer: int) -> Any:
    record: Any = spec._record
    kept = getattr(record, "arrow_types", {})
    fields = {n: _field(s, record.rank, kept.get(n)) for n, s in record.field_specs.items()}
    return _in_lists(Fields(fields), spec, outer, spec.rank)


def _in_lists(wanted: Any, spec: Any, outer: int, rank: int) -> Any:
    """Returns what is wanted, in lists for the dimensions of a spec from `outer` to `rank`."""
    cuts = ragged_dimensions(spec)
    for axis in reversed(range(outer, rank)):
        wanted = Lists(wanted, not 0 < axis <= cuts, spec.shape[axis])
    return wanted


def ragged_dimensions(spec: Any) -> int:
    """Returns the number of ragged dimensions; they follow the first dimension."""
    spec = spec.codes if is_union(spec) else spec
    if isinstance(spec, tf.RaggedTensorSpec):
        return spec.ragged_rank
    count = 0
    while isinstance(spec, ListSpec):
        count += isinstance(spec, RaggedStructuredTensorSpec)
        spec = spec.values_spec
    return count


def _measure(arrow: Any) -> Any:
    """Returns an Arrow type whose Python values are objects, such as a timestamp, or None."""
    while arrow is not None and inner_fields(arrow):
        arrow = inner_fields(arrow)[0].type
    return None if arrow is None or kinds.of_arrow(arrow) is None else arrow


def _masked(wanted: Any, depth: int) -> Any:
    if depth <= 0 or not isinstance(wanted, Lists):
        return replace(wanted, nullable=True)
    return replace(wanted, items=_masked(wanted.items, depth - 1))


def _element(spec: Any, outer: int) -> Any:
    """Returns the spec of the value of one record."""
    for _ in range(outer):
        spec = unstacked(spec)
    return spec


def column_spec(wanted: Cast, count: int) -> Any:
    """Returns the spec of the values of `count` records in one dimension."""
    return stacked(wanted.spec, count)
