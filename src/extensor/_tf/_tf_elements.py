"""Datasets of extension values where tf.data takes tensors only: in the boxes that they stack in.

| name | why |
| --- | --- |
| `dataset_ops` | `_RestructuredDataset` shows the tensors of a dataset as elements of another spec, without an op. |
| `prefetching_ops` | `copy_to_device` and `prefetch_to_device` build an iterator on the other device by legacy types and shapes (`_CopyToDeviceDataset`), which only tensors have. |
| `from_list` | `tf.data.experimental.from_list` makes a tensor of each value (`_ListDataset`). |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from tensorflow.python.data.experimental.ops import from_list, prefetching_ops
from tensorflow.python.data.ops import dataset_ops

from extensor._tf import _tf_casting
from extensor._tf._tf_data import data_nest, structure
from extensor._tf._tf_protocol import Extension, describes_extension
from extensor.errors import DTypeError


def restructured(dataset: Any, element_spec: Any) -> Any:
    """Returns a dataset of the same tensors as elements of another spec.

    Args:
        dataset: Any dataset.
        element_spec: A nest of specs whose boxes are the boxes of the dataset's elements.
    """
    return dataset_ops._RestructuredDataset(dataset, element_spec)


def has_extension(dataset: Any) -> bool:
    """Returns whether an extension value is in the elements of a dataset."""
    return any(map(describes_extension, data_nest.flatten(dataset.element_spec)))


_plain_copy_to_device: Any = prefetching_ops._CopyToDeviceDataset.__init__


def _copy_to_device(
    self: Any, input_dataset: Any, target_device: Any, source_device: Any = "/cpu:0"
) -> None:
    """As TensorFlow's own, of the boxes of extension values."""
    if not has_extension(input_dataset):
        _plain_copy_to_device(self, input_dataset, target_device, source_device)
        return
    spec = input_dataset.element_spec
    boxes = restructured(input_dataset, tuple(structure.get_flat_tensor_specs(spec)))
    _plain_copy_to_device(self, boxes, target_device, source_device)
    self._input_dataset = restructured(self._input_dataset, spec)  # whose spec is this one's


prefetching_ops._CopyToDeviceDataset.__init__ = _copy_to_device


_plain_list_dataset: Any = from_list._ListDataset.__init__


def _list_dataset(self: Any, elements: Any, name: Any = None) -> None:
    """As TensorFlow's own, of the boxes of extension values, which are cast to where they meet."""
    if not isinstance(elements, list) or not any(map(_holds_extension, elements)):
        _plain_list_dataset(self, elements, name)
        return
    elements = [structure.normalize_element(element) for element in elements]
    specs = [structure.type_spec_from_value(element) for element in elements]
    for spec in specs[1:]:
        data_nest.assert_same_structure(specs[0], spec)
    met = tuple(_type_of_all(each) for each in zip(*map(data_nest.flatten, specs), strict=True))
    boxes: list[Any] = []
    for element in elements:
        pairs = zip(met, data_nest.flatten(element), strict=True)
        values = [_tf_casting._cast(s, v) if describes_extension(s) else v for s, v in pairs]
        boxes.append(tuple(structure.to_tensor_list(met, tuple(values))))
    _plain_list_dataset(self, boxes, name)
    self._structure = data_nest.pack_sequence_as(specs[0], met)


def _holds_extension(element: Any) -> bool:
    return any(isinstance(value, Extension) for value in data_nest.flatten(element))


def _type_of_all(specs: Any) -> Any:
    """Returns the spec to which values of some specs are cast; raises where there is none."""
    met = specs[0]
    for i, spec in enumerate(specs[1:], 1):
        found = met.most_specific_common_supertype([spec]) or _tf_casting._castable_type(met, spec)
        if found is None:
            raise DTypeError(
                path=f"from_list, element {i}",
                expected=f"a value of a type that meets {met}",
                received=str(spec),
                mend="Make all elements of one type.",
            )
        met = found
    return met


from_list._ListDataset.__init__ = _list_dataset
