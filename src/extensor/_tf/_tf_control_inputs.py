"""The order of ops of a graph that were made already.

| name | why |
| --- | --- |
| `Operation._add_control_input` | `tf.control_dependencies` orders all ops that are made inside, and thereby stops TensorFlow from computing constants once. Only ops with a state must wait. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable

import tensorflow as tf

_READS = ("ReadVariableOp", "Placeholder")


@contextlib.contextmanager
def stateful_ops_after(tensors: Iterable[tf.Tensor]) -> Generator[None]:
    """Makes the ops inside that change a state wait for tensors.

    >>> import tensorflow as tf
    >>> from extensor._tf._tf_control_inputs import stateful_ops_after
    >>> @tf.function
    ... def count(batch, counter):
    ...     with stateful_ops_after([tf.debugging.check_numerics(batch, "no batch")]):
    ...         counter.assign_add(1)
    >>> counter = tf.Variable(0)
    >>> count(tf.constant(float("nan")), counter)
    Traceback (most recent call last):
    tensorflow.python.framework.errors_impl.InvalidArgumentError: ...
    >>> int(counter)
    0
    """
    graph = tf.compat.v1.get_default_graph()
    before = len(graph.get_operations())
    yield
    # A tensor of an outer graph is there before this one begins.
    causes = [tensor.op for tensor in tensors if tensor.graph is graph]
    for op in graph.get_operations()[before:]:
        if op.op_def.is_stateful and op.type not in _READS:
            for cause in causes:
                op._add_control_input(cause)
