"""Extension values in tf.distribute: distributed batches and reductions."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._patches.patch import replaces
from extensor._protocol.box import boxed_specs, unbox
from extensor._tf import (
    BatchableTypeSpec,
    Extension,
    component_specs,
    describes_extension,
    from_components,
    stacked,
    unstacked,
)
from extensor.errors import DTypeError


@replaces(
    "tensorflow.python.distribute.input_lib._dummy_tensor_fn",
    reason="A loop over a distributed dataset creates a dummy batch for a replica that got no "
    "batch, but only from tensors.",
    probe="stand_ins",
)
def dummy_tensor_fn(plain: Any) -> Any:
    def _dummy_tensor_fn(value_structure: Any) -> Any:
        """Like TensorFlow's function; for a spec of an extension type, returns an empty batch."""

        def dummy(spec: Any) -> Any:
            if not describes_extension(spec) or hasattr(spec, "_create_empty_value"):
                return plain(spec)
            if not isinstance(spec, BatchableTypeSpec):
                return _dummy_value(spec, plain)
            return _empty_batch(stacked(unstacked(spec), None))

        return tf.nest.map_structure(dummy, value_structure)

    return _dummy_tensor_fn


def _empty_batch(spec: Any) -> Any:
    """Returns a batch of no values."""
    no_variants = tf.raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[tf.zeros([1], tf.int64)],
        rt_dense_values=tf.zeros([0]),
        batched_input=True,
    )
    boxes = [
        no_variants if box.dtype == tf.variant else tf.zeros([d or 0 for d in box.shape], box.dtype)
        for box in boxed_specs(spec, 1)
    ]
    return unbox(spec, boxes)


def _dummy_value(spec: Any, plain: Any) -> Any:
    """Returns any value of a spec; its contents are not read."""
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


_OF_TENSORS = "It accepts only tensors; it reads the dtype or device of an extension value."


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
    """Returns a method that raises an error with an alternative for extension values.

    Args:
        plain: The method, called for all other values.
        name: Its name, for errors.
        position: The position of the argument `value`, without `self`.
    """

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        value = args[position] if len(args) > position else kwargs.get("value")
        for leaf in tf.nest.flatten(value):
            replicas = leaf.values if isinstance(leaf, tf.distribute.DistributedValues) else [leaf]
            if isinstance(replicas[0], Extension):
                raise DTypeError(
                    name,
                    "tensors",
                    f"{type(replicas[0]).__name__} values",
                    "Return the components of the values from the function that each replica "
                    "runs, or get the values with strategy.experimental_local_results.",
                )
        return plain(self, *args, **kwargs)

    return method
