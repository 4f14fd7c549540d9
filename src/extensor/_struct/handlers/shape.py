"""Operations that return the shape of records, or records of the same shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._dispatch.handlers import implements
from extensor._path import Path
from extensor._struct.display import text
from extensor._struct.inside import map_inside
from extensor._struct.masked import is_masked, is_union
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.row_splits import outer_sizes
from extensor._struct.tensor import StructuredTensor
from extensor._tf import BaseResourceVariable
from extensor._typing import FieldValue
from extensor.errors import DTypeError, StructureError


@implements(tf.shape, on=StructuredTensor)
def shape(input: StructuredTensor, out_type: tf.DType | None = None, *_: object) -> tf.Tensor:
    """Returns the sizes of the dimensions of the records."""
    if isinstance(input, RaggedStructuredTensor):
        expected = "records with one size per dimension"
        fix = "Use records.row_lengths() and records.values, or records.shape for static sizes."
        raise StructureError("tf.shape", expected, text.kind_text(input), fix)
    out_type = out_type or tf.int32
    if input.shape.is_fully_defined():
        return tf.constant(input.shape.as_list(), out_type)
    return tf.cast(outer_sizes(input, input.rank), out_type)


@implements(tf.size, on=StructuredTensor)
def size(input: StructuredTensor, out_type: tf.DType | None = None, *_: object) -> tf.Tensor:
    """Returns the number of records."""
    out_type = out_type or tf.int32
    count = None
    while isinstance(input, RaggedStructuredTensor):
        count, input = input.row_splits[-1], input.values
    if count is not None:
        return tf.cast(count, out_type) * tf.reduce_prod(shape(input, out_type)[1:])
    if input.shape.is_fully_defined():
        return tf.constant(input.shape.num_elements(), out_type)
    return tf.reduce_prod(shape(input, out_type))


@implements(tf.rank, on=StructuredTensor)
def rank(input: StructuredTensor, *_: object) -> tf.Tensor:
    """Returns the number of dimensions of the records."""
    return tf.constant(input.rank)


@implements(tf.zeros_like, tf.ones_like, on=StructuredTensor)
def filled_like(
    op: Callable[..., Any], input: FieldValue, dtype: tf.DType | None = None, *_: object
) -> FieldValue:
    """Returns records of the same shape, with zeros or ones in each field.

    Nulls stay null, and rows of a union keep their variant.
    """
    return _fill(op, input, dtype, Path())


def _fill(
    op: Callable[..., Any], value: FieldValue, dtype: tf.DType | None, at: Path
) -> FieldValue:
    if isinstance(value, StructuredTensor) or is_masked(value) or is_union(value):
        return map_inside(value, lambda part, place: _fill(op, part, dtype, place), at)
    if isinstance(value, (tf.Tensor, BaseResourceVariable, tf.RaggedTensor)) and (
        op is tf.ones_like and value.dtype == tf.string and dtype is None
    ):
        fix = "Leave the field out with records.without, or give a dtype."
        raise DTypeError(f"tf.ones_like: {at}", "a field of numbers or bools", "dtype string", fix)
    return op(value) if dtype is None else op(value, dtype)
