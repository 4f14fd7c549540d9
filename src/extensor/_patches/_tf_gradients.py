"""Gradients with respect to extension values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from extensor._patches.patch import overrides
from extensor._tf import Extension, differentiable, stacked, with_differentiable
from extensor._typing import Nest, Value
from extensor.errors import DTypeError


@overrides(
    "tensorflow.python.eager.imperative_grad.imperative_grad",
    reason="GradientTape.gradient(..., unconnected_gradients='zero') passes C++ an extension "
    "value as one source, but a list of all its tensors: it reads out of bounds and crashes.",
    probe="imperative_gradient",
)
def imperative_grad(
    tape: Any,
    target: list[tf.Tensor],
    sources: list[tf.Tensor],
    output_gradients: list[tf.Tensor] | None = None,
    sources_raw: Sequence[Value] | None = None,
    unconnected_gradients: tf.UnconnectedGradients = tf.UnconnectedGradients.NONE,
    *,
    plain: Callable[..., list[tf.Tensor | None]],
) -> list[tf.Tensor | None]:
    """Calls TensorFlow's function with the tensors of extension values as sources."""
    if unconnected_gradients != tf.UnconnectedGradients.NONE and sources_raw is not None:
        sources_raw = [tensor for source in sources_raw for tensor in _tensors(source)]
    return plain(tape, target, sources, output_gradients, sources_raw, unconnected_gradients)


def _tensors(source: Value) -> list[tf.Tensor]:
    """Returns the tensors of a source that have gradients."""
    return differentiable(source) if isinstance(source, Extension) else [source]


@overrides(
    "tf.GradientTape.gradient",
    reason="Its gradient of a value without floating point components is the value itself.",
    probe="gradient_tape",
)
def gradient(
    self: tf.GradientTape,
    target: Nest,
    sources: Nest,
    output_gradients: Nest = None,
    unconnected_gradients: tf.UnconnectedGradients = tf.UnconnectedGradients.NONE,
    *,
    plain: Callable[..., Nest],
) -> Nest:
    """Like TensorFlow's method; None for a value that is its own gradient."""
    found = plain(self, target, sources, output_gradients, unconnected_gradients)
    if tf.UnconnectedGradients(unconnected_gradients) != tf.UnconnectedGradients.NONE or not any(
        isinstance(source, Extension) for source in tf.nest.flatten(sources)
    ):
        return found
    return tf.nest.map_structure(
        lambda source, slope: None if slope is source else slope, sources, found
    )


@overrides(
    "tf.GradientTape.jacobian",
    reason="It reshapes the gradients, which works only for tensors.",
    probe="gradient_tape",
)
def jacobian(
    self: tf.GradientTape,
    target: tf.Tensor,
    sources: Nest,
    *args: Any,
    plain: Callable[..., Nest],
    **kwargs: Any,
) -> Nest:
    """Like TensorFlow's method; for a value, the stacked gradients of all target elements."""
    flat = tf.nest.flatten(sources)
    if not any(isinstance(source, Extension) for source in flat):
        return plain(self, target, sources, *args, **kwargs)
    found = plain(self, target, list(map(_tensors, flat)), *args, **kwargs)
    return tf.nest.pack_sequence_as(
        sources,
        [
            _stacked_gradients(source, jacobians, target)
            if isinstance(source, Extension)
            else jacobians[0]
            for source, jacobians in zip(flat, found, strict=True)
        ],
    )


def _stacked_gradients(
    value: Value, jacobians: list[tf.Tensor | None], target: tf.Tensor
) -> Value | None:
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

    def stack(rows: list[tf.Tensor], rank: int) -> Value:
        if rank == 0:
            return with_differentiable(value, iter(rows))
        return tf.map_fn(
            lambda inner: stack(inner, rank - 1), rows, fn_output_signature=specs[rank - 1]
        )

    return stack(dense, target.shape.rank)


@overrides(
    "tf.GradientTape.batch_jacobian",
    reason="It reshapes the gradients, which works only for tensors.",
    probe="gradient_tape",
)
def batch_jacobian(
    self: tf.GradientTape,
    target: tf.Tensor,
    source: Value,
    *args: Any,
    plain: Callable[..., tf.Tensor],
    **kwargs: Any,
) -> tf.Tensor:
    """Like TensorFlow's method; for a value, raises an error with an alternative."""
    if isinstance(source, Extension):
        at = "GradientTape.batch_jacobian"
        received = f"a {type(source).__name__}, whose components may have other rows"
        fix = "Pass one component of the value, or call GradientTape.jacobian."
        raise DTypeError(at, "a tensor with a row for each row of the target", received, fix)
    return plain(self, target, source, *args, **kwargs)
