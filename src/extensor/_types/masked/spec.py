"""The spec of MaskedTensors, and casts to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import tensorflow as tf

from extensor._types.masked import item
from extensor._types.masked.check import expect_fit, static_shape
from extensor.authoring import cast_value, castable_type

if TYPE_CHECKING:
    from extensor._types.masked.value import MaskedTensor


class MaskedSpec:
    """The spec of MaskedTensors with given specs of values and mask.

    Args:
        values: The spec of the values.
        mask: The spec of the mask. Default: one bool for each number or string; for records, one
            bool for each record.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.types.MaskedTensor.Spec(tf.TensorSpec([None, 3]))
    MaskedTensor.Spec(values=TensorSpec(shape=(None, 3), dtype=tf.float32, name=None),
                      mask=TensorSpec(shape=(None, 3), dtype=tf.bool, name=None))
    """

    values: Any
    mask: Any
    value_type: Any

    def __init__(self, values: tf.TypeSpec, mask: tf.TypeSpec | None = None) -> None:
        self.values = values
        self.mask = _mask_of(values) if mask is None else mask
        expect_fit(self.values, self.mask)

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the values; for records, the shape of the records."""
        return static_shape(self.values)

    @property
    def dtype(self) -> tf.DType:
        """The dtype of the values, if they are tensors."""
        return self.values.dtype

    def cast(
        self, value: Any, casting_context: object | None = None, **request: Any
    ) -> MaskedTensor:
        """Returns a value as a MaskedTensor of this spec; without a mask, all of it is valid.

        Args:
            value: A MaskedTensor, an array of `numpy.ma`, or a value that casts to `values`. In
                lists, None is an item that is not valid.
            casting_context: The casting context of TensorFlow.
            **request: `extra` and `times` for records in it.
        """
        path = type(self).__qualname__
        if request and isinstance(value, self.value_type):
            value = {"values": value.values, "mask": value.mask}
        if isinstance(value, np.ma.MaskedArray):
            value = {"values": np.ma.getdata(value), "mask": ~np.ma.getmaskarray(value)}
        is_parts = isinstance(value, Mapping) and {"values", "mask"} == set(cast("Any", value))
        if not self._masks_lists_of(value) and (
            is_parts
            or isinstance(value, (tf.TypeSpec, self.value_type))
            or (
                # It may be of an older class of the same name.
                hasattr(value, "mask") and hasattr(value, "values")
            )
        ):
            if request and is_parts:  # the paths of fields do not name the part
                parts: Any = {**value}
                parts["values"] = cast_value(self.values, parts["values"], path, **request)
                value = parts
            return cast("Any", super()).cast(value, casting_context)
        if value is None or isinstance(value, (list, tuple)):
            value, mask = item.without_none(value, self.values, self.mask.shape.rank)
            if mask is not None:
                value = cast_value(self.values, value, path, **request)
                mask = cast_value(self.mask, mask, f"{path}.mask")
                return self.value_type._of_parts(value, mask)
        values = cast_value(self.values, value, path, **request)
        return self.value_type._of_parts(values, item.all_valid(values, self.mask.shape.rank))

    def _masks_lists_of(self, other: Any) -> bool:
        """Returns whether a MaskedTensor, or its spec, has nulls only in lists of this one."""
        if not isinstance(other, (type(self), self.value_type)):
            return False
        own, inner = self.mask.shape.rank, other.mask.shape.rank
        return own is not None and inner is not None and own < inner

    def castable_type(self, spec: tf.TypeSpec) -> tf.TypeSpec | None:
        """Returns the spec to which values of both specs cast: a MaskedSpec, or None."""
        if isinstance(spec, type(self)):
            if spec._masks_lists_of(self):
                return spec.castable_type(self)
            if not self._masks_lists_of(spec):
                return cast("Any", super()).castable_type(spec)
        values: Any = castable_type(self.values, spec)
        return None if values is None else type(self)(values, _mask_like(self.mask, values))


def _mask_like(mask: Any, values: Any) -> tf.TensorSpec | tf.RaggedTensorSpec:
    """Returns the spec of a mask of the rank of another one, with the rows of values."""
    shape = static_shape(values)[: mask.shape.rank]
    if static_shape(values).rank is None:
        return tf.TensorSpec(None, tf.bool)
    rows = values if isinstance(values, tf.RaggedTensorSpec) and shape.rank > 1 else mask
    if isinstance(rows, tf.TensorSpec):
        return tf.TensorSpec(shape, tf.bool)
    ragged_rank = min(rows.ragged_rank, max(shape.rank - 1, 0))
    return tf.RaggedTensorSpec(shape, tf.bool, ragged_rank, rows.row_splits_dtype)


def _mask_of(values: tf.TypeSpec) -> tf.TensorSpec | tf.RaggedTensorSpec:
    if isinstance(values, tf.RaggedTensorSpec) and values.ragged_rank > 0:
        return tf.RaggedTensorSpec(
            values.shape, tf.bool, values.ragged_rank, values.row_splits_dtype
        )
    return tf.TensorSpec(static_shape(values), tf.bool)
