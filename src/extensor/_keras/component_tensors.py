"""Conversion of extension values to component tensors and back, with a batch-sized tensor first.

Keras takes the first dimension of the first tensor as the batch size, and weighs batches by it. So
the first tensor whose first dimension is the batch comes first. The others stay in the order of
`tf.nest`.

This also converts placeholders, whose tensors are KerasTensors.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from extensor._keras.open_spec import any_batch_size
from extensor._keras.placeholder import (
    SymbolicRagged,
    SymbolicValue,
    remember_spec,
    remembered_spec,
)
from extensor._path import Path
from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._struct.component import ITEMS, ROW_SPLITS, ComponentTensor, Steps, components
from extensor._struct.tensor import StructuredTensor
from extensor._tf import component_specs, from_components
from extensor._typing import Value
from extensor.errors import ExtensorError


def to_tensors(spec: tf.TypeSpec, value: Value) -> list[Any]:
    """Returns the component tensors of a value, with a batch-sized tensor first."""
    return batch_first(spec, _leaves(spec, value))


def to_value(spec: tf.TypeSpec, tensors: list[Any]) -> Value:
    """Returns the value, or the placeholder, of the tensors from `to_tensors`."""
    tensors = _as_in_nest(spec, tensors)
    if not any(isinstance(tensor, keras.KerasTensor) for tensor in tensors):
        return tf.nest.pack_sequence_as(spec, tensors, expand_composites=True)
    return _placeholder(spec, iter(tensors))


def batch_sized(spec: tf.TypeSpec, tensors: list[Any]) -> tf.Tensor:
    """Returns a tensor that has the size of the batch, of numbers if there is one.

    If all fields are ragged, no component has this size: row splits have one element more. XLA has
    no strings, so they are the last choice.

    Args:
        spec: The spec of a value.
        tensors: The tensors from `to_tensors`.
    """
    batch, splits = _batch_leaves(spec)
    in_nest = _as_in_nest(spec, tensors)
    numbers = next((in_nest[i] for i in batch if in_nest[i].dtype != tf.string), None)
    if numbers is not None:
        return numbers
    return in_nest[splits[0]][:-1] if splits else tensors[0]


def batch_first(spec: tf.TypeSpec, leaves: list[Any]) -> list[Any]:
    """Returns one item for each component tensor, in the order of `to_tensors`.

    Args:
        spec: The spec of a value.
        leaves: The tensors, their specs or their names, in the order of `tf.nest`.
    """
    first = _batch_leaf(spec)
    return [leaves[first], *leaves[:first], *leaves[first + 1 :]] if first else list(leaves)


@functools.lru_cache(maxsize=1024)
def float_dtypes(spec: tf.TypeSpec) -> frozenset[str]:
    """Returns the names of the floating dtypes of the component tensors."""
    leaves = tf.nest.flatten(spec, expand_composites=True)
    return frozenset(leaf.dtype.name for leaf in leaves if leaf.dtype.is_floating)


def _as_in_nest(spec: tf.TypeSpec, tensors: list[Any]) -> list[Any]:
    """Returns the items from `batch_first` in the order of `tf.nest`."""
    first = _batch_leaf(spec)
    return [*tensors[1 : first + 1], tensors[0], *tensors[first + 1 :]] if first else tensors


def _leaves(spec: tf.TypeSpec, value: Value) -> list[Any]:
    """Returns the component tensors of a value, in the order of `tf.nest`."""
    if isinstance(value, (tf.Tensor, keras.KerasTensor)) or isinstance(spec, tf.TensorSpec):
        return [value]
    if isinstance(value, SymbolicValue):
        return value.tensors
    if isinstance(value, (tf.RaggedTensor, SymbolicRagged)) and spec.flat_values_spec is None:
        # The same result as tf.nest, which is slower because it creates a spec for each part.
        return [value.flat_values, *value.nested_row_splits]
    if isinstance(value, tf.experimental.ExtensionType) and remembered_spec(value) is not None:
        return _leaves_of_fields(spec, value)
    if not isinstance(spec, StackableTypeSpec):
        parts = tf.nest.flatten(value, expand_composites=True)
        return [leaf for part in parts for leaf in _leaves_of_part(part)]
    specs, parts = spec.component_specs, spec.to_components(value)
    tensors: list[Any] = []
    if type(specs) is tuple and type(parts) is tuple and not any(map(tf.nest.is_nested, specs)):
        for inner, part in zip(specs, parts, strict=True):
            tensors += _leaves(inner, part)
    else:
        tf.nest.map_structure(
            lambda inner, part: tensors.extend(_leaves(inner, part)), specs, parts
        )
    return tensors


def _leaves_of_part(part: Value) -> list[Any]:
    """Returns the tensors of a component, which may be a placeholder."""
    if isinstance(part, SymbolicRagged):
        return [part.flat_values, *part.nested_row_splits]
    return part.tensors if isinstance(part, SymbolicValue) else [part]


def _leaves_of_fields(spec: tf.TypeSpec, value: Value) -> list[Any]:
    """Returns the KerasTensors in the fields of a placeholder, whose spec finds only tensors.

    Args:
        spec: The spec of a `tf.experimental.ExtensionType`.
        value: The placeholder.
    """
    tensors: list[Any] = []

    def add(inner: object, part: Value) -> None:
        if isinstance(inner, tf.TypeSpec):
            tensors.extend(_leaves(inner, part))

    for name, field in vars(spec).items():
        tf.nest.map_structure(add, field, vars(value)[name])
    return tensors


def _placeholder(spec: tf.TypeSpec, tensors: Iterator[keras.KerasTensor]) -> Value:
    if isinstance(spec, tf.TensorSpec):
        return next(tensors)
    if isinstance(spec, tf.RaggedTensorSpec):
        flat_values = next(tensors)
        splits = [next(tensors) for _ in range(spec.ragged_rank)]
        if not splits:
            return flat_values
        sizes = [None] * len(splits) if spec.shape.rank is None else spec.shape[1:][: len(splits)]
        return SymbolicRagged(flat_values, splits, list(sizes))
    specs = tf.nest.flatten(component_specs(spec))
    components = [_placeholder(inner, tensors) for inner in specs]
    leaves = [t for s, c in zip(specs, components, strict=True) for t in _leaves(s, c)]
    try:
        value = from_components(spec, tf.nest.pack_sequence_as(component_specs(spec), components))
    except Exception:
        # The type's constructor computes with its arguments, which KerasTensors do not support.
        return SymbolicValue(spec, leaves)
    if not isinstance(value, StructuredTensor):
        remember_spec(value, spec, leaves)
    return value


def _batch_leaf(spec: tf.TypeSpec) -> int:
    """Returns the index of the first tensor whose first dimension is the batch, or 0."""
    return next(iter(_batch_leaves(spec)[0]), 0)


@functools.lru_cache(maxsize=1024)
def _batch_leaves(spec: tf.TypeSpec) -> tuple[list[int], list[int]]:
    """Returns the indices of the batch-sized tensors, and of the row splits of the batch."""
    # A size that is 7 for a batch of 7 and 8 for a batch of 8 follows the batch size.
    sizes = list(enumerate(zip(_lengths(spec, 7), _lengths(spec, 8), strict=True)))
    return [i for i, pair in sizes if pair == (7, 8)], [i for i, pair in sizes if pair == (8, 9)]


def _lengths(spec: tf.TypeSpec, batch_size: int) -> list[int | None]:
    """Returns the sizes of the first dimensions of the component tensors of a batch."""
    if isinstance(spec, tf.TensorSpec):
        return [batch_size if spec.shape.rank else None]
    if isinstance(spec, tf.RaggedTensorSpec):
        inner = [None] * (spec.ragged_rank - 1)
        return [None, batch_size + 1, *inner] if spec.ragged_rank else [batch_size]
    if isinstance(spec, StackableTypeSpec):
        try:
            batch = spec.unstacked().stacked(batch_size)
        except ExtensorError:
            pass  # the spec is not a batch, but its components may be
        else:
            leaves = tf.nest.flatten(batch, expand_composites=True)
            lengths = [leaf.shape[0] if leaf.shape.rank else None for leaf in leaves]
            if any(length in (batch_size, batch_size + 1) for length in lengths):
                return lengths
    parts = tf.nest.flatten(component_specs(spec))
    return [length for part in parts for length in _lengths(part, batch_size)]


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
