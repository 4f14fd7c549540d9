"""Datasets of extension values where tf.data supports only tensors."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._patches.patch import replaces
from extensor._protocol.casting import cast_value, castable_type, difference_of_records
from extensor._tf import Extension, describes_extension
from extensor._tf._tf_data import (
    as_numpy,
    data_nest,
    has_extension,
    mapped,
    restructured,
    structure,
)
from extensor.errors import DTypeError


@replaces(
    "tensorflow.python.data.experimental.ops.prefetching_ops._CopyToDeviceDataset.__init__",
    reason="copy_to_device and prefetch_to_device build an iterator on the other device from "
    "legacy types and shapes, which only tensors have.",
    probe="devices",
)
def copy_to_device(plain: Any) -> Any:
    def _copy_to_device(
        self: Any, input_dataset: Any, target_device: Any, source_device: Any = "/cpu:0"
    ) -> None:
        """Calls TensorFlow's function with the boxes of extension values."""
        if not has_extension(input_dataset):
            plain(self, input_dataset, target_device, source_device)
            return
        spec = input_dataset.element_spec
        boxes = restructured(input_dataset, tuple(structure.get_flat_tensor_specs(spec)))
        plain(self, boxes, target_device, source_device)
        self._input_dataset = restructured(
            self._input_dataset, spec
        )  # element_spec is read from it

    return _copy_to_device


@replaces(
    "tensorflow.python.data.experimental.ops.from_list._ListDataset.__init__",
    reason="tf.data.experimental.from_list converts each value to a tensor.",
    probe="lists_of_values",
)
def list_dataset(plain: Any) -> Any:
    def _list_dataset(self: Any, elements: Any, name: Any = None) -> None:
        """Calls TensorFlow's function with the boxes of values, cast to their common type."""
        if not isinstance(elements, list) or not any(map(_holds_extension, elements)):
            plain(self, elements, name)
            return
        elements = [structure.normalize_element(element) for element in elements]
        specs = [structure.type_spec_from_value(element) for element in elements]
        for spec in specs[1:]:
            data_nest.assert_same_structure(specs[0], spec)
        common = tuple(
            _type_of_all(each) for each in zip(*map(data_nest.flatten, specs), strict=True)
        )
        boxes: list[Any] = []
        for element in elements:
            pairs = zip(common, data_nest.flatten(element), strict=True)
            values = [cast_value(s, v) if describes_extension(s) else v for s, v in pairs]
            boxes.append(tuple(structure.to_tensor_list(common, tuple(values))))
        plain(self, boxes, name)
        self._structure = data_nest.pack_sequence_as(specs[0], common)

    return _list_dataset


def _holds_extension(element: Any) -> bool:
    return any(isinstance(value, Extension) for value in data_nest.flatten(element))


def _type_of_all(specs: Any) -> Any:
    """Returns the common spec to which values of all specs are cast; raises if there is none."""
    common = specs[0]
    for i, spec in enumerate(specs[1:], 1):
        found = common.most_specific_common_supertype([spec]) or castable_type(common, spec)
        if found is None:
            at = f"from_list, element {i}"
            raise difference_of_records(common, spec, at) or DTypeError(
                at,
                f"a value with a common type with {common}",
                str(spec),
                "Give all elements the same type.",
            )
        common = found
    return common


@replaces(
    "tensorflow.python.data.ops.unique_op._unique",
    reason="Dataset.unique supports only integers and strings.",
    probe="unique_elements",
)
def unique(plain: Any) -> Any:
    def _unique(input_dataset: Any, name: Any) -> Any:
        """Calls TensorFlow's function with the serialized components of extension values."""
        if not has_extension(input_dataset):
            return plain(input_dataset, name)
        spec = input_dataset.element_spec
        tensors: list[Any] = tf.nest.flatten(spec, expand_composites=True)

        def text(element: Any) -> Any:
            flat = tf.nest.flatten(element, expand_composites=True)
            return tf.io.serialize_tensor(tf.stack(list(map(tf.io.serialize_tensor, flat))))

        def boxes(text: Any) -> Any:
            texts = tf.unstack(tf.io.parse_tensor(text, tf.string), len(tensors))
            flat = [
                tf.ensure_shape(tf.io.parse_tensor(part, tensor.dtype), tensor.shape)
                for part, tensor in zip(texts, tensors, strict=True)
            ]
            value = tf.nest.pack_sequence_as(spec, flat, expand_composites=True)
            return tuple(structure.to_tensor_list(spec, value))

        return restructured(mapped(plain(mapped(input_dataset, text), name), boxes), spec)

    return _unique


class _NumpyIterator(tf.data.NumpyIterator):
    """An iterator over a dataset with extension values in its elements."""

    def __next__(self) -> Any:
        return data_nest.map_structure(as_numpy, next(self._iterator))


@replaces(
    "tf.data.Dataset.as_numpy_iterator",
    reason="It rejects extension values.",
    probe="datasets_in_numpy",
)
def as_numpy_iterator(plain: Any) -> Any:
    def _as_numpy_iterator(self: Any) -> Any:
        """Returns an iterator that converts the components of extension values too."""
        if not has_extension(self) or not tf.executing_eagerly():
            return plain(self)
        others = [s for s in data_nest.flatten(self.element_spec) if not describes_extension(s)]
        known = (tf.TensorSpec, tf.RaggedTensorSpec, tf.SparseTensorSpec, structure.NoneTensorSpec)
        if not all(isinstance(spec, known) for spec in others):
            plain(restructured(self, tuple(others)))  # raises TensorFlow's error
        return _NumpyIterator(self)

    return _as_numpy_iterator
