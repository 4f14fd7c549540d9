"""One value for each list, combined of its items."""

from __future__ import annotations

import math

import keras
import tensorflow as tf

from extensor._keras.layers.lists import ListItems
from extensor._typing import Value
from extensor.errors import ArgumentError

COMBINERS = ("sum", "mean", "max", "attention")


def checked_combiner(combiner: str, path: str) -> str:
    """Returns the combiner if there is one of this name.

    Raises:
        ArgumentError: If there is none (also a ValueError).
    """
    if combiner not in COMBINERS:
        expected = f"one of the combiners {', '.join(COMBINERS)}"
        raise ArgumentError(path, expected, repr(combiner), 'Write, for example, combiner="mean".')
    return combiner


def attention_scores(combiner: str, dtype: keras.DTypePolicy) -> keras.layers.Dense | None:
    """Returns the layer that scores each item of a list; None if the combiner is no attention."""
    is_attention = combiner == "attention"
    return keras.layers.Dense(1, use_bias=False, dtype=dtype) if is_attention else None


def combine(
    lists: ListItems, combiner: str, empty: float, scores: tf.Tensor | None = None
) -> Value:
    """Returns one value for each list.

    Args:
        lists: Lists of numbers, vectors or larger tensors.
        combiner: One of `COMBINERS`.
        empty: The value of a list without items.
        scores: For attention, the score of each item.
    """
    given = lists.items.dtype
    lists = lists.with_items(summable(lists.items))
    scores = None if scores is None else summable(scores)
    found = _combine(lists, combiner, scores)
    return lists.one_each(or_empty(lists, tf.cast(found, given), empty))


def summable(numbers: tf.Tensor) -> tf.Tensor:
    """Returns numbers as float32 if they are narrower: sums of many items need more digits."""
    return tf.cast(numbers, tf.float32) if numbers.dtype.size < 4 else numbers


def _combine(lists: ListItems, combiner: str, scores: tf.Tensor | None) -> tf.Tensor:
    """Returns one value for each list; of empty lists, anything."""
    items = lists.items
    if combiner == "max":
        return lists.largest(lists.only_valid(items, -math.inf))
    if scores is not None:
        items = items * _as_column(softmax(lists, scores), items)
    sums = lists.total(lists.only_valid(items, 0))
    if combiner != "mean":
        return sums
    lengths = tf.cast(lists.lengths(), sums.dtype)
    return tf.math.divide_no_nan(sums, _as_column(lengths, sums))


def _as_column(numbers: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
    """Returns a vector in the rank of another tensor, along its first dimension."""
    return tf.reshape(numbers, [-1] + [1] * (others.shape.rank - 1))


def rows_of_table(
    table: tf.Tensor, ids: tf.Tensor, row_ids: tf.Tensor, count: tf.Tensor, combiner: str
) -> tf.Tensor:
    """Returns the sum or mean of rows of a table, one for each list; of empty lists, zeros.

    The rows of the items are not written to memory.

    Args:
        table: A matrix.
        ids: The row of each item.
        row_ids: The number of the list of each item, ascending.
        count: The number of lists.
        combiner: "sum" or "mean".
    """
    segment = tf.sparse.segment_mean if combiner == "mean" else tf.sparse.segment_sum
    if ids.shape[0]:
        found = segment(table, ids, row_ids, count)
    else:
        # Without an item, TensorFlow does not write to the memory of the gradient of these ops. So
        # one more list gets one then.
        # (No `tf.pad`: a GPU has no kernel for int64, and would copy the ids to the host and back.)
        more = tf.cast(tf.equal(tf.size(ids), 0), count.dtype)
        ids = tf.concat([ids, tf.zeros([more], ids.dtype)], 0)
        row_ids = tf.concat([row_ids, tf.fill([more], tf.cast(count, row_ids.dtype))], 0)
        # The gradient of a split copies nothing here; that of a slice does.
        found, _ = tf.split(segment(table, ids, row_ids, count + more), tf.stack([count, more]))
    found.set_shape([None, table.shape[1]])
    return found


def or_empty(lists: ListItems, results: tf.Tensor, empty: float) -> tf.Tensor:
    """Returns results, one for each list, with a value in place of those of empty lists."""
    if lists.sizes[1] and lists.valid is None:
        return results
    is_empty = _as_column(lists.lengths() == 0, results)
    return tf.where(is_empty, tf.cast(empty, results.dtype), results)


def softmax(lists: ListItems, scores: tf.Tensor) -> tf.Tensor:
    """Returns the softmax of scores, one for each item, over the items of each list."""
    known = lists.only_valid(scores, scores.dtype.min)
    largest = tf.gather(lists.largest(tf.stop_gradient(known)), lists.row_ids)
    powers = tf.exp(lists.only_valid(scores - largest, scores.dtype.min))
    return tf.math.divide_no_nan(powers, tf.gather(lists.total(powers), lists.row_ids))
