"""All private Keras names that extensor uses, and the reason for each.

No other file uses private names of Keras. `tests/keras/test_keras_private.py` has one probe for each
name. Tested with Keras 3.10 to 3.15.

| name | why |
| --- | --- |
| `Model._default_save_signature` | When TensorFlow saves a model, Keras traces `call` with a signature from the shapes that the model was built with, all of dtype float32. This loses strings and row splits. An override returns the signature of the model's first call. |
| `Model._maybe_symbolic_build` | Under a tf.distribute strategy, Keras creates all variables before the first step, from placeholders for the shapes of a batch. This does not work for extension values. An override does nothing if extensor has created the variables from the spec of the batches. |
| `LossFunctionWrapper` | The class in which Keras wraps a loss function. A subclass passes extension values to the function unchanged. |
| `Functional._standardize_inputs` | A functional model converts its inputs to tensors. An override passes on extension values. |
| `Operation._inbound_nodes` | Keras builds a layer of extensor for component tensors. In the graph, the arguments of the call are whole values. |
| `Model._call_has_training_arg` | Whether `call` takes `training`. An exported model sets it to False, like Keras itself. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from typing import Any

from keras.src.losses.losses import LossFunctionWrapper

LossOfFunction: Any = LossFunctionWrapper


class OwnInputs:
    """Lets a functional model pass on inputs that are not tensors."""

    def standardized(self, inputs: Any) -> list[Any] | None:
        """Returns the flat inputs of the graph, or None if Keras converts them."""
        raise NotImplementedError

    def _standardize_inputs(self, inputs: Any) -> Any:
        own = self.standardized(inputs)
        return super()._standardize_inputs(inputs) if own is None else own  # type: ignore[misc]


def set_call_arguments(layer: Any, args: Any, kwargs: Any) -> None:
    """Replaces the arguments of a layer's last call in the graph."""
    node = layer._inbound_nodes[-1]
    node.arguments = type(node.arguments)(*args, **kwargs)


class OwnSaveSignature:
    """Lets TensorFlow save a model with the signature of `serving_function`."""

    def serving_function(self) -> Any:
        """Returns the tf.function to save, or None if the model was never called."""
        raise NotImplementedError

    @property
    def _default_save_signature(self) -> Any:
        return self.serving_function()


class OwnBuild:
    """Skips Keras's own build under a strategy if the model is built already."""

    built_for_strategy = False

    def _maybe_symbolic_build(self, *args: Any, **kwargs: Any) -> None:
        if not self.built_for_strategy:
            super()._maybe_symbolic_build(*args, **kwargs)  # type: ignore[misc]


def inference_arguments(model: Any) -> dict[str, Any]:
    """Returns the keyword arguments for calling a model outside of training."""
    return {"training": False} if model._call_has_training_arg else {}
