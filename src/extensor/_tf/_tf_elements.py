"""Datasets of extension values where tf.data takes tensors only: what stands for the values there.

| name | why |
| --- | --- |
| `dataset_ops` | `_RestructuredDataset` shows the tensors of a dataset as elements of another spec, without an op. |
| `prefetching_ops` | `copy_to_device` and `prefetch_to_device` build an iterator on the other device by legacy types and shapes (`_CopyToDeviceDataset`), which only tensors have. |
| `from_list` | `tf.data.experimental.from_list` makes a tensor of each value (`_ListDataset`). |
| `ragged_batch_op` | `Dataset.ragged_batch` (`_ragged_batch`) makes tensors ragged, and no components. |
| `padded_batch_op` | `Dataset.padded_batch` (`_padded_batch`) pads tensors only. |
| `unique_op` | `Dataset.unique` (`_unique`) compares single integers and strings. |
| `tf.data.Dataset.as_numpy_iterator` and `bucket_by_sequence_length` (public; wrapped) | The first knows no extension values, the second takes their shapes for those of tensors. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.data.experimental.ops import from_list, prefetching_ops
from tensorflow.python.data.ops import dataset_ops, padded_batch_op, ragged_batch_op, unique_op

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


def mapped(dataset: Any, function: Callable[[Any], Any]) -> Any:
    """Returns a dataset mapped by a function that takes each element whole."""
    # Dataset.map hands a tuple over item by item.
    is_tuple = type(dataset.element_spec) is tuple
    return dataset.map(lambda *element: function(element if is_tuple else element[0]))


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


_batching: dict[str, Callable[..., Any]] = {}


def install_batching(
    ragged_batch: Callable[..., Any],
    padded_batch: Callable[..., Any],
    bucket_shapes: Callable[[Any, Any], Any],
) -> None:
    """Gives the APIs below what they do with datasets of extension values.

    Args:
        ragged_batch: As `Dataset.ragged_batch`, with all arguments by position.
        padded_batch: As `Dataset.padded_batch`, with all arguments by position.
        bucket_shapes: Takes an element's spec and padded shapes, and returns shapes for all parts.
    """
    _batching.update(
        ragged_batch=ragged_batch, padded_batch=padded_batch, bucket_shapes=bucket_shapes
    )


_plain_ragged_batch = ragged_batch_op._ragged_batch


def _ragged_batch(
    input_dataset: Any,
    batch_size: Any,
    drop_remainder: Any = False,
    row_splits_dtype: Any = tf.int64,
    name: Any = None,
) -> Any:
    """As TensorFlow's own, of components too."""
    rest = (batch_size, drop_remainder, row_splits_dtype, name)
    if has_extension(input_dataset):
        return _batching["ragged_batch"](input_dataset, *rest)
    return _plain_ragged_batch(input_dataset, *rest)


ragged_batch_op._ragged_batch = _ragged_batch


_plain_padded_batch = padded_batch_op._padded_batch


def _padded_batch(
    input_dataset: Any,
    batch_size: Any,
    padded_shapes: Any = None,
    padding_values: Any = None,
    drop_remainder: Any = False,
    name: Any = None,
) -> Any:
    """As TensorFlow's own, of components too."""
    rest = (batch_size, padded_shapes, padding_values, drop_remainder, name)
    if has_extension(input_dataset):
        return _batching["padded_batch"](input_dataset, *rest)
    return _plain_padded_batch(input_dataset, *rest)


padded_batch_op._padded_batch = _padded_batch


_plain_bucket: Any = tf.data.Dataset.bucket_by_sequence_length


def _bucket_by_sequence_length(
    self: Any,
    element_length_func: Any,
    bucket_boundaries: Any,
    bucket_batch_sizes: Any,
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: Any = False,
    no_padding: Any = False,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """As TensorFlow's own, of components too."""
    if has_extension(self) and not no_padding:
        padded_shapes = _batching["bucket_shapes"](self.element_spec, padded_shapes)
    sizes = (element_length_func, bucket_boundaries, bucket_batch_sizes)
    padding = (padded_shapes, padding_values, pad_to_bucket_boundary, no_padding)
    return _plain_bucket(self, *sizes, *padding, *args, **kwargs)


tf.data.Dataset.bucket_by_sequence_length = functools.wraps(_plain_bucket)(
    _bucket_by_sequence_length
)


_plain_unique = unique_op._unique


def _unique(input_dataset: Any, name: Any) -> Any:
    """As TensorFlow's own, of the bytes of all components of extension values."""
    if not has_extension(input_dataset):
        return _plain_unique(input_dataset, name)
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

    return restructured(mapped(_plain_unique(mapped(input_dataset, text), name), boxes), spec)


unique_op._unique = _unique


def as_numpy(value: Any) -> Any:
    """Returns a value as TensorFlow's own types have it in NumPy, or as the nest of its components.

    Args:
        value: An eager tensor, or a value that decomposes into them. What its `numpy()` returns,
            if it has one, is taken for it.

    >>> from extensor._tf import as_numpy
    >>> as_numpy(tf.ragged.constant([[1], [2, 3]]))
    array([array([1], dtype=int32), array([2, 3], dtype=int32)], dtype=object)
    """
    if value is None:
        return None
    is_ours = issubclass(type(value), Extension)
    if is_ours and not callable(getattr(type(value), "numpy", None)):
        components = value._type_spec._to_components(value)
        return tf.nest.map_structure(as_numpy, components)
    # An eager tensor's own copies the numbers.
    array = value._numpy() if hasattr(value, "_numpy") else value.numpy()
    if isinstance(array, np.ndarray):
        array.setflags(write=False)
    return array


class _NumpyIterator(tf.data.NumpyIterator):
    """An iterator of a dataset with extension values in its elements."""

    def __next__(self) -> Any:
        return data_nest.map_structure(as_numpy, next(self._iterator))


_plain_as_numpy_iterator: Any = tf.data.Dataset.as_numpy_iterator


def _as_numpy_iterator(self: Any) -> Any:
    """As TensorFlow's own, of components too."""
    if not has_extension(self) or not tf.executing_eagerly():
        return _plain_as_numpy_iterator(self)
    others = [s for s in data_nest.flatten(self.element_spec) if not describes_extension(s)]
    known = (tf.TensorSpec, tf.RaggedTensorSpec, tf.SparseTensorSpec, structure.NoneTensorSpec)
    if not all(isinstance(spec, known) for spec in others):
        _plain_as_numpy_iterator(restructured(self, tuple(others)))  # which says what is wrong
    return _NumpyIterator(self)


tf.data.Dataset.as_numpy_iterator = functools.wraps(_plain_as_numpy_iterator)(_as_numpy_iterator)
