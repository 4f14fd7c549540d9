"""Whether a mask fits its values."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import tensorflow as tf

from extensor.errors import DTypeError, StructureError


def static_shape(value: Any) -> tf.TensorShape:
    """Returns what is known of the shape of a value, or of its spec; of records, of these."""
    shape: Any = getattr(value, "shape", None)
    return tf.TensorShape(shape)


def expect_fit(values: Any, mask: Any) -> None:
    """Raises an error unless a mask has the outer dimensions of its values, all or some.

    Args:
        values: A tensor, RaggedTensor or other value, or a spec.
        mask: A tensor or RaggedTensor, or a spec.

    Raises:
        DTypeError: If the mask is not of bools (also a TypeError).
        StructureError: If it has another shape (also a ValueError).
    """
    if mask.dtype != tf.bool:
        raise DTypeError(
            path="MaskedTensor.mask",
            expected="bool, True where a value is valid",
            received=mask.dtype.name,
            mend="Compare, as in `numbers > 0`, or cast it to tf.bool.",
        )
    outer, inner = static_shape(mask), static_shape(values)
    if outer.rank is None or inner.rank is None:
        return
    if outer.rank > inner.rank or not outer.is_compatible_with(inner[: outer.rank]):
        raise _misfit(values, mask)
    if not isinstance(values, tf.TypeSpec):
        _expect_rows(values, mask, values, mask)


def _expect_rows(values: Any, mask: Any, all_values: Any, all_mask: Any) -> None:
    """Raises an error unless the rows of a mask are cut as those of the values are."""
    cut = hasattr(values, "row_splits")
    if isinstance(mask, tf.RaggedTensor):
        if not cut:
            raise _misfit(all_values, all_mask)
        ours, theirs = mask.row_splits, values.row_splits
        known = all(hasattr(splits, "numpy") for splits in (ours, theirs))
        if ours is not theirs and known and not np.array_equal(ours.numpy(), theirs.numpy()):
            raise _misfit(all_values, all_mask, "rows of other lengths")
        _expect_rows(values.values, mask.values, all_values, all_mask)
    elif cut and mask.shape.rank and None in values.shape[1 : mask.shape.rank]:
        raise _misfit(all_values, all_mask)


def _misfit(values: Any, mask: Any, received: str | None = None) -> StructureError:
    shape = static_shape(values)
    shorter = [tf.TensorShape(shape[:rank]) for rank in range(shape.rank or 0, -1, -1)]
    uniform = [s for s, _ in itertools.groupby(map(str, shorter))]
    ragged = "a ragged mask of " if hasattr(values, "row_splits") else ""
    return StructureError(
        path="MaskedTensor.mask",
        expected=f"{ragged}shape {uniform[0]}, or that of outer dimensions of the values",
        received=received or f"shape {static_shape(mask)}",
        mend="The mask says of each value, or of each row or record, whether it is valid; it does "
        "not broadcast.",
    )
