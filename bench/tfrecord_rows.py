"""Examples and TFRecord files."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

import extensor as xt
from bench import peers, recipe
from bench.measure import Call
from bench.row import Row, Within

_COUNT = 20_000


def rows() -> list[Row]:
    return [
        Row(f"from_tf_example, {_COUNT:,} recipes, vs tf.io.parse_example", Within(1.1), _parse),
        Row(
            f"read_tfrecord, {_COUNT:,} recipes, vs TFRecord, batch(2048), parse_example",
            Within(1.5),
            _read,
        ),
    ]


def _recipes() -> xt.StructuredTensor:
    """Returns recipes without the lists of lists, which Examples do not hold."""
    records = xt.from_arrow(recipe.recipes(_COUNT))
    return records.without("user_ratings")


def _parse(folder: Path) -> tuple[Call, Call]:
    records = _recipes()
    serialized, spec = xt.to_tf_example(records), xt.spec_of(records)
    features = {
        str(path): tf.io.RaggedFeature(leaf.dtype, row_splits_dtype=tf.int64)
        if "." in str(path)
        else tf.io.FixedLenFeature([], leaf.dtype)
        for path, leaf in spec.leaves()
    }
    if xt.from_tf_example(serialized, spec).to_py() != records.to_py():
        raise AssertionError("The records changed.")
    ours = tf.function(lambda x: xt.from_tf_example(x, spec))
    peer = tf.function(lambda x: tf.io.parse_example(x, features))
    return lambda: ours(serialized), lambda: peer(serialized)


def _read(folder: Path) -> tuple[Call, Call]:
    table = recipe.recipes(_COUNT)
    path = folder / "few.tfrecord"
    peers.write_tfrecord(table, path)
    fields = {
        "title": tf.TensorSpec([None], tf.string),
        "est_time": tf.TensorSpec([None], tf.float32),
    }
    for name in ("unit", "name", "description"):
        fields[name] = tf.RaggedTensorSpec([None, None], tf.string)
    for name in ("amount", "score", "user_embedding"):
        fields[name] = tf.RaggedTensorSpec([None, None], tf.float32)
    spec = xt.DenseStructuredTensorSpec([None], fields)
    read = peers.read_tfrecord(path)
    if len(xt.read_tfrecord(path, schema=spec)) != read():
        raise AssertionError(f"{path.name} does not hold {_COUNT:,} records.")
    return lambda: xt.read_tfrecord(path, schema=spec), read
