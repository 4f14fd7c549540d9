"""A dataset that Python feeds, pass by pass, in datasets that hold many elements each.

This is what `tf.data.Dataset.from_generator` is for, which traces functions anew for each dataset.
Here all datasets share the functions, which know a dataset and its passes by their numbers; small
files would else take longer to begin than to read.
"""

from __future__ import annotations

import atexit
import functools
import gc
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor.core.box import boxed_specs
from extensor.core.memory import tensor_at


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
        told, owner = _told(number)
        parts = tf.raw_ops.GeneratorDataset(
            init_func_other_args=[told],
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
    weakref.finalize(owner, _streams.pop, number).atexit = False
    return dataset


def _told(number: int) -> tuple[tf.Tensor, Any]:
    """Returns a tensor of a number, and what lives as long as TensorFlow keeps the tensor.

    A function that reads a dataset keeps TensorFlow's side of it, and no object of Python's.
    """
    if not tf.executing_eagerly():
        return tf.constant([number], tf.int64), tf.compat.v1.get_default_graph()
    memory = pa.allocate_buffer(8)  # aligned, so that the tensor shares it
    np.frombuffer(memory, np.int64)[:] = number
    return tensor_at(memory, memory.address, 1, np.dtype(np.int64)), memory


_numbers = itertools.count()
_streams: dict[int, Callable[[], Iterator[tf.data.Dataset]]] = {}
_passes: dict[int, Iterator[tf.data.Dataset]] = {}


def _begin(stream: tf.Tensor) -> int:
    number = next(_numbers)
    _passes[number] = _streams[int(stream[0])]()
    return number


def _proceed(number: tf.Tensor) -> tf.Tensor:
    # At the end the iterator raises StopIteration, which TensorFlow takes for just that.
    if _calls.over:
        raise StopIteration
    return tf.data.experimental.to_variant(next(_passes[int(number)]))


def _end(number: tf.Tensor) -> int:
    del _passes[int(number)]
    return 0


class _Calls:
    """The calls into Python by TensorFlow's threads, which have to end before Python does.

    A thread that asks for Python while it is being torn down never gets it, and the process waits
    for ever to be rid of an iterator for which such a thread reads ahead.
    """

    # How long no call has come when no thread is going to call: one that was told the end, or
    # has read far enough ahead, rests until its iterator is deleted.
    _REST = 0.05

    def __init__(self) -> None:
        self.over = False
        self._running: set[int] = set()  # threads
        self._last = 0.0

    def __enter__(self) -> None:
        self._running.add(threading.get_ident())

    def __exit__(self, *error: object) -> None:
        self._last = time.monotonic()
        self._running.discard(threading.get_ident())

    def end(self) -> None:
        """Ends all passes: deletes iterators, and waits for threads to rest that have another."""
        self.over = True
        for value in gc.get_objects() if _streams else ():
            if tf.data.Iterator in type(value).__mro__:
                vars(value).clear()
        while _passes and (self._running or time.monotonic() - self._last < self._REST):
            time.sleep(0.001)


_calls = _Calls()


@functools.cache
def _functions() -> tuple[Any, Any, Any, Any]:
    atexit.register(_calls.end)

    def call(function: Callable[..., Any], result: tf.DType) -> Callable[..., Any]:
        def counted(number: tf.Tensor) -> Any:
            with _calls:
                return function(number)

        def called(number: Any) -> Any:
            returned = tf.py_function(counted, [number], result)
            returned.set_shape([])
            return returned

        return called

    def traced(function: Callable[..., Any], argument: tf.DType, shape: Any = ()) -> Any:
        spec = tf.TensorSpec(shape, argument)
        return tf.function(function, autograph=False).get_concrete_function(spec)

    with tf.init_scope():
        return (
            traced(call(_begin, tf.int64), tf.int64, [1]),
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
