"""Gradients of extension values, also as sources of a GradientTape.

| name | why |
| --- | --- |
| `__composite_gradient__` | The attribute of a class that tells GradientTape which tensors of a value have gradients, and how to build its gradient. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from collections.abc import Iterator

import tensorflow as tf

from extensor._tf._tf_composite import CompositeTensor
from extensor._typing import Nest, Value


def differentiable(value: Nest) -> list[tf.Tensor]:
    """Returns the floating point and complex tensors and variables in a value.

    Args:
        value: A nest of tensors, variables, and values that decompose into them. Other leaves are
            skipped.

    >>> from extensor._tf._tf_gradient import differentiable
    >>> import tensorflow as tf
    >>> differentiable({"ragged": tf.ragged.constant([[1.0], []]), "text": tf.constant("a")})
    [<tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.], dtype=float32)>]
    """
    found: list[tf.Tensor] = []
    for leaf in tf.nest.flatten(value):
        if isinstance(leaf, (tf.Tensor, tf.Variable)):
            if leaf.dtype.is_floating or leaf.dtype.is_complex:
                found.append(leaf)
        elif isinstance(leaf, CompositeTensor):
            found.extend(differentiable(leaf._type_spec._to_components(leaf)))
    return found


def with_differentiable(value: Nest, tensors: Iterator[tf.Tensor]) -> Nest:
    """Returns a value with other tensors in place of those that `differentiable` returns.

    Args:
        value: A nest of tensors, variables, and values that decompose into them.
        tensors: Yields the tensors, in the order of `differentiable`.
    """

    def replace(leaf: Value) -> Value:
        if not differentiable(leaf):
            return leaf
        if isinstance(leaf, (tf.Tensor, tf.Variable)):
            return next(tensors)
        spec = leaf._type_spec
        return spec._from_components(with_differentiable(spec._to_components(leaf), tensors))

    return tf.nest.map_structure(replace, value)


class _Gradient:
    """The `__composite_gradient__` of extension values.

    The floating point components have gradients. The gradient of a value is a value of the same
    type with these gradients and all other components unchanged, as the gradient of a RaggedTensor
    keeps its row splits.
    """

    def get_gradient_components(self, value: Value) -> list[tf.Tensor]:
        # The tape watches the handle of a variable, and would treat the variable as another source.
        return [
            leaf.handle if isinstance(leaf, tf.Variable) else leaf for leaf in differentiable(value)
        ]

    def replace_gradient_components(
        self, value: Value, component_grads: list[tf.Tensor | None]
    ) -> Value | None:
        if not component_grads:
            return value
        if all(gradient is None for gradient in component_grads):
            return None
        # A value needs all components, so missing gradients are zero.
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
