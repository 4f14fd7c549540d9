"""Loops, and tf.map_fn and tf.vectorized_map, of values of other types than those declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._patches.common_type import (
    are_tensors,
    cast_to_declared,
    common_spec,
    has_casts,
    have_one_structure,
    may_cast,
)
from extensor._patches.patch import overrides
from extensor._protocol.casting import cast_value, castable_type, difference_of_records
from extensor._protocol.lossless import is_tensor_like
from extensor._tf import BatchableTypeSpec, Extension, stacked
from extensor._tf._tf_casting import convert_variables_to_tensors
from extensor._typing import Nest, Value
from extensor.errors import DTypeError, StructureError


class _WiderError(Exception):
    """The body of a loop returned a value of a type wider than that of its variable."""

    def __init__(self, place: int, spec: tf.TypeSpec) -> None:
        super().__init__(place, spec)
        self.place, self.spec = place, spec

    ag_pass_through = True


@overrides(
    "tensorflow.python.ops.while_v2.while_loop",
    reason="tf.while_loop rejects a body that returns a value of another type than its argument.",
    probe="loops",
)
def while_loop(
    cond: Callable[..., Value],
    body: Callable[..., Nest],
    loop_vars: Nest,
    shape_invariants: Nest = None,
    *args: Any,
    plain: Callable[..., Nest],
    **kwargs: Any,
) -> Nest:
    """Calls TensorFlow's function; casts each output of the body to the type of its variable.

    If their common type is wider than the variable's type, the loop is built again with the
    variable cast to the common type, unless the caller passed `shape_invariants`.
    """
    loop_vars = convert_variables_to_tensors(loop_vars)
    flat = tf.nest.flatten(loop_vars)
    may_widen = shape_invariants is None
    if shape_invariants is not None:
        if not have_one_structure([loop_vars, shape_invariants]):
            return plain(cond, body, loop_vars, shape_invariants, *args, **kwargs)
        invariants = tf.nest.flatten(shape_invariants)
        for i, (spec, value) in enumerate(zip(invariants, flat, strict=True)):
            if isinstance(spec, tf.TypeSpec) and _is_castable(spec, value):
                flat[i] = _cast_or_leave(spec, value)
        loop_vars = tf.nest.pack_sequence_as(loop_vars, flat)
    else:
        invariants = list(map(_open_spec, flat))
        if any(spec is not None for spec in invariants):
            shape_invariants = tf.nest.pack_sequence_as(loop_vars, invariants)

    def cast_body(*variables: Value) -> Nest:
        outputs = body(*variables)
        outputs = outputs if tf.nest.is_nested(outputs) else [outputs]
        values = tf.nest.flatten(outputs)
        if are_tensors((*values, *flat)) or not have_one_structure([loop_vars, outputs]):
            return outputs
        cast = [
            value
            if are_tensors((value, variable))
            or not (is_tensor_like(value) and is_tensor_like(variable))
            else _cast_output(i, value, variable, invariants[i], may_widen)
            for i, (value, variable) in enumerate(zip(values, flat, strict=True))
        ]
        if all(new is old for new, old in zip(cast, values, strict=True)):
            return outputs
        return tf.nest.pack_sequence_as(outputs, cast)

    while True:
        try:
            return plain(cond, cast_body, loop_vars, shape_invariants, *args, **kwargs)
        except _WiderError as wider:
            flat[wider.place] = cast_value(wider.spec, flat[wider.place])
            invariants[wider.place] = wider.spec
            loop_vars = tf.nest.pack_sequence_as(loop_vars, flat)
            shape_invariants = tf.nest.pack_sequence_as(loop_vars, invariants)


def _cast_output(
    place: int,
    output: Value,
    variable: Value,
    invariant: tf.TypeSpec | tf.TensorShape | None,
    may_widen: bool,
) -> Value:
    """Returns an output of a loop's body, cast to the type of its variable if that is needed.

    Args:
        place: The position of the variable.
        output: What the body returned for it.
        variable: Its value before the loop.
        invariant: The spec or shape that it keeps; None for that of `variable`.
        may_widen: Whether the variable may get a wider type.

    Raises:
        _WiderError: If it needs one.
    """
    spec: tf.TypeSpec = tf.type_spec_from_value(variable)
    if isinstance(invariant, tf.TypeSpec):
        spec = invariant
    elif invariant is not None and isinstance(spec, tf.TensorSpec):
        spec = tf.TensorSpec(invariant, spec.dtype)
    if not may_cast([spec, tf.type_spec_from_value(output)]):
        return output
    value = convert_variables_to_tensors(output)
    returned = tf.type_spec_from_value(value)
    wider = spec.most_specific_common_supertype([returned])
    if wider is not None:
        if may_widen and _is_alike_outside(spec, returned, wider):
            raise _WiderError(place, wider)
        return output
    common = castable_type(spec, returned)
    if common is None:
        if not (has_casts(spec) or has_casts(returned)):
            return output  # TensorFlow raises its own error
        at = f"tf.while_loop, variable {place}"
        expected = f"a body that returns a value that casts to {spec}"
        fix = "Return the type of the loop variable from the body."
        raise difference_of_records(spec, returned, at) or DTypeError(
            at, expected, str(returned), fix
        )
    if may_widen and not common.is_subtype_of(spec):
        raise _WiderError(place, common)
    return _cast_or_leave(spec, value)


def _is_alike_outside(spec: tf.TypeSpec, returned: tf.TypeSpec, wider: tf.TypeSpec) -> bool:
    """Returns whether two specs of ours have one shape, and differ in that of components only.

    Such as the number of rows of a field: no caller sees it.
    """
    shape = getattr(spec, "shape", None)
    return (
        isinstance(shape, tf.TensorShape)  # an attribute of a user's class may be anything
        and has_casts(spec)
        and shape == getattr(returned, "shape", None)
        and not wider.is_subtype_of(spec)
    )


def _open_spec(value: Value) -> tf.TypeSpec | None:
    """Returns the spec of a value of ours that leaves out sizes of its tensors, or None.

    Such as the number of values in the lists of records: the body may return another number, as
    for a RaggedTensor.
    """
    if not is_tensor_like(value) or isinstance(value, tf.Tensor):
        return None
    spec = tf.type_spec_from_value(value)
    if not has_casts(spec):
        return None
    parts = zip(
        tf.nest.flatten(spec, expand_composites=True),
        tf.nest.flatten(value, expand_composites=True),
        strict=True,
    )
    return spec if any(part.shape != tensor.shape for part, tensor in parts) else None


def _is_castable(spec: tf.TypeSpec, value: Value) -> bool:
    """Returns whether a value does not match a spec, but both have a common type."""
    return is_tensor_like(value) and common_spec([spec, tf.type_spec_from_value(value)]) is not None


def _cast_or_leave(spec: tf.TypeSpec, value: Value) -> Value:
    """Returns a value cast to a type.

    A value of TensorFlow's own types that cannot be cast is returned unchanged: TensorFlow raises
    its own error.
    """
    try:
        return cast_value(spec, value)
    except (TypeError, ValueError):
        if has_casts(spec) or has_casts(tf.type_spec_from_value(value)):
            raise
        return value


@overrides(
    "tensorflow.python.ops.map_fn._result_value_flat_to_batchable",
    reason="tf.map_fn rejects a result that does not match fn_output_signature; this function "
    "compares them.",
    probe="mapped_results",
)
def result_to_batchable(
    result_value_flat: list[Value],
    result_flat_signature: list[tf.TypeSpec],
    *,
    plain: Callable[..., Any],
) -> Any:
    """Calls TensorFlow's function after casting the results of `fn` to the declared types."""
    pairs = zip(result_flat_signature, result_value_flat, strict=True)
    return plain([cast_to_declared(spec, value) for spec, value in pairs], result_flat_signature)


