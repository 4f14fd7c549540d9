"""Lowering of extension values to plain nests of tensors for Keras, and the values of these.

Keras 3 rejects extension values. So each value is *lowered*: replaced by a dict with one key and a
tuple of tensors. The key encodes the spec of the value, and a first word says which tensors these
are. docs/design.md lists the words ("A value in Keras").

`from_lowered` returns the values of all these forms. A lowered value needs no other data, so it can
pass through datasets, functional graphs and files.

A value is lowered before Keras gets it, and made again before a user's code gets it (`layer_call`,
`trainer`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from extensor._authoring.rows import row_splits_of
from extensor._data.prunable import unpack_used
from extensor._keras import component_tensors
from extensor._keras.open_spec import any_batch_size, any_sizes
from extensor._keras.placeholder import SymbolicRagged, SymbolicValue, remembered_spec
from extensor._keras.spec_key import SpecKey, is_key, key_of_spec, spec_of_key
from extensor._keras.value_tensor import form_of_value_tensor, is_value_tensor
from extensor._path import Path
from extensor._protocol.box import box, boxed_specs, is_stackable, unbox
from extensor._protocol.stackable_spec import StackableTypeSpec
from extensor._pruning.components import with_blanks
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.field import spec_of_field
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._tf import BaseResourceVariable, CompositeTensor, describes
from extensor._typing import Nest, Value
from extensor.errors import StructureError

# Keras accepts these itself.
_ACCEPTED = (tf.SparseTensor, tf.IndexedSlices, BaseResourceVariable, tf.data.Dataset)


class PassedValue:
    """A value as one leaf of a nest, which Keras passes on without a look at its tensors.

    `from_lowered` and `to_lowered` put the value, or its lowered form, in its place.

    Args:
        given: The value, or its lowered form.
    """

    __slots__ = ("given",)

    def __init__(self, given: Nest) -> None:
        self.given = given

    def __tf_tensor__(self, dtype: tf.DType | None = None, name: str | None = None) -> tf.Tensor:
        """Returns a tensor of the size of the batch, by which Keras weighs the loss of a batch."""
        _, spec, tensors = _parts(to_lowered(self))
        return component_tensors.batch_sized(spec, list(tensors))

    def __repr__(self) -> str:
        # As a `SpecKey`, for errors of Keras.
        return f"<{tf.type_spec_from_value(from_lowered(self))}>"


# The first word of a key: which tensors there are, of other than all component tensors.
BOXES, _CONCAT = "boxes", "concat"


class _Form(NamedTuple):
    """How the tensors of a lowered value make the value: what its key says before the spec.

    Attributes:
        tensors: Which tensors these are; empty for the component tensors.
        uses: A digit for each component tensor of the value: how it is used. Empty if all are.
        narrow_key: The key of the spec of the boxes, if these are of records with fewer fields.
    """

    tensors: str = ""
    uses: str = ""
    narrow_key: str = ""


def key_of_form(
    spec: tf.TypeSpec,
    tensors: str = "",
    uses: Sequence[int] = (),
    narrow_spec: tf.TypeSpec | None = None,
) -> str:
    """Returns the key of a lowered value.

    Args:
        spec: The spec of the value.
        tensors: Which tensors it has. Default: the component tensors that are used.
        uses: How each component tensor is used. Default: all are used.
        narrow_spec: The spec of the boxes, if these are of records with fewer fields.
    """
    narrow_key = "" if narrow_spec is None else key_of_spec(narrow_spec)
    word = ":".join(_Form(tensors, "".join(map(str, uses)), narrow_key))
    return SpecKey(f"{word} {key_of_spec(spec)}", spec)


def is_extension(value: object) -> bool:
    """Returns whether a value must be lowered for Keras."""
    if isinstance(value, (SymbolicRagged, SymbolicValue)):
        return True
    return isinstance(value, CompositeTensor) and not isinstance(value, _ACCEPTED)


def is_extension_spec(spec: object) -> bool:
    """Returns whether `spec` is the spec of values that must be lowered for Keras."""
    plain = (tf.TensorSpec, tf.SparseTensorSpec, tf.OptionalSpec)
    return isinstance(spec, tf.TypeSpec) and not isinstance(spec, plain)


def is_lowered(value: object) -> bool:
    """Returns whether `value` is the lowered form of a value."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    key = next(iter(value))
    return isinstance(key, str) and is_key(key.rpartition(" ")[2])


def contains(structure: Nest, holds: Callable[[Any], bool]) -> bool:
    """Returns whether `holds` is true of a nest or of anything inside it."""
    if holds(structure):
        return True
    if isinstance(structure, dict):
        structure = structure.values()
    elif not isinstance(structure, (list, tuple)):
        return False
    return any(contains(item, holds) for item in structure)


def map_lowered(function: Callable[[dict[str, Any]], Any], structure: Nest) -> Nest:
    """Returns a nest with `function` applied to each lowered value."""
    if isinstance(structure, PassedValue):
        return map_lowered(function, structure.given)
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


