"""The cost of a value of a declared type, compared to a dict of the same tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

import extensor as xt
from bench.measure import Call
from bench.row import Limit, NoLimit, Row, Within

_LENGTH = 32
_ELEMENTS = 20_000
_BATCHES = 2_000


@xt.extension_type
class _Ours:
    values: tf.Tensor
    mask: tf.Tensor


class _Theirs(tf.experimental.BatchableExtensionType):
    values: tf.Tensor
    mask: tf.Tensor


_Kind = Callable[[tf.Tensor, tf.Tensor], Any]
"""A container of the two tensors."""


def rows() -> list[Row]:
    return [
        *_against_both("tf.function call, 2-field type in and out", Within(1.15), _call),
        *_against_both("2-field type made anew and tf.function call", NoLimit(), _make_and_call),
        *_against_both("nest.flatten of a 2-field type", Within(3), _flatten),
        *_against_both("nest.pack_sequence_as of a 2-field type", Within(3), _pack),
        Row(
            "2-field type made from tensors, vs tf ExtensionType",
            Within(0.6),
            lambda folder: (_make(_Ours), _make(_Theirs)),
        ),
        *_against_both("Dataset.batch(256) of 20k 2-field values", Within(1.3), _batch),
        *_against_both("2k batches of 2-field values, iterated", Within(1.5), _iterate),
    ]


def _against_both(what: str, limit: Limit, call: Callable[[_Kind], Call]) -> list[Row]:
    """Returns the row with a limit, against a dict, and one against TensorFlow's own types."""

    def against(peer: _Kind) -> Callable[[Path], tuple[Call, Call]]:
        return lambda folder: (call(_Ours), call(peer))

    return [
        Row(f"{what}, vs dict", limit, against(_dict)),
        Row(f"{what}, vs tf ExtensionType", NoLimit(), against(_Theirs)),
    ]


def _dict(values: tf.Tensor, mask: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"values": values, "mask": mask}


def _tensors(*shape: int) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.ones(shape), tf.ones(shape, tf.bool)


def _call(kind: _Kind) -> Call:
    value, function = kind(*_tensors(_LENGTH)), tf.function(lambda value: value)
    returned = type(function(value))
    if returned is not type(value):
        raise AssertionError(f"A {type(value).__name__} came back as {returned.__name__}.")
    return lambda: function(value)


def _make_and_call(kind: _Kind) -> Call:
    # A new value in each call, because caches in a value do not help with new batches.
    tensors, function = _tensors(_LENGTH), tf.function(lambda value: value)
    return lambda: function(kind(*tensors))


def _make(kind: _Kind) -> Call:
    tensors = _tensors(_LENGTH)
    return lambda: kind(*tensors)


def _flatten(kind: _Kind) -> Call:
    value = kind(*_tensors(_LENGTH))
    return lambda: xt.nest.flatten(value, expand_composites=True)


def _pack(kind: _Kind) -> Call:
    value = kind(*_tensors(_LENGTH))
    components = xt.nest.flatten(value, expand_composites=True)
    return lambda: xt.nest.pack_sequence_as(value, components, expand_composites=True)


def _batch(kind: _Kind) -> Call:
    # The values are stacked one by one, and the dataset is built each time.
    value = kind(*_tensors(_ELEMENTS, 1))

    def run() -> None:
        for _ in tf.data.Dataset.from_tensor_slices(value).batch(256):
            pass

    return run


def _iterate(kind: _Kind) -> Call:
    # The batches need no work, so this measures only the transfer to Python.
    dataset = tf.data.Dataset.from_tensors(kind(*_tensors(_LENGTH))).repeat(_BATCHES)

    def run() -> None:
        for _ in dataset:
            pass

    return run
