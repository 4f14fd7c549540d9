"""RNN: a recurrent layer whose inputs, outputs and states may be extension values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from extensor._keras.layer import LayerWithConfig
from extensor._keras.lowering import is_extension
from extensor._protocol.box import box, stacked_spec, unbox, unstacked_spec
from extensor._struct.reshape import merge_dims
from extensor._tf import BatchableTypeSpec
from extensor._typing import Nest, Value
from extensor.errors import ArgumentError, UnsupportedTypeError


@keras.saving.register_keras_serializable(package="extensor")
class RNN(LayerWithConfig):
    """A layer that runs a cell over the steps of a value, as `keras.layers.RNN`.

    The steps are along the second dimension, of which there must be at least one. Where a mask of
    Keras is False, the step is left out: the row keeps its states and its output. A cell sees what
    is null in its own inputs.

    Args:
        cell: A layer, or a list of layers that run one after another in each step. A layer's
            `call(step, states)` gets one step of each row and a list of states, and returns the
            output and the new states. A single state need not be in a list. Its
            `get_initial_state(batch_size)` returns the first states; without this method they are
            zeros of `state_size`, an int or a list of ints.
        return_sequences: Whether to return the outputs of all steps instead of the last one.
        return_state: Whether to return the last states after the output.
        go_backwards: Whether to begin with the last step.
        stateful: Must be False.
        unroll: Whether the graph has the steps one after another, instead of a loop. The number of
            steps must be static.
        zero_output_for_mask: Whether the output of a masked step is zeros.
        **kwargs: Options of `keras.layers.Layer`.

    Raises:
        ArgumentError: If there is no cell, or the layer is to be stateful (also a ValueError).

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

    _config_objects = ("cell",)
    _config_values = (
        *("return_sequences", "return_state", "go_backwards", "unroll"),
        "zero_output_for_mask",
    )

    def __init__(
        self,
        cell: keras.layers.Layer,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if stateful:
            fix = "Keep the states: return_state=True, and then initial_state= in the next call."
            raise ArgumentError(self.name, "stateful=False", "stateful=True", fix)
        if isinstance(cell, (list, tuple)):
            if not cell:
                fix = "Give a cell, or a list of cells."
                raise ArgumentError(self.name, "one or more cells", "an empty list", fix)
            cell = StackedCells(cell)
        self.supports_masking = True
        self.cell = cell
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.go_backwards = go_backwards
        self.unroll = unroll
        self.zero_output_for_mask = zero_output_for_mask

    def call(
        self,
        inputs: Value,
        initial_state: Nest = None,
        mask: tf.Tensor | tf.RaggedTensor | None = None,
        inputs_mask: tf.Tensor | tf.RaggedTensor | None = None,
    ) -> Nest:
        """Returns the output of the last step or of all steps, and the states if asked for.

        Args:
            inputs: A value of shape `[batch, steps, ...]`.
            initial_state: The states before the first step, as the cell returns them.
            mask: A mask of Keras, `[batch, steps]`: False for the steps to leave out.
            inputs_mask: The same; Keras passes it where the first states are given.
        """
        mask = inputs_mask if mask is None else mask
        spec = tf.type_spec_from_value(inputs)
        shape = getattr(spec, "shape", None)
        if (
            not isinstance(spec, BatchableTypeSpec)
            or isinstance(inputs, tf.RaggedTensor)
            or (shape is not None and shape.rank is not None and shape.rank < 2)
        ):
            expected = "a value of shape [batch, steps, ...]"
            received = f"{type(inputs).__name__} of shape {shape}"
            fix = "For lists of different lengths, use xt.keras.layers.ListRNN."
            raise UnsupportedTypeError(self.name, expected, received, fix)
        of_step = stacked_spec(
            unstacked_spec(unstacked_spec(spec, self.name), self.name), None, self.name
        )
        boxes = box(spec, inputs, 2)
        batch, count = tf.unstack(tf.shape(boxes[0])[:2])
        steps = boxes[0].shape[1]
        if self.unroll and steps is None:
            expected = "a static number of steps, because unroll=True"
            received = f"{type(inputs).__name__} of shape {shape}"
            fix = "Give the number of steps in the spec of the input, or leave unroll out."
            raise UnsupportedTypeError(self.name, expected, received, fix)
        # Steps before rows.
        boxes = [_swap(part) for part in boxes]

        def step(at: tf.Tensor, states: list[Any], before: Nest = None) -> tuple[Any, list[Any]]:
            at = count - 1 - at if self.go_backwards else at
            output, new = self.cell(unbox(of_step, [part[at] for part in boxes]), states)
            new = _as_list(new)
            if mask is None:
                return output, new
            valid = tf.cast(mask[:, at], tf.bool)
            if before is None or self.zero_output_for_mask:
                before = _zeros(output)
            return _where(valid, output, before), _where(valid, new, _like(new, states))

        # Outside of the loop, so that the cell makes its variables.
        first = _first_states(self.cell, batch) if initial_state is None else initial_state
        output, states = step(0, _as_list(first))
        kind = tf.nest.map_structure(tf.type_spec_from_value, output)
        arrays = [
            [tf.TensorArray(part.dtype, count).write(0, part) for part in parts]
            for parts in (_boxes(kind, output) if self.return_sequences else [])
        ]

        def body(at: tf.Tensor, states: Nest, output: Nest, arrays: Nest) -> Nest:
            output, states = step(at, states, output)
            arrays = [
                [array.write(at, part) for array, part in zip(*pair, strict=True)]
                for pair in zip(arrays, _boxes(kind, output), strict=False)
            ]
            return at + 1, states, output, arrays

        if self.unroll:
            for at in range(1, steps):
                _, states, output, arrays = body(at, states, output, arrays)
        else:
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

    def compute_mask(self, inputs: object, previous_mask: object = None) -> object:
        """Returns the mask of the steps if the outputs of all steps are returned, else None."""
        return previous_mask if self.return_sequences else None

    def _rows(self, spec: tf.TypeSpec, parts: list[Any], shape: tf.TensorShape | None) -> Value:
        """Returns an output of all steps from its stacked boxes."""
        sizes = tf.TensorShape([None, None]) if shape is None else shape[:2]
        row = stacked_spec(unstacked_spec(spec, self.name), sizes[1], self.name)
        return unbox(stacked_spec(row, sizes[0], self.name), [_swap(part) for part in parts])


@keras.saving.register_keras_serializable(package="extensor")
class StackedCells(LayerWithConfig):
    """A cell of cells that run one after another, as `keras.layers.StackedRNNCells`.

    Args:
        cells: The cells; the output of each is the step of the next.
        **kwargs: Options of `keras.layers.Layer`.
    """

    _config_objects = ("cells",)

    def __init__(self, cells: Sequence[keras.Layer], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cells = list(cells)

    def get_initial_state(self, batch_size: tf.Tensor | int | None = None) -> list[Any]:
        """Returns the first states of each cell: a list of them, or a single one."""
        return [_alone(_first_states(cell, batch_size)) for cell in self.cells]

    def call(self, step: Nest, states: Nest) -> Nest:
        """Returns the output of the last cell, and the states of each cell."""
        new: list[Any] = []
        for cell, own in zip(self.cells, states, strict=True):
            step, found = cell(step, _as_list(own))
            new.append(_alone(_as_list(found)))
        return step, new


def _first_states(cell: Any, batch: tf.Tensor) -> list[Any]:
    """Returns the states of a cell before the first step."""
    if hasattr(cell, "get_initial_state"):
        return _as_list(cell.get_initial_state(batch_size=batch))
    return [tf.zeros([batch, size]) for size in _as_list(cell.state_size)]


def _alone(states: list[Any]) -> Nest:
    return states[0] if len(states) == 1 else states


def _as_list(states: Nest) -> list[Any]:
    return list(states) if isinstance(states, (list, tuple)) else [states]


def _boxes(kind: Nest, output: Nest) -> list[list[Any]]:
    """Returns the tensors that stack of each value in an output, which may be a nest."""
    pairs = zip(tf.nest.flatten(kind), tf.nest.flatten(output), strict=True)
    return [box(spec, value, 1) for spec, value in pairs]


def _like(nest: Nest, values: Nest) -> Nest:
    """Returns values as tensors or extension values, in the structure of a nest."""
    flat = [
        value if is_extension(value) else tf.convert_to_tensor(value)
        for value in tf.nest.flatten(values)
    ]
    return tf.nest.pack_sequence_as(nest, flat)


def _zeros(nest: Nest) -> Nest:
    """Returns zeros of the form of each tensor and value in a nest."""
    return _by_box(lambda part: tf.zeros_like(part), nest)


def _where(valid: tf.Tensor, new: Nest, old: Nest) -> Nest:
    """Returns rows of `new` where a mask is True, and of `old` elsewhere."""
    count = tf.shape(valid)[0]
    at = tf.range(count) + tf.where(valid, 0, count)
    # Boxes may be variants, for which there is no op like `tf.where`.
    return _by_box(lambda one, other: tf.gather(tf.concat([one, other], 0), at), new, old)


def _by_box(change: Callable[..., Any], *nests: Nest) -> Nest:
    """Returns a nest in which each tensor and value is made of the boxes of those in the nests."""

    def one(*values: Value) -> Value:
        spec = tf.type_spec_from_value(values[0])
        parts = zip(*(box(spec, value, 1) for value in values), strict=True)
        return unbox(spec, [_with_shape(change(*own), own[0].shape) for own in parts])

    return tf.nest.map_structure(one, *nests)


def _with_shape(tensor: tf.Tensor, shape: tf.TensorShape) -> tf.Tensor:
    tensor.set_shape(shape)
    return tensor


def _swap(part: tf.Tensor) -> tf.Tensor:
    """Returns a tensor with its first two dimensions exchanged, boxes of values too."""
    first, second = tf.unstack(tf.shape(part)[:2])
    at = tf.transpose(tf.reshape(tf.range(first * second), [first, second]))
    swapped = tf.gather(merge_dims(part, 0, 1), at)
    swapped.set_shape([part.shape[1], part.shape[0], *part.shape[2:]])
    return swapped
