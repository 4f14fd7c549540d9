"""Casts of the arguments of functions from a SavedModel to the types that they were traced for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._patches.common_type import common_spec, has_casts, have_one_structure
from extensor._patches.patch import overrides
from extensor._protocol.casting import cast_value
from extensor._tf import Extension
from extensor._tf._tf_casting import func_graph
from extensor._typing import Nest, Value


@overrides(
    "tensorflow.python.saved_model.function_deserialization._concrete_function_callable_with",
    reason="A restored function checks here whether it accepts its arguments, which can be cast.",
    probe="restored_functions",
)
def callable_with(
    function: Any, inputs: Nest, allow_conversion: bool, *, plain: Callable[..., bool]
) -> bool:
    """Like TensorFlow's function; if `allow_conversion`, also accepts values to cast."""
    if plain(function, inputs, allow_conversion):
        return True
    if not allow_conversion or not _has_castable(function, inputs):
        return False
    try:
        with func_graph.FuncGraph("try_cast").as_default():
            cast = _cast_inputs(function, inputs)
    except (TypeError, ValueError):
        return False
    return plain(function, cast, allow_conversion)


@overrides(
    "tensorflow.python.saved_model.function_deserialization._call_concrete_function",
    reason="A restored function calls its concrete function here; the arguments are cast before.",
    probe="restored_functions",
)
def call(function: Any, inputs: Nest, *, plain: Callable[..., Nest]) -> Nest:
    """Calls TensorFlow's function after casting the arguments to the traced types."""
    if _has_castable(function, inputs):
        inputs = _cast_inputs(function, inputs)
    return plain(function, inputs)


def _has_castable(function: Any, inputs: Nest) -> bool:
    expected = function.graph.structured_input_signature
    specs, values = tf.nest.flatten(expected), tf.nest.flatten(inputs)
    return have_one_structure([expected, inputs]) and any(map(_is_castable, specs, values))


def _cast_inputs(function: Any, inputs: Nest) -> Nest:
    expected = function.graph.structured_input_signature
    pairs = zip(tf.nest.flatten(expected), tf.nest.flatten(inputs), strict=True)
    cast = [
        cast_value(spec, value) if _is_castable(spec, value) else value for spec, value in pairs
    ]
    return tf.nest.pack_sequence_as(inputs, cast)


def _is_castable(spec: Value, value: Value) -> bool:
    """Returns whether a restored function may cast an argument to a spec."""
    if not isinstance(spec, tf.TypeSpec):
        return False
    if isinstance(value, Extension) or has_casts(spec):
        return isinstance(spec, tf.TensorSpec) or not spec.is_compatible_with(value)
    # Of TensorFlow's own types, cast only those whose cast cannot fail at run time.
    if not isinstance(spec, tf.RaggedTensorSpec) or type(value) is not tf.RaggedTensor:
        return False
    if spec.is_compatible_with(value):
        return False
    common = common_spec([spec, tf.type_spec_from_value(value)])
    return common is not None and common.is_subtype_of(spec)
