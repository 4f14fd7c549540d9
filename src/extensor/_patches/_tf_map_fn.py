"""tf.map_fn and tf.vectorized_map: casts of results, and errors for values that do not stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._patches.common_type import cast_to_declared
from extensor._patches.patch import overrides
from extensor._tf import BatchableTypeSpec, Extension, stacked
from extensor._typing import Value
from extensor.errors import StructureError


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
