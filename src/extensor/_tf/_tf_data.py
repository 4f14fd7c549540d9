"""Datasets, and the nests and structures of their elements.

| name | why |
| --- | --- |
| `data.util.nest` | The nest of tf.data, in which a list is a leaf. |
| `structure` | The conversion of elements to tensors and specs in tf.data. |
| `dataset_ops` | `_RestructuredDataset` presents the tensors of a dataset as elements of another spec, without an op. |
| `data.ops` | The module of the class of a dataset tells which method made it. |
| `_pywrap_record_io` | `RecordIterator` reads a file of TFRecords. A dataset traces a function for each file, which takes longer than to read the hundreds of kilobytes of a group of records. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.data.util import nest, structure
from tensorflow.python.lib.io import _pywrap_record_io

from extensor._tf._tf_protocol import Extension, describes_extension
from extensor._typing import Nest, Value

data_nest: Any = nest
structure: Any = structure


def with_element_spec(dataset: tf.data.Dataset, element_spec: Nest) -> tf.data.Dataset:
    """Returns a dataset with the same tensors and another element spec.

    Args:
        dataset: Any dataset.
        element_spec: A nest of specs whose boxes are the boxes of the dataset's elements.
    """
    return dataset_ops._RestructuredDataset(dataset, element_spec)


def records_of_file(path: str) -> Iterator[bytes]:
    """Yields the records of a TFRecord file that is not compressed.

    Raises:
        tf.errors.DataLossError: If a record is damaged or truncated.
    """
    reader: Any = _pywrap_record_io
    return reader.RecordIterator(path, "")


def has_extension(dataset: tf.data.Dataset) -> bool:
    """Returns whether the elements of a dataset, or iterator, contain extension values."""
    return any(map(describes_extension, data_nest.flatten(dataset.element_spec)))


def map_elements(dataset: tf.data.Dataset, function: Callable[[Nest], Nest]) -> tf.data.Dataset:
    """Returns a dataset mapped by a function that takes each element as one argument."""
    # Dataset.map passes the items of a tuple as separate arguments.
    is_tuple = type(dataset.element_spec) is tuple
    return dataset.map(lambda *element: function(element if is_tuple else element[0]))


def as_numpy(value: Value) -> Nest:
    """Returns the `numpy()` of a value, or a nest of the NumPy arrays of its components.

    Args:
        value: An eager tensor, or a value that decomposes into eager tensors.

    >>> from extensor._tf._tf_data import as_numpy
    >>> import tensorflow as tf
    >>> as_numpy(tf.ragged.constant([[1], [2, 3]]))
    array([array([1], dtype=int32), array([2, 3], dtype=int32)], dtype=object)
    """
    if value is None:
        return None
    is_ours = issubclass(type(value), Extension)
    if is_ours and not callable(getattr(type(value), "numpy", None)):
        components = value._type_spec._to_components(value)
        return tf.nest.map_structure(as_numpy, components)
    # EagerTensor.numpy() copies; _numpy() does not.
    array = value._numpy() if hasattr(value, "_numpy") else value.numpy()
    if isinstance(array, np.ndarray):
        array.setflags(write=False)
    return array


# The modules of the datasets whose elements are not those of their input, one for one from the
# first one on and in each pass.
_OTHER_ELEMENTS = {
    *("batch_op", "cache_op", "concatenate_op", "directed_interleave_op", "filter_op"),
    *("flat_map_op", "group_by_window_op", "ignore_errors_op", "interleave_op", "padded_batch_op"),
    *("ragged_batch_op", "rebatch_op", "shard_op", "shuffle_op", "skip_op", "snapshot_op"),
    *("unbatch_op", "unique_op", "window_op"),
}


def method_of_other_elements(dataset: tf.data.Dataset) -> str | None:
    """Returns the method that made a dataset, if its elements are others than those of its input.

    Returns:
        Its name, such as "filter"; None for `map`, `prefetch`, `take` and the like.
    """
    module = type(dataset).__module__.rpartition(".")[2]
    return module.removesuffix("_op") if module in _OTHER_ELEMENTS else None
