"""The cost of promote and broadcast, compared to the ops that they need."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

import extensor as xt
from bench.measure import Call
from bench.row import Row, Within

_RECORDS = 10_000
_DEPTH = 3
_PATH = ("list",) * _DEPTH


def rows() -> list[Row]:
    return [
        Row("promote over 3 lists, 10k records, vs tf.gather of the row splits", Within(1.2),
            lambda folder: _promote()),
        Row("broadcast over 3 lists, 10k records, vs tf.repeat", Within(1.2),
            lambda folder: _broadcast()),
    ]  # fmt: skip


def _splits() -> list[tf.Tensor]:
    rng = np.random.default_rng(0)
    found: list[tf.Tensor] = []
    size = _RECORDS
    for _ in range(_DEPTH):
        lengths = rng.integers(0, 5, size)
        found.append(tf.constant([0, *np.cumsum(lengths)], tf.int64))
        size = int(lengths.sum())
    return found


def _records(splits: list[tf.Tensor]) -> Any:
    count = int(splits[-1][-1])
    value: Any = xt.DenseStructuredTensor([count], {"x": tf.range(float(count))})
    for level in reversed(splits):
        rows = xt.RaggedStructuredTensor.from_row_splits(value, level)
        value = xt.DenseStructuredTensor([None], {"list": rows})
    return value.with_updates(id=tf.range(_RECORDS))


def _promote() -> tuple[Call, Call]:
    splits = _splits()
    records = _records(splits)
    x = records[(*_PATH, "x")].flat_values

    def by_hand() -> tf.RaggedTensor:
        merged = tf.gather(splits[2], tf.gather(splits[1], splits[0]))
        return tf.RaggedTensor.from_row_splits(x, merged, validate=False)

    def ours() -> Any:
        return xt.struct.promote(records, (*_PATH, "x"), "x")["x"]

    np.testing.assert_array_equal(ours().row_splits, by_hand().row_splits)
    return ours, by_hand


def _broadcast() -> tuple[Call, Call]:
    splits = _splits()
    records = _records(splits)
    ids = records["id"]

    def by_hand() -> tf.RaggedTensor:
        merged = tf.gather(splits[2], tf.gather(splits[1], splits[0]))
        value: Any = tf.repeat(ids, merged[1:] - merged[:-1])
        for level in reversed(splits):
            value = tf.RaggedTensor.from_row_splits(value, level, validate=False)
        return value

    def ours() -> Any:
        return xt.struct.broadcast(records, "id", (*_PATH, "id"))[(*_PATH, "id")]

    np.testing.assert_array_equal(ours().flat_values, by_hand().flat_values)
    return ours, by_hand
