"""Datasets, and the nests and structures that tf.data makes of their elements.

| name | why |
| --- | --- |
| `data.util.nest` | tf.data walks nests by rules of its own: a list is a leaf. |
| `structure` | How tf.data makes tensors of an element, and specs of these. |
| `dataset_ops` | `_RestructuredDataset` shows the tensors of a dataset as elements of another spec, without an op. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.data.util import nest, structure

from extensor._tf._tf_protocol import Extension, describes_extension

__all__ = ["as_numpy", "data_nest", "has_extension", "mapped", "restructured", "structure"]

data_nest: Any = nest


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


def as_numpy(value: Any) -> Any:
    """Returns a value as TensorFlow's own types have it in NumPy, or as the nest of its components.

    Args:
        value: An eager tensor, or a value that decomposes into them. What its `numpy()` returns,
            if it has one, is taken for it.

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
