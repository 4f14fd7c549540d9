"""xt.foldl and xt.foldr for extension values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._functions.nested import nested_specs
from extensor._functions.sequence import Elements, box_all, cast_accumulator
from extensor._typing import Nest


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: object,
    initializer: object = None,
    parallel_iterations: int = 10,
    swap_memory: bool = False,
    name: str | None = None,
) -> Nest:
    """Returns the last result of a function that is applied to a sequence from first to last.

    Like `tf.foldl`, for nests of tensors and of extension values that stack.

    Args:
        fn: Takes the accumulated value and an element; returns the next accumulated value.
        elems: A nest of tensors and extension values, unstacked along their first dimension.
        initializer: The first accumulated value. Default: the first element.
        parallel_iterations: As in `tf.foldl`.
        swap_memory: As in `tf.foldl`.
        name: A prefix for the names of the ops.

    Returns:
        The last result of `fn`.

    Raises:
        StructureError: If `fn` returns a value that cannot be cast to the type of the accumulated
            value (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> words = tf.ragged.constant([["to", "be"], ["or"]])
    >>> xt.foldl(lambda text, row: tf.strings.join([text, tf.strings.reduce_join(row)]), words, "")
    <tf.Tensor: shape=(), dtype=string, numpy=b'tobeor'>
    """
    return _fold(tf.foldl, fn, elems, initializer, parallel_iterations, swap_memory, name)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: object,
    initializer: object = None,
    parallel_iterations: int = 10,
    swap_memory: bool = False,
    name: str | None = None,
) -> Nest:
    """Returns the last result of a function that is applied to a sequence from last to first.

    Like `tf.foldr`, for nests of tensors and of extension values that stack.

    Args:
        fn: Takes the accumulated value and an element; returns the next accumulated value.
        elems: A nest of tensors and extension values, unstacked along their first dimension.
        initializer: The first accumulated value. Default: the last element.
        parallel_iterations: As in `tf.foldr`.
        swap_memory: As in `tf.foldr`.
        name: A prefix for the names of the ops.

    Returns:
        The last result of `fn`.

    Raises:
        StructureError: If `fn` returns a value that cannot be cast to the type of the accumulated
            value (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> words = tf.ragged.constant([["to", "be"], ["or"]])
    >>> xt.foldr(lambda text, row: tf.strings.join([text, tf.strings.reduce_join(row)]), words, "")
    <tf.Tensor: shape=(), dtype=string, numpy=b'ortobe'>
    """
    return _fold(tf.foldr, fn, elems, initializer, parallel_iterations, swap_memory, name)


def _fold(
    fold: Callable[..., Any],
    fn: Callable[[Any, Any], Any],
    elems: Nest,
    initializer: Nest | None,
    parallel_iterations: int,
    swap_memory: bool,
    name: str | None,
) -> Nest:
    sequence = Elements(elems)
    options: dict[str, Any] = {
        "parallel_iterations": parallel_iterations,
        "swap_memory": swap_memory,
        "name": name,
    }
    if initializer is not None:
        specs = nested_specs(initializer)
        # The accumulated value is a loop variable. It may be an extension value, and its shape may
        # change in each step.
        return fold(
            lambda value, boxes: cast_accumulator(specs, fn(value, sequence.element(boxes)), True),
            sequence.boxes,
            initializer,
            **options,
        )

    def step(boxed: tuple[tf.Tensor, ...], boxes: tuple[tf.Tensor, ...]) -> tuple[tf.Tensor, ...]:
        result = fn(sequence.element(boxed), sequence.element(boxes))
        return box_all(sequence.element_spec, cast_accumulator(sequence.element_spec, result))

    return sequence.element(fold(step, sequence.boxes, **options))
