"""The Arrow type of a field, for a field elsewhere that has the same items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import tensorflow as tf

from extensor._authoring.rows import uncut_rows
from extensor._path import Path
from extensor._struct.arrow_types import ArrowType, form_of
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.inside import map_inside
from extensor._struct.masked import under_masks
from extensor._struct.paths.place import Names, put, type_at
from extensor._typing import FieldValue

if TYPE_CHECKING:
    from extensor._struct.tensor import StructuredTensor


def put_items(
    st: StructuredTensor, names: Names, value: FieldValue, source: Names | None = None
) -> StructuredTensor:
    """Returns the records with a value at a path that has items of a field, with its Arrow type.

    Args:
        st: The records.
        names: The path of the value; `()` replaces the records.
        value: The value.
        source: The path of the field. Default: the field that the value replaces.
    """
    kept = type_at(st, names if source is None else source)
    return with_types(put(st, names, value), {names: kept} if names else {})


def with_types(st: StructuredTensor, types: Mapping[Names, ArrowType | None]) -> StructuredTensor:
    """Returns records in which fields have the Arrow types of other fields with the same items.

    Args:
        st: The records.
        types: The Arrow type of the other field, by the path of the field; None if it has none.
    """
    for names, kept in types.items():
        st = _with_type(st, names, kept)
    return st


def _with_type(records: StructuredTensor, names: Names, kept: ArrowType | None) -> StructuredTensor:
    if not isinstance(records, DenseStructuredTensor):
        return map_inside(records, lambda inner, _: _with_type(inner, names, kept))
    name, inner = names[0], names[1:]
    field = records._columns[name]
    if inner:
        return records._update({name: _with_type(field, inner, kept)}, Path())
    types = records._metadata.types
    own = None if kept is None else _type_of_items(kept, name, field, records.rank)
    if own is None and name not in types:
        return records
    others = {other: each for other, each in types.items() if other != name}
    types = others if own is None else {**others, name: own}
    return records._with_metadata(records._metadata._replace(types=types))


def _type_of_items(kept: ArrowType, name: str, value: FieldValue, rank: int) -> ArrowType | None:
    """Returns the Arrow type of a value with the items of a field, in other lists or in none.

    Args:
        kept: The Arrow type of the field.
        name: The new name.
        value: The value.
        rank: The number of dimensions of the records that get the value.
    """
    form, field = form_of(value, rank), kept.field.with_name(name)
    if form[0] != kept.form[0] or form[1] is None or kept.form[1] is None:
        return None
    more = form[1] - kept.form[1]
    for _ in range(-more):
        if not hasattr(field.type, "value_field"):
            return None
        field = field.type.value_field.with_name(name)
    if more > 0:
        field = pa.field(name, _lists(field.with_name("item"), value, rank, more))
    return ArrowType(field, form, kept.words)


def _lists(item: pa.Field, value: FieldValue, rank: int, count: int) -> pa.DataType:
    """Returns the type of lists of items: `count` dimensions of a value, after the first `rank`."""

    def of_items(value: FieldValue, rank: int) -> pa.Field:
        return item if count == 1 else pa.field("item", _lists(item, value, rank, count - 1))

    value = under_masks(value)
    if rank == 0:  # the list of a single record
        return pa.large_list(of_items(value, 1))
    rows = uncut_rows(value)
    if rows is None:
        size = value.shape[rank]
        items = of_items(value, rank + 1)
        return pa.large_list(items) if size is None else pa.list_(items, size)
    if rank > 1:
        return _lists(item, rows[0], rank - 1, count)
    make = pa.large_list if rows[1].dtype == tf.int64 else pa.list_
    return make(of_items(rows[0], 1))
