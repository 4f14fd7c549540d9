"""What map_fn and vectorized_map say of values that do not stack.

| name | why |
| --- | --- |
| `map_fn._result_flat_signature_to_batchable_tensor_spec` | `tf.map_fn` refuses elements and results of a type that does not stack in words of TensorFlow's private classes. This function and the one for elements let the spec of an extension type refuse first, by its own error. |
| `parallel_for.control_flow_ops` | The same of `tf.vectorized_map`. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.ops.parallel_for import control_flow_ops

from extensor._tf._tf_protocol import Extension
from extensor._tf._tf_returned import map_fn
from extensor._tf._tf_spec import BatchableTypeSpec


def _refuse(spec: Any) -> None:
    """Raises the error of a spec that does not stack, if it has one of its own."""
    if not isinstance(spec, BatchableTypeSpec) and hasattr(spec, "_batch"):
        spec._batch(None)


def _refusing(module: Any, name: str, specs_of: Callable[[Any], Any]) -> None:
    """Lets a function refuse what does not stack among the specs that its first argument has."""
    plain = getattr(module, name)

    @functools.wraps(plain)
    def wrapped(first: Any, *args: Any, **kwargs: Any) -> Any:
        for spec in specs_of(first):
            _refuse(spec)
        return plain(first, *args, **kwargs)

    setattr(module, name, wrapped)


_refusing(map_fn, "_result_flat_signature_to_batchable_tensor_spec", lambda signature: signature)
_refusing(
    map_fn,
    "_elems_flat_to_batchable",
    lambda elems: [tf.type_spec_from_value(e) for e in elems if isinstance(e, Extension)],
)
_refusing(
    control_flow_ops,
    "_composite_to_tensors",
    lambda value: [tf.type_spec_from_value(value)] if isinstance(value, Extension) else [],
)
