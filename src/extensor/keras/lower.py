"""Extension values as plain nests of tensors, which is all that Keras knows how to carry.

`lower` replaces each extension value in a nest by a dict with one key, which spells the value's
spec, and one item, the tuple of its component tensors. `raised` does the reverse. The form says
itself what it holds, so it may pass through datasets, functional graphs and files on its own.

Keras takes the size of the first tensor that it sees for the size of the batch, and weighs batches
by it. So the first tensor in the tuple has the batch as its first dimension. Where no tensor has,
because all fields are ragged, `counted` puts one more in front.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import re
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from extensor._tf import BaseResourceVariable, CompositeTensor
from extensor.core.box import StackableTypeSpec
from extensor.errors import RegistrationError
from extensor.keras.symbolic import SymbolicRagged
from extensor.path import Path
from extensor.struct.leaf import spec_of_field
from extensor.struct.spec import DenseStructuredTensorSpec

_MARK = "extensor:"
_LOCAL = "extensor-local:"

# Keras carries these itself.
_CARRIED = (tf.SparseTensor, tf.IndexedSlices, BaseResourceVariable)

_local_specs: dict[str, tf.TypeSpec] = {}
_local_numbers = itertools.count()


def is_extension(value: Any) -> bool:
    """Returns whether Keras needs a value lowered."""
    if isinstance(value, SymbolicRagged):
        return True
    return isinstance(value, CompositeTensor) and not isinstance(value, _CARRIED)


def is_lowered(value: Any) -> bool:
    """Returns whether something is the lowered form of one value."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    key = next(iter(value))
    return isinstance(key, str) and key.startswith((_MARK, _LOCAL))


def contains(structure: Any, holds: Callable[[Any], bool]) -> bool:
    """Returns whether something in a nest, or the nest itself, is what `holds` asks for."""
    if holds(structure):
        return True
    if isinstance(structure, dict):
        structure = structure.values()
    elif not isinstance(structure, (list, tuple)):
        return False
    return any(contains(item, holds) for item in structure)


def check_savable(config: Any) -> Any:
    """Returns a model's configuration, unless it means something in this process only.

    Raises:
        RegistrationError: If there is a spec in it that is not registered (also a ValueError).
    """
    local = re.search(f"{_LOCAL}[0-9]+", json.dumps(config))
    if local:
        spec = type(marked_spec(local[0]))
        raise RegistrationError(
            path=f"{spec.__module__}.{spec.__qualname__}",
            expected="a registered TypeSpec, so that the model can be read again",
            received="one that only this process knows",
            mend="Put @xt.register_type_spec above the class.",
        )
    return config


def lower(structure: Any) -> Any:
    """Returns a nest with every extension value in its lowered form."""
    return tf.nest.map_structure(_lowered, structure)


def raised(structure: Any) -> Any:
    """Returns a nest with every lowered form turned into the value that it stands for."""
    return _mapped(_raised, structure)


def uncounted(structure: Any) -> Any:
    """Returns a nest with every lowered form without what `counted` put in front."""
    return _mapped(lambda form: {key: tuple(_own(key, form[key])) for key in form}, structure)


def counted(structure: Any) -> Any:
    """Returns a nest with the tensors of every lowered form led by one that counts the batch."""
    return _mapped(_counted, structure)


