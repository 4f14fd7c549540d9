"""An extension value as its component tensors, with one that is as long as the batch in front.

Keras takes the size of the first tensor that it sees for the size of the batch, and weighs batches
by it. So the first tensor whose first dimension is the batch goes in front of the others, which
stay in the order of `tf.nest`.

Placeholders, whose tensors are KerasTensors, are taken apart and put together here too.
"""

from __future__ import annotations

import functools
from typing import Any

import keras
import tensorflow as tf

from extensor._keras.placeholder import SymbolicRagged, SymbolicValue
from extensor._keras.placeholder_spec import remember_spec
from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._struct.tensor import StructuredTensor
from extensor._tf import component_specs, from_components
from extensor.errors import ExtensorError


def to_tensors(spec: Any, value: Any) -> list[Any]:
    """Returns the component tensors of a value, one as long as the batch in front."""
    return batch_first(spec, _leaves(spec, value))


def to_value(spec: Any, tensors: list[Any]) -> Any:
    """Returns the value, or the placeholder, of what `to_tensors` returned."""
    tensors = _as_in_nest(spec, tensors)
    if not any(isinstance(tensor, keras.KerasTensor) for tensor in tensors):
        return tf.nest.pack_sequence_as(spec, tensors, expand_composites=True)
    return _placeholder(spec, iter(tensors))


def count_of_batch(spec: Any, tensors: list[Any]) -> Any:
    """Returns a tensor as long as the batch, or None if such a one is in front already.

    Where all fields are ragged no component is: their row splits are one longer.

    Args:
        spec: The spec of a value.
        tensors: What `to_tensors` returned for it.
    """
    splits = _outermost_splits(spec)
    return None if splits is None else _as_in_nest(spec, tensors)[splits][:-1]


def batch_first(spec: Any, leaves: list[Any]) -> list[Any]:
    """Returns what there is for each component tensor in the order of `to_tensors`.

    Args:
        spec: The spec of a value.
        leaves: The tensors, their specs or their names, in the order of `tf.nest`.
    """
    first = _batch_leaf(spec)
    return [leaves[first], *leaves[:first], *leaves[first + 1 :]] if first else list(leaves)


def _as_in_nest(spec: Any, tensors: list[Any]) -> list[Any]:
    """Returns what `batch_first` returned in the order of `tf.nest` again."""
    first = _batch_leaf(spec)
    return [*tensors[1 : first + 1], tensors[0], *tensors[first + 1 :]] if first else tensors


def _leaves(spec: Any, value: Any) -> list[Any]:
    """Returns the component tensors of a value, in the order of `tf.nest`."""
    if isinstance(value, (tf.Tensor, keras.KerasTensor)) or isinstance(spec, tf.TensorSpec):
        return [value]
    if isinstance(value, SymbolicValue):
        return value.tensors
    if isinstance(value, (tf.RaggedTensor, SymbolicRagged)) and spec.flat_values_spec is None:
        # As tf.nest does, which makes a spec of each part on the way.
        return [value.flat_values, *value.nested_row_splits]
    if not isinstance(spec, StackableTypeSpec):
        return tf.nest.flatten(value, expand_composites=True)
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


def _placeholder(spec: Any, tensors: Any) -> Any:
    if isinstance(spec, tf.TensorSpec):
        return next(tensors)
    if isinstance(spec, tf.RaggedTensorSpec):
        flat_values = next(tensors)
        splits = [next(tensors) for _ in range(spec.ragged_rank)]
        return SymbolicRagged(flat_values, splits) if splits else flat_values
    specs = tf.nest.flatten(component_specs(spec))
    components = [_placeholder(inner, tensors) for inner in specs]
    leaves = [t for s, c in zip(specs, components, strict=True) for t in _leaves(s, c)]
    try:
        value = from_components(spec, tf.nest.pack_sequence_as(component_specs(spec), components))
    except Exception:
        # Its constructor computes with what it is given, which KerasTensors do not allow.
        return SymbolicValue(spec, leaves)
    if not isinstance(value, StructuredTensor):
        remember_spec(value, spec, leaves)
    return value


@functools.lru_cache(maxsize=1024)
def _batch_leaf(spec: tf.TypeSpec) -> int:
    """Returns the place of the first tensor whose first dimension is the batch, or 0."""
    return next(iter(_places(spec, 0)), 0)


@functools.lru_cache(maxsize=1024)
def _outermost_splits(spec: tf.TypeSpec) -> int | None:
    """Returns the place of row splits of the batch, where no tensor has the batch itself."""
    return None if _places(spec, 0) else next(iter(_places(spec, 1)), None)


def _places(spec: tf.TypeSpec, more: int) -> list[int]:
    """Returns the places of the tensors that are as long as the batch, or so many longer."""
    seven, eight = _lengths(spec, 7), _lengths(spec, 8)
    pairs = enumerate(zip(seven, eight, strict=True))
    return [place for place, pair in pairs if pair == (7 + more, 8 + more)]


def _lengths(spec: Any, batch_size: int) -> list[int | None]:
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
            pass  # it is no batch, but its components may be
        else:
            leaves = tf.nest.flatten(batch, expand_composites=True)
            lengths = [leaf.shape[0] if leaf.shape.rank else None for leaf in leaves]
            if any(length in (batch_size, batch_size + 1) for length in lengths):
                return lengths
    parts = tf.nest.flatten(component_specs(spec))
    return [length for part in parts for length in _lengths(part, batch_size)]
