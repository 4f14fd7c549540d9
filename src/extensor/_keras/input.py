"""Input: placeholders for the extension values of a functional model."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from extensor._keras.component_tensors import batch_first
from extensor._keras.lowering import lowered_spec, raised
from extensor._keras.open_spec import any_batch_size
from extensor._path import Path
from extensor._struct.dense import DenseStructuredTensorSpec
from extensor._tf import component_specs
from extensor.errors import DTypeError, StructureError


def Input(spec: tf.TypeSpec, name: str | None = None) -> Any:  # noqa: N802 - as keras.Input
    """Returns a placeholder for values of a spec, to build a functional model from.

    Read the fields of a structured placeholder as those of a StructuredTensor. A dense field is a
    KerasTensor, which any Keras layer accepts. Pass a ragged field to an `xt.keras.Layer`.

    Args:
        spec: The spec of a batch, such as a dataset's `element_spec`.
        name: A prefix for the names of the Keras inputs, one for each component tensor. Required
            if two inputs have fields of the same name.

    Returns:
        An extension value whose tensors are KerasTensors.

    Raises:
        DTypeError: If `spec` is not a TypeSpec (also a TypeError).
        StructureError: If `spec` describes a single value instead of a batch (also a ValueError).

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
            "use keras.Input.",
        )
    if isinstance(spec, tf.TensorSpec):
        return _placeholder(spec, name or spec.name)
    ((key, leaves),) = lowered_spec(spec).items()
    return raised({key: tuple(map(_placeholder, leaves, _names(spec, name)))})


def _placeholder(spec: tf.TensorSpec, name: str | None) -> Any:
    if not spec.shape.rank:
        raise StructureError(
            path=f"xt.keras.Input: {name}",
            expected="the spec of a batch, whose tensors have a batch dimension",
            received=f"shape {spec.shape}",
            mend="Batch the dataset first: dataset.batch(n).element_spec.",
        )
    return keras.Input(
        shape=spec.shape[1:].as_list(), batch_size=spec.shape[0], dtype=spec.dtype.name, name=name
    )


def _names(spec: tf.TypeSpec, name: str | None) -> list[str]:
    """Returns a name for each tensor of a lowered value, from the paths of its fields."""
    # Keras does not accept names with a slash.
    names = [n.replace("/", "|") for n in _leaf_names(spec, Path(name) if name else Path())]
    return batch_first(any_batch_size(spec), names)


def _leaf_names(spec: Any, path: Path) -> Any:
    """Yields a name for each component tensor, in the order of `tf.nest`."""
    if isinstance(spec, tf.TensorSpec):
        yield str(path)
    elif isinstance(spec, tf.RaggedTensorSpec):
        yield str(path)
        for i in range(spec.ragged_rank):
            yield f"{path}.row_splits" + (str(i) if i else "")
    elif isinstance(spec, DenseStructuredTensorSpec):
        for name, inner in zip(
            sorted(spec.field_names()) or [""], spec.component_specs, strict=True
        ):
            yield from _leaf_names(inner, path / name)
    elif hasattr(spec, "values_spec") and len(spec.component_specs) == 2:
        yield from _leaf_names(spec.values_spec, path)
        yield f"{path}.row_splits"
    elif isinstance(parts := component_specs(spec), dict):
        for name in sorted(parts):
            yield from _leaf_names(parts[name], path / name)
    else:
        for i, _ in enumerate(tf.nest.flatten(spec, expand_composites=True)):
            yield f"{path}.{i}"
