"""The quarantine for Keras: every private Keras name that extensor uses, and why it needs it.

No other file names a private part of Keras. `tests/keras/test_keras_private.py` holds one probe a name.
Seen to work with Keras 3.10 to 3.15.

| name | why |
| --- | --- |
| `Model._default_save_signature` | When TensorFlow saves a model, Keras traces `call` with a signature that it makes of the shapes that the model was built with, all of dtype float32. Strings and row splits are lost in that. The property is overridden with the signature that the model was called with. |
| `Model._maybe_symbolic_build` | Under a tf.distribute strategy Keras makes all variables before the first step, from placeholders that it makes of the shapes of a batch. Extension values have no place in that. The method is left out where the variables were made from the spec of the batches. |
| `LossFunctionWrapper` | What Keras makes of a loss that is a function. A subclass gives the function extension values as they are, and else does what Keras does. |
| `Model._call_has_training_arg` | Whether `call` takes `training`, which an exported model sets to False, as Keras itself does. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from typing import Any

from keras.src.losses.losses import LossFunctionWrapper

LossOfFunction: Any = LossFunctionWrapper


class OwnSaveSignature:
    """Gives TensorFlow a model's own signature when it saves the model."""

    def serving_function(self) -> Any:
        """Returns the tf.function to save, or None if the model does not know its input."""
        raise NotImplementedError

    @property
    def _default_save_signature(self) -> Any:
        return self.serving_function()


class OwnBuild:
    """Makes the variables of a model in a way of its own, under a strategy."""

    built_for_strategy = False

    def _maybe_symbolic_build(self, *args: Any, **kwargs: Any) -> None:
        if not self.built_for_strategy:
            super()._maybe_symbolic_build(*args, **kwargs)  # type: ignore[misc]


def inference_arguments(model: Any) -> dict[str, Any]:
    """Returns the arguments of a call of a model that is no part of training."""
    return {"training": False} if model._call_has_training_arg else {}
