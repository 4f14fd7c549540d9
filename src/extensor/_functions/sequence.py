"""tf.scan, tf.foldl and tf.foldr of extension values, unstacked along their first dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from extensor import _tf
from extensor._functions.nested import nested_specs, tensor_or_value
from extensor._protocol.box import box, boxed_specs, unbox
from extensor._protocol.casting import cast_value, castable_type
from extensor._protocol.component_error import does_not_stack
from extensor._protocol.tree import supertype
from extensor._tf import BatchableTypeSpec, CompositeTensor
from extensor._typing import Nest, Value
from extensor.errors import ExtensorError, StructureError


class Elements:
    """Values as boxed tensors, which TensorFlow can unstack along their first dimension.

    Args:
        elems: A nest of tensors and extension values.
    """

    def __init__(self, elems: Nest) -> None:
        elems = tf.nest.map_structure(tensor_or_value, elems)
        specs = nested_specs(elems)
        for spec in tf.nest.flatten(specs):
            if not isinstance(spec, BatchableTypeSpec):
                raise does_not_stack(spec)
        self.element_spec = tf.nest.map_structure(_tf.unstacked, specs)
        self.boxes = box_all(specs, elems, 1)
        self.size = tf.compat.dimension_value(self.boxes[0].shape[0]) if self.boxes else None

    def element(self, boxes: Sequence[tf.Tensor]) -> Nest:
        """Returns the element of the given boxed tensors."""
        return unbox_all(self.element_spec, boxes)


def box_all(specs: Nest, values: Nest, minimum_rank: int = 0) -> tuple[tf.Tensor, ...]:
    """Returns the boxed tensors of a nest of values."""
    boxes: list[tf.Tensor] = []
    for spec, value in zip(tf.nest.flatten(specs), tf.nest.flatten(values), strict=True):
        boxes.extend(box(spec, tensor_or_value(value), minimum_rank))
    return tuple(boxes)


def unbox_all(specs: Nest, boxes: Sequence[tf.Tensor]) -> Nest:
    """Returns the nest of values of boxed tensors."""
    rest = iter(boxes)
    return tf.nest.map_structure(
        lambda spec: unbox(spec, [next(rest) for _ in boxed_specs(spec)]), specs
    )


def cast_accumulator(specs: Nest, result: Nest, any_shape: bool = False) -> Nest:
    """Returns the result of a loop step, cast to the type of the accumulated value.

    Args:
        specs: The specs of the accumulated value.
        result: The result of the step.
        any_shape: Whether the result may have another shape, or be cast to the common type.
    """
    tf.nest.assert_same_structure(specs, result)

    def cast_accumulator(spec: tf.TypeSpec, value: Value) -> Value:
        if isinstance(spec, tf.TensorSpec) and not isinstance(value, CompositeTensor):
            return value  # TensorFlow converts it
        value = tensor_or_value(value)
        own = tf.type_spec_from_value(value)
        if any_shape:
            common = castable_type(spec, own)
            is_compatible = supertype(spec, own) is not None
        else:
            common, is_compatible = spec, spec.is_compatible_with(value)
        try:
            if common is not None:
                return value if is_compatible else cast_value(common, value)
        except ExtensorError:
            pass
        fix = "fn must return this type: cast its result, or give an initializer of that type."
        raise StructureError(type(value).__name__, f"an accumulated value of {spec}", str(own), fix)

    return tf.nest.map_structure(cast_accumulator, specs, result)


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
