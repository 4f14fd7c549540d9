"""Operations that use only the shape of a LabeledTensor."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.labeled.value import LabeledTensor
from extensor.dispatch import implements, is_shape_only_op


@implements(tf.zeros_like, tf.ones_like, on=LabeledTensor)
def constant_like(op: Any, x: Any, *others: Any) -> Any:
    """Returns a tensor with the same axes."""
    return x.of_parts(op(x.values, *others), x.axes)


@implements(is_shape_only_op, on=LabeledTensor)
def shape_only(op: Any, x: Any, *others: Any) -> Any:
    """Returns the result for the values, as a tensor without names."""
    if isinstance(x, (list, tuple)):
        return op([y.values if isinstance(y, LabeledTensor) else y for y in x], *others)
    return op(x.values, *others)
