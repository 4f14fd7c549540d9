"""Datasets of extension values where tf.data supports only tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from extensor._patches.patch import overrides
from extensor._protocol.casting import cast_value, castable_type, difference_of_records
from extensor._tf import Extension, describes_extension
from extensor._tf._tf_data import (
    as_numpy,
    data_nest,
    has_extension,
    map_elements,
    structure,
    with_element_spec,
)
from extensor._typing import Nest
from extensor.errors import DTypeError


@overrides(
    "tensorflow.python.data.experimental.ops.prefetching_ops._CopyToDeviceDataset.__init__",
    reason="copy_to_device and prefetch_to_device build an iterator on the other device from "
    "legacy types and shapes, which only tensors have.",
    probe="devices",
)
def copy_to_device(
    self: Any,
    input_dataset: tf.data.Dataset,
    target_device: str,
    source_device: str = "/cpu:0",
    *,
    plain: Callable[..., None],
) -> None:
    """Calls TensorFlow's function with the boxes of extension values."""
    if not has_extension(input_dataset):
        plain(self, input_dataset, target_device, source_device)
        return
    spec = input_dataset.element_spec
    boxes = with_element_spec(input_dataset, tuple(structure.get_flat_tensor_specs(spec)))
    plain(self, boxes, target_device, source_device)
    # TensorFlow reads the element_spec from it.
    self._input_dataset = with_element_spec(self._input_dataset, spec)


@overrides(
    "tensorflow.python.data.experimental.ops.from_list._ListDataset.__init__",
    reason="tf.data.experimental.from_list converts each value to a tensor.",
    probe="lists_of_values",
)
def list_dataset(
    self: Any, elements: list[Nest], name: str | None = None, *, plain: Callable[..., None]
) -> None:
    """Calls TensorFlow's function with the boxes of values, cast to their common type."""
    given = elements if isinstance(elements, list) else []
    if not any(isinstance(value, Extension) for e in given for value in data_nest.flatten(e)):
        plain(self, elements, name)
        return
    elements = [structure.normalize_element(element) for element in elements]
    specs = [structure.type_spec_from_value(element) for element in elements]
    for spec in specs[1:]:
        data_nest.assert_same_structure(specs[0], spec)
    common = tuple(map(_common_spec, zip(*map(data_nest.flatten, specs), strict=True)))
    boxes: list[tuple[tf.Tensor, ...]] = []
    for element in elements:
        pairs = zip(common, data_nest.flatten(element), strict=True)
        cast = [cast_value(s, v) if describes_extension(s) else v for s, v in pairs]
        boxes.append(tuple(structure.to_tensor_list(common, tuple(cast))))
    plain(self, boxes, name)
    self._structure = data_nest.pack_sequence_as(specs[0], common)


def _common_spec(specs: Sequence[tf.TypeSpec]) -> tf.TypeSpec:
    """Returns the common spec to which values of all specs are cast; raises if there is none."""
    common = specs[0]
    for i, spec in enumerate(specs[1:], 1):
        found = common.most_specific_common_supertype([spec]) or castable_type(common, spec)
        if found is None:
            at = f"from_list, element {i}"
            expected = f"a value with a common type with {common}"
            fix = "Give all elements the same type."
            raise difference_of_records(common, spec, at) or DTypeError(
                at, expected, str(spec), fix
            )
        common = found
    return common


@overrides(
    "tensorflow.python.data.ops.unique_op._unique",
    reason="Dataset.unique supports only integers and strings.",
    probe="unique_elements",
)
def unique(
    input_dataset: tf.data.Dataset, name: str | None, *, plain: Callable[..., tf.data.Dataset]
) -> tf.data.Dataset:
    """Calls TensorFlow's function with the serialized components of extension values."""
    if not has_extension(input_dataset):
        return plain(input_dataset, name)
    spec = input_dataset.element_spec
    tensors = tf.nest.flatten(spec, expand_composites=True)

    def text(element: Nest) -> tf.Tensor:
        flat = tf.nest.flatten(element, expand_composites=True)
        return tf.io.serialize_tensor(tf.stack(list(map(tf.io.serialize_tensor, flat))))

    def boxes(text: tf.Tensor) -> tuple[tf.Tensor, ...]:
        texts = tf.unstack(tf.io.parse_tensor(text, tf.string), len(tensors))
        flat = [
            tf.ensure_shape(tf.io.parse_tensor(part, tensor.dtype), tensor.shape)
            for part, tensor in zip(texts, tensors, strict=True)
        ]
        value = tf.nest.pack_sequence_as(spec, flat, expand_composites=True)
        return tuple(structure.to_tensor_list(spec, value))

    texts = plain(map_elements(input_dataset, text), name)
    return with_element_spec(map_elements(texts, boxes), spec)


class _NumpyIterator(tf.data.NumpyIterator):
    """An iterator over a dataset with extension values in its elements."""

    def __next__(self) -> Nest:
        return data_nest.map_structure(as_numpy, next(self._iterator))


@overrides(
    "tf.data.Dataset.as_numpy_iterator",
    reason="It rejects extension values.",
    probe="datasets_in_numpy",
)
def as_numpy_iterator(
    self: tf.data.Dataset, *, plain: Callable[..., tf.data.NumpyIterator]
) -> tf.data.NumpyIterator:
    """Returns an iterator that converts the components of extension values too."""
    if not has_extension(self) or not tf.executing_eagerly():
        return plain(self)
    others = [s for s in data_nest.flatten(self.element_spec) if not describes_extension(s)]
    known = (tf.TensorSpec, tf.RaggedTensorSpec, tf.SparseTensorSpec, structure.NoneTensorSpec)
    if not all(isinstance(spec, known) for spec in others):
        plain(with_element_spec(self, tuple(others)))  # raises TensorFlow's error
    return _NumpyIterator(self)
