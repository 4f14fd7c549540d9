"""How extension values take part in gradients, as sources of a GradientTape too.

| name | why |
| --- | --- |
| `__composite_gradient__` | Gradients ask a value's class for it: which of its tensors have a gradient, and how to put gradients in their place. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from extensor._tf._tf_composite import CompositeTensor


def differentiable(value: Any) -> list[Any]:
    """Returns the tensors and variables that a value has gradients for: its numbers with a point.

    Args:
        value: A nest of tensors, variables, and values that decompose into them. Whatever else
            stands in it has no gradient.

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
