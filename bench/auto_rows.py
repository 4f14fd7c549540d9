"""`xt.auto_composite_tensor` against TensorFlow Probability's decorator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

import extensor as xt
from bench.measure import Call
from bench.row import Limit, NoLimit, Row, Within

_LENGTH = 32


def rows() -> list[Row]:
    return [
        _row("tf.function call, Adder in and out", Within(0.9), _adder, _call),
        _row("Adder made anew and tf.function call", NoLimit(), _new_adder, _call_of_new),
        _row("nest.flatten of an Adder", Within(0.4), _adder, _flatten),
        _row("nest.pack_sequence_as of an Adder", Within(0.6), _adder, _pack),
        _row("tf.function call, 8 tensors in lists in and out", NoLimit(), _lists, _call),
        _row("nest.flatten of 8 tensors in lists", NoLimit(), _lists, _flatten),
        _row("nest.pack_sequence_as of 8 tensors in lists", NoLimit(), _lists, _pack),
    ]


def _row(
    what: str, limit: Limit, make: Callable[[Any], Any], prepare: Callable[[Any], Call]
) -> Row:
    """Returns the row of a call for a class decorated by each of the two libraries."""

    def both(folder: Path) -> tuple[Call, Call]:
        return prepare(make(xt)), prepare(make(_peer()))

    return Row(f"{what}, vs TFP", limit, both)


def _peer() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is older than TensorFlow
        import tensorflow_probability as tfp

        return tfp.experimental


def _new_adder(library: Any) -> Callable[[], Any]:
    """Returns the factory of the example in TensorFlow Probability's documentation."""

    @library.auto_composite_tensor(omit_kwargs=("name",), module_name=f"bench.{library.__name__}")
    class Adder(library.AutoCompositeTensor):
        def __init__(self, x: Any, y: Any, name: str | None = None) -> None:
            with tf.name_scope(name or "Adder") as name:
                self._x = tf.convert_to_tensor(x)
                self._y = tf.convert_to_tensor(y)
                self._name = name

    x, y = tf.ones([_LENGTH]), tf.ones([])
    return lambda: Adder(x, y)


def _adder(library: Any) -> Any:
    return _new_adder(library)()


def _lists(library: Any) -> Any:
    @library.auto_composite_tensor(module_name=f"bench.{library.__name__}")
    class Lists(library.AutoCompositeTensor):
        def __init__(self, columns: Any, label: str) -> None:
            self._columns, self._label = columns, label

    return Lists([[tf.ones([_LENGTH])] * 4, {"rest": [tf.ones([])] * 4}], "label")


def _call(value: Any) -> Call:
    function = tf.function(lambda value: value)
    returned = type(function(value))
    if returned is not type(value):
        raise AssertionError(f"A {type(value).__name__} came back as {returned.__name__}.")
    return lambda: function(value)


def _call_of_new(make: Callable[[], Any]) -> Call:
    function = tf.function(lambda value: value)
    return lambda: function(make())


def _flatten(value: Any) -> Call:
    return lambda: tf.nest.flatten(value, expand_composites=True)


def _pack(value: Any) -> Call:
    components = tf.nest.flatten(value, expand_composites=True)
    return lambda: tf.nest.pack_sequence_as(value, components, expand_composites=True)
