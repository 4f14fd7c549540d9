"""The shape of records, merged from the shapes of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._authoring.rows import uncut_rows
from extensor._path import Path
from extensor._struct.field import shape_of
from extensor.errors import StructureError


def known_rank(shape: Any, owner: str) -> tf.TensorShape:
    """Returns a shape as a TensorShape of known rank.

    Raises:
        StructureError: If the rank is unknown (also a ValueError).
    """
    shape = tf.TensorShape(shape)
    if shape.rank is None:
        raise StructureError(
            path=f"{owner}.shape",
            expected="a shape of known rank",
            received="shape <unknown>",
            mend="Write None for a dimension of unknown size, such as [None] for a batch.",
        )
    return shape


def common_shape(shape: tf.TensorShape, fields: Mapping[str, Any]) -> tf.TensorShape:
    """Returns `shape` merged with the outer dimensions of all fields."""
    rank = shape.rank
    for name, value in fields.items():
        shape = merged_shape(shape, value, Path(name), rank)
    return shape


def merged_shape(shape: tf.TensorShape, value: Any, path: Path, rank: int) -> tf.TensorShape:
    """Returns `shape`, the shape of records, merged with the outer dimensions of one field.

    Raises:
        StructureError: If the field's shape does not begin with `shape` (also a ValueError).
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
    """Returns whether all rows of a value can have `size` elements along an axis.

    Reads the row splits where they hold values. In a graph, returns True.
    """
    rows = uncut_rows(value) if axis else None
    for _ in range(axis - 1):
        rows = None if rows is None else uncut_rows(rows[0])
    splits = None if rows is None else rows[1]
    if splits is None or not hasattr(splits, "numpy"):
        return True
    return bool((np.diff(splits.numpy()) == size).all())
