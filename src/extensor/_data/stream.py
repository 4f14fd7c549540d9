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
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._memory import tensor_at
from extensor._protocol.box import boxed_specs


def stream(
    begin: Callable[[], Iterator[tf.data.Dataset]], element_spec: Any, count: int
) -> tf.data.Dataset:
    """Returns a dataset of the elements of datasets.

    Args:
        begin: Begins a pass: returns an iterator over datasets, whose elements follow one another.
            The iterator is closed when the pass is over or given up.
        element_spec: The spec of an element.
        count: How many elements there are. A pass ends after them: ended by an exception instead,
            it would make TensorFlow write to the log.

    >>> spec = tf.TensorSpec([], tf.int64)
    >>> dataset = stream(lambda: (tf.data.Dataset.range(n) for n in (2, 3)), spec, 5)
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
        counted = tf.raw_ops.TakeDataset(
            input_dataset=elements,
            count=tf.constant(np.int64(count)),
            **_structure(element_spec),
        )
        dataset = tf.data.experimental.from_variant(counted, element_spec)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
    _datasets.add(dataset)
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
_datasets: weakref.WeakSet[tf.data.Dataset] = weakref.WeakSet()


def _begin(stream: tf.Tensor) -> Any:
    number = next(_numbers)
    # The dataset without elements is for TensorFlow's thread, which reads ahead past the end.
    _passes[number] = itertools.chain(_streams[int(stream[0])](), [_nothing()])
    # TensorFlow keeps for ever each number of Python that it makes a tensor of, but none of NumPy.
    return np.array(number)


def _proceed(number: tf.Tensor) -> tf.Tensor:
    return tf.data.experimental.to_variant(next(_passes[int(number)]))


def _end(number: tf.Tensor) -> int:
    del _passes[int(number)]
    return 0


@functools.cache
def _nothing() -> tf.data.Dataset:
    return tf.data.Dataset.range(0)


class _Calls:
    """The calls into Python by TensorFlow's threads, which have to end before Python does.

    A thread that calls Python while Python ends gets no answer, and an iterator that is deleted
    waits for its threads: the process would never end.
    """

    # A thread that may call has called after so many seconds.
    _SOON = 0.05

    def __init__(self) -> None:
        self._running: set[int] = set()  # threads

    def __enter__(self) -> None:
        self._running.add(threading.get_ident())

    def __exit__(self, *error: object) -> None:
        self._running.discard(threading.get_ident())

    @staticmethod
    def _over() -> tf.Tensor:
        """Returns the handle of a variable that exists as soon as no thread may call Python."""
        return tf.raw_ops.VarHandleOp(dtype=tf.bool, shape=[], shared_name="extensor/over")

    def may_begin(self) -> tf.Operation:
        """Returns an operation of a function that fails once no thread may call Python."""
        over = tf.raw_ops.VarIsInitializedOp(resource=self._over())
        return tf.debugging.Assert(tf.logical_not(over), ["Python ends"])

    def end(self, process: int) -> None:
        """Ends our passes: deletes their iterators, and refuses calls for those not found.

        A process that was forked from this one has no thread that calls, and to delete iterators
        there would wait for threads that only the other process has.

        An iterator is not found if a function captured the dataset, as that of interleave does.
        """
        if os.getpid() != process:
            return
        for value in gc.get_objects() if _datasets else ():
            if tf.data.Iterator in type(value).__mro__ and _reads_ours(value):
                vars(value).clear()
        with tf.device("CPU:0"):
            tf.raw_ops.AssignVariableOp(resource=self._over(), value=True)
        until = time.monotonic() + self._SOON
        while _passes and (self._running or time.monotonic() < until):
            time.sleep(0.001)


_calls = _Calls()


def _reads_ours(value: Any) -> bool:
    """Returns whether an iterator, dataset or container reads from one of our datasets."""
    bases = type(value).__mro__
    if list in bases or tuple in bases:
        parts = value
    elif dict in bases:
        parts = value.values()
    elif tf.data.Dataset in bases or tf.data.Iterator in bases:
        parts = vars(value).values()
    else:
        return False
    return (tf.data.Dataset in bases and value in _datasets) or any(map(_reads_ours, parts))


@functools.cache
def _functions() -> tuple[Any, Any, Any, Any]:
    atexit.register(_calls.end, os.getpid())

    def call(function: Callable[..., Any], result: tf.DType) -> Callable[..., Any]:
        def counted(number: tf.Tensor) -> Any:
            with _calls:
                return function(number)

        def called(number: Any) -> Any:
            with tf.control_dependencies([_calls.may_begin()]):
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
