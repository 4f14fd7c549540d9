"""The cost of MaskedTensor in a tf.function, compared to the same ops written by hand."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf

import extensor as xt
from bench.measure import Call
from bench.row import NoLimit, Row, Within

_LARGE, _SMALL = 4_000_000, 1_000


def rows() -> list[Row]:
    ops = "the same ops by hand"
    return [
        Row(f"MaskedTensor add in a tf.function, 4M values, vs {ops}", Within(1.1), _add),
        Row(
            f"MaskedTensor add in a tf.function, 1k values, vs {ops}",
            NoLimit(),
            partial(_add, size=_SMALL),
        ),
        Row(f"MaskedTensor mean of rows in a tf.function, 4M, vs {ops}", Within(1.1), _mean),
        Row(
            "MaskedTensor multiply in a tf.function, 4M, vs by hand, gradients not kept clean",
            NoLimit(),
            _multiply,
        ),
    ]


def _parts(size: int) -> list[tf.Tensor]:
    random = np.random.default_rng(0)
    values = [random.standard_normal((size // 100, 100), np.float32) for _ in range(2)]
    masks = [random.random((size // 100, 100)) < 0.8 for _ in range(2)]
    return [tf.constant(part) for pair in zip(values, masks, strict=True) for part in pair]


def _masked(size: int) -> tuple[xt.types.MaskedTensor, xt.types.MaskedTensor]:
    x, x_mask, y, y_mask = _parts(size)
    return xt.types.MaskedTensor(x, x_mask), xt.types.MaskedTensor(y, y_mask)


def _checked(ours: Call, peer: Call) -> tuple[Call, Call]:
    result, (values, mask) = ours(), peer()
    np.testing.assert_array_equal(result.mask, mask)
    np.testing.assert_allclose(
        tf.boolean_mask(result.values, mask), tf.boolean_mask(values, mask), atol=1e-6
    )
    return ours, peer


def _add(folder: Path, size: int = _LARGE) -> tuple[Call, Call]:
    ours = tf.function(lambda x, y: x + y)
    by_hand = tf.function(lambda x, x_mask, y, y_mask: (x + y, x_mask & y_mask))
    return _checked(partial(ours, *_masked(size)), partial(by_hand, *_parts(size)))


def _multiply(folder: Path) -> tuple[Call, Call]:
    ours = tf.function(lambda x, y: x * y)
    by_hand = tf.function(lambda x, x_mask, y, y_mask: (x * y, x_mask & y_mask))
    return _checked(partial(ours, *_masked(_LARGE)), partial(by_hand, *_parts(_LARGE)))


def _mean(folder: Path) -> tuple[Call, Call]:
    @tf.function
    def by_hand(x: tf.Tensor, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        count = tf.reduce_sum(tf.cast(mask, x.dtype), 1)
        total = tf.reduce_sum(tf.where(mask, x, tf.zeros([], x.dtype)), 1)
        none = tf.equal(count, 0)
        return total / tf.where(none, tf.ones_like(count), count), tf.reduce_any(mask, 1)

    ours = tf.function(lambda x: tf.reduce_mean(x, 1))
    x, mask, *_ = _parts(_LARGE)
    return _checked(partial(ours, _masked(_LARGE)[0]), partial(by_hand, x, mask))
