"""Attention of the items of lists over their own list, with lists of about one length together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

_EIGHTHS_OF_LONGEST = 1, 2, 4, 8


def attend_in_lists(
    queries: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, rows: tf.Tensor, row_splits: tf.Tensor
) -> tf.Tensor:
    """Returns the attention of each item over the items of its list.

    A list is padded to the length of its bucket: an eighth, a quarter, a half or the whole of the
    longest list.

    Args:
        queries: A vector for each item and head, `[items, heads, size]`, scaled.
        keys: The same for the keys.
        values: The same for the values, which may have another size.
        rows: The number of the list of each item, ascending.
        row_splits: The row splits of the lists.

    Returns:
        A vector for each item and head, `[items, heads, value size]`.
    """
    heads, size = values.shape[1:]
    places = _places(tf.cast(rows, tf.int32), tf.cast(row_splits, tf.int32), heads)
    padded = [
        places.padded(tf.reshape(vectors, [-1, vectors.shape[2]]))
        for vectors in (queries, keys, values)
    ]
    results = map(_attend, *map(places.buckets, padded), places.masks())
    flat = tf.concat([tf.reshape(result, [-1, size]) for result in results], 0)
    return tf.reshape(places.of_items(flat), [-1, heads, size])


def _attend(queries: tf.Tensor, keys: tf.Tensor, values: tf.Tensor, is_item: tf.Tensor) -> Any:
    """Returns the attention in the lists of a bucket; of places without an item, anything.

    Args:
        queries: `[lists, heads, length, size]`.
        keys: The same.
        values: `[lists, heads, length, value size]`.
        is_item: `[lists, 1, 1, length]`: True for the places of items.
    """
    scores = tf.matmul(queries, keys, transpose_b=True)
    if scores.dtype.size < 4:  # Keras computes the softmax of half precision in float32, too
        scores = tf.cast(scores, tf.float32)
    lowest = tf.constant(scores.dtype.min / 2, scores.dtype)
    scores += tf.where(is_item, tf.zeros([], scores.dtype), lowest)
    return tf.matmul(tf.cast(tf.nn.softmax(scores), values.dtype), values)


@dataclass(frozen=True, eq=False)
class _Places:
    """Where the items of lists are in the padded lists of the buckets; for each head."""

    places: tf.Tensor
    """For each item and head, the number of its place."""

    items: tf.Tensor
    """For each place, the number of its item and head, from 1; 0 for padding."""

    shapes: list[Any]
    """For each bucket: the number of its lists, the number of heads, and its length."""

    sizes: tf.Tensor
    """For each bucket, the number of its places."""

    def padded(self, vectors: tf.Tensor) -> Any:
        """Returns the vectors of all places, with zeros for padding.

        Args:
            vectors: A vector for each item and head.
        """

        # A place has one item, and an item one place: the gradients need no scatter.
        @tf.custom_gradient
        def gather(vectors: tf.Tensor) -> Any:
            return self._at_places(vectors), self._at_items

        return gather(vectors)

    def of_items(self, vectors: tf.Tensor) -> Any:
        """Returns the vectors for each item and head, of the vectors of all places."""

        @tf.custom_gradient
        def gather(vectors: tf.Tensor) -> Any:
            return self._at_items(vectors), self._at_places

        return gather(vectors)

    def _at_places(self, vectors: tf.Tensor) -> tf.Tensor:
        return tf.gather(tf.pad(vectors, [[1, 0], [0, 0]]), self.items)

    def _at_items(self, vectors: tf.Tensor) -> tf.Tensor:
        return tf.gather(vectors, self.places)

    def buckets(self, vectors: tf.Tensor) -> list[Any]:
        """Returns the vectors of the places of each bucket, `[lists, heads, length, size]`."""
        size = vectors.shape[1]
        parts = tf.split(vectors, self.sizes, num=len(self.shapes))
        return [
            tf.reshape(part, [*shape, size]) for part, shape in zip(parts, self.shapes, strict=True)
        ]

    def masks(self) -> list[Any]:
        """Returns for each bucket where items are, `[lists, 1, 1, length]`."""
        parts = self.buckets(self.items[:, tf.newaxis])
        return [part[:, :1, tf.newaxis, :, 0] > 0 for part in parts]


def _places(rows: tf.Tensor, row_splits: tf.Tensor, heads: int) -> _Places:
    """Returns the places of items.

    Args:
        rows: The number of the list of each item.
        row_splits: The row splits of the lists.
        heads: The number of heads.
    """
    lengths = row_splits[1:] - row_splits[:-1]
    longest = tf.reduce_max(tf.pad(lengths, [[0, 1]]))
    bounds = (longest * tf.constant(_EIGHTHS_OF_LONGEST) + 7) // 8
    lower = tf.pad(bounds[:-1], [[1, 0]])
    # For each list and bucket. An empty list is in no bucket.
    is_in = (lengths[:, tf.newaxis] > lower) & (lengths[:, tf.newaxis] <= bounds)
    is_in = tf.cast(is_in, tf.int32)
    counts = tf.reduce_sum(is_in, 0)
    sizes = counts * heads * bounds
    starts = tf.cumsum(sizes, exclusive=True) + tf.cumsum(is_in, exclusive=True) * heads * bounds
    starts = tf.reduce_sum(is_in * starts, 1) - row_splits[:-1]
    steps = tf.reduce_sum(is_in * bounds, 1)  # from head to head
    start, step = tf.unstack(tf.gather(tf.stack([starts, steps], 1), rows)[:, tf.newaxis], axis=2)
    places = start + tf.range(tf.size(rows))[:, tf.newaxis] + step * tf.range(heads)
    places = tf.reshape(places, [-1])
    numbers = tf.range(1, tf.size(places) + 1)
    items = tf.scatter_nd(places[:, tf.newaxis], numbers, [tf.reduce_sum(sizes)])
    shapes = [
        [count, heads, length]
        for count, length in zip(tf.unstack(counts), tf.unstack(bounds), strict=True)
    ]
    return _Places(places, items, shapes, sizes)
