"""ListRNN: a recurrent layer over the items of lists."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from extensor._keras.layers.combine import or_empty
from extensor._keras.layers.lists import ListItems, ListLayer
from extensor._typing import Nest, Value


@keras.saving.register_keras_serializable(package="extensor")
class ListRNN(ListLayer):
    """A layer that runs a recurrent layer of Keras over the items of each list.

    Null items are left out, and items of a dense tensor where its Keras mask is False. Numbers are
    vectors of size 1, and records of numbers one vector of all their fields. With
    `return_sequences=True`, the result has the outputs in the rows of the lists: it is ragged. Of
    lists in lists, the layer runs over each innermost list.

    Args:
        layer: A layer such as `keras.layers.LSTM`, `GRU`, `RNN(cell)` or `Bidirectional`.
        empty: The output for an empty list.
        **kwargs: Options of `keras.layers.Layer`.

    >>> import keras
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> minutes = tf.ragged.constant([[5.0, 20.0], [], [8.0]])
    >>> xt.keras.layers.ListRNN(keras.layers.GRU(4))(minutes).shape
    TensorShape([3, 4])
    """

    _config_objects = ("layer",)
    _config_values = ("empty",)

    def __init__(self, layer: keras.layers.Layer, empty: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layer, self.empty = layer, empty

    def call(
        self,
        inputs: Value,
        training: bool | None = None,
        mask: tf.Tensor | tf.RaggedTensor | None = None,
    ) -> Nest:
        """Returns the outputs of the recurrent layer; with `return_state=True` and its states.

        Args:
            inputs: A field of lists.
            training: Whether the recurrent layer applies its dropout.
            mask: The mask that Keras keeps for a dense tensor: True for the items.
        """
        lists = ListItems.of_field(inputs, self.name, mask)
        lists = lists.of_vectors(self.name, self.compute_dtype)
        steps, mask = lists.padded(self.name)
        to_run = mask
        if _uses_cudnn(self.layer):  # it refuses lists without a step: they get one, of zeros
            to_run = mask | (tf.range(tf.shape(mask)[1]) == 0)
        results = self.layer(steps, mask=to_run, training=training)
        single = not isinstance(results, (list, tuple))
        outputs, *states = [results] if single else results
        if getattr(self.layer, "return_sequences", False):
            is_reversed = getattr(self.layer, "go_backwards", False)  # the padding comes first
            outputs = lists.of_padded(outputs, tf.reverse(mask, [1]) if is_reversed else mask)
        else:
            outputs = lists.one_each(or_empty(lists, outputs, self.empty))
        if to_run is not mask:
            states = [or_empty(lists, state, 0.0) for state in states]
        return outputs if single else [outputs, *map(lists.one_each, states)]


def _uses_cudnn(layer: keras.layers.Layer) -> bool:
    """Returns whether a layer may use cuDNN on a GPU: an LSTM, a GRU, or two of them."""
    return bool(getattr(getattr(layer, "forward_layer", layer), "use_cudnn", False))
