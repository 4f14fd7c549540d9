"""The shape of records, on which the shapes of their fields agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._path import Path
from extensor._struct.field import shape_of
from extensor.errors import StructureError


def known_rank(shape: Any, owner: str) -> tf.TensorShape:
    """Returns a shape as a TensorShape, of which the rank is known.

    Raises:
        StructureError: If it is not.
    """
    shape = tf.TensorShape(shape)
    if shape.rank is None:
        raise StructureError(
            path=f"{owner}.shape",
            expected="a shape of known rank",
            received="<unknown>",
            mend="Write None for a dimension of unknown size, such as [None] for a batch.",
        )
    return shape


def common_shape(shape: tf.TensorShape, fields: Mapping[str, Any]) -> tf.TensorShape:
    """Returns `shape` with the sizes that the fields have, which must agree on them."""
    rank = shape.rank
    for name, value in fields.items():
        shape = merged_shape(shape, value, Path(name), rank)
    return shape


def merged_shape(shape: tf.TensorShape, value: Any, path: Path, rank: int) -> tf.TensorShape:
    """Returns the shape of records, of this rank, with the sizes that one more field has.

    Raises:
        StructureError: If the field's shape does not begin with it (also a ValueError).
    """
    if rank == 0:
        return shape
    value_shape = shape_of(value)
    value_rank = value_shape.rank
    if value_rank is None:
        return shape
    if value_rank >= rank:
        unknown = False
        for axis in range(rank):
            size, other = shape[axis], value_shape[axis]
            if size != other:
                if size is None:
                    unknown = True
                elif other is not None or not _is_uniform(value, axis, size):
                    break
        else:
            return shape.merge_with(value_shape[:rank]) if unknown else shape
    raise StructureError(
        path=path,
        expected=f"a value whose shape begins with {shape}, the shape of the records",
        received=f"shape {value_shape}",
        mend="Give every field one value for each record.",
    )


def _is_uniform(value: Any, axis: int, size: int) -> bool:
    """Returns whether a ragged value may have one size along an axis whose static size is open.

    Where its row splits hold values, they are asked; in a graph the answer is yes.
    """
    for _ in range(axis - 1):
        value = getattr(value, "values", value)
    splits = getattr(value, "row_splits", None)
    if axis == 0 or splits is None or not hasattr(splits, "numpy"):
        return True
    return bool((np.diff(splits.numpy()) == size).all())
