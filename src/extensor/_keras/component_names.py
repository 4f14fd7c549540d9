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

FLAT = ".flat_values"


def component_names(spec: tf.TypeSpec, name: str) -> list[str]:
    """Returns a name for each tensor of a lowered value.

    Args:
        spec: The spec of the value.
        name: The name of the value, before the paths of its fields.
    """
    # Keras does not accept names with a slash.
    names = [leaf.replace("/", "|") for leaf in leaf_names(spec, Path(name), FLAT)]
    return batch_first(any_batch_size(spec), names)


def part_name(spec: tf.TypeSpec, name: str, part: tf.TypeSpec, indices: tuple[int, ...]) -> Any:
    """Returns the path of a field that is a value itself, or None if the part is not one field.

    Args:
        spec: The spec of the whole value.
        name: The name of the whole value.
        part: The spec of the part.
        indices: The positions of the component tensors of the part.
    """
    names = component_names(spec, name)
    own = [names[index] for index in indices]
    if isinstance(part, tf.RaggedTensorSpec):
        return next((n.removesuffix(FLAT) for n in own if n.endswith(FLAT)), None)
    paths = [Path.parse(leaf).names for leaf in names]
    chosen = [paths[index] for index in indices]
    longest = min(len(path) for path in chosen) - 1
    first = chosen[0]
    size = next(
        (n for n in range(longest, 0, -1) if all(path[:n] == first[:n] for path in chosen)), 0
    )
    inside = {index for index, path in enumerate(paths) if path[:size] == first[:size]}
    return str(Path(*first[:size])) if size and inside == set(indices) else None


def leaf_names(spec: Any, path: Path, flat: str = "", in_rows: bool = False) -> Any:
    """Yields a name for each component tensor of a spec, in the order of `tf.nest`.

    Args:
        spec: The spec, or a mapping of specs: the components of a value may be a nest.
        path: The path of the value, before the paths of its fields.
        flat: What follows the path of a field, for the flat values of a ragged field.
        in_rows: Whether the value is the values of ragged rows.
    """
    if isinstance(spec, tf.TensorSpec):
        yield f"{path}{flat if in_rows else ''}"
    elif isinstance(spec, tf.RaggedTensorSpec):
        yield f"{path}{flat if in_rows or spec.ragged_rank else ''}"
        for i in range(spec.ragged_rank):
            yield f"{path}.row_splits" + (str(i) if i else "")
    elif isinstance(spec, DenseStructuredTensorSpec):
        for name, inner in zip(
            sorted(spec.field_names()) or [""], spec.component_specs, strict=True
        ):
            yield from leaf_names(inner, path / name, flat, in_rows)
    elif hasattr(spec, "values_spec") and len(spec.component_specs) == 2:
        yield from leaf_names(spec.values_spec, path, flat, True)
        yield f"{path}.row_splits"
    elif isinstance(parts := spec if isinstance(spec, Mapping) else component_specs(spec), Mapping):
        for name in sorted(parts):
            yield from leaf_names(parts[name], path / str(name), flat, in_rows)
    else:
        for i, _ in enumerate(tf.nest.flatten(spec, expand_composites=True)):
            yield f"{path}.{i}"
