"""A dataset whose elements come from datasets that a Python iterator yields.

`tf.data.Dataset.from_generator` would do, but it traces its functions again for each dataset. For
small files, tracing takes longer than reading. Here all datasets share the traced functions, which
identify a dataset, and each iteration (pass) of it, by a number.
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
    """Returns a dataset of the elements of all datasets that an iterator yields.

    Args:
        begin: Begins a pass: returns an iterator over datasets. The iterator is closed when the
            pass ends or is abandoned.
        element_spec: The spec of an element.
        count: The number of elements. A pass stops after so many elements, because a pass that an
            exception ends makes TensorFlow write to the log.

    >>> spec = tf.TensorSpec([], tf.int64)
    >>> dataset = stream(lambda: (tf.data.Dataset.range(n) for n in (2, 3)), spec, 5)
    >>> [int(number) for number in dataset]
    [0, 1, 0, 1, 2]
    """
    number = next(_numbers)
    begin_pass, proceed, end_pass, identity = _functions()
    with tf.init_scope():
        number_tensor, owner = _tensor_of(number)
        parts = tf.raw_ops.GeneratorDataset(
            init_func_other_args=[number_tensor],
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


def _tensor_of(number: int) -> tuple[tf.Tensor, Any]:
    """Returns a tensor of a number, and an object that lives as long as the tensor's memory.

    A function that reads a dataset keeps the dataset's tensors alive, but not its Python object.
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
    # The empty dataset at the end is for TensorFlow's prefetch, which reads past the end.
    _passes[number] = itertools.chain(_streams[int(stream[0])](), [_empty_dataset()])
    # An array, because TensorFlow never frees a Python number that it converted to a tensor.
    return np.array(number)


def _proceed(number: tf.Tensor) -> tf.Tensor:
    return tf.data.experimental.to_variant(next(_passes[int(number)]))


def _end(number: tf.Tensor) -> int:
    del _passes[int(number)]
    return 0


@functools.cache
def _empty_dataset() -> tf.data.Dataset:
    return tf.data.Dataset.range(0)


class _Calls:
    """The calls of TensorFlow's threads into Python, which must end before Python exits.

    A thread that calls Python during exit blocks forever. An iterator waits for its threads when
    it is deleted, so the process would hang.
    """

    # Seconds to wait at exit for threads that have passed `may_begin` but have not called yet.
    _GRACE = 0.05

    def __init__(self) -> None:
        self._running: set[int] = set()  # threads

    def __enter__(self) -> None:
        self._running.add(threading.get_ident())

    def __exit__(self, *error: object) -> None:
        self._running.discard(threading.get_ident())

    @staticmethod
    def _over() -> tf.Tensor:
        """Returns the handle of a variable that exists once threads must not call Python."""
        return tf.raw_ops.VarHandleOp(dtype=tf.bool, shape=[], shared_name="extensor/over")

    def may_begin(self) -> tf.Operation:
        """Returns an operation that fails once threads must not call Python."""
        over = tf.raw_ops.VarIsInitializedOp(resource=self._over())
        return tf.debugging.Assert(tf.logical_not(over), ["Python is exiting"])

    def end(self, process: int) -> None:
        """Ends all passes: deletes their iterators, and makes later calls fail.

        Calls can come later because an iterator is not found if a function captured the dataset,
        such as the function of interleave.

        Does nothing in a forked process. It has none of the calling threads, so deleting iterators
        would wait forever.
        """
        if os.getpid() != process:
            return
        for value in gc.get_objects() if _datasets else ():
            if tf.data.Iterator in type(value).__mro__ and _reads_ours(value):
                vars(value).clear()
        with tf.device("CPU:0"):
            tf.raw_ops.AssignVariableOp(resource=self._over(), value=True)
        until = time.monotonic() + self._GRACE
        while _passes and (self._running or time.monotonic() < until):
            time.sleep(0.001)


_calls = _Calls()


def _reads_ours(value: Any) -> bool:
    """Returns whether an iterator, dataset or container reads from a dataset of `stream`."""
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
