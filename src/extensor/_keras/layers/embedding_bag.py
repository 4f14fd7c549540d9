"""EmbeddingBag: one vector for each list of words or ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from extensor._keras.layers.adapted_layer import as_text, expect_no_nul
from extensor._keras.layers.combine import (
    attention_scores,
    checked_combiner,
    combine,
    or_empty,
    rows_of_table,
)
from extensor._keras.layers.lists import ListItems, ListLayer
from extensor._typing import Value
from extensor.errors import ArgumentError, DTypeError, UnsupportedTypeError


@keras.saving.register_keras_serializable(package="extensor")
class EmbeddingBag(ListLayer):
    """A layer that returns one vector for each list of words or ids.

    Each item has a vector, which is trained. The vectors of a list are combined. Null items are
    left out, and items of a dense tensor where its Keras mask is False. The result of
    `[batch, None]` lists has shape `[batch, output_dim]`. Of lists in lists, each innermost list
    gets a vector: the result is ragged.

    Args:
        output_dim: The size of the vectors.
        vocabulary: Strings or ints, or the path of a file of strings, one a line. Other items share
            one vector.
        num_bins: The number of vectors, if strings or ints are hashed instead.
        input_dim: The number of vectors, if the items are ids: ints from 0.
        combiner: "mean", "sum", "max", or "attention": a mean weighted by the softmax of learned
            scores.
        empty: The value in each place of the vector of an empty list.
        embeddings_initializer: As in `keras.layers.Embedding`.
        embeddings_regularizer: As in `keras.layers.Embedding`.
        **kwargs: Options of `keras.layers.Layer`.

    Raises:
        ArgumentError: If not exactly one of `vocabulary`, `num_bins` and `input_dim` is given, or
            `combiner` is another word, or a string ends in NUL (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> tags = tf.ragged.constant([["sweet", "quick"], [], ["sour"]])
    >>> bag = xt.keras.layers.EmbeddingBag(4, vocabulary=["sweet", "sour"], combiner="sum")
    >>> bag(tags).shape
    TensorShape([3, 4])
    >>> bag(tags)[1].numpy()
    array([0., 0., 0., 0.], dtype=float32)
    """

    _config_values = ("combiner", "empty")
    _config_policies = ("embedding", "score")

    def __init__(
        self,
        output_dim: int,
        *,
        vocabulary: Sequence[str] | Sequence[int] | str | None = None,
        num_bins: int | None = None,
        input_dim: int | None = None,
        combiner: str = "mean",
        empty: float = 0.0,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        vocabulary = _as_list(vocabulary, self.name)
        given = {"vocabulary": vocabulary, "num_bins": num_bins, "input_dim": input_dim}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            expected = "one of vocabulary, num_bins and input_dim"
            fix = "Give vocabulary=[...] or num_bins=... for strings, input_dim=... for ids."
            raise ArgumentError(self.name, expected, " and ".join(given) or "none of them", fix)
        self._given = given
        self.combiner, self.empty = checked_combiner(combiner, self.name), empty
        self.lookup = _lookup(vocabulary, num_bins, self.name)
        self.embedding = keras.layers.Embedding(
            input_dim or num_bins or self.lookup.vocabulary_size(),
            output_dim,
            embeddings_initializer=embeddings_initializer,
            embeddings_regularizer=embeddings_regularizer,
            dtype=self.dtype_policy,
        )
        self.score = attention_scores(combiner, self.dtype_policy)

    def call(self, inputs: Value, mask: tf.Tensor | tf.RaggedTensor | None = None) -> Value:
        """Returns the vectors of the lists.

        Args:
            inputs: A field of lists.
            mask: The mask that Keras keeps for a dense tensor: True for the items.
        """
        lists = ListItems.of_field(inputs, self.name, mask)
        ids = self._ids(lists.items)
        is_plain = self.score is None and self.combiner != "max" and ids.shape.rank == 1
        # The numbers of a table after `quantize` have a scale, which the layer knows.
        is_plain = is_plain and self.embedding.quantization_mode is None
        if is_plain and not lists.is_static:
            if not self.embedding.built:
                self.embedding.build(())
            table = tf.cast(tf.convert_to_tensor(self.embedding.embeddings), self.compute_dtype)
            found = rows_of_table(table, ids, lists.row_ids, lists.count, self.combiner)
            return lists.one_each(or_empty(lists, found, self.empty) if self.empty else found)
        vectors = self.embedding(ids)
        scores = None
        if self.score is not None:
            scores = tf.reduce_mean(self.score(vectors), axis=range(1, vectors.shape.rank))
        return combine(lists.with_items(vectors), self.combiner, self.empty, scores)

    def _ids(self, items: Value) -> Any:
        """Returns the ids of items, in a dtype that all operations take."""
        if not isinstance(items, tf.Tensor):
            fix, received = "Select a field of the records.", f"lists of {type(items).__name__}"
            raise UnsupportedTypeError(self.name, "lists of words or ids", received, fix)
        ids = items if self.lookup is None else self.lookup(items)
        if ids.dtype == tf.string:
            fix = "Give vocabulary= or num_bins= instead of input_dim=."
            raise DTypeError(self.name, "ids that are integers", "strings", fix)
        return ids if ids.dtype in (tf.int32, tf.int64) else tf.cast(ids, tf.int64)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        own = self.embedding.get_config()
        names = "output_dim", "embeddings_initializer", "embeddings_regularizer"
        return {**super().get_config(), **self._given, **{name: own[name] for name in names}}


def _as_list(vocabulary: Any, path: str) -> Any:
    """Returns a vocabulary as a list, which a configuration can have; a path or None as it is.

    Raises:
        ArgumentError: If it has no order, or can be read once only (also a ValueError).
    """
    if vocabulary is None or isinstance(vocabulary, str):
        return vocabulary
    if hasattr(vocabulary, "__array__"):
        vocabulary = np.asarray(vocabulary).tolist()
    if not isinstance(vocabulary, Sequence):
        fix, received = "Give a list; of a set, sorted(words).", type(vocabulary).__name__
        raise ArgumentError(path, "a vocabulary that is a list of strings or ints", received, fix)
    # A configuration of Keras has text, and tensors of strings have bytes.
    return [as_text(word) for word in vocabulary]


def _lookup(vocabulary: Any, num_bins: int | None, path: str) -> Any:
    """Returns the layer that makes ids of items, or None."""
    if num_bins is not None:
        return keras.layers.Hashing(num_bins)
    if vocabulary is None:
        return None
    if isinstance(vocabulary, str) or isinstance(next(iter(vocabulary), ""), (str, bytes)):
        if not isinstance(vocabulary, str):
            expect_no_nul(vocabulary, path, "EmbeddingBag(..., num_bins=1000)")
        return keras.layers.StringLookup(vocabulary=vocabulary)
    return keras.layers.IntegerLookup(vocabulary=vocabulary)
