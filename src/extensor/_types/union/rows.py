"""The rows of a union: which variant each is, and unions with some of these rows.

The rows are counted in row-major order. A variant has its own rows only, in this order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._types.union.check import Codes, Rows
from extensor.authoring import concat_rows, cut_rows, num_rows, take_rows

if TYPE_CHECKING:
    from extensor._types.union.value import UnionTensor


def flat_codes(codes: Codes) -> tf.Tensor:
    """Returns the type codes as a vector."""
    flat: Any = codes.flat_values if isinstance(codes, tf.RaggedTensor) else codes
    return flat if flat.shape.rank == 1 else tf.reshape(flat, [-1])


def row_numbers(codes: Codes) -> Codes:
    """Returns the position of each row, as an int64 tensor of the shape of the codes."""
    flat: Any = codes.flat_values if isinstance(codes, tf.RaggedTensor) else codes
    numbers = tf.range(tf.size(flat, tf.int64))
    if flat.shape.rank != 1:
        numbers = tf.ensure_shape(tf.reshape(numbers, tf.shape(flat)), flat.shape)
    return codes.with_flat_values(numbers) if isinstance(codes, tf.RaggedTensor) else numbers


def rows_of_code(flat: tf.Tensor, code: int) -> tf.Tensor:
    """Returns the positions of the rows of one variant: an int64 vector."""
    return tf.where(tf.equal(flat, tf.cast(code, flat.dtype)))[:, 0]


def position_in_variant(flat: tf.Tensor, count: int) -> tf.Tensor:
    """Returns for each row its position among the rows of its variant: an int64 vector.

    Args:
        flat: The type codes: a vector.
        count: The number of variants.
    """
    one_hot = tf.cast(tf.equal(tf.range(count)[:, tf.newaxis], tf.cast(flat, tf.int32)), tf.int64)
    before = tf.cumsum(one_hot, axis=1, exclusive=True)
    return tf.reduce_sum(before * one_hot, axis=0)


def take(union: UnionTensor, positions: Codes) -> UnionTensor:
    """Returns a union of some rows.

    Args:
        union: A UnionTensor.
        positions: Positions of rows, as an integer tensor or RaggedTensor. The result has its
            shape.
    """
    flat = flat_codes(union.codes)
    codes = tf.gather(flat, positions)
    chosen = flat_codes(codes)
    within = tf.gather(position_in_variant(flat, len(union.names)), flat_codes(positions))
    variants = {
        name: take_rows(union.variants[name], tf.gather(within, rows_of_code(chosen, code)))
        for code, name in enumerate(union.names)
    }
    return union._of_parts(codes, variants, union.names)


def rearrange(union: UnionTensor, change: Callable[[Any], Any]) -> UnionTensor | list[UnionTensor]:
    """Returns a union whose rows are rearranged, or a list of unions.

    Args:
        union: A UnionTensor.
        change: Takes the positions of the rows, in their shape, and returns positions, or a list
            of them.
    """
    positions = change(row_numbers(union.codes))
    if isinstance(positions, (list, tuple)):
        parts: Any = positions
        return [take(union, part) for part in parts]
    return take(union, positions)


def concat(unions: list[Any]) -> tuple[Any, list[Any]]:
    """Returns all rows of several unions as one vector, and the position of each row in it.

    Args:
        unions: UnionTensors of the same variants.
    """
    first = unions[0]
    counts = [tf.size(flat_codes(union.codes), tf.int64) for union in unions]
    starts = tf.unstack(tf.cumsum(tf.stack(counts), exclusive=True), len(unions))
    codes = tf.concat([flat_codes(union.codes) for union in unions], 0)
    variants = {name: concat_rows([u.variants[name] for u in unions]) for name in first.names}
    numbers = [
        tf.ragged.map_flat_values(tf.add, row_numbers(union.codes), start)
        for union, start in zip(unions, starts, strict=True)
    ]
    return first._of_parts(codes, variants, first.names), numbers


def merge_variants(parts: list[Any], flat: tf.Tensor) -> Rows:
    """Returns the rows of all variants as one value, in the order of the codes.

    Args:
        parts: For each variant a value with one row for each of its codes; all of one type.
        flat: The type codes: a vector.
    """
    if all(isinstance(part, tf.Tensor) for part in parts):
        at = [tf.cast(rows_of_code(flat, code), tf.int32) for code in range(len(parts))]
        result = tf.dynamic_stitch(at, parts)
        return tf.ensure_shape(result, flat.shape[:1].concatenate(result.shape[1:]))
    counts = tf.stack([num_rows(part) for part in parts])
    starts = tf.gather(tf.cumsum(counts, exclusive=True), tf.cast(flat, tf.int32))
    return take_rows(concat_rows(parts), starts + position_in_variant(flat, len(parts)))


def with_shape_of(value: Rows, codes: Codes) -> Rows:
    """Returns a value with one row for each code as a value of the shape of the codes.

    Args:
        value: A tensor, RaggedTensor, or value of any type that stacks.
        codes: The type codes, of any shape.
    """
    if isinstance(codes, tf.RaggedTensor):
        value = with_shape_of(value, codes.flat_values)
        if isinstance(value, (tf.Tensor, tf.RaggedTensor)):
            return codes.with_flat_values(value)
        for row_splits in reversed(codes.nested_row_splits):
            value = cut_rows(value, row_splits)
        return value
    if codes.shape.rank == 1:
        return value
    if isinstance(value, tf.Tensor):
        shape = tf.concat([tf.shape(codes), tf.shape(value)[1:]], 0)
        return tf.ensure_shape(tf.reshape(value, shape), codes.shape + value.shape[1:])
    return take_rows(value, row_numbers(codes))
