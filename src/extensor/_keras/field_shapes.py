"""The shapes that `build` and `compute_output_shape` of a layer get for extension values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from extensor._keras.lowering import map_lowered, spec_of_lowered
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import component_specs
from extensor._typing import Nest


def with_field_shapes(shapes: Nest) -> Nest:
    """Returns the shapes of arguments, with those of lowered values as shapes of the values.

    Args:
        shapes: The shapes that Keras found: tuples of ints and None, in nests.
    """
    return map_lowered(lambda form: _shape_of(spec_of_lowered(form)), shapes)


def _shape_of(spec: tf.TypeSpec, outer: tuple[int | None, ...] = (), rank: int = 0) -> Nest:
    """Returns the shape of a value, or a dict of the shapes of its fields.

    Args:
        spec: The spec of the value, of which the first dimensions are those of the records in it.
        outer: The shape of these records.
        rank: The rank of these records, without ragged dimensions.
    """
    shape: Any = getattr(spec, "shape", None)
    if isinstance(shape, tf.TensorShape):
        if shape.rank is None:
            return None
        outer = (*outer, *shape.as_list()[rank:])
        if not isinstance(spec, StructuredTensorSpec):
            return outer
        record = spec._record
        rank = record.shape.rank
        return {name: _shape_of(one, outer, rank) for name, one in record.field_specs.items()}
    parts = component_specs(spec)
    if not isinstance(parts, Mapping):
        # The fields of a declared type are attributes of its spec.
        attributes = {name: one for name, one in vars(spec).items() if not name.startswith("_")}
        parts = {name: one for name, one in attributes.items() if isinstance(one, tf.TypeSpec)}
    return {str(name): _shape_of(part, outer, rank) for name, part in parts.items()}
