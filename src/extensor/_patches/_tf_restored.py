"""Casts of the arguments of functions from a SavedModel to the types that they were traced for."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._patches.common_type import are_alike, common_spec, is_ours
from extensor._patches.patch import replaces
from extensor._protocol.casting import cast_value
from extensor._tf import Extension
from extensor._tf._tf_casting import func_graph


@replaces(
    "tensorflow.python.saved_model.function_deserialization._concrete_function_callable_with",
    reason="A restored function checks here whether it accepts its arguments, which can be cast.",
    probe="restored_functions",
)
def callable_with(plain: Any) -> Any:
    def _callable_with(function: Any, inputs: Any, allow_conversion: bool) -> bool:
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

    return _callable_with


@replaces(
    "tensorflow.python.saved_model.function_deserialization._call_concrete_function",
    reason="A restored function calls its concrete function here; the arguments are cast before.",
    probe="restored_functions",
)
def call(plain: Any) -> Any:
    def _call(function: Any, inputs: Any) -> Any:
        """Calls TensorFlow's function after casting the arguments to the traced types."""
        if _has_castable(function, inputs):
            inputs = _cast_inputs(function, inputs)
        return plain(function, inputs)

    return _call


def _has_castable(function: Any, inputs: Any) -> bool:
    expected = function.graph.structured_input_signature
    specs, values = tf.nest.flatten(expected), tf.nest.flatten(inputs)
    return are_alike([expected, inputs]) and any(map(_is_castable, specs, values))


def _cast_inputs(function: Any, inputs: Any) -> Any:
    expected = function.graph.structured_input_signature
    pairs = zip(tf.nest.flatten(expected), tf.nest.flatten(inputs), strict=True)
    cast = [
        cast_value(spec, value) if _is_castable(spec, value) else value for spec, value in pairs
    ]
    return tf.nest.pack_sequence_as(inputs, cast)


def _is_castable(spec: Any, value: Any) -> bool:
    """Returns whether a restored function may cast an argument to a spec."""
    if not isinstance(spec, tf.TypeSpec):
        return False
    if isinstance(value, Extension) or is_ours(spec):
        return isinstance(spec, tf.TensorSpec) or not spec.is_compatible_with(value)
    # Of TensorFlow's own types, cast only those whose cast cannot fail at run time.
    if not isinstance(spec, tf.RaggedTensorSpec) or type(value) is not tf.RaggedTensor:
        return False
    common = (
        None
        if spec.is_compatible_with(value)
        else common_spec([spec, tf.type_spec_from_value(value)])
    )
    return common is not None and common.is_subtype_of(spec)