def from_lowered(structure: Nest) -> Nest:
    """Returns a nest with each lowered value replaced by its extension value.

    Raises:
        StructureError: If a field of an output of `predict` has different sizes in different
            batches (also a ValueError).
    """
    return map_lowered(_from_lowered, structure)


def to_lowered(structure: Nest) -> Nest:
    """Returns a nest with each value or placeholder lowered to its component tensors."""
    return map_leaves(_to_lowered, structure)


def map_leaves(function: Callable[[Any], Any], structure: Nest) -> Nest:
    """Returns a nest with `function` applied to each leaf, as `tf.nest.map_structure`.

    That function takes longer than the call of a small model.
    """
    kind = type(structure)
    if kind is dict:
        return {name: map_leaves(function, item) for name, item in structure.items()}
    if kind is list or kind is tuple:
        return kind([map_leaves(function, item) for item in structure])
    if tf.is_tensor(structure) or not tf.nest.is_nested(structure):
        return function(structure)
    return tf.nest.map_structure(function, structure)


def spec_of_value(value: Value) -> tf.TypeSpec:
    """Returns the spec of a value or placeholder, with any batch size."""
    return any_batch_size(own_spec(value))


def spec_of_nest(structure: Nest) -> Nest:
    """Returns a nest with the spec of each extension value; other leaves as they are."""
    return map_leaves(lambda leaf: spec_of_value(leaf) if is_extension(leaf) else leaf, structure)


def own_spec(value: Value) -> tf.TypeSpec:
    """Returns the spec of a value or placeholder."""
    return remembered_spec(value) or spec_of_field(value)


def spec_of_lowered(form: dict[str, Any]) -> tf.TypeSpec:
    """Returns the spec of a lowered value."""
    return _parts(form)[1]


def tensors_of_lowered(form: dict[str, Any]) -> tuple[Any, ...]:
    """Returns the tensors of a lowered value."""
    (tensors,) = form.values()
    return tensors


def one_mask(masks: Nest) -> Nest:
    """Returns a nest of masks with one mask, or None, for each lowered value."""
    return map_lowered(
        lambda form: next((m for m in tensors_of_lowered(form) if m is not None), None), masks
    )


def with_passed_input(data: Nest) -> tuple[Any, ...]:
    """Returns a batch of values whose input Keras passes on to the model.

    Args:
        data: `x`, or a tuple `(x, y)` or `(x, y, sample_weight)`.
    """
    x, *rest = data if isinstance(data, (tuple, list)) else (data,)
    return (map_leaves(lambda leaf: PassedValue(leaf) if is_extension(leaf) else leaf, x), *rest)


def without_passed(structure: Nest) -> Nest:
    """Returns a nest with what each `PassedValue` was made of in its place."""
    return map_leaves(lambda leaf: leaf.given if isinstance(leaf, PassedValue) else leaf, structure)


