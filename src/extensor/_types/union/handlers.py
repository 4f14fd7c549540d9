"""Handlers of TensorFlow's operations for UnionTensors; the import registers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import tensorflow as tf

from extensor._types.union import rows
from extensor._types.union.conversion import with_names
from extensor._types.union.value import Op, UnionTensor
from extensor.authoring import concat_rows
from extensor.dispatch import (
    implements,
    is_binary_elementwise_op,
    is_rearranging_op,
    is_reduction_op,
    is_stacking_op,
    is_unary_elementwise_op,
    name_of,
)
from extensor.errors import DTypeError, UnsupportedTypeError
from extensor.typing import ShapeLike, TensorLike


@implements(tf.shape, tf.size, tf.rank, on=UnionTensor)
def measure(op: Op, input: UnionTensor, *args: object) -> tf.Tensor:
    """Returns the shape, size or rank of the codes."""
    return op(input.codes, *args)


@implements(tf.ensure_shape, on=UnionTensor)
def ensure_shape(x: UnionTensor, shape: ShapeLike, *args: object) -> UnionTensor:
    """Returns the union with a checked shape."""
    return UnionTensor._of_parts(tf.ensure_shape(x.codes, shape), x.variants, x.names)


# Operations that move, repeat, select or combine rows.


@implements(tf.reshape, tf.expand_dims, tf.squeeze, on=UnionTensor)
def reshape(op: Op, x: UnionTensor, *args: Any) -> UnionTensor:
    """Returns the same rows in another shape."""
    if not isinstance(x, UnionTensor):
        return NotImplemented
    return UnionTensor._of_parts(op(x.codes, *args), x.variants, x.names)


@implements(is_rearranging_op, on=UnionTensor)
def rearrange(op: Op, x: UnionTensor, *args: Any) -> UnionTensor | list[UnionTensor]:
    """Returns the rows that the operation selects, in its order."""
    if not isinstance(x, UnionTensor) or any(isinstance(arg, UnionTensor) for arg in args):
        return NotImplemented
    return rows.rearrange(x, lambda positions: op(positions, *args))


@implements(is_stacking_op, on=UnionTensor)
def join(op: Op, values: object, *args: Any) -> UnionTensor:
    """Returns the rows of several unions, concatenated or stacked."""
    unions = _unions(values)
    if unions is None:
        return NotImplemented
    if op is tf.concat and tf.get_static_value(args[0]) == 0:
        first = unions[0]
        codes = tf.concat([union.codes for union in unions], 0)
        variants = {name: concat_rows([u.variants[name] for u in unions]) for name in first.names}
        return UnionTensor._of_parts(codes, variants, first.names)
    union, numbers = rows.concat(unions)
    return rows.take(union, op(numbers, *args))


@implements(tf.where, on=UnionTensor)
def where(
    condition: TensorLike, x: UnionTensor | None = None, y: UnionTensor | None = None, *_: object
) -> UnionTensor:
    """Returns rows of two unions, chosen by a condition."""
    unions = _unions([x, y])
    if unions is None or isinstance(condition, UnionTensor):
        return NotImplemented
    union, (first, second) = rows.concat(unions)
    return rows.take(union, tf.where(condition, first, second))


def _unions(values: object) -> list[Any] | None:
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
            fix = "Give variants of one name the same type."
            raise DTypeError("tf.concat or tf.stack", f"unions of {spec}", str(other), fix)
        spec = merged
    return [with_names(union, spec) for union in unions]


# Operations on numbers, which a union as a whole does not have.


@implements(is_unary_elementwise_op, is_binary_elementwise_op, is_reduction_op, on=UnionTensor)
def refuse(op: Callable[..., Any], *args: object) -> Any:
    """Raises an error that shows `match`."""
    union = next((arg for arg in args if isinstance(arg, UnionTensor)), None)
    if union is None or op in (tf.identity, tf.stop_gradient):
        return NotImplemented
    functions = ", ".join(f"{name!r}: ..." for name in union.names)
    received = f"a UnionTensor of {', '.join(union.names)}"
    fix = f"Apply a function to each variant: union.match({{{functions}}})."
    raise UnsupportedTypeError(name_of(op), "a value of one type", received, fix)
