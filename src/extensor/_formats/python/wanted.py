"""What a spec wants of a column of Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Union

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import item_type, variant_types
from extensor._arrow.times_of_text import is_time
from extensor._formats.python.kinds import kind_of_arrow
from extensor._struct.masked import is_masked, is_union
from extensor._struct.ragged_spec import ListSpec, RaggedStructuredTensorSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import unstacked

Wanted = Union["Fields", "WantedLists", "Leaf", "Variants", "Cast"]
"""What is wanted of a column."""


@dataclass(frozen=True)
class WantedLists:
    """Lists of one length if `dense`, and of this size unless it is None.

    Attributes:
        items: What is wanted of the items.
        dense: Whether all lists have one length.
        size: The length, or None.
        nullable: Whether a list may be null.
    """

    items: Wanted
    dense: bool
    size: int | None
    nullable: bool = False
    text: ClassVar[str] = "a list"


@dataclass(frozen=True)
class Fields:
    """Records with exactly these fields."""

    fields: Mapping[str, Wanted]
    nullable: bool = False
    text: ClassVar[str] = "a record, as a dict"


@dataclass(frozen=True)
class Leaf:
    """Numbers, bools or strings of a dtype.

    Attributes:
        dtype: The dtype.
        arrow: The Arrow type that the spec keeps for the field, or None.
        nullable: Whether a value may be null.
    """

    dtype: tf.DType
    arrow: pa.DataType | None = None
    nullable: bool = False

    @property
    def is_time(self) -> bool:
        """Whether the values are timestamps, dates or times."""
        return self.arrow is not None and is_time(self.arrow)

    @property
    def text(self) -> str:
        """What is wanted, for errors."""
        return self.dtype.name if self.arrow is None else str(self.arrow)


@dataclass(frozen=True)
class Variants:
    """Values of several kinds, each a row of one variant of a union.

    Attributes:
        variants: What is wanted of the rows of each variant, by name.
    """

    variants: Mapping[str, Wanted]

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

    spec: tf.TypeSpec
    nullable: bool = False


def wanted_records(spec: StructuredTensorSpec, outer: int = 0) -> Wanted:
    """Returns what is wanted of records: Fields, in lists for the dimensions from `outer` on."""
    record = spec._record
    types: Mapping[str, pa.DataType] = getattr(record, "arrow_types", {})
    fields = {n: _wanted_field(s, record.rank, types.get(n)) for n, s in record.field_specs.items()}
    return _in_lists(Fields(fields), spec, outer, spec.rank)


def _wanted_field(spec: tf.TypeSpec, outer: int, arrow: pa.DataType | None) -> Wanted:
    """Returns what is wanted of a field.

    Args:
        spec: The spec of the field.
        outer: The rank of the records that have the field.
        arrow: The Arrow type of the field, or None.
    """
    if is_masked(spec):
        shape = spec.mask.shape
        if shape.rank is not None:
            found = _with_nulls(_wanted_field(spec.values, outer, arrow), shape.as_list()[outer:])
            if found is not None:
                return found
        return Cast(value_spec(spec, outer))
    if isinstance(spec, StructuredTensorSpec):
        return wanted_records(spec, outer)
    if is_union(spec):
        types = variant_types(arrow)
        rows = {
            name: _wanted_field(each, 1, types.get(name)) for name, each in spec.variants.items()
        }
        return _in_lists(Variants(rows), spec, outer, spec.shape.rank)
    is_plain = isinstance(spec, tf.TensorSpec) or (
        isinstance(spec, tf.RaggedTensorSpec) and spec.flat_values_spec is None
    )
    if not is_plain or spec.shape.rank is None:
        return Cast(value_spec(spec, outer))
    kept = item_type(arrow)
    if kind_of_arrow(kept) is None:
        kept = None
    return _in_lists(Leaf(spec.dtype, kept), spec, outer, rank_of_values(spec, kept))


def _in_lists(wanted: Wanted, spec: tf.TypeSpec, outer: int, rank: int) -> Wanted:
    """Returns what is wanted, in lists for the dimensions of a spec from `outer` to `rank`."""
    cuts = ragged_dimensions(spec)
    for axis in reversed(range(outer, rank)):
        wanted = WantedLists(wanted, not 0 < axis <= cuts, spec.shape[axis])
    return wanted


def _with_nulls(wanted: Wanted, sizes: Sequence[int | None]) -> Wanted | None:
    """Returns what is wanted with nulls below lists of these sizes; None for values of a union.

    Lists of records know their sizes from the mask only.
    """
    if sizes and isinstance(wanted, WantedLists):
        items = _with_nulls(wanted.items, sizes[1:])
        size = wanted.size if sizes[0] is None else sizes[0]
        return None if items is None else replace(wanted, items=items, size=size)
    return None if isinstance(wanted, Variants) else replace(wanted, nullable=True)


def ragged_dimensions(spec: tf.TypeSpec) -> int:
    """Returns the number of ragged dimensions; they follow the first dimension."""
    spec = spec.codes if is_union(spec) else spec
    if isinstance(spec, tf.RaggedTensorSpec):
        return spec.ragged_rank
    count = 0
    while isinstance(spec, ListSpec):
        count += isinstance(spec, RaggedStructuredTensorSpec)
        spec = spec.values_spec
    return count


def rank_of_values(spec: tf.TypeSpec, arrow: pa.DataType | None) -> int:
    """Returns the rank of a field's tensor, without the integers of one value.

    Args:
        spec: The spec of the tensor.
        arrow: The Arrow type of a value: a decimal of many digits is several integers.
    """
    is_wide = arrow is not None and pa.types.is_decimal(arrow) and arrow.precision > 18
    return spec.shape.rank - is_wide


def value_spec(spec: tf.TypeSpec, outer: int) -> tf.TypeSpec:
    """Returns the spec of the value of one record, of records of rank `outer`."""
    for _ in range(outer):
        spec = unstacked(spec)
    return spec