def lowered_dataset(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns a dataset of the boxes that another dataset holds, without running any op on them.

    Keep the other dataset alive as long as the result is used.

    >>> from extensor._keras.lowering import lowered_dataset
    >>> from extensor._keras.lowering import from_lowered
    >>> import tensorflow as tf
    >>> rows = tf.data.Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]]))
    >>> [from_lowered(element) for element in lowered_dataset(rows)]
    [<tf.RaggedTensor [[1], [2, 3]]>]
    """
    spec = dataset.element_spec
    if not contains(spec, is_extension_spec) or contains(spec, _compares_shapes):
        return dataset
    variant = tf.data.experimental.to_variant(dataset)
    return tf.data.experimental.from_variant(variant, tf.nest.map_structure(_boxes, spec))


def lowered_outputs(outputs: Nest) -> Nest:
    """Returns a nest with each extension value lowered to tensors that Keras can concatenate."""
    return tf.nest.map_structure(_concat, outputs)


def _parts(lowered: dict[str, Any]) -> tuple[_Form, tf.TypeSpec, tuple[Any, ...]]:
    """Returns the form, the spec and the tensors of a lowered value."""
    ((key, tensors),) = lowered.items()
    word, _, spec_key = key.rpartition(" ")
    return _Form(*word.split(":", 2)), spec_of_key(spec_key), tensors


def _from_lowered(lowered: dict[str, Any]) -> Value:
    form, spec, tensors = _parts(lowered)
    uses = list(map(int, form.uses))
    if form.narrow_key:
        narrow_spec = spec_of_key(form.narrow_key)
        return with_blanks(spec, uses, narrow_spec, unbox(narrow_spec, list(tensors)))
    if form.tensors == BOXES:
        return unbox(spec, list(tensors))
    if form.tensors == _CONCAT:
        return _join(spec, iter(tensors), Path())
    if uses:
        return unpack_used(spec, uses, tensors)
    return component_tensors.to_value(spec, list(tensors))


def _to_lowered(value: Any) -> Nest:
    if isinstance(value, PassedValue):
        return value.given if is_lowered(value.given) else _to_lowered(value.given)
    if is_value_tensor(value):
        return form_of_value_tensor(value)
    if not is_extension(value):
        return value
    spec = spec_of_value(value)
    return {key_of_spec(spec): tuple(component_tensors.to_tensors(spec, value))}


def _compares_shapes(spec: object) -> bool:
    """Returns whether the class of a spec may compare the static shapes of boxes, as TF-GNN's do.

    Those of a step differ: in a graph, a ragged tensor has no static number of rows.
    """
    return is_extension_spec(spec) and not (
        is_stackable(spec)
        or isinstance(spec, tf.RaggedTensorSpec)
        or describes(spec, tf.experimental.ExtensionType)
    )


def _boxes(spec: tf.TypeSpec) -> Nest:
    if not is_extension_spec(spec):
        return spec
    return {key_of_form(spec, BOXES): tuple(boxed_specs(spec))}


def _concat(value: Value) -> Nest:
    if not is_extension(value):
        return value
    spec = any_sizes(tf.type_spec_from_value(value))
    return {key_of_form(spec, _CONCAT): tuple(_split(spec, value))}


def _has_parts(spec: tf.TypeSpec) -> bool:
    """Returns whether values are concatenated by concatenating their components."""
    if isinstance(spec, DenseStructuredTensorSpec):
        return True
    by_default = getattr(type(spec), "to_boxed_tensor", None) is StackableTypeSpec.to_boxed_tensor
    return isinstance(spec, StackableTypeSpec) and by_default


def _split(spec: tf.TypeSpec, value: Value) -> Iterator[Any]:
    """Yields tensors of a batch that concatenate with those of other batches."""
    if isinstance(value, tf.RaggedTensor):
        yield value.flat_values
        yield from value.nested_row_lengths()
    elif isinstance(value, tf.Tensor):
        yield value
    elif isinstance(spec, RaggedStructuredTensorSpec):
        yield from _split(spec.values_spec, value.values)
        yield value.row_lengths()
    elif _has_parts(spec):
        parts = spec.to_components(value)
        tf.nest.assert_same_structure(spec.component_specs, parts)
        flat = zip(tf.nest.flatten(spec.component_specs), tf.nest.flatten(parts), strict=True)
        for inner, part in flat:
            yield from _split(inner, part)
    else:
        for tensor in box(spec, value, 1):
            # Keras converts tensors to NumPy arrays, which fails for variants.
            is_variant = tensor.dtype == tf.variant
            yield tf.io.serialize_tensor(tensor)[tf.newaxis] if is_variant else tensor


def _join(spec: tf.TypeSpec, tensors: Iterator[Any], path: Path) -> Value:
    """Returns the value of concatenated tensors, which Keras returns as arrays."""
    if isinstance(spec, tf.TensorSpec):
        return _tensor(next(tensors), path)
    if isinstance(spec, tf.RaggedTensorSpec):
        flat_values = _tensor(next(tensors), path)
        lengths = [_tensor(next(tensors), path) for _ in range(spec.ragged_rank)]
        if not lengths:
            return flat_values
        return tf.RaggedTensor.from_nested_row_lengths(flat_values, lengths, validate=False)
    if isinstance(spec, RaggedStructuredTensorSpec):
        values = _join(spec.values_spec, tensors, path)
        row_splits = row_splits_of(_tensor(next(tensors), path))
        return spec.from_components((values, row_splits))
    if _has_parts(spec):
        is_record = isinstance(spec, DenseStructuredTensorSpec)
        names = sorted(spec.field_names()) if is_record else []
        inner = tf.nest.flatten(spec.component_specs)
        paths = [path / name for name in names] or [path] * len(inner)
        parts = [_join(s, tensors, at) for s, at in zip(inner, paths, strict=True)]
        return spec.from_components(tf.nest.pack_sequence_as(spec.component_specs, parts))
    boxes = [
        _variants(next(tensors)) if box.dtype == tf.variant else _tensor(next(tensors), path)
        for box in boxed_specs(spec, 1)
    ]
    return unbox(spec, boxes)


def _variants(batches: Iterable[tf.Tensor]) -> tf.Tensor:
    """Returns the concatenated variants of serialized batches."""
    tensors = [tf.io.parse_tensor(batch, tf.variant) for batch in batches]
    # tf.concat does not support variants; TensorFlow itself uses dynamic_stitch for them.
    ends = np.cumsum([0, *(len(tensor) for tensor in tensors)])
    rows = [tf.range(a, b) for a, b in itertools.pairwise(ends.tolist())]
    return tf.dynamic_stitch(rows, tensors)


def _tensor(array: np.ndarray[Any, Any] | Value, path: Path) -> tf.Tensor:
    if isinstance(array, tf.RaggedTensor):
        expected, received = "one size in all batches", "batches of different sizes"
        fix = "Return a ragged field, or call the model on each batch."
        raise StructureError(
            f"predict: {path}" if path.names else "predict", expected, received, fix
        )
    return tf.convert_to_tensor(array)
