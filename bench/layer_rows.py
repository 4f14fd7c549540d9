"""The layers for ragged lists, compared to the same layers of Keras over padded lists."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import extensor as xt
from bench.measure import Call
from bench.row import Row, Within

_ROWS, _LONGEST, _SIZE, _WORDS = 1024, 16, 32, 10_000
_MIXED_ROWS, _MIXED_LONGEST, _MIXED_MEAN = 256, 64, 12
_FIELDS, _FEW = 26, 64
_COLUMNS, _RECORDS = 30, 10_000


def rows() -> list[Row]:
    step = f"{_ROWS:,} lists of 0 to {_LONGEST}, forward and gradient, vs padded"
    # The lists of the peer are padded already. ListAttention and ListRNN have to pad them.
    return [
        Row(
            f"xt.keras.layers.{name}, {step}",
            Within(1.0),
            functools.partial(_prepare, build),
        )
        for name, build in _LAYERS.items()
    ] + [
        Row(
            f"xt.keras.layers.ListAttention, {_MIXED_ROWS} lists of 1 to {_MIXED_LONGEST}, most of "
            "them short, forward and gradient, vs padded",
            Within(1.0),
            functools.partial(_prepare, _mixed_attention),
        ),
        Row(
            f"xt.keras.layers.EmbeddingBags, {_FIELDS} fields of {_FEW} lists, train step, vs "
            f"{_FIELDS} EmbeddingBags",
            Within(0.5),
            _prepare_bags,
        ),
        Row(
            f"xt.keras.layers.RecordFeatures, adapt to {_COLUMNS} fields of {_RECORDS:,} records, "
            "vs FeatureSpace.adapt",
            Within(0.5),
            _prepare_adapt,
        ),
    ]


def _prepare(build: Callable[[], tuple[Any, Any]], folder: Path) -> tuple[Call, Call]:
    ours, peer = build()
    return _step(*ours), _step(*peer)


def _step(layer: Any, value: Any) -> Call:
    layer(value)
    weights = layer.trainable_weights

    spec = tf.type_spec_from_value(value)
    shape = [None, None, *spec.shape[2:]]
    is_ragged = isinstance(value, tf.RaggedTensor)
    open_spec: Any = tf.TensorSpec(shape, spec.dtype)
    if is_ragged:
        open_spec = tf.RaggedTensorSpec(shape, spec.dtype, ragged_rank=1)

    @tf.function(input_signature=[open_spec])
    def step(value: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(value) ** 2)
        return tape.gradient(loss, [weight.value for weight in weights])

    return lambda: step(value)


def _prepare_bags(folder: Path) -> tuple[Call, Call]:
    random = np.random.default_rng(0)
    fields = {}
    for number in range(_FIELDS):
        lengths = random.integers(0, 5, _FEW)
        ids = tf.constant(random.integers(0, 100, lengths.sum()))
        fields[f"field{number}"] = tf.RaggedTensor.from_row_lengths(ids, lengths)
    records = xt.DenseStructuredTensor([_FEW], fields)

    def bags() -> dict[str, Any]:
        return {name: xt.keras.layers.EmbeddingBag(16, input_dim=100) for name in fields}

    grouped = xt.keras.layers.EmbeddingBags(bags())
    separate = bags()

    def each(records: Any) -> Any:
        return tf.concat([bag(records[name]) for name, bag in separate.items()], axis=1)

    each(records)
    weights = [weight for bag in separate.values() for weight in bag.trainable_weights]
    return _trained(grouped, grouped.trainable_weights, records), _trained(each, weights, records)


def _prepare_adapt(folder: Path) -> tuple[Call, Call]:
    random = np.random.default_rng(0)
    words = np.array([f"word {number}" for number in range(500)])
    numbers = random.normal(size=[_COLUMNS // 2, _RECORDS]).astype(np.float32)
    columns: dict[str, Any] = {f"number{i}": column for i, column in enumerate(numbers)}
    kinds = dict.fromkeys(columns, "float_normalized")
    for i in range(_COLUMNS - len(columns)):
        columns[f"word{i}"] = words[random.integers(0, len(words), _RECORDS)]
        kinds[f"word{i}"] = "string_categorical"
    of_dicts = tf.data.Dataset.from_tensor_slices(columns).batch(256)
    records = xt.DenseStructuredTensor([_RECORDS], columns)
    of_records = tf.data.Dataset.from_tensor_slices(records).batch(256)
    return (
        lambda: xt.keras.layers.RecordFeatures().adapt(of_records),
        lambda: keras.utils.FeatureSpace(kinds).adapt(of_dicts),
    )


def _trained(call: Callable[[Any], Any], weights: list[Any], records: Any) -> Call:
    optimizer = keras.optimizers.Adam()
    optimizer.build(weights)

    spec = tf.data.Dataset.from_tensor_slices(records).batch(_FEW).element_spec

    @tf.function(input_signature=[spec])
    def step(records: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(call(records) ** 2)
        optimizer.apply(tape.gradient(loss, [weight.value for weight in weights]), weights)
        return loss

    return lambda: step(records)


def _ids() -> tf.RaggedTensor:
    random = np.random.default_rng(0)
    lengths = random.integers(0, _LONGEST + 1, _ROWS)
    ids = tf.constant(random.integers(1, _WORDS, lengths.sum()))
    return tf.RaggedTensor.from_row_lengths(ids, lengths)


def _vectors() -> tf.RaggedTensor:
    ids = _ids()
    values = np.random.default_rng(0).random([ids.flat_values.shape[0], _SIZE], np.float32)
    return ids.with_flat_values(tf.constant(values))


class PaddedBag(keras.layers.Layer):
    """The vectors of padded ids, combined; 0 is padding."""

    def __init__(self, combiner: str) -> None:
        super().__init__()
        self.combiner = combiner
        self.embedding = keras.layers.Embedding(_WORDS, _SIZE)

    def call(self, ids: Any) -> Any:
        return _combined(self.embedding(ids), ids != 0, self.combiner)


class PaddedPooling(keras.layers.Layer):
    """Padded vectors, combined."""

    def __init__(self, combiner: str, lengths: Any) -> None:
        super().__init__()
        self.combiner, self.lengths = combiner, lengths
        self.scale = self.add_weight(shape=[_SIZE], initializer="ones")

    def call(self, vectors: Any) -> Any:
        mask = tf.sequence_mask(self.lengths, tf.shape(vectors)[1])
        return _combined(vectors * self.scale, mask, self.combiner)


class Pooling(xt.keras.Layer):
    """Ragged vectors, combined."""

    def __init__(self, combiner: str) -> None:
        super().__init__()
        self.pool = xt.keras.layers.ListPooling(combiner)
        self.scale = self.add_weight(shape=[_SIZE], initializer="ones")

    def call(self, vectors: Any) -> Any:
        return self.pool(vectors.with_values(vectors.values * self.scale))


class PaddedRNN(keras.layers.Layer):
    """A recurrent layer over padded vectors."""

    def __init__(self, layer: Any, lengths: Any) -> None:
        super().__init__()
        self.layer, self.lengths = layer, lengths

    def call(self, vectors: Any) -> Any:
        return self.layer(vectors, mask=tf.sequence_mask(self.lengths, tf.shape(vectors)[1]))


class PaddedAttention(PaddedRNN):
    """Self-attention over padded vectors, and the sum of the results."""

    def call(self, vectors: Any) -> Any:
        mask = tf.sequence_mask(self.lengths, tf.shape(vectors)[1])
        found = self.layer(vectors, vectors, query_mask=mask, value_mask=mask)
        return _combined(found, mask, "sum")


class Attention(xt.keras.Layer):
    """Self-attention over ragged vectors, and the sum of the results."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.attention = xt.keras.layers.ListAttention(heads, 16)
        self.pool = xt.keras.layers.ListPooling("sum")

    def call(self, vectors: Any) -> Any:
        return self.pool(self.attention(vectors))


