"""The cost of static shapes, compared to padding by hand with raw ops, and to ragged lists."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import extensor as xt
from bench.measure import Call
from bench.row import Row, Within

_RECORDS, _LONGEST, _FIELDS = 1_024, 50, 8


def rows() -> list[Row]:
    what = f"to_static of {_RECORDS:,} lists of records, {_FIELDS} fields, in a tf.function"
    step = f"train step of {_RECORDS:,} records, {_FIELDS} list fields of mixed lengths"
    return [
        Row(f"{what}, vs RaggedTensorToTensor by hand", Within(1.2), _pad),
        Row(f"{step}, packed and compiled by XLA, vs ragged", Within(1.0), _train),
    ]


def _pad(folder: Path) -> tuple[Call, Call]:
    random = np.random.default_rng(0)
    lengths = random.integers(0, _LONGEST, _RECORDS)
    splits = tf.constant(np.concatenate([[0], np.cumsum(lengths)]))
    columns = {
        f"x{i}": tf.constant(random.standard_normal(lengths.sum(), np.float32))
        for i in range(_FIELDS)
    }
    items = xt.DenseStructuredTensor([lengths.sum()], columns)
    records = xt.DenseStructuredTensor(
        [_RECORDS], {"items": xt.RaggedStructuredTensor.from_row_splits(items, splits)}
    )
    spec = xt.spec_of(records).unstacked().stacked(None)

    @partial(tf.function, input_signature=[spec])
    def ours(records: xt.StructuredTensor) -> xt.StructuredTensor:
        return records.to_static({"items": _LONGEST})

    flat, vector = tf.TensorSpec([None]), tf.TensorSpec([None], tf.int64)

    @partial(tf.function, input_signature=[dict.fromkeys(columns, flat), vector])
    def by_hand(columns: dict[str, tf.Tensor], splits: tf.Tensor) -> tuple[object, tf.Tensor]:
        sizes = splits[1:] - splits[:-1]
        longest = tf.reduce_max(sizes)
        check = tf.debugging.Assert(longest <= _LONGEST, [longest])
        with tf.control_dependencies([check]):
            splits = tf.identity(splits)
        dense = {
            name: tf.raw_ops.RaggedTensorToTensor(
                shape=tf.constant([-1, _LONGEST], tf.int64),
                values=values,
                default_value=tf.constant(0.0),
                row_partition_tensors=[splits],
                row_partition_types=["ROW_SPLITS"],
            )
            for name, values in columns.items()
        }
        return dense, tf.sequence_mask(sizes, _LONGEST)

    dense, mask = by_hand(columns, splits)
    static = ours(records)["items"]
    np.testing.assert_array_equal(static.mask, mask)
    np.testing.assert_array_equal(static.values["x3"], dense["x3"])
    return partial(ours, records), partial(by_hand, columns, splits)


class Bags(xt.keras.Model):
    """A bag of ids for each field."""

    def __init__(self) -> None:
        super().__init__()
        layers = xt.keras.layers
        self.bags = [layers.EmbeddingBag(16, input_dim=1_000) for _ in range(_FIELDS)]
        self.head = keras.Sequential([keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])

    def call(self, records: xt.StructuredTensor) -> tf.Tensor:
        bags = [bag(records[f"x{i}"]) for i, bag in enumerate(self.bags)]
        return self.head(tf.concat(bags, 1))


def _train(folder: Path) -> tuple[Call, Call]:
    random = np.random.default_rng(0)
    fields = {}
    for i in range(_FIELDS):
        lengths = random.integers(0, _LONGEST, _RECORDS)
        ids = tf.constant(random.integers(0, 1_000, lengths.sum()))
        fields[f"x{i}"] = tf.RaggedTensor.from_row_lengths(ids, lengths)
    ragged = xt.DenseStructuredTensor([_RECORDS], fields)
    capacity = int(1.02 * max(int(field.row_splits[-1]) for field in fields.values()))
    packed = ragged.to_static(packed=dict.fromkeys(fields, capacity))
    labels = tf.constant(random.standard_normal([_RECORDS, 1], np.float32))

    def step(records: xt.StructuredTensor, **options: bool) -> Call:
        keras.utils.set_random_seed(1)
        model = Bags()
        model.compile("sgd", "mse", **options)
        return partial(model.train_on_batch, records, labels)

    ours, peer = step(packed, jit_compile=True), step(ragged)
    losses = np.asarray([(ours(), peer()) for _ in range(3)], np.float32)
    np.testing.assert_allclose(losses[:, 0], losses[:, 1], rtol=1e-5)
    return ours, peer
