"""The component tensors of a spec, and the steps from the value to each.

Signatures of servers, Keras models and the reading of fewer fields name the same tensors in
different words. All of them take the tensors from `components`, and read the steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from extensor._declare.derived_spec import DerivedSpec, parts_of
from extensor._protocol.named_leaves import Names, name_of_key, named_leaves
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.masked import is_masked, is_union
from extensor._struct.ragged_spec import RaggedRowSpec, RaggedStructuredTensorSpec
from extensor._tf import VariableSpec, component_specs, describes

ITEMS, ROW_SPLITS = "items", "row_splits"
MASK, UNMASKED, CODES = "mask", "unmasked", "codes"
OPAQUE = "opaque"


class Step(NamedTuple):
    """A step from a value to one of its components.

    Attributes:
        kind: Empty for a component with a name. `items` for what is in lists, `unmasked` for what
            is under a mask, `opaque` for a tensor of a type that was not opened. Otherwise the
            role of the component: `row_splits`, `mask`, `codes` of a union, `rows` for the count
            of records without fields, or a part of a tf.SparseTensor or tf.IndexedSlices.
        names: What a user calls the component: the name of a field or of a variant, or the keys
            of a dict in a field.
        keys: The keys of the component in `component_specs`. None in lists.
    """

    kind: str
    names: Names = ()
    keys: Names = ()


Steps = tuple[Step, ...]

_ITEMS, _ROW_SPLITS = Step(ITEMS), Step(ROW_SPLITS)
_COUNTED_BY = {ITEMS: ROW_SPLITS, UNMASKED: MASK}


@dataclass(frozen=True)
class ComponentTensor:
    """A component tensor of a value.

    >>> import tensorflow as tf
    >>> from extensor._struct.component import components
    >>> for one in components(tf.RaggedTensorSpec([None, None, None], tf.int32)):
    ...     print(one.spec.shape, one.part or "-", len(one.lists))
    (None,) - 2
    (None,) row_splits 0
    (None,) row_splits_1 1
    """

    steps: Steps
    """The steps from the value to the tensor."""

    spec: Any
    """The TensorSpec of the tensor, or the VariableSpec of a variable."""

    @property
    def names(self) -> Names:
        """The path of the tensor: the names of fields, variants and keys."""
        return tuple(name for step in self.steps for name in step.names)

    @property
    def part(self) -> str:
        """What the tensor is at its path: empty for the values, or the kind of its last step.

        Where a path has several masks or row splits, they have numbers, outermost first:
        `row_splits`, `row_splits_1`. A ragged mask has rows of its own, `mask__row_splits`; the
        rows of ragged codes are those of the union.
        """
        parts: list[str] = []
        around = Counter[str]()
        for kind, names, _ in self.steps:
            if names:
                parts, around = [], Counter()
            elif kind in _COUNTED_BY:
                around[_COUNTED_BY[kind]] += 1
            elif kind:
                outer = [] if parts == [CODES] else parts
                parts = [*outer, f"{kind}_{around[kind]}" if around[kind] else kind]
        return "__".join(parts)

    @property
    def lists(self) -> tuple[Steps, ...]:
        """The steps to each list around the tensor. Tensors of one list have the same rows."""
        return tuple(self.steps[: i + 1] for i, one in enumerate(self.steps) if one.kind == ITEMS)


def components(
    spec: tf.TypeSpec, opens: Callable[[Any], bool] = lambda spec: True
) -> Iterator[ComponentTensor]:
    """Yields the component tensors of a spec, in the order of `tf.nest`.

    Args:
        spec: The spec of a value.
        opens: Whether to look into values of a spec. The tensors of others are `opaque`.
    """
    yield from _components(spec, (), opens)


def _components(
    spec: tf.TypeSpec, steps: Steps, opens: Callable[[Any], bool]
) -> Iterator[ComponentTensor]:
    if isinstance(spec, (tf.TensorSpec, VariableSpec)):
        yield ComponentTensor(steps, spec)
    elif opens(spec):
        for below, one in steps_below(spec):
            yield from _components(one, (*steps, *below), opens)
    else:
        for i, one in enumerate(tf.nest.flatten(spec, expand_composites=True)):
            yield ComponentTensor((*steps, Step(OPAQUE, keys=(str(i),))), one)


def steps_below(spec: tf.TypeSpec) -> list[tuple[Steps, Any]]:
    """Returns the specs of a value's components, each with the steps to it."""
    if isinstance(spec, RaggedRowSpec):
        return [((), spec.values_spec)]
    if isinstance(spec, RaggedStructuredTensorSpec):
        return [((_ITEMS,), spec.values_spec), ((_ROW_SPLITS,), spec.component_specs[1])]
    specs = component_specs(spec)
    if isinstance(spec, tf.RaggedTensorSpec):
        values, *splits = specs
        inner = ((_ITEMS,) * len(splits), values)
        return [inner, *(((_ITEMS,) * i + (_ROW_SPLITS,), one) for i, one in enumerate(splits))]
    return [((step,), one) for step, one in _named_steps(spec, specs)]


