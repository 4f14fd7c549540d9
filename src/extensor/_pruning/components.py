"""The component tensors of records: the fields that they belong to, and blanks in their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from extensor._path import Path
from extensor._pruning.consumption import NOTHING, SHAPE, VALUE
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.masked import is_masked
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._tf import component_specs

Rows = tuple[tuple[tuple[str, ...], int], ...]
"""The lists around a tensor: the names and the level of each. Tensors of one list share rows."""


@dataclass(frozen=True)
class Component:
    """A component tensor of a value."""

    names: tuple[str, ...]
    """The names of the field's path; of records for their row splits and mask."""

    part: str
    """`values`, `row_splits` or `mask`."""

    rows: Rows
    """The lists around the tensor."""

    spec: tf.TensorSpec
    """The shape and dtype."""

    leaves: frozenset[Path]
    """The fields without fields of their own of which each has this tensor."""

    is_fixed: bool = False
    """Whether the tensor is always needed, because the type of its field is not known here."""

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies the tensor in the records, also if other fields are missing."""
        return self.names, self.part, self.rows

    @property
    def inner_is_static(self) -> bool:
        """Whether the sizes of all dimensions but the first are known."""
        shape = self.spec.shape
        return bool(shape.rank) and shape[1:].is_fully_defined()


def components(spec: Any) -> tuple[Component, ...]:
    """Returns the components of a spec, in the order of `tf.nest.flatten`."""
    return tuple(_components(spec, (), (), True))


def _components(spec: Any, names: tuple[str, ...], rows: Rows, known: bool) -> Iterator[Component]:
    """Yields the components of the spec of a field.

    Args:
        spec: The spec.
        names: The names of the field's path.
        rows: The lists around the field.
        known: Whether the types of all values around the field are known.
    """
    if isinstance(spec, DenseStructuredTensorSpec) and spec.field_specs and known:
        for name in sorted(spec.field_specs):
            yield from _components(spec.field_specs[name], (*names, name), rows, known)
    elif isinstance(spec, RaggedStructuredTensorSpec) and not spec.is_row and known:
        inner = (*rows, (names, len(rows)))
        yield from _components(spec.values_spec, names, inner, known)
        yield _outer(spec, spec.component_specs[1], names, "row_splits", rows)
    elif isinstance(spec, tf.RaggedTensorSpec) and known and spec.ragged_rank:
        values, *splits = component_specs(spec)
        levels = [rows]
        for _ in splits:
            levels.append((*levels[-1], (names, len(levels[-1]))))
        yield from _components(values, names, levels[-1], isinstance(values, tf.TensorSpec))
        for one, level in zip(splits, levels, strict=False):
            yield _outer(spec, one, names, "row_splits", level)
    elif is_masked(spec) and known and isinstance(spec.mask, tf.TensorSpec):
        for name, part in sorted({"mask": spec.mask, "values": spec.values}.items()):
            if name == "mask":
                yield _outer(spec, part, names, "mask", rows)
            else:
                yield from _components(part, names, rows, known)
    elif isinstance(spec, tf.TensorSpec) and known and spec.dtype not in (tf.variant, tf.resource):
        fixed = spec.shape.rank is None
        yield Component(names, "values", rows, spec, frozenset({Path(*names)}), fixed)
    else:
        leaf = frozenset({Path(*names)})
        flat = tf.nest.flatten(spec, expand_composites=True)
        for number, part in enumerate(flat):
            yield Component(names, f"part {number}", rows, part, leaf, True)


def _outer(
    spec: Any, part: tf.TensorSpec, names: tuple[str, ...], kind: str, rows: Rows
) -> Component:
    """Returns the component of row splits or of a mask, which all fields in it share."""
    return Component(names, kind, rows, part, frozenset(leaf_paths(spec, names)))


def leaf_paths(spec: Any, names: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yields the path of each field without fields of its own, also in masked records."""
    while is_masked(spec):
        spec = spec.values
    while isinstance(spec, RaggedStructuredTensorSpec):
        spec = spec.values_spec
    if isinstance(spec, DenseStructuredTensorSpec) and spec.field_specs:
        for name, inner in spec.field_specs.items():
            yield from leaf_paths(inner, (*names, name))
    else:
        yield Path(*names)


def checked_uses(parts: Sequence[Component], uses: Mapping[int, int]) -> list[int]:
    """Returns how each component must be kept, from how a graph uses it."""
    checked: list[int] = []
    for number, part in enumerate(parts):
        use = uses.get(number, NOTHING)
        if part.is_fixed or (use == SHAPE and not part.inner_is_static):
            use = VALUE
        checked.append(use)
    return checked


def blank(spec: tf.TensorSpec, size: Any = 0) -> tf.Tensor:
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


def filled(spec: Any, uses: Sequence[int], narrow_spec: Any, narrow: Any) -> Any:
    """Returns records with all fields of a spec, blank where they are not used.

    Args:
        spec: The spec of the records.
        uses: How each of its components is used.
        narrow_spec: The spec of the records with fewer fields.
        narrow: These records, which have at least one tensor of each list that is used.
    """
    given = {
        part.key: tensor
        for part, tensor in zip(
            components(narrow_spec),
            tf.nest.flatten(narrow, expand_composites=True),
            strict=True,
        )
    }
    counts = _counts(components(narrow_spec), given)
    flat: list[Any] = []
    for part, use in zip(components(spec), uses, strict=True):
        if part.key in given:
            flat.append(given[part.key])
        elif use == SHAPE:
            flat.append(blank(part.spec, counts[part.rows] + (part.part == "row_splits")))
        else:
            assert use == NOTHING, part
            flat.append(blank(part.spec))
    return tf.nest.pack_sequence_as(spec, flat, expand_composites=True)


def _counts(parts: Sequence[Component], given: Mapping[Any, Any]) -> dict[Rows, Any]:
    """Returns the number of rows in each list."""
    counts: dict[Rows, Any] = {}
    for part in parts:
        if part.rows not in counts and not part.part.startswith("part "):
            size = tf.shape(given[part.key], tf.int64)[0]
            counts[part.rows] = size - (part.part == "row_splits")
    return counts
