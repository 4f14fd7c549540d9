"""Input: placeholders for the extension values of a functional model."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from extensor._keras.graph_node import ValueKerasTensor, with_fields
from extensor._keras.lowering import from_lowered
from extensor._keras.open_spec import any_batch_size
from extensor._keras.value_tensor import lowered_spec
from extensor._typing import Value
from extensor.errors import DTypeError, StructureError


def Input(spec: tf.TypeSpec, name: str | None = None) -> Value:  # noqa: N802 - as keras.Input
    """Returns a placeholder for values of a spec, to build a functional model from.

    Read the fields of a structured placeholder as those of a StructuredTensor. A dense field is a
    KerasTensor, which any Keras layer accepts. Pass a ragged field to an `xt.keras.Layer`.

    Args:
        spec: The spec of a batch, such as a dataset's `element_spec`.
        name: The name of the input, and a prefix for the names of its fields.

    Returns:
        An extension value whose tensors are KerasTensors.

    Raises:
        DTypeError: If `spec` is not a TypeSpec (also a TypeError).
        StructureError: If `spec` describes a single value instead of a batch (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec = xt.DenseStructuredTensorSpec([None], {
    ...     "est_time": tf.TensorSpec([None], tf.float32),
    ...     "steps": tf.RaggedTensorSpec([None, None], tf.string)})
    >>> recipe = xt.keras.Input(spec)
    >>> recipe["est_time"].shape
    (None,)
    >>> recipe["steps"]
    <SymbolicRagged shape=(None, None), dtype=string>
    """
    if not isinstance(spec, tf.TypeSpec) or isinstance(spec, tf.SparseTensorSpec):
        received = repr(spec) if isinstance(spec, tf.TypeSpec) else type(spec).__name__
        raise DTypeError("xt.keras.Input", "a TypeSpec", received, _fix(spec))
    if isinstance(spec, tf.TensorSpec):
        _check_batch(spec, name or spec.name)
        return keras.Input(
            shape=spec.shape[1:].as_list(),
            batch_size=spec.shape[0],
            dtype=spec.dtype.name,
            name=name or spec.name,
        )
    spec = any_batch_size(spec)
    (leaves,) = lowered_spec(spec).values()
    for leaf in leaves:
        _check_batch(leaf, name)
    tensor: Any = ValueKerasTensor(spec, name)
    tensor.name = keras.layers.InputLayer(input_tensor=tensor, name=name).name
    return from_lowered(with_fields(tensor))


def _fix(spec: Any) -> str:
    """Returns what to give instead of an argument that is not a spec."""
    if isinstance(spec, tf.data.Dataset):
        inputs = "[0]" if isinstance(spec.element_spec, tuple) else ""
        return f"Give the spec of the inputs: dataset.element_spec{inputs}."
    if isinstance(spec, tuple) and spec and isinstance(spec[0], tf.TypeSpec):
        return "Give the spec of the inputs only: dataset.element_spec[0]."
    return (
        "Give the spec of a batch, such as dataset.element_spec; for a sparse tensor use "
        "keras.Input."
    )


def _check_batch(spec: tf.TensorSpec, name: str | None) -> None:
    if not spec.shape.rank:
        expected = "the spec of a batch, whose tensors have a batch dimension"
        fix = "Batch the dataset first: dataset.batch(n).element_spec."
        raise StructureError(f"xt.keras.Input: {name}", expected, f"shape {spec.shape}", fix)
