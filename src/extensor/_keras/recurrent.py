"""RNN: a recurrent layer whose inputs, outputs and states may be extension values."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from extensor._keras.layer import Layer
from extensor._protocol.box import box, stacked_spec, unbox, unstacked_spec
from extensor._tf import BatchableTypeSpec
from extensor.errors import UnsupportedTypeError


@keras.saving.register_keras_serializable(package="extensor")
class RNN(Layer):
    """A layer that runs a cell over the steps of a value, as `keras.layers.RNN`.

    The steps are along the second dimension, of which there must be at least one. Masks of Keras
    are not used: a cell sees what is null in its own inputs.

    Args:
        cell: A layer whose `call(step, states)` gets one step of each row and a list of states, and
            returns the output and the new states. A single state need not be in a list. Its
            `get_initial_state(batch_size)` returns the first states; without this method they are
            zeros of `state_size`, an int or a list of ints.
        return_sequences: Whether to return the outputs of all steps instead of the last one.
        return_state: Whether to return the last states after the output.
        go_backwards: Whether to begin with the last step.
        **kwargs: Options of `keras.layers.Layer`.

    >>> import keras
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> class Sum(xt.keras.Layer):
    ...     state_size = 1
    ...     def call(self, step, states):
    ...         known = tf.where(step.mask, step.values, 0.0)[:, tf.newaxis]
    ...         return states[0] + known, [states[0] + known]
    >>> minutes = xt.types.MaskedTensor([[1.0, 2.0, 4.0]], [[True, False, True]])
    >>> xt.keras.RNN(Sum())(minutes).numpy()
    array([[5.]], dtype=float32)
    """

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cell = cell
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.go_backwards = go_backwards

    def call(self, inputs: Any, initial_state: Any = None) -> Any:
        """Returns the output of the last step or of all steps, and the states if asked for."""
        spec = tf.type_spec_from_value(inputs)
        shape = getattr(spec, "shape", None)
        if (
            not isinstance(spec, BatchableTypeSpec)
            or isinstance(inputs, tf.RaggedTensor)
            or (shape is not None and shape.rank is not None and shape.rank < 2)
        ):
            raise UnsupportedTypeError(
                path=self.name,
                expected="a value of shape [batch, steps, ...]",
                received=f"{type(inputs).__name__} of shape {shape}",
                mend="For lists of different lengths, use xt.keras.layers.ListRNN.",
            )
        of_step = stacked_spec(
            unstacked_spec(unstacked_spec(spec, self.name), self.name), None, self.name
        )
        boxes = box(spec, inputs, 2)
        batch, count = tf.unstack(tf.shape(boxes[0])[:2])
        # Steps before rows.
        boxes = [_swapped(part) for part in boxes]

        def step(at: Any, states: list[Any]) -> tuple[Any, list[Any]]:
            at = count - 1 - at if self.go_backwards else at
            output, states = self.cell(unbox(of_step, [part[at] for part in boxes]), states)
            return output, _as_list(states)

        # Outside of the loop, so that the cell makes its variables.
        first = self._first_states(batch) if initial_state is None else _as_list(initial_state)
        output, states = step(0, first)
        kind = tf.nest.map_structure(tf.type_spec_from_value, output)
        arrays = [
            [tf.TensorArray(part.dtype, count).write(0, part) for part in parts]
            for parts in (_boxes(kind, output) if self.return_sequences else [])
        ]

        def body(at: Any, states: Any, output: Any, arrays: Any) -> Any:
            output, states = step(at, states)
            arrays = [
                [array.write(at, part) for array, part in zip(*pair, strict=True)]
                for pair in zip(arrays, _boxes(kind, output), strict=False)
            ]
            return at + 1, states, output, arrays

        _, states, output, arrays = tf.while_loop(
            lambda at, *_: at < count, body, (tf.constant(1), states, output, arrays)
        )
        if self.return_sequences:
            values = [
                self._rows(spec, [array.stack() for array in own], shape)
                for spec, own in zip(tf.nest.flatten(kind), arrays, strict=True)
            ]
            output = tf.nest.pack_sequence_as(kind, values)
        return [output, *states] if self.return_state else output

    def _first_states(self, batch: Any) -> list[Any]:
        """Returns the states before the first step."""
        if hasattr(self.cell, "get_initial_state"):
            return _as_list(self.cell.get_initial_state(batch_size=batch))
        return [tf.zeros([batch, size]) for size in _as_list(self.cell.state_size)]

    def _rows(self, spec: Any, parts: list[Any], shape: Any) -> Any:
        """Returns an output of all steps from its stacked boxes."""
        sizes = tf.TensorShape([None, None]) if shape is None else shape[:2]
        row = stacked_spec(unstacked_spec(spec, self.name), sizes[1], self.name)
        return unbox(stacked_spec(row, sizes[0], self.name), [_swapped(part) for part in parts])

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {
            **super().get_config(),
            "cell": keras.saving.serialize_keras_object(self.cell),
            "return_sequences": self.return_sequences,
            "return_state": self.return_state,
            "go_backwards": self.go_backwards,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> RNN:
        """Returns the layer of a configuration from `get_config`."""
        cell = keras.saving.deserialize_keras_object(config["cell"])
        return super().from_config({**config, "cell": cell})


def _as_list(states: Any) -> list[Any]:
    return list(states) if isinstance(states, (list, tuple)) else [states]


def _boxes(kind: Any, output: Any) -> list[list[Any]]:
    """Returns the tensors that stack of each value in an output, which may be a nest."""
    pairs = zip(tf.nest.flatten(kind), tf.nest.flatten(output), strict=True)
    return [box(spec, value, 1) for spec, value in pairs]


def _swapped(part: Any) -> Any:
    """Returns a tensor with its first two dimensions exchanged, boxes of values too."""
    first, second = tf.unstack(tf.shape(part)[:2])
    at = tf.transpose(tf.reshape(tf.range(first * second), [first, second]))
    rows = tf.reshape(part, tf.concat([[-1], tf.shape(part)[2:]], 0))
    swapped = tf.gather(rows, at)
    swapped.set_shape([part.shape[1], part.shape[0], *part.shape[2:]])
    return swapped
