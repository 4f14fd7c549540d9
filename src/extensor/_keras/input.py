"""Input: where a functional model takes an extension value."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from extensor._keras.lowering import leaf_names, lowered_spec, raised
from extensor.errors import DTypeError, StructureError


def Input(spec: tf.TypeSpec, name: str | None = None) -> Any:  # noqa: N802 - as keras.Input
    """Returns a placeholder for values of a spec, to build a functional model from.

    Fields of a structured placeholder are read as from a StructuredTensor: a dense field is a
    KerasTensor, which any Keras layer takes; a ragged one goes into an `xt.keras.Layer`.

    Args:
        spec: The spec of a batch, such as a dataset's `element_spec`.
        name: A prefix for the names of the Keras inputs, one for each component tensor. Needed
            where two inputs have fields of the same name.

    Returns:
        An extension value whose tensors are KerasTensors.

    Raises:
        DTypeError: If `spec` is no TypeSpec (also a TypeError).
        StructureError: If it describes a single value and no batch (also a ValueError).

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
        raise DTypeError(
            path="xt.keras.Input",
            expected="a TypeSpec",
            received=repr(spec) if isinstance(spec, tf.TypeSpec) else type(spec).__name__,
            mend="Give the spec of a batch, such as dataset.element_spec; for a sparse tensor "
            "there is keras.Input.",
        )
    if isinstance(spec, tf.TensorSpec):
        return _placeholder(spec, name or spec.name)
    ((mark, leaves),) = lowered_spec(spec).items()
    names = leaf_names(spec, name or "")
    return raised({mark: tuple(map(_placeholder, leaves, names))})


def _placeholder(spec: tf.TensorSpec, name: str | None) -> Any:
    if not spec.shape.rank:
        raise StructureError(
            path=f"xt.keras.Input: {name}",
            expected="the spec of a batch, whose tensors have a dimension for it",
            received=f"shape {spec.shape}",
            mend="Batch the dataset first: dataset.batch(n).element_spec.",
        )
    return keras.Input(
        shape=spec.shape[1:].as_list(), batch_size=spec.shape[0], dtype=spec.dtype.name, name=name
    )
