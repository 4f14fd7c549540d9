"""Operations that move, repeat, select or combine the rows of UnionTensors."""

from __future__ import annotations

from typing import Any, cast

import tensorflow as tf

from extensor._types.union.conversion import with_names
from extensor._types.union.rows import joined, rearranged, selected
from extensor._types.union.value import UnionTensor
from extensor.authoring import concat_rows
from extensor.dispatch import implements, is_rearranging_op, is_stacking_op
from extensor.errors import DTypeError


@implements(tf.reshape, tf.expand_dims, tf.squeeze, on=UnionTensor)
def reshape(op: Any, x: Any, *args: Any) -> Any:
    """Returns the same rows in another shape."""
    if not isinstance(x, UnionTensor):
        return NotImplemented
    return UnionTensor.of_parts(op(x.codes, *args), x.variants, x.names)


@implements(is_rearranging_op, on=UnionTensor)
def rearrange(op: Any, x: Any, *args: Any) -> Any:
    """Returns the rows that the operation selects, in its order."""
    if not isinstance(x, UnionTensor) or any(isinstance(arg, UnionTensor) for arg in args):
        return NotImplemented
    return rearranged(x, lambda positions: op(positions, *args))


@implements(is_stacking_op, on=UnionTensor)
def join(op: Any, values: Any, *args: Any) -> Any:
    """Returns the rows of several unions, concatenated or stacked."""
    unions = _unions(values)
    if unions is None:
        return NotImplemented
    if op is tf.concat and tf.get_static_value(args[0]) == 0:
        first = unions[0]
        codes = tf.concat([union.codes for union in unions], 0)
        variants = {name: concat_rows([u.variants[name] for u in unions]) for name in first.names}
        return UnionTensor.of_parts(codes, variants, first.names)
    union, numbers = joined(unions)
    return selected(union, op(numbers, *args))


@implements(tf.where, on=UnionTensor)
def where(condition: Any, x: Any = None, y: Any = None, *_: Any) -> Any:
    """Returns rows of two unions, chosen by a condition."""
    unions = _unions([x, y])
    if unions is None or isinstance(condition, UnionTensor):
        return NotImplemented
    union, (first, second) = joined(unions)
    return selected(union, tf.where(condition, first, second))


def _unions(values: Any) -> list[Any] | None:
    """Returns unions with all variants of all of them; None if a value is not a union."""
    if not isinstance(values, (list, tuple)):
        return None
    unions = list(cast("Any", values))
    if not unions or not all(isinstance(union, UnionTensor) for union in unions):
        return None
    if len({union.names for union in unions}) == 1:
        return unions
    spec: Any = tf.type_spec_from_value(unions[0])
    for union in unions[1:]:
        other: Any = tf.type_spec_from_value(union)
        merged = spec.castable_type(other._like(spec.codes))
        if merged is None:
            raise DTypeError(
                "tf.concat or tf.stack",
                f"unions of {spec}",
                str(other),
                "Give variants of one name the same type.",
            )
        spec = merged
    return [with_names(union, spec) for union in unions]
