"""All private Keras names that extensor uses, and the reason for each.

No other file uses private names of Keras. `tests/keras/test_keras_private.py` has one probe for each
name. Tested with Keras 3.10 to 3.15.

| name | why |
| --- | --- |
| `Model._default_save_signature` | When TensorFlow saves a model, Keras traces `call` with a signature from the shapes that the model was built with, all of dtype float32. This loses strings and row splits. An override returns the signature of the model's first call. |
| `Model._maybe_symbolic_build` | Under a tf.distribute strategy, Keras creates all variables before the first step, from placeholders for the shapes of a batch. This does not work for extension values. An override does nothing if extensor has created the variables from the spec of the batches. |
| `LossFunctionWrapper` | The class in which Keras wraps a loss function. A subclass passes extension values to the function unchanged. |
| `Functional` | The class of `keras.Model(inputs, outputs)`, which has no public name. |
| `Functional._standardize_inputs` | A functional model converts its inputs to tensors. An override passes on extension values. |
| `Sequential._functional` | The functional model that a Sequential runs. An override replaces it by one for values. |
| `Sequential._layers` | The layers with the InputLayer, which `layers` leaves out. |
| `Layer._flatten_layers` | The layers in layers, of which one may look strings up, which XLA cannot compile. |
| `Operation._inbound_nodes` | Keras builds a layer of extensor for component tensors. In the graph, the arguments of the call are KerasTensors of values. |
| `_keras_mask` | The attribute of a tensor that has a mask. Keras passes on the masks of tensors, not of values. |
| `Model._call_has_training_arg` | Whether `call` takes `training`. An exported model sets it to False, like Keras itself. |
| `Model._initial_epoch` | The epoch with which `fit` begins after a callback restored a training. `initial_epoch` is an argument of `fit`, which a callback cannot change. |
| `Layer._tracker` | Whether a layer takes no other layers any more, because it was called. |
| `global_state` | Keras keeps the names of attributes that it does not save under one key, and looks for them under another one. So each save makes an optimizer to know them. |
| `discretization.summarize` | The quantiles of a batch that `keras.layers.Discretization` keeps. Times are added to them as differences, without a layer. |
| `discretization.merge_summaries` | The quantiles of two parts of the data are joined. The layer has no method for it. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.src.backend.common import global_state
from keras.src.layers.preprocessing.discretization import merge_summaries, summarize
from keras.src.losses.losses import LossFunctionWrapper
from keras.src.models.functional import Functional

from extensor._typing import Nest

LossOfFunction: Any = LossFunctionWrapper
KerasFunctional: Any = Functional


def layers_in(layer: Any) -> list[Any]:
    """Returns a Keras layer and all layers in it."""
    return list(layer._flatten_layers())


class OwnInputs:
    """Lets a functional model pass on inputs that are not tensors."""

    def standardized(self, inputs: Nest) -> list[Any] | None:
        """Returns the flat inputs of the graph, or None if Keras converts them."""
        raise NotImplementedError

    def _standardize_inputs(self, inputs: Nest) -> list[Any]:
        own = self.standardized(inputs)
        return super()._standardize_inputs(inputs) if own is None else own  # type: ignore[misc]


class OwnGraph:
    """Lets a Sequential run a functional model of its own."""

    _layers: Any
    _functional: Any

    def functional_model(self, inputs: Nest, outputs: Nest, name: str) -> keras.Model:
        """Returns the functional model of the chain."""
        raise NotImplementedError

    def clone_with(
        self, clone_function: Callable[[keras.Layer], keras.Layer], input_tensors: Nest
    ) -> keras.Model:
        """Returns a model of clones of the layers, as `keras.models.clone_model`."""
        raise NotImplementedError

    @property
    def functional(self) -> keras.Model | None:
        """The functional model of the chain, or None if it is not built."""
        return self._functional

    @property
    def declared_input(self) -> Any:
        """The KerasTensor of the InputLayer, or None if there is no such layer."""
        first = self._layers[0] if self._layers else None
        return first.output if isinstance(first, keras.layers.InputLayer) else None

    def build(self, input_shape: Nest = None) -> None:
        super().build(input_shape)  # type: ignore[misc]
        graph = self._functional
        if graph is not None:
            self._functional = self.functional_model(graph.input, graph.output, graph.name)


def has_mask(tensor: tf.Tensor) -> bool:
    """Returns whether a layer of Keras set a mask for an eager or graph tensor."""
    return tensor.__dict__.get("_keras_mask") is not None


def with_mask(tensor: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns a copy of a tensor whose mask excludes rows, beside what its own mask excludes.

    Args:
        tensor: A tensor, perhaps with a mask.
        mask: bool, one for each row.
    """
    own = tensor.__dict__.get("_keras_mask")
    copy: Any = tf.identity(tensor)
    if own is not None:
        mask = own & tf.reshape(mask, [-1] + [1] * (own.shape.rank - 1))
    copy._keras_mask = mask
    return copy


def set_call_arguments(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Replaces the arguments of a layer's last call in the graph."""
    node = layer._inbound_nodes[-1]
    node.arguments = type(node.arguments)(*args, **kwargs)


class OwnSaveSignature:
    """Lets TensorFlow save a model with the signature of `serving_function`."""

    def serving_function(self) -> tf.types.experimental.PolymorphicFunction | None:
        """Returns the tf.function to save, or None if the model was never called."""
        raise NotImplementedError

    @property
    def _default_save_signature(self) -> tf.types.experimental.PolymorphicFunction | None:
        return self.serving_function()


class OwnBuild:
    """Skips Keras's own build under a strategy if the model is built already."""

    built_for_strategy = False

    def _maybe_symbolic_build(self, *args: object, **kwargs: object) -> None:
        if not self.built_for_strategy:
            super()._maybe_symbolic_build(*args, **kwargs)  # type: ignore[misc]


def inference_arguments(model: Any) -> dict[str, Any]:
    """Returns the keyword arguments for calling a model outside of training."""
    return {"training": False} if model._call_has_training_arg else {}


def begin_with_epoch(model: Any, epoch: int | None) -> None:
    """Lets the `fit` that has just begun begin with an epoch; None for that of its arguments.

    Keras keeps the epoch for each later `fit`, so it is set to None when an epoch has begun.
    """
    model._initial_epoch = epoch


def keep_names_not_saved() -> None:
    """Lets the next saves of Keras find which attributes are not saved, after a first save.

    Otherwise each save makes an optimizer and a layer to know it, which takes half of its time.
    """
    for kind in _KINDS_SAVED:
        names = global_state.get_global_attribute(f"saving_attr_skipset_{kind}")
        if names is not None:
            global_state.set_global_attribute(f"saving_attr_skiplist_{kind}", names)


_KINDS_SAVED = ("Functional", "Layer", "Loss", "Metric", "Operation", "Optimizer", "Sequential")


def is_closed(layer: Any) -> bool:
    """Returns whether Keras lets a layer have no other layers in it, because it was called."""
    return layer._tracker.locked


def summary_with(summary: Any, numbers: Any, epsilon: float) -> Any:
    """Returns a summary of `keras.layers.Discretization` with numbers added to it.

    Args:
        summary: An array of the numbers, ascending, and how many numbers each stands for.
        numbers: An array of one number or more.
        epsilon: The precision of the quantiles.
    """
    return merge_summaries(summarize(np.asarray(numbers, np.float32), epsilon), summary, epsilon)


def joined_summaries(one: Any, other: Any, epsilon: float) -> Any:
    """Returns the summary of the numbers of two summaries, of the form that `summary_with` has."""
    return merge_summaries(one, other, epsilon)
