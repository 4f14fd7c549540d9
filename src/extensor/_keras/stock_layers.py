"""Layers like those of Keras, for values that Keras's own layers do not accept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from extensor._authoring.rows import cut_rows, uncut_rows
from extensor._keras.layer import Layer, LayerWithConfig
from extensor._struct.reshape import merge_dims, split_outer
from extensor._struct.row_splits import outer_sizes
from extensor._struct.tensor import StructuredTensor
from extensor._tf import BatchableTypeSpec
from extensor._types.masked.value import MaskedTensor
from extensor._typing import Nest, Value
from extensor.errors import UnsupportedTypeError


@keras.saving.register_keras_serializable(package="extensor")
class Identity(Layer):
    """A layer that returns its inputs, as `keras.layers.Identity`.

    >>> import extensor as xt
    >>> recipes = xt.struct.constant([{"minutes": 5}])
    >>> xt.keras.Identity()(recipes).to_py()
    [{'minutes': 5}]
    """

    def call(self, inputs: Nest) -> Nest:
        """Returns the inputs."""
        return inputs


@keras.saving.register_keras_serializable(package="extensor")
class Lambda(LayerWithConfig):
    """A layer that applies a function, as `keras.layers.Lambda`.

    Args:
        function: Takes the inputs, and `arguments` as keyword arguments. To load the layer from a
            file, register it with `keras.saving.register_keras_serializable`.
        arguments: Keyword arguments for the function.
        **kwargs: Options of `keras.layers.Layer`.

    >>> import extensor as xt
    >>> title = xt.keras.Lambda(lambda recipes: recipes["title"])
    >>> title(xt.DenseStructuredTensor([1], {"title": ["Flapjacks"]})).numpy()
    array([b'Flapjacks'], dtype=object)
    """

    _config_objects = ("function",)
    _config_values = ("arguments",)

    def __init__(
        self, function: Callable[..., Any], arguments: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.function = function
        self.arguments = dict(arguments or {})

    def call(self, inputs: Nest) -> Nest:
        """Returns the result of the function."""
        return self.function(inputs, **self.arguments)


@keras.saving.register_keras_serializable(package="extensor")
class TimeDistributed(LayerWithConfig):
    """A layer that applies another layer to each step, as `keras.layers.TimeDistributed`.

    The steps are the values of a ragged tensor, or the records in ragged rows. The layer gets the
    steps of all rows as one batch; its outputs are cut into the same rows. The steps of a dense
    tensor, and of any other value that stacks, are along its second dimension.

    Outputs for null steps, and for null rows, are null. A layer of `xt.keras` gets steps that may
    be null as a MaskedTensor; a layer of Keras gets zeros for them.

    Args:
        layer: A layer that takes a batch of steps.
        **kwargs: Options of `keras.layers.Layer`.

    >>> import keras
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> scores = tf.ragged.constant([[[1.], [2.]], [], [[3.]]], ragged_rank=1)
    >>> doubled = xt.keras.TimeDistributed(keras.layers.Rescaling(2.0))
    >>> doubled(scores).to_list()
    [[[2.0], [4.0]], [], [[6.0]]]
    """

    _config_objects = ("layer",)

    def __init__(self, layer: keras.layers.Layer, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layer = layer

    def call(self, inputs: Nest) -> Nest:
        """Returns the layer's outputs, cut into the rows of the inputs."""
        return _with_names(self._outputs_of_steps(inputs), inputs)

    def _outputs_of_steps(self, inputs: Value) -> Nest:
        if isinstance(inputs, MaskedTensor):
            rank, mask = inputs.mask.shape.rank, inputs.mask
            if rank == 1 or (rank == 2 and not isinstance(self.layer, Layer)):
                outputs = self._outputs_of_steps(inputs.values)
                return tf.nest.map_structure(lambda o: MaskedTensor.combined(o, mask), outputs)
            if not isinstance(self.layer, Layer):
                return self._outputs_of_steps(inputs.fill("" if inputs.dtype == tf.string else 0))
        if (steps := uncut_rows(inputs)) is not None:
            outputs = self.layer(steps[0])
            return tf.nest.map_structure(lambda output: cut_rows(output, steps[1]), outputs)
        spec = tf.type_spec_from_value(inputs)
        shape = getattr(spec, "shape", None)
        if not isinstance(spec, BatchableTypeSpec) or (shape is not None and shape.rank == 1):
            expected = "a value of shape [batch, steps, ...], ragged, or records in ragged rows"
            received = f"{type(inputs).__name__} of shape {shape}"
            fix = "Give a single field, or call the inner layer on the values."
            raise UnsupportedTypeError(self.name, expected, received, fix)
        static = [None, None] if shape is None else shape[:2]
        found = zip(static, tf.unstack(outer_sizes(inputs, 2)), strict=True)
        sizes = [own if size is None else size for size, own in found]
        outputs = self.layer(merge_dims(inputs, 0, 1))
        return tf.nest.map_structure(lambda output: split_outer(output, sizes), outputs)


def _with_names(outputs: Nest, inputs: Value) -> Nest:
    """Returns outputs whose records have the names of the inputs for batch and steps."""
    if not isinstance(inputs, StructuredTensor) or not any(inputs.dims[:2]):
        return outputs
    outer = inputs.dims[:2]

    def with_names(output: Value) -> Value:
        if not isinstance(output, StructuredTensor):
            return output
        inner = [None if name in outer else name for name in output.dims[2:]]
        return output.with_dims((*outer, *inner))

    return tf.nest.map_structure(with_names, outputs)
