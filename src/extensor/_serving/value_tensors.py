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
from extensor.errors import UnsupportedTypeError


class ValueTensor(NamedTuple):
    """A component tensor of a value: the names of its path, its part and its ragged level."""

    names: Names
    part: str
    level: int


def value_tensors(
    spec: Any, names: Names, level: int
) -> Iterator[tuple[ValueTensor, tf.TensorSpec]]:
    """Yields each tensor of a value and its spec, in the order of `tf.nest`.

    Args:
        spec: The spec of the value.
        names: The names of the value's path.
        level: The number of outer ragged dimensions with the same names.
    """
    if isinstance(spec, VariableSpec):
        raise _not_sent(names, "a variable")
    if isinstance(spec, tf.TensorSpec):
        if spec.dtype in (tf.resource, tf.variant):
            raise _not_sent(names, f"a tensor of dtype {spec.dtype.name}")
        yield ValueTensor(names, "", level), spec
    elif isinstance(spec, tf.RaggedTensorSpec):
        values, *splits = component_specs(spec)
        yield from value_tensors(values, names, level + len(splits))
        for i, one in enumerate(splits):
            yield ValueTensor(names, "row_splits", level + i), one
    elif isinstance(spec, RaggedStructuredTensorSpec):
        yield from value_tensors(spec.values_spec, names, level if spec.is_row else level + 1)
        if not spec.is_row:
            yield ValueTensor(names, "row_splits", level), spec.component_specs[1]
    elif isinstance(spec, DenseStructuredTensorSpec) and not spec.field_specs:
        yield ValueTensor(names, "rows", level), spec.component_specs[0]
    else:
        for below, one in named_components(spec):
            yield from value_tensors(one, (*names, *below), 0 if below else level)


def _not_sent(names: Names, received: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        path=Path(*names),
        expected="a tensor of numbers, strings or booleans, because it is sent to a server",
        received=received,
        mend="Keep it in the module, and use its value in arguments and results.",
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
