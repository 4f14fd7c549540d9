"""xt.recompute_grad and xt.ForwardAccumulator for extension values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._functions.nested import tensor_or_value
from extensor._tf import GRADIENT, differentiable, with_differentiable
from extensor._typing import Nest, Value


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that computes its intermediate results again for its gradient.

    Like `tf.recompute_grad`, for functions that take and return nests of tensors and extension
    values. Gradients flow through the floating point components of arguments and results.

    Args:
        f: The function.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(ragged.values)
    ...     squares = xt.recompute_grad(lambda x: x * x)(ragged)
    >>> tape.gradient(squares, ragged.values)
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([2., 4., 6.], dtype=float32)>
    """

    def wrap(*args: Any, **kwargs: Any) -> Nest:
        arguments = (args, kwargs)
        first: list[Nest] = []

        def of_floats(*floats: tf.Tensor) -> tuple[tf.Tensor, ...]:
            args, kwargs = with_differentiable(arguments, iter(floats))
            result = tf.nest.map_structure(tensor_or_value, f(*args, **kwargs))
            if not computed:
                # tf.recompute_grad returns only the floating point components.
                first.append(result)
                computed.append(True)
            return tuple(differentiable(result))

        computed: list[bool] = []
        floats = tf.recompute_grad(of_floats)(*differentiable(arguments))
        return with_differentiable(first.pop(), iter(floats))

    return wrap


class ForwardAccumulator(tf.autodiff.ForwardAccumulator):
    """Computes Jacobian-vector products in forward mode, like `tf.autodiff.ForwardAccumulator`.

    Args:
        primals: A nest of tensors and extension values to watch.
        tangents: The vectors, in the same structure. Only the floating point components of an
            extension value are used.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @xt.extension_type
    ... class Weighted:
    ...     value: tf.Tensor
    ...     count: tf.Tensor
    >>> at = Weighted([3.0], [1])
    >>> with xt.ForwardAccumulator(at, Weighted([1.0], [0])) as accumulator:
    ...     square = xt.replace(at, value=at.value ** 2)
    >>> accumulator.jvp(square).value
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([6.], dtype=float32)>
    """

    def __init__(self, primals: object, tangents: object) -> None:
        tf.nest.assert_same_structure(primals, tangents)
        super().__init__(differentiable(primals), differentiable(tangents))

    def jvp(
        self,
        primals: object,
        unconnected_gradients: tf.UnconnectedGradients | str = tf.UnconnectedGradients.NONE,
    ) -> Nest:
        """Returns the Jacobian-vector products of computed values.

        Args:
            primals: A nest of tensors and extension values.
            unconnected_gradients: As in `tf.autodiff.ForwardAccumulator`.

        Returns:
            A nest of the same structure, with None for values that do not depend on the watched
            ones. An extension value keeps the components without a gradient.
        """

        def product(value: Value) -> Value | None:
            found = super(ForwardAccumulator, self).jvp(
                differentiable(value), unconnected_gradients
            )
            return GRADIENT.replace_gradient_components(value, found) if found else None

        return tf.nest.map_structure(product, primals)
