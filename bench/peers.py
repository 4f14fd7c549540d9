"""Other ways to get the same records into TensorFlow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import tensorflow as tf

from bench.recipe import EMBEDDING

_BATCH = 2048

# tf.train.Example has no nesting: a list of structs becomes one flat list for each of its fields.
_EXAMPLE_FEATURES = {
    "title": tf.io.FixedLenFeature([], tf.string),
    "est_time": tf.io.FixedLenFeature([], tf.float32),
    "amount": tf.io.RaggedFeature(tf.float32),
    "unit": tf.io.RaggedFeature(tf.string),
    "name": tf.io.RaggedFeature(tf.string),
    "description": tf.io.RaggedFeature(tf.string),
    "user_embedding": tf.io.RaggedFeature(tf.float32),
    "score": tf.io.RaggedFeature(tf.float32),
}


def write_tfrecord(table: pa.Table, path: Path) -> None:
    """Writes recipes as a TFRecord file of tf.train.Example."""
    title, est_time, ingredients, steps, user_ratings = (c.chunk(0) for c in table.columns)
    amount, unit, name = ingredients.flatten().flatten()
    (description,) = steps.flatten().flatten()
    user_embedding, score = user_ratings.flatten().flatten()
    columns = [
        ("title", _bytes_list, _each(title)),
        ("est_time", _float_list, _each(est_time)),
        ("amount", _float_list, _rows(ingredients, amount)),
        ("unit", _bytes_list, _rows(ingredients, unit)),
        ("name", _bytes_list, _rows(ingredients, name)),
        ("description", _bytes_list, _rows(steps, description)),
        ("user_embedding", _float_list, _rows(user_ratings, user_embedding.flatten(), EMBEDDING)),
        ("score", _float_list, _rows(user_ratings, score)),
    ]
    names, features, _ = zip(*columns, strict=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for values in zip(*(rows for *_, rows in columns), strict=True):
            record = {n: feature(v) for n, feature, v in zip(names, features, values, strict=True)}
            example = tf.train.Example(features=tf.train.Features(feature=record))
            writer.write(example.SerializeToString())


def read_tfrecord(path: Path) -> Callable[[], int]:
    """Returns a function that reads the whole file through tf.data and counts its records.

    Building the dataset, which traces the parser, is not part of the function.
    """
    dataset = (
        tf.data.TFRecordDataset(str(path))
        .batch(_BATCH)
        .map(_parse_example, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )
    return lambda: sum(len(batch["title"]) for batch in dataset)


def from_pyval(table: pa.Table) -> tf.experimental.StructuredTensor:
    """Returns the table as TensorFlow's own StructuredTensor, built from Python objects."""
    return tf.experimental.StructuredTensor.from_pyval(table.to_pylist())


def _parse_example(serialized: tf.Tensor) -> dict[str, tf.Tensor | tf.RaggedTensor]:
    return tf.io.parse_example(serialized, _EXAMPLE_FEATURES)


def _bytes_list(values: list[bytes]) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _float_list(values: np.ndarray) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def _values(array: pa.Array) -> np.ndarray | list[bytes]:
    if pa.types.is_string(array.type):
        return array.cast(pa.binary()).to_pylist()
    return array.to_numpy()


def _each(array: pa.Array) -> Iterable[object]:
    values = _values(array)
    return (values[i : i + 1] for i in range(len(array)))


def _rows(lists: pa.ListArray, leaves: pa.Array, width: int = 1) -> Iterable[object]:
    values = _values(leaves)
    offsets = (lists.offsets.to_numpy() - lists.offsets[0].as_py()) * width
    return (values[i:j] for i, j in itertools.pairwise(offsets))
