"""ListAttention: attention over the items of lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from extensor._count_text import count_text
from extensor._keras.layers.combine import or_empty
from extensor._keras.layers.lists import ListItems, ListLayer
from extensor._typing import Value
from extensor.errors import StructureError


@keras.saving.register_keras_serializable(package="extensor")
class ListAttention(ListLayer):
    """A layer of attention over the items of lists, as `keras.layers.MultiHeadAttention`.

    Each vector attends to the items of its own list only. Without a query, these are the items
    themselves (self-attention). Numbers are vectors of size 1, and records of numbers one vector of
    all their fields. Null items are left out, and items of dense tensors where their Keras mask is
    False. In graphs, such as the steps of `fit`, self-attention without dropout pads lists of about
    one length together; elsewhere all lists are padded to the longest one.

    Args:
        num_heads: As in `keras.layers.MultiHeadAttention`.
        key_dim: As in `keras.layers.MultiHeadAttention`.
        empty: The result of a query over an empty list.
        dropout: As in `keras.layers.MultiHeadAttention`.
        output_shape: As in `keras.layers.MultiHeadAttention`.
        **kwargs: Options of `keras.layers.Layer`.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> steps = tf.ragged.constant([[[1.0, 0.0], [0.0, 1.0]], [], [[1.0, 1.0]]], ragged_rank=1)
    >>> attention = xt.keras.layers.ListAttention(num_heads=1, key_dim=2)
    >>> attention(steps).row_lengths().numpy()
    array([2, 0, 1])
    >>> attention(steps, query=tf.ones([3, 2])).shape
    TensorShape([3, 2])
    """

    _config_values = ("empty",)

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        empty: float = 0.0,
        dropout: float = 0.0,
        output_shape: int | tuple[int, ...] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.empty = empty
        self.attention = keras.layers.MultiHeadAttention(
            num_heads, key_dim, dropout=dropout, output_shape=output_shape, dtype=self.dtype_policy
        )

    def call(
        self,
        inputs: Value,
        query: Value = None,
        training: bool | None = None,
        mask: tf.Tensor | tf.RaggedTensor | None = None,
        inputs_mask: tf.Tensor | tf.RaggedTensor | None = None,
        query_mask: tf.Tensor | tf.RaggedTensor | None = None,
    ) -> Value:
        """Returns the results of the attention.

        Args:
            inputs: Lists of vectors.
            query: For each list a vector, `[batch, size]`, or a list of vectors, a ragged tensor
                with the same outer dimensions. Default: the items of `inputs`.
            training: Whether to apply the dropout.
            mask: The mask that Keras keeps for a dense tensor of items: True for the items.
            inputs_mask: The same; Keras passes it where there is a query.
            query_mask: The same for the vectors of a query in lists.

        Returns:
            A vector for each vector of the query, in its rows.
        """
        mask = inputs_mask if mask is None else mask
        lists = ListItems.of_field(inputs, self.name, mask).of_vectors(
            self.name, self.compute_dtype
        )
        if query is None and self._has_buckets(lists):
            return self._attend_in_lists(lists)
        values, valid = lists.padded(self.name)
        asking, padded, asked, one = lists, values, valid, False
        if query is None:
            pass
        elif isinstance(inner := _without(query, len(lists.outer)), tf.Tensor) and (
            inner.shape.rank == 2
        ):
            one = True  # a vector for each list
            padded = inner[:, tf.newaxis]
        else:
            path = f"{self.name}, query"
            asking = ListItems.of_field(query, path, query_mask).of_vectors(
                path, self.compute_dtype
            )
            if len(asking.outer) != len(lists.outer):
                expected = count_text(
                    len(lists.outer), "dimensions around the lists, as the items have"
                )
                received = count_text(len(asking.outer), "dimensions")
                fix = "Give one list of vectors for each list of items."
                raise StructureError(f"{self.name}, query", expected, received, fix)
            padded, asked = asking.padded(path)
        # The attention gets no mask of the query, because the results of the padding are not used.
        result = self.attention(padded, values, value_mask=valid, training=training)
        if query is not None:  # in an empty list, no item is a query
            result = or_empty(lists, result, self.empty)
        if one:
            return lists.one_each(tf.squeeze(result, 1))
        return asking.of_padded(result, asked)

    def _has_buckets(self, lists: ListItems) -> bool:
        """Returns whether lists of about one length are padded together, and not all lists."""
        # Eager calls of many small operations take longer than padding. Dropout applies to weights
        # that only the layer of Keras has. The lengths of static lists are equal.
        return not (tf.executing_eagerly() or self.attention.dropout or lists.is_static)

    def _attend_in_lists(self, lists: ListItems) -> Value:
        """Returns the result for each item of lists, without padding to the longest list."""
        layer: Any = self.attention
        if not layer.built:
            shape = (None, None, lists.items.shape[1])
            layer.build(query_shape=shape, value_shape=shape)
        items = lists.items[tf.newaxis]
        queries = layer.query_dense(items)[0] * layer.key_dim**-0.5
        keys, values = layer.key_dense(items)[0], layer.value_dense(items)[0]
        row_splits = lists.ragged(lists.items).row_splits
        found = attend_in_lists(queries, keys, values, lists.row_ids, row_splits)
        return lists.cut(layer.output_dense(found[tf.newaxis])[0])

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        own = self.attention.get_config()
        names = "num_heads", "key_dim", "dropout", "output_shape"
        return {**super().get_config(), **{name: own[name] for name in names}}


def _without(query: Value, dimensions: int) -> Value:
    """Returns the values of a query in a number of ragged dimensions."""
    for _ in range(dimensions):
        query = getattr(query, "values", None)
    return query


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
