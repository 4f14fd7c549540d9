"""xt.tuple for extension values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf


def tuple_(
    tensors: Iterable[Any], control_inputs: Iterable[Any] | None = None, name: str | None = None
) -> list[Any]:
    """Returns the values unchanged, after all of them are computed.

    Like `tf.tuple`, for lists of tensors and extension values.

    Args:
        tensors: A list of tensors and extension values.
        control_inputs: Additional ops to wait for.
        name: A name for the op.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.tuple([tf.ragged.constant([[1], []]), tf.constant(2)])
    [<tf.RaggedTensor [[1], []]>, <tf.Tensor: shape=(), dtype=int32, numpy=2>]
    """
    flat = tf.nest.flatten(tensors, expand_composites=True)
    flat = tf.tuple(flat, control_inputs=control_inputs, name=name)
    return tf.nest.pack_sequence_as(tensors, flat, expand_composites=True)
