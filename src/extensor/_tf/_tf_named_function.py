"""Functions of datasets, and Python functions that they call by a name of every process.

| name | why |
| --- | --- |
| `script_ops` | tf.py_function calls a function by a number that TensorFlow counts in each process, so that no other process can run its graph. Its registry (`_py_funcs._funcs`) accepts any name, for an `EagerFunc`. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import script_ops

__all__ = ["call_named", "function_of_dataset", "name_function", "script_ops"]

_held: dict[str, Any] = {}  # the registry has weak references only


def name_function(name: str, function: Callable[..., Any], result: tf.DType) -> None:
    """Registers a Python function under a name, for `call_named` in the graphs of any process.

    Args:
        name: The name.
        function: A function of eager tensors, which returns one tensor.
        result: The dtype of the returned tensor.
    """
    _held[name] = script_ops.EagerFunc(function, [result], False)
    script_ops._py_funcs._funcs[name] = _held[name]


def call_named(name: str, arguments: list[tf.Tensor], result: tf.DType) -> tf.Tensor:
    """Returns the result of a function of `name_function`, as `tf.py_function` does.

    Args:
        name: The name of the function.
        arguments: Tensors.
        result: The dtype of the result.
    """
    [returned] = tf.raw_ops.EagerPyFunc(input=arguments, token=name, Tout=[result], is_async=False)
    return returned


def function_of_dataset(function: Callable[..., Any], *specs: tf.TensorSpec) -> Any:
    """Returns a function for an op of tf.data, which every new iterator instantiates quickly.

    Each iterator instantiates the functions of its dataset again. By default, TensorFlow places and
    optimizes them for several devices each time, which takes about 5 ms for a function. It does
    not with this attribute, which changes nothing else for a function that runs on the CPU.

    Args:
        function: A function of tensors, without functions in it.
        *specs: The specs of its arguments.
    """
    attributes = {"experimental_ints_on_device": True}
    traced = tf.function(function, autograph=False, experimental_attributes=attributes)
    return traced.get_concrete_function(*specs)
