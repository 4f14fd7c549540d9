"""The names of the component tensors of values: the paths of their fields."""

from __future__ import annotations

import tensorflow as tf

from extensor._keras.component_tensors import batch_first
from extensor._keras.open_spec import any_batch_size
from extensor._path import Path
from extensor._struct.component import ITEMS, ROW_SPLITS, ComponentTensor, Steps, components

FLAT = ".flat_values"


def component_names(spec: tf.TypeSpec, name: str) -> list[str]:
    """Returns a name for each tensor of a lowered value.

    Args:
        spec: The spec of the value.
        name: The name of the value, before the paths of its fields.
    """
    names = [without_slash(tensor_name(one, Path(name), FLAT)) for one in components(spec)]
    return batch_first(any_batch_size(spec), names)


def without_slash(name: str) -> str:
    """Returns a name as Keras accepts it."""
    return name.replace("/", "|")


def part_name(
    spec: tf.TypeSpec, name: str, part: tf.TypeSpec, indices: tuple[int, ...]
) -> str | None:
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


def tensor_name(component: ComponentTensor, path: Path, flat: str = "") -> str:
    """Returns the name of a component tensor: its path, and what it is of a ragged value.

    Args:
        component: A component tensor of a value.
        path: The path of the value.
        flat: What follows the path of a field, for the flat values of a ragged field.
    """
    steps = component.steps
    at = Path(*path, *(key for step in steps for key in step.keys))
    lists = [step.kind for step in steps[_last_key(steps) :]]
    if lists[-1:] != [ROW_SPLITS]:
        return f"{at}{flat}" if any(step.kind == ITEMS for step in steps) else f"{at}"
    return f"{at}.row_splits{len(lists) - 1 or ''}"


def _last_key(steps: Steps) -> int:
    """Returns the number of steps up to the last one with a key."""
    return max((i for i, step in enumerate(steps, 1) if step.keys), default=0)
