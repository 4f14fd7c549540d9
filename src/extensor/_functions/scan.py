"""xt.scan for extension values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor import _tf
from extensor._functions.nested import nested_specs
from extensor._functions.sequence import Elements, box_all, cast_accumulator, unbox_all
from extensor._typing import Nest


def scan(
    fn: Callable[[Any, Any], Any],
    elems: object,
    initializer: object = None,
    parallel_iterations: int = 10,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Nest:
    """Returns all results of a function that is applied to the elements of a sequence.

    Like `tf.scan`, for nests of tensors and of extension values that stack.

    Args:
        fn: Takes the accumulated value and an element; returns the next accumulated value.
        elems: A nest of tensors and extension values, unstacked along their first dimension.
        initializer: The first accumulated value. Default: the first element.
        parallel_iterations: As in `tf.scan`.
        swap_memory: As in `tf.scan`.
        infer_shape: As in `tf.scan`.
        reverse: Whether to start with the last element.
        name: A prefix for the names of the ops.

    Returns:
        The results of `fn` for all elements, stacked.

    Raises:
        StructureError: If `fn` returns a value that cannot be cast to the type of the accumulated
            value (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @xt.extension_type
    ... class Account:
    ...     balance: tf.Tensor
    ...     entries: tf.Tensor
    >>> days = Account([5.0, -2.0, 4.0], [1, 1, 2])
    >>> xt.scan(lambda a, b: Account(a.balance + b.balance, a.entries + b.entries), days)
    Account(balance=<... numpy=array([5., 3., 7.], ...)>, entries=<... numpy=array([1, 2, 4], ...)>)
    """
    sequence = Elements(elems)
    first = sequence.element_spec
    if initializer is not None:
        first = _relax(nested_specs(initializer), first)

    def step(boxed: tuple[tf.Tensor, ...], boxes: tuple[tf.Tensor, ...]) -> tuple[tf.Tensor, ...]:
        result = fn(unbox_all(first, boxed), sequence.element(boxes))
        return box_all(first, cast_accumulator(first, result))

    boxes = tf.scan(
        step,
        sequence.boxes,
        None if initializer is None else box_all(first, initializer),
        parallel_iterations=parallel_iterations,
        swap_memory=swap_memory,
        infer_shape=infer_shape,
        reverse=reverse,
        name=name,
    )
    return unbox_all(
        tf.nest.map_structure(lambda spec: _tf.stacked(spec, sequence.size), first), boxes
    )


def _relax(specs: Nest, others: Nest) -> Nest:
    """Returns specs that are compatible with the values of both nests, if their types are equal."""
    flat, other = tf.nest.flatten(specs), tf.nest.flatten(others)
    if len(flat) != len(other):
        return specs
    merged = [a.most_specific_common_supertype([b]) for a, b in zip(flat, other, strict=True)]
    # As in TensorFlow, the shape of a tensor does not change.
    kept = [
        a if b is None or isinstance(a, tf.TensorSpec) else b
        for a, b in zip(flat, merged, strict=True)
    ]
    return tf.nest.pack_sequence_as(specs, kept)
