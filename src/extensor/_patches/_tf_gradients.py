"""Gradients with respect to extension values."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._patches.patch import replaces
from extensor._tf import Extension, differentiable, stacked, with_differentiable
from extensor.errors import DTypeError


@replaces(
    "tensorflow.python.eager.imperative_grad.imperative_grad",
    reason="GradientTape.gradient(..., unconnected_gradients='zero') passes C++ an extension "
    "value as one source, but a list of all its tensors: it reads out of bounds and crashes.",
    probe="imperative_gradient",
)
def imperative_grad(plain: Any) -> Any:
    def _imperative_grad(
        tape: Any,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        sources_raw: Any = None,
        unconnected_gradients: Any = tf.UnconnectedGradients.NONE,
    ) -> Any:
        """Calls TensorFlow's function with the tensors of extension values as sources."""
        if (
            unconnected_gradients != tf.UnconnectedGradients.NONE
            and sources_raw is not None
            and any(isinstance(source, Extension) for source in sources_raw)
        ):
            sources_raw = [
                tensor
                for source in sources_raw
                for tensor in (
                    differentiable(source) if isinstance(source, Extension) else [source]
                )
            ]
        return plain(tape, target, sources, output_gradients, sources_raw, unconnected_gradients)

    return _imperative_grad


@replaces(
    "tf.GradientTape.jacobian",
    reason="It reshapes the gradients, which works only for tensors.",
    probe="gradient_tape",
)
def jacobian(plain: Any) -> Any:
    def _jacobian(self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        """Like TensorFlow's method; for a value, the stacked gradients of all target elements."""
        flat = tf.nest.flatten(sources)
        if not any(isinstance(source, Extension) for source in flat):
            return plain(self, target, sources, *args, **kwargs)
        tensors = [differentiable(x) if isinstance(x, Extension) else [x] for x in flat]
        found = plain(self, target, tensors, *args, **kwargs)
        return tf.nest.pack_sequence_as(
            sources,
            [
                _stacked_gradients(source, jacobians, target)
                if isinstance(source, Extension)
                else jacobians[0]
                for source, jacobians in zip(flat, found, strict=True)
            ],
        )

    return _jacobian


def _stacked_gradients(value: Any, jacobians: list[Any], target: Any) -> Any:
    if all(jacobian is None for jacobian in jacobians):
        return None
    dense = [
        tf.zeros(tf.concat([tf.shape(target), tf.shape(tensor)], 0), tensor.dtype)
        if jacobian is None
        else jacobian
        for jacobian, tensor in zip(jacobians, differentiable(value), strict=True)
    ]
    specs = [tf.type_spec_from_value(value)]
    for size in reversed(target.shape):
        specs.append(stacked(specs[-1], size))

    def rebuilt(rows: list[Any], rank: int) -> Any:
        if rank == 0:
            return with_differentiable(value, iter(rows))
        return tf.map_fn(
            lambda inner: rebuilt(inner, rank - 1), rows, fn_output_signature=specs[rank - 1]
        )

    return rebuilt(dense, target.shape.rank)


@replaces(
    "tf.GradientTape.batch_jacobian",
    reason="It reshapes the gradients, which works only for tensors.",
    probe="gradient_tape",
)
def batch_jacobian(plain: Any) -> Any:
    def _batch_jacobian(self: Any, target: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
        """Like TensorFlow's method; for a value, raises an error with an alternative."""
        if isinstance(source, Extension):
            raise DTypeError(
                "GradientTape.batch_jacobian",
                "a tensor with a row for each row of the target",
                f"a {type(source).__name__}, whose components may have other rows",
                "Pass one component of the value, or call GradientTape.jacobian.",
            )
        return plain(self, target, source, *args, **kwargs)

    return _batch_jacobian
