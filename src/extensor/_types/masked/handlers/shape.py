"""Operations that use only the shape of a MaskedTensor."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.masked import item
from extensor._types.masked.value import MaskedTensor
from extensor.dispatch import implements


@implements(tf.shape, tf.size, tf.rank, on=MaskedTensor)
def measure(op: Any, input: Any, *args: Any) -> Any:
    """Returns the shape, size or rank of the values, valid or not."""
    return op(input.values, *args) if item.is_tensor(input.values) else NotImplemented


@implements(tf.zeros_like, tf.ones_like, on=MaskedTensor)
def constant(op: Any, input: Any, *args: Any) -> Any:
    """Returns zeros or ones with the same mask, also of records."""
    return MaskedTensor.of_parts(op(input.values, *args), input.mask)
