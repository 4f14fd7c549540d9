"""Ops on tiny eager MaskedTensors and LabeledTensors, compared to the same ops by hand."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

import extensor as xt
from bench.measure import Call
from bench.row import Row, Within


def rows() -> list[Row]:
    ops = "eager, vs the same ops by hand"
    return [
        Row(f"MaskedTensor of 8: fill, {ops}", Within(1.5), _fill),
        Row(f"MaskedTensor of 8: reduce_mean, {ops}", Within(1.5), _mean),
        Row(f"MaskedTensor of 4 x 2: reduce_mean of rows, {ops}", Within(1.5), _mean_of_rows),
        Row(f"LabeledTensor of 4 x 2: transpose, {ops}", Within(1.5), _transpose),
        Row(f"LabeledTensor of 4 x 2: +, {ops}", Within(1.5), _add),
        Row(f"LabeledTensor of 4 x 2: + in another order of axes, {ops}", Within(1.5), _add_turned),
        Row(f"LabeledTensor of 4 x 2: reduce_sum by name, {ops}", Within(1.5), _sum),
    ]


def _masked(*shape: int) -> tuple[tf.Tensor, tf.Tensor]:
    values = tf.reshape(tf.range(8.0), shape)
    return values, values > 2


def _fill(folder: Path) -> tuple[Call, Call]:
    values, mask = _masked(8)
    masked = xt.types.MaskedTensor(values, mask)
    return lambda: masked.fill(0.0), lambda: tf.where(mask, values, 0.0)


def _by_hand(values: tf.Tensor, mask: tf.Tensor, axis: int | None) -> tuple[tf.Tensor, tf.Tensor]:
    count = tf.reduce_sum(tf.cast(mask, values.dtype), axis)
    total = tf.reduce_sum(tf.where(mask, values, 0.0), axis)
    return tf.math.divide_no_nan(total, count), tf.reduce_any(mask, axis)


def _mean(folder: Path) -> tuple[Call, Call]:
    values, mask = _masked(8)
    masked = xt.types.MaskedTensor(values, mask)
    return lambda: tf.reduce_mean(masked), lambda: _by_hand(values, mask, None)


def _mean_of_rows(folder: Path) -> tuple[Call, Call]:
    values, mask = _masked(4, 2)
    masked = xt.types.MaskedTensor(values, mask)
    return lambda: tf.reduce_mean(masked, 1), lambda: _by_hand(values, mask, 1)


def _labeled() -> tuple[xt.types.LabeledTensor, tf.Tensor]:
    values = tf.reshape(tf.range(8.0), [4, 2])
    return xt.types.LabeledTensor(values, ["word", "feature"]), values


def _transpose(folder: Path) -> tuple[Call, Call]:
    labeled, values = _labeled()
    return lambda: tf.transpose(labeled), lambda: tf.transpose(values)


def _add(folder: Path) -> tuple[Call, Call]:
    labeled, values = _labeled()
    return lambda: labeled + labeled, lambda: values + values


def _add_turned(folder: Path) -> tuple[Call, Call]:
    labeled, values = _labeled()
    turned = tf.transpose(labeled)
    other = turned.values
    return lambda: labeled + turned, lambda: values + tf.transpose(other)


def _sum(folder: Path) -> tuple[Call, Call]:
    labeled, values = _labeled()
    return lambda: tf.reduce_sum(labeled, "feature"), lambda: tf.reduce_sum(values, 1)
