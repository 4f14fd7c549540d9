"""Batches of extension values that are spread over replicas.

| name | why |
| --- | --- |
| `input_lib` | A loop over a distributed dataset inside tf.function makes a stand-in for the batch of a replica that got none, which `_dummy_tensor_fn` can do of tensors only. |
| `tf.distribute.Strategy.reduce` and `gather`, `tf.distribute.ReplicaContext.all_reduce` and `all_gather` (public; wrapped) | They add up tensors, or join them. Of an extension value they ask for a dtype or a device, and fail with an AttributeError. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import input_lib

from extensor._tf._tf_protocol import Extension, describes_extension
from extensor._tf._tf_spec import BatchableTypeSpec
from extensor.errors import DTypeError

_plain_dummy_tensor_fn = input_lib._dummy_tensor_fn


def _dummy_tensor_fn(value_structure: Any) -> Any:
    """As TensorFlow's own, with extension types: a batch of no values of the type."""

    def dummy(spec: Any) -> Any:
        if not describes_extension(spec) or hasattr(spec, "_create_empty_value"):
            return _plain_dummy_tensor_fn(spec)
        if not isinstance(spec, BatchableTypeSpec):
            return _dummy_value(spec)
        element = spec._unbatch()
        return tf.map_fn(
            lambda _: _dummy_value(element), tf.zeros([0]), fn_output_signature=element
        )

    return tf.nest.map_structure(dummy, value_structure)


def _dummy_value(spec: Any) -> Any:
    """Returns a value of a spec of which nobody will read the numbers."""
    if isinstance(spec, tf.RaggedTensorSpec) and spec.ragged_rank == 0:
        spec = tf.TensorSpec(spec.shape, spec.dtype)
    if isinstance(spec, tf.TensorSpec):
        return tf.zeros([size or 0 for size in spec.shape], spec.dtype)
    if describes_extension(spec):
        return spec._from_components(tf.nest.map_structure(_dummy_value, spec._component_specs))
    return _plain_dummy_tensor_fn(spec)


input_lib._dummy_tensor_fn = _dummy_tensor_fn


def _of_tensors(cls: Any, name: str, position: int) -> None:
    """Lets a method say of an extension value what to do instead, and else be as it is.

    Args:
        cls: The method's class.
        name: The method's name.
        position: Of the argument `value`, counted without `self`.
    """
    plain: Callable[..., Any] = getattr(cls, name)

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        value = args[position] if len(args) > position else kwargs.get("value")
        for leaf in tf.nest.flatten(value):
            replicas = leaf.values if isinstance(leaf, tf.distribute.DistributedValues) else [leaf]
            if isinstance(replicas[0], Extension):
                raise DTypeError(
                    path=f"{cls.__name__}.{name}",
                    expected="tensors, which can be added up or joined",
                    received=f"{type(replicas[0]).__name__} values",
                    mend="Let the function that each replica runs return components of the values. "
                    "The values themselves: strategy.experimental_local_results.",
                )
        return plain(self, *args, **kwargs)

    setattr(cls, name, method)


_of_tensors(tf.distribute.Strategy, "reduce", 1)
_of_tensors(tf.distribute.Strategy, "gather", 0)
_of_tensors(tf.distribute.ReplicaContext, "all_reduce", 1)
_of_tensors(tf.distribute.ReplicaContext, "all_gather", 0)
