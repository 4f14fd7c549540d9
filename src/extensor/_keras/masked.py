"""Masked: a layer that returns plain tensors with the masks that layers of Keras use."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from extensor._keras.layer import Layer
from extensor._keras.lowering import is_extension, to_lowered
from extensor._typing import Nest, Value
from extensor.errors import UnsupportedTypeError


@keras.saving.register_keras_serializable(package="extensor")
class Masked(Layer):
    """A layer that returns a plain tensor with its Keras mask, for layers that use masks.

    LSTM, MultiHeadAttention, GlobalAveragePooling1D and similar layers use the mask. A ragged
    tensor is padded to its longest row, and the padding of all its ragged dimensions is masked. Any
    other type needs a method `__keras_mask__()` that returns a tensor and its mask. The mask is
    boolean, has the tensor's first dimensions, and is True for valid elements.

    If all rows are empty, they have one masked step, because LSTM, GRU and max pooling do not
    accept zero steps.

    >>> import keras
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> ragged = tf.ragged.constant([[[1.], [3.]], [[4.]]], ragged_rank=1)
    >>> mean = keras.layers.GlobalAveragePooling1D()
    >>> mean(xt.keras.Masked()(ragged)).numpy().tolist()
    [[2.0], [4.0]]
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs: Nest) -> tf.Tensor:
        """Returns the tensor."""
        return tf.identity(self._parts(inputs)[0])  # a copy, so that the original gets no mask

    def compute_mask(self, inputs: object, previous_mask: object | None = None) -> tf.Tensor | None:
        """Returns the mask of values, or None for placeholders."""
        if any(isinstance(part, keras.KerasTensor) for part in tf.nest.flatten(to_lowered(inputs))):
            return None
        return self._parts(inputs)[1]

    def _parts(self, value: Value) -> tuple[Any, Any]:
        if isinstance(value, tf.RaggedTensor):
            return _with_a_step(value.to_tensor(), _ragged_mask(value))
        if is_extension(value) and hasattr(value, "__keras_mask__"):
            tensor, mask = value.__keras_mask__()
            return _with_a_step(tensor, mask)
        expected = "a ragged tensor, or a value with a method __keras_mask__"
        fix = "Give a single field, or define __keras_mask__(self) to return a tensor and its mask."
        raise UnsupportedTypeError(self.name, expected, type(value).__name__, fix)


def _ragged_mask(ragged: tf.RaggedTensor) -> tf.Tensor:
    """Returns the mask of a padded ragged tensor, down to its innermost ragged dimension."""
    sizes = ragged.shape[1 : ragged.ragged_rank + 1].as_list()
    depth = max((i for i, size in enumerate(sizes, 1) if size is None), default=1)
    splits = ragged.nested_row_splits[:depth]
    valid = tf.fill([splits[-1][-1]], True)
    return tf.RaggedTensor.from_nested_row_splits(valid, splits, validate=False).to_tensor()


def _with_a_step(tensor: tf.Tensor, mask: tf.Tensor) -> tuple[Any, Any]:
    """Returns a tensor and its mask with at least one step in each masked dimension."""
    tensor, mask = tf.convert_to_tensor(tensor), tf.convert_to_tensor(mask)
    sizes = mask.shape[1:].as_list()
    if all(sizes):
        return tensor, mask
    missing = tf.maximum(1 - tf.shape(mask)[1:], 0)
    after = tf.concat([[0], missing, tf.zeros([tensor.shape.rank - mask.shape.rank], tf.int32)], 0)
    padded = []
    for part in (tensor, mask):
        own = after[: part.shape.rank]
        result = tf.pad(part, tf.stack([tf.zeros_like(own), own], axis=1))
        dims = [size or (1 if size == 0 else None) for size in sizes]
        rest = part.shape[mask.shape.rank :]
        result.set_shape(part.shape[:1].concatenate(dims).concatenate(rest))
        padded.append(result)
    return padded[0], padded[1]