_REJECTS = "rejects values that do not stack with an error about TensorFlow's private classes."


@overrides(
    "tensorflow.python.ops.map_fn._result_flat_signature_to_batchable_tensor_spec",
    reason=f"tf.map_fn {_REJECTS}",
    probe="map_fn_of_what_does_not_stack",
)
@overrides(
    "tensorflow.python.ops.map_fn._elems_flat_to_batchable",
    reason=f"tf.map_fn {_REJECTS}",
    probe="map_fn_of_what_does_not_stack",
)
def expect_stack(
    found: Value | list[Value], *args: Any, plain: Callable[..., Any], **kwargs: Any
) -> Any:
    """Calls TensorFlow's function for values, or specs, that stack; else the error names them."""
    for each in found if isinstance(found, list) else [found]:
        spec = tf.type_spec_from_value(each) if isinstance(each, Extension) else each
        is_lone = isinstance(spec, tf.TypeSpec) and not isinstance(spec, BatchableTypeSpec)
        if is_lone and hasattr(spec, "_batch"):
            stacked(spec, None)
    return plain(found, *args, **kwargs)


@overrides(
    "tensorflow.python.ops.parallel_for.control_flow_ops._composite_to_tensors",
    reason=f"tf.vectorized_map {_REJECTS}",
    probe="vectorized_map_of_what_does_not_stack",
)
def expect_vectorized(
    value: Value, is_batched: bool = False, *, plain: Callable[..., Any]
) -> list[tf.Tensor]:
    """Calls TensorFlow's function for a value that stacks, and as a result without lists."""
    tensors = expect_stack(value, is_batched, plain=plain)
    is_result = isinstance(value, Extension) and not is_batched
    if is_result and any(tensor.dtype == tf.variant for tensor in tensors):
        expected = "results of fixed sizes, which TensorFlow can vectorize"
        received, fix = f"{tf.type_spec_from_value(value)}", "Use tf.map_fn for lists."
        raise StructureError("tf.vectorized_map", expected, received, fix)
    return tensors
