"""xt.foldl and xt.foldr: the last accumulated value of a loop over extension values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._functions.nested import nested_specs
from extensor._functions.sequence import Sequence, accumulated, box_all


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Applies a function over a sequence from its first element to its last.

    As `tf.foldl`, for nests of tensors and of extension values that stack.

    Args:
        fn: Takes the accumulated value and an element; returns the next accumulated value.
        elems: A nest of tensors and extension values, unstacked along their first dimension.
        initializer: The first accumulated value. Default: the first element.
        parallel_iterations: As in `tf.foldl`.
        swap_memory: As in `tf.foldl`.
        name: A prefix for the names of the ops.

    Returns:
        What `fn` returned last.

    Raises:
        StructureError: If `fn` returns a value of a type that the accumulated value does not meet
            (also a ValueError).

    >>> words = tf.ragged.constant([["to", "be"], ["or"]])
    >>> xt.foldl(lambda text, row: tf.strings.join([text, tf.strings.reduce_join(row)]), words, "")
    <tf.Tensor: shape=(), dtype=string, numpy=b'tobeor'>
    """
    return _fold(tf.foldl, fn, elems, initializer, parallel_iterations, swap_memory, name)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Applies a function over a sequence from its last element to its first.

    As `tf.foldr`, for nests of tensors and of extension values that stack.

    Args:
        fn: Takes the accumulated value and an element; returns the next accumulated value.
        elems: A nest of tensors and extension values, unstacked along their first dimension.
        initializer: The first accumulated value. Default: the last element.
        parallel_iterations: As in `tf.foldr`.
        swap_memory: As in `tf.foldr`.
        name: A prefix for the names of the ops.

    Returns:
        What `fn` returned last.

    Raises:
        StructureError: If `fn` returns a value of a type that the accumulated value does not meet
            (also a ValueError).

    >>> words = tf.ragged.constant([["to", "be"], ["or"]])
    >>> xt.foldr(lambda text, row: tf.strings.join([text, tf.strings.reduce_join(row)]), words, "")
    <tf.Tensor: shape=(), dtype=string, numpy=b'ortobe'>
    """
    return _fold(tf.foldr, fn, elems, initializer, parallel_iterations, swap_memory, name)


def _fold(
    fold: Callable[..., Any],
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any,
    parallel_iterations: int,
    swap_memory: bool,
    name: str | None,
) -> Any:
    sequence = Sequence(elems)
    options: dict[str, Any] = {
        "parallel_iterations": parallel_iterations,
        "swap_memory": swap_memory,
        "name": name,
    }
    if initializer is not None:
        specs = nested_specs(initializer)
        # What is accumulated is a loop variable, which may be an extension value as it is, and of
        # another shape each time.
        return fold(
            lambda value, boxes: accumulated(specs, fn(value, sequence.element(boxes)), True),
            sequence.boxes,
            initializer,
            **options,
        )

    def step(boxed: Any, boxes: Any) -> Any:
        result = fn(sequence.element(boxed), sequence.element(boxes))
        return box_all(sequence.element_spec, accumulated(sequence.element_spec, result))

    return sequence.element(fold(step, sequence.boxes, **options))
