"""Operations that use only the shape of a UnionTensor, or return it as it is."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._types.union.value import UnionTensor
from extensor.dispatch import implements


@implements(tf.shape, tf.size, tf.rank, on=UnionTensor)
def measure(op: Any, input: Any, *args: Any) -> Any:
    """Returns the shape, size or rank of the codes."""
    return op(input.codes, *args)


@implements(tf.identity, tf.stop_gradient, on=UnionTensor)
def same(op: Any, input: Any, *args: Any) -> Any:
    """Returns the union with the operation applied to all its tensors."""
    return tf.nest.map_structure(op, input, expand_composites=True)


@implements(tf.ensure_shape, on=UnionTensor)
def ensure_shape(x: Any, shape: Any, *args: Any) -> Any:
    """Returns the union with a checked shape."""
    return UnionTensor.of_parts(tf.ensure_shape(x.codes, shape), x.variants, x.names)
