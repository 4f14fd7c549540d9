"""How extension values take part in gradients, as sources of a GradientTape too.

| name | why |
| --- | --- |
| `__composite_gradient__` | Gradients ask a value's class for it: which of its tensors have a gradient, and how to put gradients in their place. |
| `imperative_grad` | `GradientTape.gradient(..., unconnected_gradients="zero")` hands C++ a list of sources in which an extension value stands once, beside one with all its tensors: it reads past the end and ends the process. |
| `tf.GradientTape.jacobian` and `batch_jacobian` (public; wrapped) | They reshape the gradients that they found, which only tensors can be. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import imperative_grad

from extensor._tf._tf_protocol import MEMBERS, CompositeTensor, Extension
from extensor.errors import DTypeError


def differentiable(value: Any) -> list[Any]:
    """Returns the tensors and variables that a value has gradients for: its numbers with a point.

    Args:
        value: A nest of tensors, variables, and values that decompose into them. Whatever else
            stands in it has no gradient.

    >>> from extensor._tf import differentiable
    >>> differentiable({"ragged": tf.ragged.constant([[1.0], []]), "text": tf.constant("a")})
    [<tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.], dtype=float32)>]
    """
    found: list[Any] = []
    for leaf in tf.nest.flatten(value):
        if isinstance(leaf, (tf.Tensor, tf.Variable)):
            if leaf.dtype.is_floating or leaf.dtype.is_complex:
                found.append(leaf)
        elif isinstance(leaf, CompositeTensor):
            found.extend(differentiable(leaf._type_spec._to_components(leaf)))
    return found


def with_differentiable(value: Any, tensors: Iterator[Any]) -> Any:
    """Returns a value with other tensors in place of those that `differentiable` finds in it.

    Args:
        value: A nest of tensors, variables, and values that decompose into them.
        tensors: Yields the tensors, in the order in which `differentiable` finds the old ones.
    """

    def replaced(leaf: Any) -> Any:
        if not differentiable(leaf):
            return leaf
        if isinstance(leaf, (tf.Tensor, tf.Variable)):
            return next(tensors)
        spec = leaf._type_spec
        return spec._from_components(with_differentiable(spec._to_components(leaf), tensors))

    return tf.nest.map_structure(replaced, value)


class _Gradient:
    """Tells TensorFlow how an extension value takes part in gradients.

    Its floating point components have gradients. Its gradient is a value of the same type with
    the gradients of those in their place and all other components kept, as the gradient of a
    RaggedTensor keeps its row splits.
    """

    def get_gradient_components(self, value: Any) -> list[Any]:
        # A variable would be taken for a source of its own, its handle is what the tape watches.
        return [
            leaf.handle if isinstance(leaf, tf.Variable) else leaf for leaf in differentiable(value)
        ]

    def replace_gradient_components(self, value: Any, component_grads: Any) -> Any:
        if not component_grads:
            return value
        if all(gradient is None for gradient in component_grads):
            return None
        # A value lacks no component, so where only some have gradients, those of others are zero.
        dense = [
            tf.zeros_like(leaf)
            if gradient is None
            else tf.convert_to_tensor(gradient)
            if isinstance(gradient, tf.IndexedSlices)
            else gradient
            for leaf, gradient in zip(differentiable(value), component_grads, strict=True)
        ]
        return with_differentiable(value, iter(dense))


GRADIENT = _Gradient()
MEMBERS["__composite_gradient__"] = GRADIENT


_plain_imperative_grad = imperative_grad.imperative_grad


def _imperative_grad(
    tape: Any,
    target: Any,
    sources: Any,
    output_gradients: Any = None,
    sources_raw: Any = None,
    unconnected_gradients: Any = tf.UnconnectedGradients.NONE,
) -> Any:
    """As TensorFlow's own, with sources of which C++ can make zeros."""
    if (
        unconnected_gradients != tf.UnconnectedGradients.NONE
        and sources_raw is not None
        and any(isinstance(source, Extension) for source in sources_raw)
    ):
        sources_raw = [
            tensor
            for source in sources_raw
            for tensor in (differentiable(source) if isinstance(source, Extension) else [source])
        ]
    return _plain_imperative_grad(
        tape, target, sources, output_gradients, sources_raw, unconnected_gradients
    )


imperative_grad.imperative_grad = _imperative_grad


_plain_jacobian: Any = tf.GradientTape.jacobian
_plain_batch_jacobian: Any = tf.GradientTape.batch_jacobian


def _jacobian(self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
    """As TensorFlow's own; by a value: its gradients for each number in the target, stacked."""
    flat = tf.nest.flatten(sources)
    if not any(isinstance(source, Extension) for source in flat):
        return _plain_jacobian(self, target, sources, *args, **kwargs)
    tensors = [differentiable(x) if isinstance(x, Extension) else [x] for x in flat]
    found = _plain_jacobian(self, target, tensors, *args, **kwargs)
    return tf.nest.pack_sequence_as(
        sources,
        [
            _stacked_gradients(source, jacobians, target)
            if isinstance(source, Extension)
            else jacobians[0]
            for source, jacobians in zip(flat, found, strict=True)
        ],
    )


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
        specs.append(specs[-1]._batch(size))

    def stacked(rows: list[Any], rank: int) -> Any:
        if rank == 0:
            return with_differentiable(value, iter(rows))
        return tf.map_fn(
            lambda inner: stacked(inner, rank - 1), rows, fn_output_signature=specs[rank - 1]
        )

    return stacked(dense, target.shape.rank)


def _batch_jacobian(self: Any, target: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
    """As TensorFlow's own, and says of a value what to do instead."""
    if isinstance(source, Extension):
        raise DTypeError(
            path="GradientTape.batch_jacobian",
            expected="a tensor with a row for each row of the target",
            received=f"a {type(source).__name__}, whose components may have others",
            mend="Give one component of the value, or take the whole jacobian.",
        )
    return _plain_batch_jacobian(self, target, source, *args, **kwargs)


tf.GradientTape.jacobian = functools.wraps(_plain_jacobian)(_jacobian)
tf.GradientTape.batch_jacobian = functools.wraps(_plain_batch_jacobian)(_batch_jacobian)
