"""`python -m bench.first_fit records`: the CPU time of a first `fit`, in this process.

The time is that of all a user waits for: layers are adapted, a model is built, and one epoch runs.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from typing import Any

# TensorFlow reads both at its first import.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import keras
import numpy as np
import tensorflow as tf

import extensor as xt
from extensor.keras import Input, Model
from extensor.keras.layers import RecordFeatures

RECORDS, FIELDS = 1_949, 6
_RUNS = 3


def times(ours: str, peer: str) -> tuple[float, float]:
    """Returns the median times of two of `SIDES`, in fresh processes that take turns."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(_RUNS):
        for side, seconds in zip((ours, peer), found, strict=True):
            command = [sys.executable, "-m", "bench.first_fit", side]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            seconds.append(float(output.split()[-1]))
    return statistics.median(found[0]), statistics.median(found[1])


def _columns() -> dict[str, Any]:
    random = np.random.default_rng(0)
    words = np.array([f"word {i}" for i in range(40)])
    numbers = {
        f"number{i}": random.normal(size=RECORDS).astype(np.float32) for i in range(FIELDS // 2)
    }
    return {
        **numbers,
        **{f"word{i}": words[random.integers(0, 40, RECORDS)] for i in range(FIELDS // 2)},
    }


def _features(columns: dict[str, Any]) -> tuple[Any, Any]:
    """Returns a model of records with RecordFeatures, and the records."""
    records = xt.DenseStructuredTensor([RECORDS], columns)
    features = RecordFeatures()
    features.adapt(records)
    record = Input(_any_batch(records))
    return Model(record, _score(features(record))), records


def _records(columns: dict[str, Any]) -> tuple[Any, Any]:
    """Returns a model of records with a layer of Keras for each field, and the records."""
    records = xt.DenseStructuredTensor([RECORDS], columns)
    record = Input(_any_batch(records))
    encoded = _encoded(_layers(records, columns), record)
    return Model(record, _score(encoded)), records


def _dict(columns: dict[str, Any]) -> tuple[Any, Any]:
    """Returns a model of a dict with the same layers, and the dict."""
    tensors = {name: tf.constant(column) for name, column in columns.items()}
    inputs = {
        name: keras.Input((), name=name, dtype=tensor.dtype.name)
        for name, tensor in tensors.items()
    }
    encoded = _encoded(_layers(tensors, columns), inputs)
    return keras.Model(inputs, _score(encoded)), tensors


def _layers(data: Any, names: Any) -> dict[str, Any]:
    layers: dict[str, Any] = {}
    of_numbers: Any = keras.layers.Normalization
    for name in names:
        is_number = data[name].dtype == tf.float32
        layers[name] = (
            of_numbers(axis=None) if is_number else keras.layers.StringLookup(output_mode="one_hot")
        )
        layers[name].adapt(data[name])
    return layers


def _encoded(layers: dict[str, Any], inputs: Any) -> Any:
    parts = []
    for name, layer in layers.items():
        is_number = isinstance(layer, keras.layers.Normalization)
        parts.append(layer(keras.ops.expand_dims(inputs[name], 1) if is_number else inputs[name]))
    return keras.layers.Concatenate()(parts)


def _any_batch(records: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(records).batch(32).element_spec


def _score(vectors: Any) -> Any:
    return keras.layers.Dense(1)(keras.layers.Dense(64, "relu")(vectors))


SIDES = {"features": _features, "records": _records, "dict": _dict}


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(side: str) -> None:
    """Prints the CPU time, in seconds."""
    columns = _columns()
    start = _cpu_seconds()
    model, x = SIDES[side](columns)
    model.compile("adam", "mse", jit_compile=False)
    model.fit(x, tf.zeros([RECORDS, 1]), verbose=0)
    print(_cpu_seconds() - start)


if __name__ == "__main__":
    main(sys.argv[1])
