"""The cost of static shapes, compared to padding by hand with raw ops."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf

import extensor as xt
from bench.measure import Call
from bench.row import Row, Within

_RECORDS, _LONGEST, _FIELDS = 1_024, 50, 8


def rows() -> list[Row]:
    what = f"to_static of {_RECORDS:,} lists of records, {_FIELDS} fields, in a tf.function"
    return [Row(f"{what}, vs RaggedTensorToTensor by hand", Within(1.2), _pad)]


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
