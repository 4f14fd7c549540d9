"""Extension values in tf.distribute: distributed batches and reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._patches.patch import overrides
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
from extensor._typing import Nest, Value
from extensor.errors import DTypeError, UnsupportedTypeError


@overrides(
    "tensorflow.python.distribute.input_lib._dummy_tensor_fn",
    reason="A loop over a distributed dataset creates a dummy batch for a replica that got no "
    "batch, but only from tensors.",
    probe="stand_ins",
)
def dummy_tensor_fn(value_structure: Nest, *, plain: Callable[[Nest], Nest]) -> Nest:
    """Like TensorFlow's function; for a spec of an extension type, returns an empty batch."""

    def dummy(spec: tf.TypeSpec) -> Value:
        if not describes_extension(spec) or hasattr(spec, "_create_empty_value"):
            return plain(spec)
        if not isinstance(spec, BatchableTypeSpec):
            return _dummy_value(spec, plain)
        return _empty_batch(stacked(unstacked(spec), None))

    return tf.nest.map_structure(dummy, value_structure)


def _empty_batch(spec: tf.TypeSpec) -> Value:
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


def _dummy_value(spec: tf.TypeSpec, plain: Callable[[Nest], Nest]) -> Value:
    """Returns any value of a spec; its contents are not read."""
    if isinstance(spec, tf.TensorSpec) or (
        isinstance(spec, tf.RaggedTensorSpec) and spec.ragged_rank == 0
    ):
        return tf.zeros([size or 0 for size in spec.shape], spec.dtype)
    if describes_extension(spec):
        components = tf.nest.map_structure(
            lambda part: _dummy_value(part, plain), component_specs(spec)
        )
        return from_components(spec, components)
    return plain(spec)


_ONLY_TENSORS = "It accepts only tensors; it reads the dtype or device of an extension value."


@overrides("tf.distribute.Strategy.reduce", reason=_ONLY_TENSORS, probe="reduced_values")
@overrides("tf.distribute.Strategy.gather", reason=_ONLY_TENSORS, probe="reduced_values")
@overrides("tf.distribute.ReplicaContext.all_reduce", reason=_ONLY_TENSORS, probe="reduced_values")
@overrides("tf.distribute.ReplicaContext.all_gather", reason=_ONLY_TENSORS, probe="reduced_values")
def combine_tensors(self: Any, *args: Any, plain: Callable[..., Nest], **kwargs: Any) -> Nest:
    """Calls TensorFlow's method; raises an error with an alternative for extension values."""
    for leaf in tf.nest.flatten((args, kwargs)):
        replicas = leaf.values if isinstance(leaf, tf.distribute.DistributedValues) else [leaf]
        if isinstance(replicas[0], Extension):
            at = plain.__qualname__.replace("Base.", ".")
            fix = (
                "Return the components of the values from the function that each replica "
                "runs, or get the values with strategy.experimental_local_results."
            )
            raise DTypeError(at, "tensors", f"{type(replicas[0]).__name__} values", fix)
    return plain(self, *args, **kwargs)


@overrides(
    "tensorflow.python.distribute.cross_device_utils._pad_util",
    reason="Processes that all gather no elements crash or wait forever. `predict` gathers the "
    "values of lists, which may all be empty.",
    probe="padded_to_gather",
)
def pad_to_gather(
    input_tensor: tf.Tensor, full_axis_dim: tf.Tensor, *, plain: Callable[..., tf.Tensor]
) -> tf.Tensor:
    """Pads a tensor to the size that all processes send, which is at least 1."""
    return plain(input_tensor, tf.maximum(full_axis_dim, 1))


@overrides(
    "tf.distribute.coordinator.ClusterCoordinator.create_per_worker_dataset",
    reason="A function whose dataset this process holds, as one of `xt.data`, is an error of gRPC "
    "when the dataset is iterated: TensorFlow cannot send it to the workers.",
    probe="per_worker_datasets",
)
def create_per_worker_dataset(self: Any, dataset_fn: Any, *, plain: Callable[..., Any]) -> Any:
    """Calls TensorFlow's method; raises an error for a function whose dataset cannot be sent."""
    made = plain(self, dataset_fn)
    for tensor in made._dataset_fn.captured_inputs:
        if tensor.dtype == tf.variant and _is_dataset(tensor):
            expected = "a function whose dataset the workers make"
            received = "a dataset that this process holds, as those of xt.data are"
            fix = (
                "Give the dataset itself, after apply(tf.data.experimental.service.distribute("
                '"distributed_epoch", address)), or give batches to the steps: '
                "coordinator.schedule(step, args=(batch,))."
            )
            raise UnsupportedTypeError("create_per_worker_dataset", expected, received, fix)
    return made


def _is_dataset(variant: tf.Tensor) -> bool:
    try:
        tf.raw_ops.DatasetCardinality(input_dataset=variant)
    except tf.errors.InvalidArgumentError:
        return False
    return True
