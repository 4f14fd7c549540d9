"""Extension values as plain nests of tensors, which is all that Keras knows how to carry.

`lower` replaces each extension value in a nest by a dict with one key, which spells the value's
spec, and one item, the tuple of its component tensors. `raised` does the reverse. The form says
itself what it holds, so it may pass through datasets, functional graphs and files on its own.

Keras takes the size of the first tensor that it sees for the size of the batch, and weighs batches
by it. So the first tensor in the tuple has the batch as its first dimension. Where no tensor has,
because all fields are ragged, `counted` puts one more in front.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from extensor._keras.placeholder import SymbolicRagged, SymbolicValue
from extensor._keras.spec_key import any_batch_size, is_mark, mark, marked_spec
from extensor._path import Path
from extensor._protocol.box import StackableTypeSpec
from extensor._protocol.tree import rebuilt
from extensor._struct.dense import DenseStructuredTensorSpec
from extensor._struct.field import spec_of_field
from extensor._struct.tensor import StructuredTensor
from extensor._tf import BaseResourceVariable, CompositeTensor
from extensor.errors import ExtensorError

# Keras carries these itself.
_CARRIED = (tf.SparseTensor, tf.IndexedSlices, BaseResourceVariable, tf.data.Dataset)


def is_extension(value: Any) -> bool:
    """Returns whether Keras needs a value lowered."""
    if isinstance(value, (SymbolicRagged, SymbolicValue)):
        return True
    return isinstance(value, CompositeTensor) and not isinstance(value, _CARRIED)


def is_extension_spec(spec: Any) -> bool:
    """Returns whether something is the spec of values that Keras needs lowered."""
    plain = (tf.TensorSpec, tf.SparseTensorSpec, tf.OptionalSpec)
    return isinstance(spec, tf.TypeSpec) and not isinstance(spec, plain)


def is_lowered(value: Any) -> bool:
    """Returns whether something is the lowered form of one value."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    return is_mark(next(iter(value)))


def contains(structure: Any, holds: Callable[[Any], bool]) -> bool:
    """Returns whether something in a nest, or the nest itself, is what `holds` asks for."""
    if holds(structure):
        return True
    if isinstance(structure, dict):
        structure = structure.values()
    elif not isinstance(structure, (list, tuple)):
        return False
    return any(contains(item, holds) for item in structure)


def lower(structure: Any) -> Any:
    """Returns a nest with every extension value in its lowered form."""
    return tf.nest.map_structure(_lowered, structure)


def raised(structure: Any) -> Any:
    """Returns a nest with every lowered form turned into the value that it stands for."""
    return mapped(_raised, structure)


def one_mask(masks: Any) -> Any:
    """Returns the masks of a nest with one, or None, for each lowered form among them."""
    return mapped(
        lambda form: next((m for m in next(iter(form.values())) if m is not None), None), masks
    )


def uncounted(structure: Any) -> Any:
    """Returns a nest with every lowered form without what `counted` put in front."""
    return mapped(lambda form: {key: tuple(_own(key, form[key])) for key in form}, structure)


def counted(structure: Any) -> Any:
    """Returns a nest with the tensors of every lowered form led by one that counts the batch."""
    return mapped(_counted, structure)


def for_keras(data: Any) -> Any:
    """Returns a batch, as datasets yield it, with its input in the form in which Keras counts it.

    Args:
        data: `x`, or a tuple `(x, y)` or `(x, y, sample_weight)`.
    """
    if not isinstance(data, (tuple, list)):
        return counted(lower(data))
    x, *rest = lower(tuple(data))
    return (counted(x), *rest)


def mapped(
    function: Callable[[dict[str, Any]], Any],
    structure: Any,
    is_form: Callable[[Any], bool] = is_lowered,
) -> Any:
    """Returns a nest with a function of each lowered form in its place; all else stays."""
    if is_form(structure):
        return function(structure)
    if isinstance(structure, dict):
        result = structure.copy()
        result.update((k, mapped(function, v, is_form)) for k, v in structure.items())
        return result
    if isinstance(structure, (list, tuple)):
        items = [mapped(function, item, is_form) for item in structure]
        return rebuilt(structure, items)
    return structure


def _raised(form: dict[str, Any]) -> Any:
    ((key, tensors),) = form.items()
    spec = marked_spec(key)
    return _composed(spec, _from_keras_order(spec, _own(key, tensors)))


def _own(key: str, tensors: Any) -> list[Any]:
    """Returns the tensors of the value itself, which come last."""
    own = len(tf.nest.flatten(marked_spec(key), expand_composites=True))
    return list(tensors)[len(tensors) - own :]


def _counted(form: dict[str, Any]) -> dict[str, Any]:
    ((key, tensors),) = form.items()
    splits = _outermost_splits(marked_spec(key))
    if splits is None:
        return form
    row_splits = _from_keras_order(marked_spec(key), list(tensors))[splits]
    return {key: (row_splits[:-1], *tensors)}


