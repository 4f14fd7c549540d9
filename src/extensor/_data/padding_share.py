"""padding_share: how much of static batches are free places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._path import Path
from extensor._protocol.named_leaves import Names, named_leaves
from extensor._struct.masked import is_masked, records_in
from extensor._struct.records import RecordsBase
from extensor.errors import DTypeError


def padding_share(dataset: tf.data.Dataset) -> dict[str, float]:
    """Returns the share of free places in the batches of a dataset, for each field with a mask.

    It reads a pass of the dataset. For a dataset that is trained later, give another one of the
    same arguments, because passes are counted.

    Args:
        dataset: Static records, such as of `xt.data.bucket`, `xt.data.pack` or `to_static`.

    Returns:
        A number from 0 to 1 for each path: the places that are null, as a part of all. The path of
        a list says how many places for items are free, and that of another field how many rows are.
        Nulls of the data count too. Labels have the path of their place in an element.

    Raises:
        DTypeError: If it is no dataset (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> lists = tf.ragged.constant([[1], [2, 3, 4], [5]])
    >>> records = xt.DenseStructuredTensor([3], {"id": [1, 2, 3], "items": lists})
    >>> batches = tf.data.Dataset.from_tensor_slices(records).batch(2)
    >>> xt.data.padding_share(batches.map(lambda batch: batch.to_static({"items": 4})))
    {'items': 0.5833333333333334}
    >>> xt.data.padding_share(xt.data.pack(batches, {"items": 4}, batch_size=3))
    {'id': 0.5, 'items': 0.375}
    """
    if not isinstance(dataset, tf.data.Dataset):
        fix = "Give tf.data.Dataset.from_tensors(records) for a single batch."
        raise DTypeError("padding_share", "a tf.data.Dataset", type(dataset).__name__, fix)
    free: dict[Names, int] = {}
    places: dict[Names, int] = {}
    for element in dataset:
        for names, leaf in named_leaves(element):
            # Of several masks at one path, the innermost one has the items.
            for path, mask in dict(_masks(leaf, names if records_in(leaf) is None else ())).items():
                free[path] = free.get(path, 0) + int(mask.size - np.count_nonzero(mask))
                places[path] = places.get(path, 0) + mask.size
    return {
        str(Path(*path)) if path else "()": free[path] / max(1, count)
        for path, count in sorted(places.items())
    }


def _masks(value: Any, names: Names) -> Iterator[tuple[Names, Any]]:
    """Yields the mask of each masked value in a value, with its path, the outer ones first."""
    if is_masked(value):
        mask = value.mask
        yield names, (mask.flat_values if isinstance(mask, tf.RaggedTensor) else mask).numpy()
        yield from _masks(value.values, names)
    elif isinstance(value, tf.RaggedTensor) or hasattr(value, "row_splits"):
        yield from _masks(value.values, names)
    elif isinstance(value, RecordsBase):
        records: Any = value
        for name in records.field_names():
            yield from _masks(records[name], (*names, name))
