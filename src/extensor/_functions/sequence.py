"""Extension values that are unstacked along their first dimension, for loops."""

from __future__ import annotations

from collections.abc import Sequence

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
