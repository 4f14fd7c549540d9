"""Operations that join collections of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from extensor._authoring.rows import common_spec, stacked_boxes
from extensor._dispatch.handlers import implements
from extensor._protocol.box import as_list
from extensor._struct.handlers.each_field import (
    axis_of,
    concat_records,
    expect_one_size,
    expect_same_fields,
    join_fields,
)
from extensor._struct.tensor import StructuredTensor
from extensor._tf import ranks_only
from extensor._typing import FieldValue, TensorLike
from extensor.errors import StructureError


@implements(tf.concat, on=StructuredTensor)
def concat(
    values: FieldValue | Sequence[FieldValue], axis: TensorLike, *_: object
) -> StructuredTensor:
    """Returns the records of all collections, one after another along an axis.

    Dense and ragged collections may be mixed; the result is ragged where rows differ in length.
    """
    values = _as_list(values)
    place = axis_of(axis, _rank(values), "tf.concat")
    if place == 0:
        return concat_records(values, "tf.concat")  # needs no gather
    axes = range(values[0].rank)
    return join_fields(values, lambda parts: tf.concat(parts, place), axes, "tf.concat")


@implements(tf.stack, on=StructuredTensor)
def stack(
    values: FieldValue | Sequence[FieldValue], axis: TensorLike = 0, *_: object
) -> StructuredTensor:
    """Returns collections of one rank, stacked along a new axis."""
    values = _as_list(values)
    rank = _rank(values)
    place = axis_of(axis, rank + 1, "tf.stack")
    fix = "Use tf.ragged.stack for lists that differ in length."
    expect_one_size(values, "tf.stack", fix)
    axes = [*range(place), None, *range(place, rank)]
    return join_fields(values, lambda parts: tf.stack(parts, place), axes, "tf.stack")


@implements(tf.ragged.stack, on=StructuredTensor)
def ragged_stack(
    values: FieldValue | Sequence[FieldValue], axis: TensorLike = 0, *_: object
) -> StructuredTensor:
    """Returns records stacked along a new first axis; lists in them may differ in length.

    All lists of the result are ragged, as those of `tf.ragged.stack` of tensors are.
    """
    values = _as_list(values)
    if axis_of(axis, _rank(values) + 1, "tf.ragged.stack"):
        fix = "Stack along the first axis, or stack the fields."
        raise StructureError("tf.ragged.stack: axis", "axis 0", f"axis {axis}", fix)
    expect_same_fields(values, "tf.ragged.stack")
    specs = [ranks_only(value.__tf_type_spec__()) for value in values]
    common: Any = common_spec(specs, "tf.ragged.stack")
    dtypes = common._row_splits_dtypes()
    row = common._ragged_row(tf.int32 if dtypes == {tf.int32} else tf.int64)
    cast = [row.cast(common.cast(value)) for value in values]
    columns = zip(*(as_list(row.to_boxed_tensor(value)) for value in cast), strict=True)
    return row.stacked(len(values)).from_boxed_tensor(list(map(stacked_boxes, columns)))


def _as_list(values: FieldValue | Sequence[FieldValue]) -> list[Any]:
    return list(values) if isinstance(values, Sequence) else [values]


def _rank(values: list[Any]) -> int:
    first = values[0]
    if isinstance(first, StructuredTensor):
        return first.rank
    fix = "Join records with records, and fields with fields."
    raise StructureError("tf.concat or tf.stack", "records only", f"a {type(first).__name__}", fix)
