"""The form of extension values on their way through Keras, which carries plain nests of tensors.

Keras 3 rejects extension values. So each of them is *lowered*: replaced by a dict with one key and
the tuple of some tensors. The key spells the spec of the value, and begins with a word that says
which tensors these are:

| key | tensors | function | where |
| --- | --- | --- | --- |
| the spec alone | the component tensors (`component_tensors`) | `lowered` | what layers take and return, functional graphs, files |
| `counted ` and the spec | one as long as the batch, then the component tensors | `counted` | the input of a training step, where no component is as long as the batch: Keras weighs a batch by the size of the first tensor |
| `boxes ` and the spec | the tensors that a dataset holds for the value | `lowered_dataset` | batches that `predict` takes out of a dataset one by one, in Python: to make values of them there takes longer than many a step |
| `concat ` and the spec | tensors that may be concatenated (`concat_tensors`) | `lowered_outputs` | outputs of `predict`, which Keras concatenates |

`raised` reads all of them: it returns the values. The form says itself what it holds, so it passes
through datasets, functional graphs and files on its own.

A value is lowered where Keras takes it and raised where code of a user takes it (`layer_call`,
`trainer`).
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._keras import component_tensors, concat_tensors
from extensor._keras.open_spec import any_batch_size, any_sizes
from extensor._keras.placeholder import SymbolicRagged, SymbolicValue
from extensor._keras.placeholder_spec import remembered_spec
from extensor._keras.spec_key import is_key, key_of_spec, spec_of_key
from extensor._protocol.box import boxed_specs, unbox
from extensor._struct.field import spec_of_field
from extensor._tf import BaseResourceVariable, CompositeTensor

# Keras carries these itself.
_CARRIED = (tf.SparseTensor, tf.IndexedSlices, BaseResourceVariable, tf.data.Dataset)

_COUNTED, _BOXES, _CONCAT = "counted ", "boxes ", "concat "


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
    """Returns whether something is one lowered value."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    key = next(iter(value))
    return isinstance(key, str) and is_key(key.rpartition(" ")[2])


def contains(structure: Any, holds: Callable[[Any], bool]) -> bool:
    """Returns whether something in a nest, or the nest itself, is what `holds` asks for."""
    if holds(structure):
        return True
    if isinstance(structure, dict):
        structure = structure.values()
    elif not isinstance(structure, (list, tuple)):
        return False
    return any(contains(item, holds) for item in structure)


def map_lowered(function: Callable[[dict[str, Any]], Any], structure: Any) -> Any:
    """Returns a nest with a function of each lowered value in its place; all else stays."""
    if is_lowered(structure):
        return function(structure)
    if isinstance(structure, dict):
        result = structure.copy()
        result.update((name, map_lowered(function, item)) for name, item in structure.items())
        return result
    if isinstance(structure, (list, tuple)):
        items = [map_lowered(function, item) for item in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else type(structure)(items)
    return structure


def raised(structure: Any) -> Any:
    """Returns a nest with the extension value in the place of each lowered one.

    Raises:
        StructureError: If a field of an output of `predict` has another size in some batch (also a
            ValueError).
    """
    return map_lowered(_raised, structure)


def lowered(structure: Any) -> Any:
    """Returns a nest with every extension value as its component tensors."""
    return tf.nest.map_structure(_lowered, structure)


def lowered_spec(spec: tf.TypeSpec) -> dict[str, tuple[tf.TensorSpec, ...]]:
    """Returns the lowered form of a spec: TensorSpecs in the places of component tensors."""
    spec = any_batch_size(spec)
    leaves = tf.nest.flatten(spec, expand_composites=True)
    return {key_of_spec(spec): tuple(component_tensors.batch_first(spec, leaves))}


def spec_of_lowered(form: dict[str, Any]) -> tf.TypeSpec:
    """Returns the spec of one lowered value."""
    _, spec, _ = _parts(form)
    return spec


def tensors_of_lowered(form: dict[str, Any]) -> tuple[Any, ...]:
    """Returns the tensors of one lowered value."""
    (tensors,) = form.values()
    return tensors


def one_mask(masks: Any) -> Any:
    """Returns a nest of masks with one mask, or None, for all tensors of a lowered value."""
    return map_lowered(
        lambda form: next((m for m in tensors_of_lowered(form) if m is not None), None), masks
    )


def counted(data: Any) -> Any:
    """Returns a batch with its input lowered so that the first tensor is as long as the batch.

    Args:
        data: `x`, or a tuple `(x, y)` or `(x, y, sample_weight)`.
    """
    if not isinstance(data, (tuple, list)):
        return map_lowered(_counted, lowered(data))
    x, *rest = data
    return (map_lowered(_counted, lowered(x)), *rest)


def uncounted(structure: Any) -> Any:
    """Returns a nest with every lowered value without the tensor that `counted` put in front."""
    return map_lowered(_uncounted, structure)


def lowered_dataset(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns a dataset of the tensors that another one holds. It runs nothing to make them.

    It is good for as long as the other one lives.

    >>> rows = tf.data.Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]]))
    >>> [raised(element) for element in lowered_dataset(rows)]
    [<tf.RaggedTensor [[1], [2, 3]]>]
    """
    spec = dataset.element_spec
    if not contains(spec, is_extension_spec):
        return dataset
    variant = tf.data.experimental.to_variant(dataset)
    return tf.data.experimental.from_variant(variant, tf.nest.map_structure(_boxes, spec))


def lowered_outputs(outputs: Any) -> Any:
    """Returns a nest with every extension value as tensors that Keras may concatenate."""
    return tf.nest.map_structure(_concat, outputs)


def _parts(form: dict[str, Any]) -> tuple[str, tf.TypeSpec, tuple[Any, ...]]:
    """Returns the first word, the spec and the tensors of one lowered value."""
    ((key, tensors),) = form.items()
    words, space, spec_key = key.rpartition(" ")
    return words + space, spec_of_key(spec_key), tensors


def _raised(form: dict[str, Any]) -> Any:
    word, spec, tensors = _parts(form)
    if word == _BOXES:
        return unbox(spec, list(tensors))
    if word == _CONCAT:
        return concat_tensors.to_value(spec, tensors)
    own = tensors[1:] if word == _COUNTED else tensors
    return component_tensors.to_value(spec, list(own))


def _lowered(value: Any) -> Any:
    if not is_extension(value):
        return value
    spec = any_batch_size(remembered_spec(value) or spec_of_field(value))
    return {key_of_spec(spec): tuple(component_tensors.to_tensors(spec, value))}


def _counted(form: dict[str, Any]) -> dict[str, Any]:
    ((key, tensors),) = form.items()
    count = component_tensors.count_of_batch(spec_of_key(key), list(tensors))
    return form if count is None else {_COUNTED + key: (count, *tensors)}


def _uncounted(form: dict[str, Any]) -> dict[str, Any]:
    ((key, (*tensors,)),) = form.items()
    return {key[len(_COUNTED) :]: tuple(tensors[1:])} if key.startswith(_COUNTED) else form


def _boxes(spec: Any) -> Any:
    if not is_extension_spec(spec):
        return spec
    return {_BOXES + key_of_spec(spec): tuple(boxed_specs(spec))}


def _concat(value: Any) -> Any:
    if not is_extension(value):
        return value
    spec = any_sizes(tf.type_spec_from_value(value))
    return {_CONCAT + key_of_spec(spec): tuple(concat_tensors.to_tensors(spec, value))}
