"""Train steps of records on the CPU and on a GPU, and their losses: the figures of docs/gpu.md.

    python -m bench.gpu

A step is one call of `train_on_batch` with a batch that TensorFlow holds already, and its loss read
as a number. Without a GPU the columns of the GPU have a dash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import keras
import numpy as np
import tensorflow as tf

import extensor as xt
from bench.measure import Call, medians

_LONGEST, _FIELDS, _IDS, _WIDTH = 50, 8, 10_000, 64
_STEPS = 20


class Bags(xt.keras.Model):
    """A bag of ids for each field."""

    def __init__(self) -> None:
        super().__init__()
        bag = xt.keras.layers.EmbeddingBag
        self.bags = [bag(_WIDTH, input_dim=_IDS) for _ in range(_FIELDS)]
        self.head = keras.Sequential([keras.layers.Dense(512, "relu"), keras.layers.Dense(1)])

    def call(self, records: xt.StructuredTensor) -> tf.Tensor:
        return self.head(tf.concat([bag(records[f"ids{i}"]) for i, bag in enumerate(self.bags)], 1))


class Lists(xt.keras.Model):
    """A layer that reads a list of vectors, and the mean of what it gives."""

    def __init__(self, layer: keras.Layer) -> None:
        super().__init__()
        self.layer = layer
        self.pool = xt.keras.layers.ListPooling("mean")
        self.head = keras.layers.Dense(1)

    def call(self, records: xt.StructuredTensor) -> tf.Tensor:
        return self.head(self.pool(self.layer(records["steps"])))


def _attention() -> keras.Model:
    return Lists(xt.keras.layers.ListAttention(4, 16))


def _gru() -> keras.Model:
    return Lists(xt.keras.layers.ListRNN(keras.layers.GRU(64, return_sequences=True)))


def _bags_of(count: int) -> xt.StructuredTensor:
    random = np.random.default_rng(0)
    return xt.DenseStructuredTensor(
        [count], {f"ids{i}": _ragged(random, count, []) for i in range(_FIELDS)}
    )


def _steps_of(count: int) -> xt.StructuredTensor:
    random = np.random.default_rng(0)
    return xt.DenseStructuredTensor([count], {"steps": _ragged(random, count, [64])})


def _ragged(random: np.random.Generator, count: int, inner: list[int]) -> tf.RaggedTensor:
    lengths = random.integers(1, _LONGEST, count)
    shape = [int(lengths.sum()), *inner]
    values = random.standard_normal(shape, np.float32) if inner else random.integers(0, _IDS, shape)
    return tf.RaggedTensor.from_row_lengths(values, lengths)


def _packed(records: xt.StructuredTensor) -> xt.StructuredTensor:
    sizes = {name: int(records[name].row_splits[-1]) for name in records.field_names()}
    return records.to_static(packed=sizes)


def _padded(records: xt.StructuredTensor) -> xt.StructuredTensor:
    return records.to_static({"steps": _LONGEST})


Records = xt.StructuredTensor
_MODELS: dict[str, tuple[Callable[[], keras.Model], Callable, Callable, list[int]]] = {
    "8 EmbeddingBags": (Bags, _bags_of, _packed, [1_024, 16_384]),
    "ListAttention": (_attention, _steps_of, _padded, [1_024, 8_192]),
    "ListRNN of a GRU": (_gru, _steps_of, _padded, [1_024, 8_192]),
}


def _step(make: Callable[[], keras.Model], records: Records, device: str, jit: bool) -> Call:
    """Returns a train step of a new model, with its weights and its batch on a device."""
    keras.utils.set_random_seed(1)
    with tf.device(device):
        model = make()
        model.compile("sgd", "mse", jit_compile=jit)
        records = tf.nest.map_structure(tf.identity, records, expand_composites=True)
        model(records)  # builds it: MultiHeadAttention draws its seeds only then
        labels = tf.random.stateless_normal([len(records), 1], [1, 1])

    def step() -> float:
        with tf.device(device):
            return float(model.train_on_batch(records, labels))

    return step


def lines() -> Iterator[str]:
    """Yields the rows of the table: medians in milliseconds, and how far the losses are apart."""
    gpu = bool(tf.config.list_physical_devices("GPU"))
    # The GPU would multiply matrices of float32 with fewer bits, and the losses would differ.
    tf.config.experimental.enable_tensor_float_32_execution(False)
    yield "| train step | CPU | GPU | GPU, static and compiled | largest difference of losses |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, (make, records_of, to_static, counts) in _MODELS.items():
        for count in counts:
            ragged = records_of(count)
            static = to_static(ragged)
            cases = [("/CPU:0", ragged, False)]
            cases += [("/GPU:0", ragged, False), ("/GPU:0", static, True)] if gpu else []
            steps = [partial(_step, make, records, at, jit)() for at, records, jit in cases]
            losses = np.asarray([[step() for step in steps] for _ in range(_STEPS)])
            apart = np.max(np.abs(losses - losses[:, :1]) / np.abs(losses[:, :1]))
            times = [f"{1_000 * seconds:.1f} ms" for seconds in medians(*steps, seconds=4)]
            times += ["-"] * (3 - len(times))
            yield f"| {name}, {count:,} records | {' | '.join(times)} | {apart:.0e} |"


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
