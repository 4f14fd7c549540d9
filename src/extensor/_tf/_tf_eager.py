"""Eager tensors in a graph of TensorFlow 1.

| name | why |
| --- | --- |
| `context.eager_mode` | tf.init_scope leaves a tf.function, but no `with tf.Graph().as_default()`. Reading files needs eager tensors, which share memory with Arrow. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator
from typing import Any, TypeVar, cast

import tensorflow as tf
from tensorflow.python.eager import context

from extensor._typing import Nest

_Function = TypeVar("_Function", bound=Callable[..., Any])


@contextlib.contextmanager
def eagerly() -> Generator[None]:
    """Runs the ops inside eagerly, in a tf.function and in a graph of TensorFlow 1 too.

    >>> import tensorflow as tf
    >>> from extensor._tf._tf_eager import eagerly
    >>> with tf.Graph().as_default(), eagerly():
    ...     print(tf.constant([1, 2]).numpy())
    [1 2]
    """
    with tf.init_scope():
        if tf.executing_eagerly():
            yield
        else:
            with context.eager_mode():
                yield


def read_eagerly(function: _Function) -> _Function:
    """Decorates a function that reads data: the tensors are in the memory of the host.

    A graph of TensorFlow 1 gets the data as constants.
    """

    @functools.wraps(function)
    def read(*args: Any, **kwargs: Any) -> Any:
        if tf.executing_eagerly():  # the scopes take longer than to read a small column
            if not _has_devices():
                return function(*args, **kwargs)
            # Without this, some columns would go to a GPU, and those that share memory would not.
            with tf.device("CPU:0"):
                return function(*args, **kwargs)
        with eagerly():
            records = function(*args, **kwargs)
        return constants(records)

    return cast("_Function", read)


@functools.cache
def _has_devices() -> bool:
    return len(tf.config.list_logical_devices()) > 1


def constants(value: Nest) -> Nest:
    """Returns an eager value as constants of the graph of TensorFlow 1 that is being built.

    A value stays as it is in eager mode, and in a tf.function, which captures it.

    >>> import tensorflow as tf
    >>> from extensor._tf._tf_eager import constants
    >>> eager = tf.constant([1, 2])
    >>> with tf.Graph().as_default() as graph:
    ...     print(constants(eager).graph is graph)
    True
    """
    with tf.init_scope():
        if tf.executing_eagerly():
            return value
        return tf.nest.map_structure(_constant, value, expand_composites=True)


def _constant(tensor: tf.Tensor) -> tf.Tensor:
    return tf.constant(tensor.numpy(), tensor.dtype) if hasattr(tensor, "numpy") else tensor
