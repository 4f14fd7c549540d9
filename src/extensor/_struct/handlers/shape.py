"""Operations that return the shape of records, or records of the same shape."""

from __future__ import annotations

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
from extensor.errors import DTypeError, StructureError


@implements(tf.shape, on=StructuredTensor)
def shape(input: Any, out_type: Any = None, *_: Any) -> Any:
    """Returns the sizes of the dimensions of the records."""
    if isinstance(input, RaggedStructuredTensor):
        raise StructureError(
            "tf.shape",
            "records with one size per dimension",
            text.kind(input),
            "Use records.row_lengths() and records.values, or records.shape for static sizes.",
        )
    out_type = out_type or tf.int32
    if input.shape.is_fully_defined():
        return tf.constant(input.shape.as_list(), out_type)
    return tf.cast(outer_sizes(input, input.rank), out_type)


@implements(tf.size, on=StructuredTensor)
def size(input: Any, out_type: Any = None, *_: Any) -> Any:
    """Returns the number of records."""
    out_type = out_type or tf.int32
    rows: Any = 1
    while isinstance(input, RaggedStructuredTensor):
        if not isinstance(input.values, RaggedStructuredTensor):
            inner = input.values
            rest = shape(inner, out_type)[1:]
            return tf.cast(input.row_splits[-1], out_type) * tf.reduce_prod(rest)
        input = input.values
    if input.shape.is_fully_defined():
        return tf.constant(input.shape.num_elements(), out_type)
    return rows * tf.reduce_prod(shape(input, out_type))


@implements(tf.rank, on=StructuredTensor)
def rank(input: Any, *_: Any) -> Any:
    """Returns the number of dimensions of the records."""
    return tf.constant(input.rank)


@implements(tf.zeros_like, tf.ones_like, on=StructuredTensor)
def filled_like(op: Any, input: Any, dtype: Any = None, *_: Any) -> Any:
    """Returns records of the same shape, with zeros or ones in each field.

    Nulls stay null, and rows of a union keep their variant.
    """
    return _filled(op, input, dtype, Path())


def _filled(op: Any, value: Any, dtype: Any, at: Path) -> Any:
    if isinstance(value, StructuredTensor) or is_masked(value) or is_union(value):
        return map_inside(value, lambda part, place: _filled(op, part, dtype, place), at)
    if isinstance(value, (tf.Tensor, BaseResourceVariable, tf.RaggedTensor)) and (
        op is tf.ones_like and value.dtype == tf.string and dtype is None
    ):
        raise DTypeError(
            f"tf.ones_like: {at}",
            "a field of numbers or bools",
            "dtype string",
            "Leave the field out with records.without, or give a dtype.",
        )
    return op(value) if dtype is None else op(value, dtype)
