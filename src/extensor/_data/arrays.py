"""arrays: a dataset of records as nests of arrays, for Keras on any backend, JAX and PyTorch."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._data.prunable import SAME_ELEMENTS
from extensor._path import Path
from extensor._protocol.named_leaves import Names, named_leaves
from extensor._struct.component import (
    ITEMS,
    MASK,
    ROW_SPLITS,
    UNMASKED,
    ComponentTensor,
    components,
)
from extensor._struct.masked import is_masked, under_masks
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import as_numpy, data_nest, map_elements
from extensor._typing import Nest
from extensor.errors import DTypeError, StructureError, UnsupportedTypeError

_ROWS = "rows"  # the count of records without fields, which is no array
_KINDS = {"", ITEMS, MASK, ROW_SPLITS, UNMASKED, _ROWS}


def arrays(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns a dataset whose records are dicts of arrays by path, for Keras on any backend.

    A `keras.Model` takes it in `fit`, `evaluate` and `predict` with TensorFlow, JAX and PyTorch,
    and in `predict` with NumPy. A loop in Python gets NumPy arrays, for JAX and PyTorch without
    Keras. They share the memory of the tensors in the dataset, so they are read-only.
    `torch.from_dlpack` with NumPy 2.1 or newer, `torch.as_tensor` and, on a CPU, `jax.device_put`
    share it too; Keras copies each batch once.

    Call it last: of its methods, `cache`, `prefetch`, `repeat`, `shard`, `shuffle`, `skip`, `take`
    and `with_options` return such datasets too. Functions of `map` get tensors.

    Args:
        dataset: A dataset of records, or of nests with records and tensors, such as
            `(records, labels)`. The fields are numbers or booleans. Lists have a static size.

    Returns:
        A dataset of as many elements. Records become a dict: the key of a field is its path, such
        as `"recipe.minutes"`, and its array has the shape `[batch, ...]`. The key of the mask of
        a MaskedTensor is its path, and `__mask`. Of padded lists that may be null, this is the mask
        of the lists, and that of their items ends with `__mask_1`.

    Raises:
        DTypeError: If the argument is not a dataset, or a field has strings (also a TypeError).
        StructureError: If a list has no static size; or if records have no field, or two arrays of
            one key (also a ValueError).
        UnsupportedTypeError: If a value is neither a tensor nor records, or a field has a type
            whose tensors have no path (also a TypeError).

    >>> import extensor as xt
    >>> path = "recipes.parquet"
    >>> xt.write_parquet(xt.DenseStructuredTensor([2], {"id": [7, 8], "taste": [.5, .2]}), path)
    >>> dataset = xt.data.parquet(path, 2).map(lambda r: (r.without("taste"), r["taste"]))
    >>> for inputs, taste in xt.data.arrays(dataset):
    ...     print(inputs, taste)
    {'id': array([7, 8], dtype=int32)} [0.5 0.2]
    """
    if not isinstance(dataset, tf.data.Dataset):
        expected = "a tf.data.Dataset, such as xt.data.parquet returns"
        fix = "Give tf.data.Dataset.from_tensors(records) for a single batch."
        raise DTypeError("xt.data.arrays: dataset", expected, type(dataset).__name__, fix)
    spec = dataset.element_spec
    convert = [_conversion(leaf, names) for names, leaf in named_leaves(spec)]

    def by_path(element: Nest) -> Nest:
        leaves = data_nest.flatten(element)
        converted = [each(leaf) for each, leaf in zip(convert, leaves, strict=True)]
        return data_nest.pack_sequence_as(element, converted)

    return _of_arrays(map_elements(dataset, by_path))


def _conversion(spec: Any, names: Names) -> Callable[[Any], Any]:
    """Returns the function from a leaf of an element to its array, or to its arrays by key.

    Args:
        spec: The spec of the leaf.
        names: The names of the leaf in the element.
    """
    if isinstance(spec, tf.TensorSpec):
        _expect_numbers(spec, Path(*names), "Leave it out, or give numbers.")
        return lambda tensor: tensor
    inner = under_masks(spec)
    if not isinstance(inner, StructuredTensorSpec):
        is_ragged = isinstance(inner, tf.RaggedTensorSpec)
        what = "a ragged tensor" if is_ragged else f"a {spec.value_type.__name__}"
        fix = (
            "Give y.values and y.mask, or put it into records."
            if is_masked(spec)
            else "Give y.to_tensor()."
            if is_ragged
            else "Give its tensors."
        )
        raise UnsupportedTypeError(_place(names), "a tensor or records", what, fix)
    keys = _keys(spec, names)

    def by_key(records: Any) -> dict[str, tf.Tensor]:
        tensors = tf.nest.flatten(records, expand_composites=True)
        return {key: tensor for key, tensor in zip(keys, tensors, strict=True) if key is not None}

    return by_key


