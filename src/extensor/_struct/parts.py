"""The parts of extension values that stack part by part.

A MaskedTensor, for example, stacks by stacking its values and its mask. So indexing, gathering and
reshaping it along its outer dimensions is the same as doing so with each part, and needs no boxes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._path import Path
from extensor._protocol.box import box, unbox
from extensor._protocol.stackable_spec import stacks_by_components
from extensor._struct.masked import is_union
from extensor._typing import FieldValue
from extensor.errors import UnsupportedTypeError

if TYPE_CHECKING:
    from extensor._protocol.stackable_spec import StackableTypeSpec


def row_parts(value: FieldValue) -> list[Any] | None:
    """Returns the components of a value that stacks by components; None for other values."""
    spec = tf.type_spec_from_value(value)
    if not stacks_by_components(spec):
        return None
    return tf.nest.flatten(spec.to_components(value))


def spec_of_parts(value: FieldValue, at: Path) -> Any:
    """Returns the spec of a value of an extension type, whose components have its rows.

    Raises:
        UnsupportedTypeError: If they do not have its rows (also a TypeError).
    """
    spec = tf.type_spec_from_value(value)
    if is_union(value) or not stacks_by_components(spec):
        received, fix = type(value).__name__, f"Leave the field out: records.without({str(at)!r})."
        raise UnsupportedTypeError(at, "a field of tensors, lists, records or masks", received, fix)
    return spec


def map_parts(
    value: FieldValue, function: Callable[[Any], Any], result: StackableTypeSpec, rank: int
) -> FieldValue:
    """Returns a value with a function applied to each component, or to each of its boxes.

    Args:
        value: A value of an extension type.
        function: A change along the outer dimensions, such as a gather.
        result: The spec of the result; sizes may be unknown.
        rank: The number of outer dimensions that the function takes.
    """
    spec: Any = tf.type_spec_from_value(value)
    if stacks_by_components(spec):
        return result.from_components(tf.nest.map_structure(function, spec.to_components(value)))
    return unbox(result, list(map(function, box(spec, value, rank))))
