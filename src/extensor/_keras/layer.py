"""Layer: the base class of layers whose `call` takes and returns extension values."""

from __future__ import annotations

import keras

from extensor._keras.layer_call import TakesValues


class Layer(TakesValues, keras.layers.Layer):
    """A Keras layer whose `call` takes and returns extension values and plain tensors.

    Subclass it like `keras.layers.Layer`. Call it with values, or with the placeholders of
    `xt.keras.Input` and `keras.Input`; `call` always gets values.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> class TotalTime(xt.keras.Layer):
    ...     def call(self, recipes):
    ...         return tf.reduce_sum(recipes["minutes"], axis=1)
    >>> recipes = xt.DenseStructuredTensor([2], {"minutes": tf.ragged.constant([[5., 20.], [8.]])})
    >>> TotalTime()(recipes).numpy()
    array([25.,  8.], dtype=float32)
    """
