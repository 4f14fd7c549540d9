"""A dataset that Python feeds, pass by pass, in datasets that hold many elements each.

This is what `tf.data.Dataset.from_generator` is for, which traces functions anew for each dataset.
Here all datasets share the functions, which know a dataset and its passes by their numbers; small
files would else take longer to begin than to read.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from extensor.core.box import boxed_specs


def stream(begin: Callable[[], Iterator[tf.data.Dataset]], element_spec: Any) -> tf.data.Dataset:
    """Returns a dataset of the elements of datasets.

    Args:
        begin: Begins a pass: returns an iterator over datasets, whose elements follow one another.
            The iterator is closed when the pass is over or given up.
        element_spec: The spec of an element.

    >>> from extensor.data.stream import stream
    >>> spec = tf.TensorSpec([], tf.int64)
    >>> dataset = stream(lambda: (tf.data.Dataset.range(n) for n in (2, 3)), spec)
    >>> [int(number) for number in dataset]
    [0, 1, 0, 1, 2]
    """
    number = next(_numbers)
    begin_pass, proceed, end_pass, identity = _functions()
    with tf.init_scope():
        parts = tf.raw_ops.GeneratorDataset(
            init_func_other_args=[tf.constant(number, tf.int64)],
            next_func_other_args=[],
            finalize_func_other_args=[],
            init_func=begin_pass,
            next_func=proceed,
            finalize_func=end_pass,
            output_types=[tf.variant],
            output_shapes=[[]],
        )
        ahead = tf.raw_ops.PrefetchDataset(
            input_dataset=parts,
            buffer_size=tf.constant(1, tf.int64),
            output_types=[tf.variant],
            output_shapes=[[]],
        )
        elements = tf.raw_ops.FlatMapDataset(
            input_dataset=ahead,
            other_arguments=[],
            f=identity,
            **_structure(element_spec),
        )
        dataset = tf.data.experimental.from_variant(elements, element_spec)
    _streams[number] = begin
    # A dataset that is made while a function is traced is a part of its graph.
    owner = dataset if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    weakref.finalize(owner, _streams.pop, number)
    return dataset


_numbers = itertools.count()
_streams: dict[int, Callable[[], Iterator[tf.data.Dataset]]] = {}
_passes: dict[int, Iterator[tf.data.Dataset]] = {}


def _begin(stream: tf.Tensor) -> int:
    number = next(_numbers)
    _passes[number] = _streams[int(stream)]()
    return number


def _proceed(number: tf.Tensor) -> tf.Tensor:
    # At the end the iterator raises StopIteration, which TensorFlow takes for just that.
    return tf.data.experimental.to_variant(next(_passes[int(number)]))


def _end(number: tf.Tensor) -> int:
    del _passes[int(number)]
    return 0


@functools.cache
def _functions() -> tuple[Any, Any, Any, Any]:
    def call(function: Callable[..., Any], result: tf.DType) -> Callable[..., Any]:
        def called(number: Any) -> Any:
            returned = tf.py_function(function, [number], result)
            returned.set_shape([])
            return returned

        return called

    def traced(function: Callable[..., Any], argument: tf.DType) -> Any:
        spec = tf.TensorSpec([], argument)
        return tf.function(function, autograph=False).get_concrete_function(spec)

    with tf.init_scope():
        return (
            traced(call(_begin, tf.int64), tf.int64),
            traced(call(_proceed, tf.variant), tf.int64),
            traced(call(_end, tf.int64), tf.int64),
            traced(tf.identity, tf.variant),
        )


def _structure(spec: Any) -> dict[str, Any]:
    specs = boxed_specs(spec)
    return {
        "output_types": [tensor.dtype for tensor in specs],
        "output_shapes": [tensor.shape for tensor in specs],
    }
