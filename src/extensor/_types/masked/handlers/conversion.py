"""Conversion of MaskedTensors to tensors, which have no mask."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.masked.value import MaskedTensor
from extensor.authoring import lossless
from extensor.dispatch import implements

_PATH = "tf.convert_to_tensor"


@implements(tf.convert_to_tensor, on=MaskedTensor)
def convert_to_tensor(value: Any, dtype: Any = None, *_: Any) -> Any:
    """Returns the values; nothing may be null."""
    inner = value
    while isinstance(inner, MaskedTensor):
        inner = inner.values
    if not isinstance(inner, tf.Tensor):
        return NotImplemented
    values = value.unmasked(_PATH)
    if dtype is None:
        return values
    dtype = tf.dtypes.as_dtype(dtype)
    return tf.cast(lossless(values, dtype, _PATH), dtype)
