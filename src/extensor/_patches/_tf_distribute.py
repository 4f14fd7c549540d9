"""Batches of extension values that are spread over replicas."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._patches.patch import replaces
from extensor._tf import (
    BatchableTypeSpec,
    Extension,
    component_specs,
    describes_extension,
    from_components,
    unstacked,
)
from extensor.errors import DTypeError


@replaces(
    "tensorflow.python.distribute.input_lib._dummy_tensor_fn",
    reason="A loop over a distributed dataset makes a stand-in for the batch of a replica that "
    "got none, of tensors only.",
    probe="stand_ins",
)
def dummy_tensor_fn(plain: Any) -> Any:
    def _dummy_tensor_fn(value_structure: Any) -> Any:
        """As TensorFlow's own, with extension types: a batch of no values of the type."""

        def dummy(spec: Any) -> Any:
            if not describes_extension(spec) or hasattr(spec, "_create_empty_value"):
                return plain(spec)
            if not isinstance(spec, BatchableTypeSpec):
                return _dummy_value(spec, plain)
            element = unstacked(spec)
            return tf.map_fn(
                lambda _: _dummy_value(element, plain), tf.zeros([0]), fn_output_signature=element
            )

        return tf.nest.map_structure(dummy, value_structure)

    return _dummy_tensor_fn


def _dummy_value(spec: Any, plain: Any) -> Any:
    """Returns a value of a spec of which nobody will read the numbers."""
    if isinstance(spec, tf.RaggedTensorSpec) and spec.ragged_rank == 0:
        spec = tf.TensorSpec(spec.shape, spec.dtype)
    if isinstance(spec, tf.TensorSpec):
        return tf.zeros([size or 0 for size in spec.shape], spec.dtype)
    if describes_extension(spec):
        components = tf.nest.map_structure(
            lambda part: _dummy_value(part, plain), component_specs(spec)
        )
        return from_components(spec, components)
    return plain(spec)


_OF_TENSORS = "It takes tensors; of an extension value it asks for a dtype or a device."


@replaces("tf.distribute.Strategy.reduce", reason=_OF_TENSORS, probe="reduced_values")
def reduce(plain: Any) -> Any:
    return _of_tensors(plain, "Strategy.reduce", 1)


@replaces("tf.distribute.Strategy.gather", reason=_OF_TENSORS, probe="reduced_values")
def gather(plain: Any) -> Any:
    return _of_tensors(plain, "Strategy.gather", 0)


@replaces("tf.distribute.ReplicaContext.all_reduce", reason=_OF_TENSORS, probe="reduced_values")
def all_reduce(plain: Any) -> Any:
    return _of_tensors(plain, "ReplicaContext.all_reduce", 1)


@replaces("tf.distribute.ReplicaContext.all_gather", reason=_OF_TENSORS, probe="reduced_values")
def all_gather(plain: Any) -> Any:
    return _of_tensors(plain, "ReplicaContext.all_gather", 0)


def _of_tensors(plain: Any, name: str, position: int) -> Any:
    """Lets a method say of an extension value what to do instead, and else be as it is.

    Args:
        plain: The method.
        name: Its name, for errors.
        position: Of the argument `value`, counted without `self`.
    """

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        value = args[position] if len(args) > position else kwargs.get("value")
        for leaf in tf.nest.flatten(value):
            replicas = leaf.values if isinstance(leaf, tf.distribute.DistributedValues) else [leaf]
            if isinstance(replicas[0], Extension):
                raise DTypeError(
                    path=name,
                    expected="tensors, which can be added up or joined",
                    received=f"{type(replicas[0]).__name__} values",
                    mend="Let the function that each replica runs return components of the values. "
                    "The values themselves: strategy.experimental_local_results.",
                )
        return plain(self, *args, **kwargs)

    return method