def _lowered(value: Any) -> Any:
    if not is_extension(value):
        return value
    spec = any_batch_size(_placeholder_spec(value) or spec_of_field(value))
    return {mark(spec): tuple(_in_keras_order(spec, _decomposed(spec, value)))}


def lowered_spec(spec: tf.TypeSpec) -> dict[str, tuple[tf.TensorSpec, ...]]:
    """Returns the lowered form of a spec: TensorSpecs in the places of tensors."""
    spec = any_batch_size(spec)
    leaves = tf.nest.flatten(spec, expand_composites=True)
    return {mark(spec): tuple(_in_keras_order(spec, leaves))}


def leaf_names(spec: tf.TypeSpec, name: str) -> list[str]:
    """Returns a name for each tensor of a lowered value, from the paths of its fields."""
    # Keras refuses names with a slash.
    names = [n.replace("/", "|") for n in _names(spec, Path(name) if name else Path())]
    return _in_keras_order(any_batch_size(spec), names)


def _names(spec: Any, path: Path) -> Any:
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
            yield from _names(inner, path / name)
    elif hasattr(spec, "values_spec") and len(spec.component_specs) == 2:
        yield from _names(spec.values_spec, path)
        yield f"{path}.row_splits"
    elif isinstance(spec._component_specs, dict):
        for name in sorted(spec._component_specs):
            yield from _names(spec._component_specs[name], path / name)
    else:
        for i, _ in enumerate(tf.nest.flatten(spec, expand_composites=True)):
            yield f"{path}.{i}"


def _decomposed(spec: Any, value: Any) -> list[Any]:
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
            tensors += _decomposed(inner, part)
    else:
        tf.nest.map_structure(
            lambda inner, part: tensors.extend(_decomposed(inner, part)), specs, parts
        )
    return tensors


def _composed(spec: Any, tensors: list[Any]) -> Any:
    if not any(isinstance(tensor, keras.KerasTensor) for tensor in tensors):
        return tf.nest.pack_sequence_as(spec, tensors, expand_composites=True)
    return _composed_symbolic(spec, iter(tensors))


def _composed_symbolic(spec: Any, tensors: Any) -> Any:
    if isinstance(spec, tf.TensorSpec):
        return next(tensors)
    if isinstance(spec, tf.RaggedTensorSpec):
        flat_values = next(tensors)
        splits = [next(tensors) for _ in range(spec.ragged_rank)]
        return SymbolicRagged(flat_values, splits) if splits else flat_values
    specs = tf.nest.flatten(spec._component_specs)
    components = [_composed_symbolic(inner, tensors) for inner in specs]
    leaves = [t for s, c in zip(specs, components, strict=True) for t in _decomposed(s, c)]
    try:
        value = spec._from_components(tf.nest.pack_sequence_as(spec._component_specs, components))
    except Exception:
        # Whatever its constructor made of the placeholders.
        return SymbolicValue(spec, leaves)
    if not isinstance(value, StructuredTensor):
        _remember(value, spec, leaves)
    return value


# The specs of placeholders of types that know nothing of placeholders, so that they cannot tell
# them: a reference to each by its id.
_placeholders: dict[int, tuple[Callable[[], Any], tf.TypeSpec]] = {}


class _Kept:
    """Keeps a placeholder whose class has no weak references, as long as its tensors live.

    Its tensors refer to it, and it refers to them, so that Python deletes all of them together.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return _Kept, (None,)  # a copy of the tensors is part of no placeholder


def _remember(value: Any, spec: tf.TypeSpec, tensors: list[Any]) -> None:
    key = id(value)

    def forget(_: Any) -> None:
        _placeholders.pop(key, None)

    try:
        _placeholders[key] = weakref.ref(value, forget), spec
    except TypeError:
        kept = _Kept(value)
        for tensor in tensors:
            tensor._extensor_kept = [*getattr(tensor, "_extensor_kept", ()), kept]
        reference = weakref.ref(kept, forget)
        _placeholders[key] = (lambda: getattr(reference(), "value", None)), spec


def _placeholder_spec(value: Any) -> tf.TypeSpec | None:
    reference, spec = _placeholders.get(id(value), (lambda: None, None))
    return spec if reference() is value else None


def _in_keras_order(spec: tf.TypeSpec, tensors: list[Any]) -> list[Any]:
    first = _batch_leaf(spec)
    return [tensors[first], *tensors[:first], *tensors[first + 1 :]] if first else list(tensors)


def _from_keras_order(spec: tf.TypeSpec, tensors: list[Any]) -> list[Any]:
    first = _batch_leaf(spec)
    if not first:
        return tensors
    return [*tensors[1 : first + 1], tensors[0], *tensors[first + 1 :]]


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
    whole: Any = spec
    parts = tf.nest.flatten(whole._component_specs)
    return [length for part in parts for length in _lengths(part, batch_size)]
