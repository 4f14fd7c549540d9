"""The datasets of feeds, and the Python functions that their graphs call.

Scan carries a tensor that names the pass; the pass ends when the tensor's memory is freed, which is
when the iterator is deleted.

All datasets share the traced functions. They call Python by names that are the same in all
processes, so that the graph of a dataset may be sent to another one.
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
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._data.ahead import ReadAhead
from extensor._data.dataset_graph import Steps, graph_of
from extensor._data.feed import Feed
from extensor._data.position import StartedPass
from extensor._data.serialize import from_serialized
from extensor._memory import tensor_at
from extensor._raised import mark, raise_marked
from extensor._tf._tf_named_function import call_named, function_of_dataset, name_function
from extensor.errors import StructureError


def stream(feed: Feed) -> tf.data.Dataset:
    """Returns a dataset of the batches of a feed."""
    number, parts, count = next(_numbers), feed.parts, feed.count
    with tf.init_scope():
        graph = graph_of(feed.spec, _steps(), parts is None, count is not None)
        own, owner = _tensor_of([_PROCESS, number, _NOT_BEGUN, 0])
        with tf.device("CPU:0"):
            variants = graph(
                own,
                tf.constant(feed.serialized),
                tf.constant(np.iinfo(np.int64).max if parts is None else parts, tf.int64),
                tf.constant(count or 0, tf.int64),
            )
    dataset, untuned = (tf.data.experimental.from_variant(each, feed.spec) for each in variants)
    _streams[number] = feed
    weakref.finalize(owner, _streams.pop, number).atexit = False
    feeds[dataset] = feeds[untuned] = feed
    dataset.__class__ = _untuned_class(type(dataset))
    setattr(dataset, _UNTUNED, untuned)
    return dataset


_UNTUNED = "_extensor_untuned"


@functools.cache
def _untuned_class(kind: Any) -> type[tf.data.Dataset]:
    """Returns a subclass of a class of datasets that is iterated without tuning and rewriting.

    Datasets that are made of it, such as by `map`, are tuned as always.
    """
    plain: Any = kind

    @functools.wraps(plain.__iter__)
    def iterate(self: tf.data.Dataset) -> Iterator[Any]:
        return plain.__iter__(getattr(self, _UNTUNED))

    @functools.wraps(plain.reduce)
    def reduce(self: tf.data.Dataset, *args: Any, **kwargs: Any) -> Any:
        try:
            return plain.reduce(getattr(self, _UNTUNED), *args, **kwargs)
        except tf.errors.OpError as error:
            raise_marked(error.message)
            raise

    methods = {"__iter__": iterate, "reduce": reduce, "__module__": kind.__module__}
    # The only base is the class, so that Python lets a dataset change its class to the subclass.
    return type(kind)(kind.__name__, (kind,), methods)


def _tensor_of(numbers: list[int]) -> tuple[tf.Tensor, object]:
    """Returns a vector of numbers, and an object that lives as long as the tensor's memory.

    A function that reads a dataset keeps the dataset's tensors alive, but not its Python object.
    """
    if not tf.executing_eagerly():
        return tf.constant(numbers, tf.int64), tf.compat.v1.get_default_graph()
    memory = pa.allocate_buffer(8 * len(numbers))  # aligned, so that the tensor shares it
    np.frombuffer(memory, np.int64)[:] = numbers
    return tensor_at(memory, memory.address, (len(numbers),), np.dtype(np.int64)), memory


_PROCESS = int.from_bytes(os.urandom(7), "big")
"""A number that no other process has."""

_NOT_BEGUN = -1
"""In place of the first epoch, in the state of an iterator that has read nothing."""

_OVER = -1
"""In place of the step, in the state of an iterator whose source has ended."""

_numbers = itertools.count()
_streams: dict[int, Feed] = {}
_passes: dict[int, ReadAhead] = {}
feeds: weakref.WeakKeyDictionary[tf.data.Dataset, Feed] = weakref.WeakKeyDictionary()
"""The feeds of datasets."""


def _hold(state: tf.Tensor, own: tf.Tensor, serialized: tf.Tensor) -> tf.Tensor:
    """Returns a tensor that keeps a pass alive: the state, or a new one if its pass is not open.

    Args:
        state: Numbers of a process, of a pass, of its first epoch and of its first step there.
        own: Numbers of a process and of a feed in it.
        serialized: The serialized form of the feed.
    """
    process, number, epoch, step = state.numpy().tolist()
    if process == _PROCESS and number in _passes:
        opened = _passes[number]
        _count_restored(own, opened, epoch)
        if opened.is_over:
            return tf.constant(np.array([process, number, epoch, _OVER]))
        return state
    feed = _feed(own, serialized)
    is_begun = epoch != _NOT_BEGUN
    if not is_begun:
        epoch, step = feed.begin()
    # A random number, which `passes_of` finds in the state of the iterator.
    number = int.from_bytes(os.urandom(8), "big") >> 1
    opened = _passes[number] = feed.open(epoch, step)
    if is_begun:
        feed.count_restored(epoch)
    feed.plan.position.add(opened.entry)
    lease, owner = _tensor_of([_PROCESS, number, epoch, step])
    weakref.finalize(owner, _end, number).atexit = False
    return lease


def _load(state: tf.Tensor, part: tf.Tensor, own: tf.Tensor, serialized: tf.Tensor) -> tf.Tensor:
    """Returns the dataset of a part, as a variant."""
    process, number, epoch, step = state.numpy().tolist()
    opened = _passes.get(number) if process == _PROCESS else None
    if opened is not None:
        _count_restored(own, opened, epoch)
        batches = opened.load(int(part))
    else:  # an iterator that was restored in the middle of a part
        feed = _feed(own, serialized)
        restored = feed.open(epoch, step)
        feed.count_restored(epoch)
        restored.reads_ahead = False
        batches = restored.load(int(part))
        restored.close()
    return tf.data.experimental.to_variant(batches)


def _count_restored(own: tf.Tensor, opened: ReadAhead, epoch: int) -> None:
    """Counts a pass that another dataset of this process has begun, and whose checkpoint it was."""
    process, number, *_ = own.numpy().tolist()
    feed = _streams.get(number) if process == _PROCESS else None
    if feed is not None and opened.entry.position is not feed.plan.position:
        feed.count_restored(epoch)


def _feed(own: tf.Tensor, serialized: tf.Tensor) -> Feed:
    process, number, *_ = own.numpy().tolist()
    return _streams[number] if process == _PROCESS else _made_feed(serialized.numpy().decode())


@functools.lru_cache(maxsize=8)
def _made_feed(serialized: str) -> Feed:
    """Returns a feed of another process."""
    if not serialized:
        expected = "a dataset whose source and arguments another process can open"
        received = "one that only the process that made it can read"
        fix = "Give paths of files, `nulls` as words, and no state."
        raise StructureError("xt.data", expected, received, fix)
    feed = from_serialized(serialized)
    feed.counts_passes = False  # each process would count its own
    return feed


def passes_of(iterator: tf.data.Iterator) -> list[StartedPass]:
    """Returns the passes that an iterator reads; none before its first and after its last batch."""
    [resource] = tf.nest.flatten(iterator, expand_composites=True)
    ignore = tf.data.experimental.ExternalStatePolicy.IGNORE.value
    parts = tf.raw_ops.SerializeIterator(resource_handle=resource, external_state_policy=ignore)
    saved = b"".join(tf.io.serialize_tensor(part).numpy() for part in parts)
    # Compression of the tensors that name the passes leaves random bytes as they are. The bytes at
    # the end may be joined with what follows.
    return [p.entry for n, p in list(_passes.items()) if n.to_bytes(8, "little")[:5] in saved]


def _end(number: int) -> None:
    if (opened := _passes.pop(number, None)) is not None:
        opened.close()


class _Calls:
    """The calls of TensorFlow's threads into Python, which must end before Python exits.

    A thread that calls Python during exit blocks forever. An iterator waits for its threads when
    it is deleted, so the process would hang.
    """

    # Waits of a millisecond at exit, without a call, for threads that have passed `may_begin` but
    # have not called yet. Their number counts, not the time: on a busy machine both take longer.
    _GRACE = 100

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
        # The raw op, because tf.debugging.Assert makes two functions in a graph. The error has the
        # name of the op. A message is a constant, which each iterator starts a thread to look at.
        name = "Python_is_exiting"
        return tf.raw_ops.Assert(condition=tf.logical_not(over), data=[over], name=name)

    def end(self, process: int) -> None:
        """Ends all passes: deletes their iterators, and makes later calls fail.

        Calls can come later because an iterator is not found if a function captured the dataset,
        such as the function of interleave.

        A scan of all objects finds the iterators. TensorFlow makes those of datasets that users
        derive, by map or zip, and calls nothing of ours then: weak references to them would take a
        patch that runs for each iterator of any dataset.

        Does nothing in a forked process. It has none of the calling threads, so deleting iterators
        would wait forever.
        """
        if os.getpid() != process:
            return
        for value in gc.get_objects() if feeds else ():
            if tf.data.Iterator in type(value).__mro__ and any(feeds_in(value)):
                vars(value).clear()
        with tf.device("CPU:0"):
            tf.raw_ops.AssignVariableOp(resource=self._over(), value=True)
        quiet = 0
        while _passes and quiet < self._GRACE:
            time.sleep(0.001)
            quiet = 0 if self._running else quiet + 1


_calls = _Calls()


def feeds_in(value: object) -> Iterator[Feed]:
    """Yields the feeds that an iterator, a dataset or a container reads.

    The class of a value says what it is, because any object may come here when Python exits.
    """
    bases = type(value).__mro__
    is_dataset = tf.data.Dataset in bases
    parts: Iterable[object] = ()
    if is_dataset and value in feeds:
        yield feeds[value]
    elif is_dataset or tf.data.Iterator in bases:
        parts = vars(value).values()
    elif list in bases or tuple in bases:
        parts = cast("Iterable[object]", value)
    elif dict in bases:
        parts = cast("dict[object, object]", value).values()
    for part in parts:
        yield from feeds_in(part)


@functools.cache
def _steps() -> Steps:
    atexit.register(_calls.end, os.getpid())
    register()
    state = tf.TensorSpec([4], tf.int64)
    number = tf.TensorSpec([], tf.int64)
    own, serialized = state, tf.TensorSpec([], tf.string)

    def call(
        name: str, arguments: list[tf.Tensor], result: tf.DType, shape: list[int]
    ) -> tf.Tensor:
        with tf.control_dependencies([_calls.may_begin()]):
            returned = call_named(name, arguments, result)
        returned.set_shape(shape)
        return returned

    def hold(
        state: tf.Tensor, number: tf.Tensor, own: tf.Tensor, serialized: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        held = call("extensor.data.hold", [state, own, serialized], tf.int64, [4])
        return held, held, number

    def load(
        state: tf.Tensor, number: tf.Tensor, own: tf.Tensor, serialized: tf.Tensor
    ) -> tf.Tensor:
        return call("extensor.data.load", [state, number, own, serialized], tf.variant, [])

    def goes_on(state: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
        return tf.not_equal(state[3], _OVER)

    with tf.init_scope():
        arguments = state, number, own, serialized
        return Steps(
            function_of_dataset(hold, *arguments),
            function_of_dataset(load, *arguments),
            function_of_dataset(goes_on, state, number),
        )


def register() -> None:
    """Registers the Python functions of the graph under their names, in this process."""

    def register_one(name: str, function: Callable[..., tf.Tensor], result: tf.DType) -> None:
        def call(*arguments: tf.Tensor) -> tf.Tensor:
            with _calls:
                try:
                    return function(*arguments)
                except BaseException as error:
                    raise mark(error) from None

        name_function(name, call, result)

    register_one("extensor.data.hold", _hold, tf.int64)
    register_one("extensor.data.load", _load, tf.variant)
