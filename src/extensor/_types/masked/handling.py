"""How the handlers of MaskedTensors are entered, and what they know of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._types.masked.tensor import MaskedTensor
from extensor.dispatch import implements


def handles(*ops: Any) -> Callable[[Any], Any]:
    """Makes a function the handler of operations, or of kinds of these, for MaskedTensors."""
    return implements(*ops, on=MaskedTensor)


def static_axis(axis: Any) -> Any:
    """Returns an axis as it is known when a function is traced; None if it is not."""
    return tf.get_static_value(axis) if isinstance(axis, tf.Tensor) else axis