def _named_steps(spec: tf.TypeSpec, specs: Any) -> Iterator[tuple[Step, Any]]:
    """Yields the component specs of a value that is not lists, each with its step."""
    if isinstance(spec, DenseStructuredTensorSpec):
        names = [Step("", (name,), (name,)) for name in sorted(spec.field_specs)]
        yield from zip(names or [Step("rows", keys=("",))], specs, strict=True)
    elif is_masked(spec):
        yield Step(MASK, keys=("mask",)), spec.mask
        yield Step(UNMASKED, keys=("values",)), spec.values
    elif isinstance(specs, Mapping):
        names_of = _names_by_key(spec) if isinstance(spec, DerivedSpec) else {}
        for key in sorted(specs):
            for below, one in named_leaves(specs[key]):
                names, keys = names_of.get(key, (name_of_key(key),)), (str(key), *below)
                is_codes = key == "codes" and is_union(spec)
                yield Step(CODES, keys=keys) if is_codes else Step("", (*names, *below), keys), one
    else:
        for i, (step, one) in enumerate(_unkeyed_steps(spec, specs)):
            yield step._replace(keys=(str(i),)), one


def _unkeyed_steps(spec: tf.TypeSpec, specs: Any) -> Iterator[tuple[Step, Any]]:
    """Yields the component specs that are in a tuple, each with its step without keys."""
    if isinstance(spec, tf.SparseTensorSpec):
        yield from zip(map(Step, ("indices", "values", "dense_shape")), specs, strict=True)
    elif isinstance(spec, tf.IndexedSlicesSpec):
        yield from zip(map(Step, ("values", "indices", "dense_shape")), specs, strict=False)
    elif describes(spec, tf.experimental.ExtensionType):
        fields = [leaf for name, part in vars(spec).items() for leaf in named_leaves(part, (name,))]
        yield from ((Step("", names), one) for names, one in fields if isinstance(one, tf.TypeSpec))
    else:
        for names, one in named_leaves(specs):
            yield Step("", names), one


def _names_by_key(spec: DerivedSpec) -> dict[str, Names]:
    """Returns the names in each key of the components of a declared type."""
    names = {
        key: at for name, part in parts_of(spec).items() for key, at in _keys(part, name, (name,))
    }
    if is_union(spec):  # the name of a variant is the name of its rows
        return {key: at[1:] for key, at in names.items()}
    return names


def _keys(part: Any, key: str, names: Names) -> Iterator[tuple[str, Names]]:
    """Yields the component keys of a part of a declared type, with the names in each key."""
    if isinstance(part, tuple):
        fields: Any = getattr(part, "_fields", None) or range(len(part))
        for i, (name, item) in enumerate(zip(fields, part, strict=True)):
            yield from _keys(item, f"{key}[{i}]", (*names, str(name)))
    elif isinstance(part, Mapping):
        for k, item in part.items():
            yield from _keys(item, f"{key}[{k!r}]", (*names, name_of_key(k)))
    else:
        yield key, names
