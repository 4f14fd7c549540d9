"""The component tensors of records: the fields that they belong to, and blanks in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from extensor._path import Path
from extensor._pruning.consumption import NOTHING, SHAPE, VALUE
from extensor._struct import component
from extensor._struct.component import OPAQUE, ROW_SPLITS, ComponentTensor, Steps
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.masked import is_masked, under_masks
from extensor._struct.ragged_spec import ListSpec, RaggedStructuredTensorSpec
from extensor._tf import component_specs
from extensor._typing import Value


def components(spec: tf.TypeSpec) -> tuple[ComponentTensor, ...]:
    """Returns the components of a spec. Those of a type that is not known here are opaque."""
    return tuple(component.components(spec, _is_known))


def _is_known(spec: tf.TypeSpec) -> bool:
    if isinstance(spec, DenseStructuredTensorSpec):
        return bool(spec.field_specs)
    if isinstance(spec, tf.RaggedTensorSpec):
        return spec.ragged_rank > 0 and isinstance(component_specs(spec)[0], tf.TensorSpec)
    if is_masked(spec):
        return isinstance(spec.mask, tf.TensorSpec)
    return isinstance(spec, RaggedStructuredTensorSpec)


def is_opaque(part: ComponentTensor) -> bool:
    """Returns whether a tensor is of a type that is not known here."""
    return any(step.kind == OPAQUE for step in part.steps)


def is_fixed(part: ComponentTensor) -> bool:
    """Returns whether a tensor is always needed, because nothing can be in its place."""
    return part.spec.dtype in (tf.variant, tf.resource) or part.spec.shape.rank is None


def has_static_rows(part: ComponentTensor) -> bool:
    """Returns whether the sizes of all dimensions but the first are known."""
    shape = part.spec.shape
    return bool(shape.rank) and shape[1:].is_fully_defined()


def fields_of(spec: tf.TypeSpec, parts: Iterable[ComponentTensor]) -> list[frozenset[Path]]:
    """Returns, for each component, the fields without fields of their own that have the tensor."""
    inside: dict[tuple[str, ...], set[Path]] = {}
    for path in leaf_paths(spec):
        for size in range(len(path.names) + 1):
            inside.setdefault(path.names[:size], set()).add(path)
    return [frozenset(inside[part.names]) for part in parts]


def leaf_paths(spec: tf.TypeSpec, names: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yields the path of each field without fields of its own, also in masked records."""
    spec = under_masks(spec)
    while isinstance(spec, ListSpec):
        spec = spec.values_spec
    if isinstance(spec, DenseStructuredTensorSpec) and spec.field_specs:
        for name, inner in spec.field_specs.items():
            yield from leaf_paths(inner, (*names, name))
    else:
        yield Path(*names)


def checked_uses(parts: Sequence[ComponentTensor], uses: Mapping[int, int]) -> list[int]:
    """Returns how each component must be kept, from how a graph uses it.

    A value of a type that is not known here is kept as a whole, or not at all.
    """
    used = {part.steps[:-1] for number, part in enumerate(parts) if is_opaque(part) and (
        uses.get(number, NOTHING) or is_fixed(part)
    )}  # fmt: skip
    checked: list[int] = []
    for number, part in enumerate(parts):
        use = uses.get(number, NOTHING)
        is_whole = is_opaque(part) and part.steps[:-1] in used
        if is_fixed(part) or is_whole or (use == SHAPE and not has_static_rows(part)):
            use = VALUE
        checked.append(use)
    return checked


def blank(spec: tf.TensorSpec, size: tf.Tensor | int = 0) -> tf.Tensor:
    """Returns a tensor in place of one whose values are not used.

    Args:
        spec: Its spec, whose rank is known.
        size: The size of the first dimension, if that is not static.
    """
    sizes: list[Any] = [0 if dim is None else dim for dim in spec.shape]
    if sizes and spec.shape[0] is None:
        sizes[0] = size
    # With a default, the tensor is no constant, so that tracing cannot depend on its values.
    return tf.raw_ops.PlaceholderWithDefault(input=_zeros(sizes, spec.dtype), shape=spec.shape)


def _zeros(sizes: list[Any], dtype: tf.DType) -> tf.Tensor:
    if all(isinstance(size, int) for size in sizes):
        return tf.zeros(sizes, dtype)
    return tf.zeros(tf.stack([tf.cast(size, tf.int64) for size in sizes]), dtype)


def with_blanks(
    spec: tf.TypeSpec, uses: Sequence[int], narrow_spec: tf.TypeSpec, narrow: Value
) -> Value:
    """Returns records with all fields of a spec, blank where they are not used.

    Args:
        spec: The spec of the records.
        uses: How each of its components is used.
        narrow_spec: The spec of the records with fewer fields.
        narrow: These records, which have at least one tensor of each list that is used.
    """
    given = {
        part.steps: tensor
        for part, tensor in zip(
            components(narrow_spec), tf.nest.flatten(narrow, expand_composites=True), strict=True
        )
    }
    counts = _counts(components(narrow_spec), given)
    flat: list[Any] = []
    for part, use in zip(components(spec), uses, strict=True):
        if part.steps in given:
            flat.append(given[part.steps])
        elif use == SHAPE:
            flat.append(blank(part.spec, counts[part.lists] + _is_splits(part)))
        else:
            assert use == NOTHING, part
            flat.append(blank(part.spec))
    return tf.nest.pack_sequence_as(spec, flat, expand_composites=True)


def _counts(parts: Sequence[ComponentTensor], given: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns the number of rows in each list."""
    counts: dict[tuple[Steps, ...], Any] = {}
    for part in parts:
        if part.lists not in counts and not is_opaque(part):
            size = tf.shape(given[part.steps], tf.int64)[0]
            counts[part.lists] = size - _is_splits(part)
    return counts


def _is_splits(part: ComponentTensor) -> bool:
    return bool(part.steps) and part.steps[-1].kind == ROW_SPLITS
