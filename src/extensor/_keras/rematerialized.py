"""The `call` of a layer in a `keras.RematScope`, which is run again for its gradient.

TensorFlow runs a function again from its arguments, and makes sums with each of them. So it gets
the float tensors only; integers, strings and options are always those of the first run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from extensor._typing import Nest, Value


def of_floats(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], list[tf.Tensor], Callable[[Any], Any]]:
    """Returns a function of the float tensors in the arguments of a call.

    Args:
        call: The function.
        args: The positional arguments: nests of tensors.
        kwargs: The keyword arguments: nests of tensors.

    Returns:
        The function, which returns the float tensors of the result; its arguments; and a function
        that returns the whole result of the last run from the float tensors of the result.
    """
    leaves = tf.nest.flatten((args, kwargs))
    places = [at for at, leaf in enumerate(leaves) if _is_float(leaf)]
    result: Any = None

    def of_tensors(*tensors: tf.Tensor) -> tuple[Any, ...]:
        nonlocal result
        own = list(leaves)
        for at, tensor in zip(places, tensors, strict=True):
            own[at] = tensor
        own_args, own_kwargs = tf.nest.pack_sequence_as((args, kwargs), own)
        result = call(*own_args, **own_kwargs)
        return tuple(leaf for leaf in tf.nest.flatten(result) if _is_float(leaf))

    def with_floats(floats: Iterable[tf.Tensor]) -> Nest:
        remaining = iter(floats)
        return tf.nest.map_structure(
            lambda leaf: next(remaining) if _is_float(leaf) else leaf, result
        )

    return of_tensors, [leaves[at] for at in places], with_floats


def _is_float(leaf: Value) -> bool:
    return isinstance(leaf, tf.Tensor) and (leaf.dtype.is_floating or leaf.dtype.is_complex)
