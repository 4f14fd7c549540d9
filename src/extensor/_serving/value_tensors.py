"""The component tensors of a value, and their paths inside the value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from extensor._declare.derived_spec import DerivedSpec, parts_of
from extensor._path import Path
from extensor._serving.named_nest import Names, leaves_below, name_of_key
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._tf import VariableSpec, component_specs, describes
from extensor._types.masked.value import MaskedTensor
from extensor._types.union.value import UnionTensor
from extensor.errors import UnsupportedTypeError


class ValueTensor(NamedTuple):
    """A component tensor of a value: the names of its path, and its part.

    The path has the names that a user gave: of fields, keys and variants. The part is empty for the
    values at this path. Otherwise it is `mask`, `row_splits`, `codes` or `rows`, or a part of a
    tf.SparseTensor or tf.IndexedSlices. Where a path has several masks or row splits, they have
    numbers, outermost first: `row_splits`, `row_splits_1`. A ragged mask has rows of its own,
    `mask__row_splits`.
    """

    names: Names
    part: str


class _At(NamedTuple):
    """Where a value is: its path, its part, and how many rows and masks of this path are around."""

    names: Names
    part: str = ""
    rows: int = 0
    masks: int = 0

    def tensor(self, part: str = "", number: int = 0) -> ValueTensor:
        return ValueTensor(self.names, self.inside(part, number).part if part else self.part)

    def inside(self, part: str, number: int = 0) -> _At:
        own = f"{part}_{number}" if number else part
        return self._replace(part=f"{self.part}__{own}" if self.part else own)

    def below(self, names: Names) -> _At:
        return _At((*self.names, *names)) if names else self


def value_tensors(spec: Any, names: Names) -> Iterator[tuple[ValueTensor, tf.TensorSpec]]:
    """Yields each tensor of a value and its spec, in the order of `tf.nest`.

    Args:
        spec: The spec of the value.
        names: The names of the value's path.
    """
    yield from _tensors(spec, _At(names))


def _tensors(spec: Any, at: _At) -> Iterator[tuple[ValueTensor, tf.TensorSpec]]:
    if isinstance(spec, VariableSpec):
        raise _not_sent(at.names, "a variable")
    if isinstance(spec, tf.TensorSpec):
        if spec.dtype in (tf.resource, tf.variant):
            raise _not_sent(at.names, f"a tensor of dtype {spec.dtype.name}")
        yield at.tensor(), spec
    elif isinstance(spec, tf.RaggedTensorSpec):
        values, *splits = component_specs(spec)
        yield from _tensors(values, at._replace(rows=at.rows + len(splits)))
        for i, one in enumerate(splits):
            yield at.tensor("row_splits", at.rows + i), one
    elif isinstance(spec, RaggedStructuredTensorSpec):
        yield from _tensors(spec.values_spec, at._replace(rows=at.rows + (not spec.is_row)))
        if not spec.is_row:
            yield at.tensor("row_splits", at.rows), spec.component_specs[1]
    elif isinstance(spec, DenseStructuredTensorSpec) and not spec.field_specs:
        yield at.tensor("rows"), spec.component_specs[0]
    elif isinstance(spec, MaskedTensor.Spec):
        yield from _tensors(spec.mask, at.inside("mask", at.masks))
        yield from _tensors(spec.values, at._replace(masks=at.masks + 1))
    elif isinstance(spec, UnionTensor.Spec):
        for tensor, one in _tensors(spec.codes, at):
            yield (at.tensor("codes") if tensor == at.tensor() else tensor), one
        for (_, *variant), one in named_components(spec)[1:]:
            yield from _tensors(one, at.below(tuple(variant)))
    elif isinstance(spec, (tf.SparseTensorSpec, tf.IndexedSlicesSpec)):
        for (part,), one in named_components(spec):
            yield from _tensors(one, at.inside(part))
    else:
        for below, one in named_components(spec):
            yield from _tensors(one, at.below(below))


def _not_sent(names: Names, received: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        Path(*names),
        "a tensor of numbers, strings or booleans, because it is sent to a server",
        received,
        "Keep it in the module, and use its value in arguments and results.",
    )


def named_components(spec: Any) -> list[tuple[Names, Any]]:
    """Returns the specs of a value's components with their names, in the order of `tf.nest`."""
    specs = component_specs(spec)
    if isinstance(spec, DenseStructuredTensorSpec) and spec.field_specs:
        return [((name,), spec.field_specs[name]) for name in sorted(spec.field_specs)]
    if isinstance(spec, tf.SparseTensorSpec):
        return list(zip([("indices",), ("values",), ("dense_shape",)], specs, strict=True))
    if isinstance(spec, tf.IndexedSlicesSpec):
        return list(zip([("values",), ("indices",), ("dense_shape",)], specs, strict=False))
    if isinstance(spec, DerivedSpec) and isinstance(specs, dict):
        parts = parts_of(spec).items()
        names = {k: n for f, part in parts for k, n in _keys(part, f, (f,)) if k in specs}
        return [leaf for k in sorted(specs) for leaf in leaves_below(specs[k], names.get(k, (k,)))]
    if describes(spec, tf.experimental.ExtensionType):
        found = [leaf for name, part in vars(spec).items() for leaf in leaves_below(part, (name,))]
        return [(names, leaf) for names, leaf in found if isinstance(leaf, tf.TypeSpec)]
    return list(leaves_below(specs, ()))


def _keys(part: Any, key: str, names: Names) -> Iterator[tuple[str, Names]]:
    """Yields the component keys of a derived spec, with the names in each key."""
    if isinstance(part, tuple):
        fields: Any = getattr(part, "_fields", None) or range(len(part))
        for i, (name, item) in enumerate(zip(fields, part, strict=True)):
            yield from _keys(item, f"{key}[{i}]", (*names, str(name)))
    elif isinstance(part, Mapping):
        for k, item in part.items():
            yield from _keys(item, f"{key}[{k!r}]", (*names, name_of_key(k)))
    else:
        yield key, names
