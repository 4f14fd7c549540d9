"""The names of the component tensors of values: the paths of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from extensor._keras.component_tensors import batch_first
from extensor._keras.open_spec import any_batch_size
from extensor._path import Path
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._tf import component_specs


def component_names(spec: tf.TypeSpec, name: str) -> list[str]:
    """Returns a name for each tensor of a lowered value.

    Args:
        spec: The spec of the value.
        name: The name of the value, before the paths of its fields.
    """
    # Keras does not accept names with a slash.
    names = [leaf.replace("/", "|") for leaf in leaf_names(spec, Path(name))]
    return batch_first(any_batch_size(spec), names)


def leaf_names(spec: Any, path: Path) -> Any:
    """Yields a name for each component tensor of a spec, in the order of `tf.nest`.

    Args:
        spec: The spec, or a mapping of specs: the components of a value may be a nest.
        path: The path of the value, before the paths of its fields.
    """
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
            yield from leaf_names(inner, path / name)
    elif hasattr(spec, "values_spec") and len(spec.component_specs) == 2:
        yield from leaf_names(spec.values_spec, path)
        yield f"{path}.row_splits"
    elif isinstance(parts := spec if isinstance(spec, Mapping) else component_specs(spec), Mapping):
        for name in sorted(parts):
            yield from leaf_names(parts[name], path / str(name))
    else:
        for i, _ in enumerate(tf.nest.flatten(spec, expand_composites=True)):
            yield f"{path}.{i}"