def _combined(vectors: Any, mask: Any, combiner: str) -> Any:
    mask = mask[:, :, tf.newaxis]
    if combiner == "max":
        largest = tf.reduce_max(tf.where(mask, vectors, vectors.dtype.min), axis=1)
        return tf.where(tf.reduce_any(mask, axis=1), largest, 0.0)
    total = tf.reduce_sum(tf.where(mask, vectors, 0.0), axis=1)
    if combiner == "sum":
        return total
    return tf.math.divide_no_nan(total, tf.reduce_sum(tf.cast(mask, total.dtype), axis=1))


def _bag(combiner: str) -> tuple[Any, Any]:
    ids = _ids()
    bag = xt.keras.layers.EmbeddingBag(_SIZE, input_dim=_WORDS, combiner=combiner)
    return (bag, ids), (PaddedBag(combiner), ids.to_tensor())


def _pooling(combiner: str) -> tuple[Any, Any]:
    vectors = _vectors()
    padded = PaddedPooling(combiner, vectors.row_lengths())
    return (Pooling(combiner), vectors), (padded, vectors.to_tensor())


def _rnn() -> tuple[Any, Any]:
    vectors = _vectors()
    padded = PaddedRNN(keras.layers.GRU(_SIZE), vectors.row_lengths())
    ours = xt.keras.layers.ListRNN(keras.layers.GRU(_SIZE))
    return (ours, vectors), (padded, vectors.to_tensor())


def _attention(vectors: tf.RaggedTensor, heads: int) -> tuple[Any, Any]:
    layer = keras.layers.MultiHeadAttention(heads, 16)
    padded = PaddedAttention(layer, vectors.row_lengths())
    return (Attention(heads), vectors), (padded, vectors.to_tensor())


def _mixed_attention() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    lengths = np.minimum(random.geometric(1 / _MIXED_MEAN, _MIXED_ROWS), _MIXED_LONGEST)
    values = tf.constant(random.random([lengths.sum(), 64], np.float32))
    return _attention(tf.RaggedTensor.from_row_lengths(values, lengths), 4)


_LAYERS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "EmbeddingBag, mean": functools.partial(_bag, "mean"),
    "EmbeddingBag, max": functools.partial(_bag, "max"),
    "ListPooling, mean": functools.partial(_pooling, "mean"),
    "ListPooling, max": functools.partial(_pooling, "max"),
    "ListAttention": lambda: _attention(_vectors(), 2),
    "ListRNN, GRU": _rnn,
}