def _mapped(function: Callable[[dict[str, Any]], Any], structure: Any) -> Any:
    """Maps the lowered forms in a nest; all else stays."""
    if is_lowered(structure):
        return function(structure)
    if isinstance(structure, dict):
        result = structure.copy()
        result.update((k, _mapped(function, v)) for k, v in structure.items())
        return result
    if isinstance(structure, (list, tuple)):
        items = [_mapped(function, item) for item in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else type(structure)(items)
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
    spec = any_batch_size(spec_of_field(value))
    return {mark(spec): tuple(_in_keras_order(spec, _decomposed(spec, value)))}


def lowered_spec(spec: tf.TypeSpec) -> dict[str, tuple[tf.TensorSpec, ...]]:
    """Returns the lowered form of a spec: TensorSpecs in the places of tensors."""
    spec = any_batch_size(spec)
    leaves = tf.nest.flatten(spec, expand_composites=True)
    return {mark(spec): tuple(_in_keras_order(spec, leaves))}


@functools.lru_cache(maxsize=1024)
def any_batch_size(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns a spec with the size of its first dimension left open, where it has one."""
    shape = getattr(spec, "shape", None)
    if shape is None or shape.rank in (None, 0) or shape[0] is None:
        return spec
    if isinstance(spec, StackableTypeSpec):
        return spec.unstacked().stacked(None)
    if isinstance(spec, tf.RaggedTensorSpec):
        shape = tf.TensorShape([None]).concatenate(shape[1:])
        return tf.RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    return spec


@functools.lru_cache(maxsize=1024)
def mark(spec: tf.TypeSpec) -> str:
    """Returns the key that spells a spec."""
    try:
        with warnings.catch_warnings():
            # TensorFlow warns that a reader needs the type registered, which is so by now.
            warnings.simplefilter("ignore", UserWarning)
            proto = spec.experimental_as_proto()
    except Exception:
        # A spec that is not registered works in this process, but cannot be saved.
        key = f"{_LOCAL}{next(_local_numbers)}"
        _local_specs[key] = spec
        return key
    packed = zlib.compress(proto.SerializeToString(deterministic=True), 9)
    return _MARK + base64.urlsafe_b64encode(packed).decode()


@functools.lru_cache(maxsize=1024)
def marked_spec(key: str) -> tf.TypeSpec:
    """Returns the spec that a key spells."""
    if key.startswith(_LOCAL):
        return _local_specs[key]
    proto = tf.TypeSpec.experimental_type_proto()()
    proto.ParseFromString(zlib.decompress(base64.urlsafe_b64decode(key[len(_MARK) :])))
    return tf.TypeSpec.experimental_from_proto(proto)


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
    else:
        for i, _ in enumerate(tf.nest.flatten(spec, expand_composites=True)):
            yield f"{path}.{i}"


def _decomposed(spec: Any, value: Any) -> list[Any]:
    """Returns the component tensors of a value, in the order of `tf.nest`."""
    if isinstance(spec, tf.RaggedTensorSpec) and isinstance(value, SymbolicRagged):
        return [value.flat_values, *value.nested_row_splits]
    if isinstance(value, keras.KerasTensor) or isinstance(spec, tf.TensorSpec):
        return [value]
    if not isinstance(spec, StackableTypeSpec):
        return tf.nest.flatten(value, expand_composites=True)
    tensors: list[Any] = []
    tf.nest.map_structure(
        lambda inner, part: tensors.extend(_decomposed(inner, part)),
        spec.component_specs,
        spec.to_components(value),
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
    components = [_composed_symbolic(s, tensors) for s in tf.nest.flatten(spec._component_specs)]
    return spec._from_components(tf.nest.pack_sequence_as(spec._component_specs, components))


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
    return next((place for place, is_dense in _batch_leaves(spec, 0) if is_dense), 0)


@functools.lru_cache(maxsize=1024)
def _outermost_splits(spec: tf.TypeSpec) -> int | None:
    """Returns the place of row splits of the batch, where no tensor has the batch itself."""
    places = list(_batch_leaves(spec, 0))
    return places[0][0] if places and not any(is_dense for _, is_dense in places) else None


def _batch_leaves(spec: Any, start: int) -> Any:
    """Yields, for each field, the place of the tensor that tells the batch, and whether it is it.

    Row splits tell it with one more element.
    """
    if isinstance(spec, tf.TensorSpec):
        yield start, True
    elif isinstance(spec, tf.RaggedTensorSpec):
        yield (start + 1, False) if spec.ragged_rank else (start, True)
    elif hasattr(spec, "values_spec") and len(spec.component_specs) == 2:
        yield start + len(tf.nest.flatten(spec.values_spec, expand_composites=True)), False
    else:
        for inner in tf.nest.flatten(spec._component_specs):
            yield from _batch_leaves(inner, start)
            start += len(tf.nest.flatten(inner, expand_composites=True))
