"""Checks that a mask matches its values."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import tensorflow as tf

from extensor.authoring import with_rows_of
from extensor.errors import DTypeError, StructureError

if TYPE_CHECKING:
    from extensor import StructuredTensor
    from extensor._types.masked.value import MaskedTensor

Mask = tf.Tensor | tf.RaggedTensor

Values = Union[tf.Tensor, tf.RaggedTensor, "MaskedTensor", "StructuredTensor"]
"""What a mask can be of: a tensor, records, or another value that stacks."""


def static_shape(value: object) -> tf.TensorShape:
    """Returns the static shape of a value or spec; for records, the shape of the records."""
    shape: Any = getattr(value, "shape", None)
    return shape if isinstance(shape, tf.TensorShape) else tf.TensorShape(shape)


def expect_fit(values: Values | tf.TypeSpec, mask: Mask | tf.TypeSpec) -> None:
    """Raises an error unless the shape of a mask is a prefix of the shape of its values.

    Args:
        values: A tensor, RaggedTensor or other value, or a spec.
        mask: A tensor or RaggedTensor, or a spec.

    Raises:
        DTypeError: If the mask is not bool (also a TypeError).
        StructureError: If the shape does not match (also a ValueError).
    """
    if mask.dtype != tf.bool:
        fix = "Pass a mask that is True where a value is valid, such as `numbers > 0`."
        raise DTypeError("MaskedTensor.mask", "bool", mask.dtype.name, fix)
    outer, inner = static_shape(mask), static_shape(values)
    if outer.rank is None or inner.rank is None:
        return
    if outer.rank > inner.rank or not outer.is_compatible_with(inner[: outer.rank]):
        raise _shape_error(values, mask)
    if not isinstance(values, tf.TypeSpec):
        _expect_rows(values, mask, values, mask)


def with_row_check(mask: Mask, values: Values) -> Mask:
    """Returns a mask, which fails in a run of a graph where it has other rows than its values."""
    return with_rows_of(mask, values, mask.shape.rank or 0, _other_rows)


def _other_rows(received: str) -> StructureError:
    fix = "Make the mask from the values, such as `values > 0`; a mask does not broadcast."
    return StructureError("MaskedTensor.mask", "a mask with the rows of its values", received, fix)


def _expect_rows(values: Any, mask: Mask, all_values: Values, all_mask: Mask) -> None:
    """Raises an error unless a mask has the row splits of its values."""
    is_ragged = hasattr(values, "row_splits")
    if isinstance(mask, tf.RaggedTensor):
        if not is_ragged:
            raise _shape_error(all_values, all_mask)
        a, b = mask.row_splits, values.row_splits
        is_eager = hasattr(a, "numpy") and hasattr(b, "numpy")
        if a is not b and is_eager and not np.array_equal(a.numpy(), b.numpy()):
            raise _shape_error(all_values, all_mask, "a ragged mask with other row lengths")
        _expect_rows(values.values, mask.values, all_values, all_mask)
    elif is_ragged and mask.shape.rank and None in values.shape[1 : mask.shape.rank]:
        raise _shape_error(all_values, all_mask)


def _shape_error(
    values: Values | tf.TypeSpec, mask: Mask | tf.TypeSpec, received: str | None = None
) -> StructureError:
    shape = static_shape(values)
    shorter = [tf.TensorShape(shape[:rank]) for rank in range(shape.rank or 0, -1, -1)]
    uniform = [s for s, _ in itertools.groupby(map(str, shorter))]
    ragged = "a ragged mask of " if hasattr(values, "row_splits") else ""
    expected = f"{ragged}shape {uniform[0]}, or the shape of outer dimensions of the values"
    fix = "Give one bool for each value, row or record; a mask does not broadcast."
    return StructureError(
        "MaskedTensor.mask", expected, received or f"shape {static_shape(mask)}", fix
    )
