"""One value for each list, combined of its items."""

from __future__ import annotations

import math
from collections.abc import Callable

import keras
import tensorflow as tf

from extensor._keras.layers.lists import ListItems
from extensor._typing import Value
from extensor.errors import ArgumentError

_SEGMENT = {
    "sum": tf.math.segment_sum,
    "mean": tf.math.segment_mean,
    "max": tf.math.segment_max,
    "attention": tf.math.segment_sum,  # of items with their weights
}
COMBINERS = tuple(_SEGMENT)


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
    found = (_combine_static if lists.is_static else _combine)(lists, combiner, scores)
    return lists.one_each(or_empty(lists, tf.cast(found, given), empty))


def summable(numbers: tf.Tensor) -> tf.Tensor:
    """Returns numbers as float32 if they are narrower: sums of many items need more digits."""
    return tf.cast(numbers, tf.float32) if numbers.dtype.size < 4 else numbers


def _combine(lists: ListItems, combiner: str, scores: tf.Tensor | None) -> tf.Tensor:
    """Returns one value for each list, by ops that run over the items once."""
    items, row_ids, count = lists.items, lists.row_ids, lists.count
    inner = tf.shape(items)[1:]
    flat = tf.reshape(items, [tf.shape(items)[0], tf.reduce_prod(inner)])
    if combiner == "attention":
        flat = flat * softmax(lists, scores)[:, tf.newaxis]
    found = _segments(_SEGMENT[combiner], flat, row_ids, count)
    found = tf.reshape(found, tf.concat([[tf.cast(count, inner.dtype)], inner], 0))
    found.set_shape([None, *items.shape[1:]])
    return found


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


def _combine_static(lists: ListItems, combiner: str, scores: tf.Tensor | None) -> tf.Tensor:
    """Returns one value for each list, by ops that XLA has."""
    items = lists.items
    if combiner == "max":
        return lists.largest(lists.only_valid(items, -math.inf))
    if combiner == "attention":
        weights = softmax(lists, scores)
        items = items * tf.reshape(weights, [-1] + [1] * (items.shape.rank - 1))
    sums = lists.total(lists.only_valid(items, 0))
    if combiner != "mean":
        return sums
    lengths = tf.cast(lists.lengths(), sums.dtype)
    return tf.math.divide_no_nan(sums, tf.reshape(lengths, [-1] + [1] * (sums.shape.rank - 1)))


def or_empty(lists: ListItems, results: tf.Tensor, empty: float) -> tf.Tensor:
    """Returns results, one for each list, with a value in place of those of empty lists."""
    if lists.sizes[1] and lists.valid is None:
        return results
    is_empty = lists.lengths() == 0
    is_empty = tf.reshape(is_empty, tf.concat([[-1], tf.ones_like(tf.shape(results)[1:])], 0))
    return tf.where(is_empty, tf.cast(empty, results.dtype), results)


def softmax(lists: ListItems, scores: tf.Tensor) -> tf.Tensor:
    """Returns the softmax of scores, one for each item, over the items of each list."""
    row_ids, count = lists.row_ids, lists.count
    if lists.is_static:
        known = lists.only_valid(scores, scores.dtype.min)
        largest = tf.gather(lists.largest(tf.stop_gradient(known)), row_ids)
        powers = tf.exp(tf.where(lists.is_valid(), scores - largest, scores.dtype.min))
        return tf.math.divide_no_nan(powers, tf.gather(lists.total(powers), row_ids))
    largest = tf.stop_gradient(scores)[:, tf.newaxis]
    largest = _segments(tf.math.segment_max, largest, row_ids, count)[:, 0]
    powers = tf.exp(scores - tf.gather(largest, row_ids))
    sums = tf.math.unsorted_segment_sum(powers, row_ids, count)
    return powers / tf.gather(sums, row_ids)


def _segments(
    reduce: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    flat: tf.Tensor,
    row_ids: tf.Tensor,
    count: tf.Tensor,
) -> tf.Tensor:
    # Faster than tf.math.unsorted_segment_sum and the like. It ends with the last list that has an
    # item.
    found = reduce(flat, row_ids)
    missing = tf.cast(count, tf.int32) - tf.shape(found)[0]
    return tf.pad(found, [[0, missing], [0, 0]])
