"""tf.map_fn and tf.vectorized_map: casts of results, and errors for values that do not stack."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._patches.common_type import as_declared
from extensor._patches.patch import replaces
from extensor._tf import BatchableTypeSpec, Extension, stacked


@replaces(
    "tensorflow.python.ops.map_fn._result_value_flat_to_batchable",
    reason="tf.map_fn rejects a result that does not match fn_output_signature; this function "
    "compares them.",
    probe="mapped_results",
)
def to_batchable(plain: Any) -> Any:
    def _to_batchable(result_value_flat: Any, result_flat_signature: Any) -> Any:
        """Calls TensorFlow's function after casting the results of `fn` to the declared types."""
        pairs = zip(result_flat_signature, result_value_flat, strict=True)
        values = [as_declared(spec, value) for spec, value in pairs]
        return plain(values, result_flat_signature)

    return _to_batchable


_WORDS = "rejects values that do not stack with an error about TensorFlow's private classes."


@replaces(
    "tensorflow.python.ops.map_fn._result_flat_signature_to_batchable_tensor_spec",
    reason=f"tf.map_fn {_WORDS}",
    probe="map_fn_of_what_does_not_stack",
)
def of_results(plain: Any) -> Any:
    return _refusing(plain, lambda signature: signature)


@replaces(
    "tensorflow.python.ops.map_fn._elems_flat_to_batchable",
    reason=f"tf.map_fn {_WORDS}",
    probe="map_fn_of_what_does_not_stack",
)
def of_elements(plain: Any) -> Any:
    return _refusing(
        plain, lambda elems: [tf.type_spec_from_value(e) for e in elems if isinstance(e, Extension)]
    )


@replaces(
    "tensorflow.python.ops.parallel_for.control_flow_ops._composite_to_tensors",
    reason=f"tf.vectorized_map {_WORDS}",
    probe="vectorized_map_of_what_does_not_stack",
)
def of_vectorized(plain: Any) -> Any:
    return _refusing(
        plain,
        lambda value: [tf.type_spec_from_value(value)] if isinstance(value, Extension) else [],
    )


def _refusing(plain: Any, specs_of: Callable[[Any], Any]) -> Any:
    """Returns a function that raises if a spec of its first argument does not stack."""

    def refusing(first: Any, *args: Any, **kwargs: Any) -> Any:
        for spec in specs_of(first):
            if not isinstance(spec, BatchableTypeSpec) and hasattr(spec, "_batch"):
                stacked(spec, None)  # raises an error that names the type
        return plain(first, *args, **kwargs)

    return refusing