def _keys(spec: Any, names: Names) -> list[str | None]:
    """Returns the key of each component tensor of records; None for one that is left out."""
    keys = [_key(one, names) for one in components(spec)]
    counts = Counter(key for key in keys if key is not None)
    if not counts:
        fix = "Keep a field in the records."
        raise StructureError(_place(names), "a field at least", "none", fix)
    twice = next((key for key, count in counts.items() if count > 1), None)
    if twice is not None:
        fix = "Give the field another name."
        raise StructureError(_place(names), "a key for each array", f"two arrays of {twice!r}", fix)
    return keys


def _key(one: ComponentTensor, names: Names) -> str | None:
    """Returns the key of a component tensor, and raises if it is no array of a static size."""
    key, at = str(Path(*one.names)), Path(*names, *one.names)
    without = f"records.without({key!r})"
    kinds = {step.kind for step in one.steps}
    if not kinds <= _KINDS:
        fix, received = f"Leave the field out: {without}.", "a field of another type"
        raise UnsupportedTypeError(at, "tensors, lists, records or masks", received, fix)
    if ITEMS in kinds and one.spec.shape.rank and one.spec.shape[0] is None:
        path = str(Path(*(name for step in one.lists[-1] for name in step.names)))
        pad = f"records.to_static({{{path!r}: 8}})" if path else "records.to_static({(): 8})"
        fix = f"Pad them in dataset.map: {pad}; or leave them out: {without}."
        raise StructureError(at, "lists of a static size", "lists of any size", fix)
    if one.part == _ROWS:
        return None
    fix = f"Make ids of it by StringLookup in dataset.map, or leave it out: {without}."
    _expect_numbers(one.spec, at, fix)
    return f"{key}__{one.part}" if one.part else key


def _expect_numbers(spec: tf.TensorSpec, at: Path, fix: str) -> None:
    if spec.dtype in (tf.string, tf.resource, tf.variant):
        where = _place(at.names)
        raise DTypeError(where, "numbers or booleans", f"dtype {spec.dtype.name}", fix)


def _place(names: Names) -> Path | str:
    return Path(*names) if names else "xt.data.arrays: dataset"


def _of_arrays(dataset: tf.data.Dataset) -> tf.data.Dataset:
    dataset.__class__ = _dataset_class(type(dataset))
    return dataset


@functools.cache
def _dataset_class(kind: Any) -> Any:
    """Returns a subclass of a class of datasets, of which Python gets NumPy arrays."""

    def giving_arrays(name: str) -> Callable[..., tf.data.Dataset]:
        plain: Callable[..., tf.data.Dataset] = getattr(kind, name)

        @functools.wraps(plain)
        def method(self: tf.data.Dataset, *args: Any, **kwargs: Any) -> tf.data.Dataset:
            return _of_arrays(plain(self, *args, **kwargs))

        return method

    def iterate(self: tf.data.Dataset) -> Any:
        iterator = kind.__iter__(self)
        if tf.executing_eagerly():  # otherwise it gives tensors of the graph
            iterator.__class__ = _iterator_class(type(iterator))
        return iterator

    methods = {name: giving_arrays(name) for name in SAME_ELEMENTS}
    # The only base is the class, so that Python lets a dataset change its class to the subclass.
    names = {"__module__": kind.__module__, "__iter__": iterate, "as_numpy_iterator": iterate}
    return type(kind)(kind.__name__, (kind,), {**names, **methods})


@functools.cache
def _iterator_class(kind: Any) -> Any:
    """Returns a subclass of a class of iterators, whose elements in Python are NumPy arrays.

    A tf.function that takes the iterator, such as a training step of Keras, gets tensors.
    """

    def give(self: Any) -> Nest:
        return data_nest.map_structure(as_numpy, kind.__next__(self))

    names = {"__module__": kind.__module__, "__next__": give}
    return type(kind)(kind.__name__, (kind,), names)
