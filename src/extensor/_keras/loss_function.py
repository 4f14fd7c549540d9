"""Loss functions that take whole extension values."""

from __future__ import annotations

import re
from typing import Any

import keras
import tensorflow as tf

from extensor._keras._keras_private import LossOfFunction
from extensor._keras.loss_by_field import takes_mean, weights_of_values
from extensor._keras.lowering import contains, is_extension
from extensor._protocol.tree import map_leaves
from extensor._typing import Nest
from extensor.errors import DTypeError


@keras.saving.register_keras_serializable(package="extensor")
class FunctionLoss(LossOfFunction):
    """A loss function that takes whole extension values.

    Keras weights and reduces the result of the function, like every loss.

    Args:
        function: Takes the targets and the outputs. Returns one loss for each record, or a scalar.
        **kwargs: `name`, `reduction` and `dtype`, as for `keras.losses.Loss`.
    """

    def __init__(self, function: Any, **kwargs: object) -> None:
        if isinstance(function, dict):
            function = keras.saving.deserialize_keras_object(function)
        name = getattr(function, "__name__", type(function).__name__)
        # TensorFlow does not accept the name of a lambda. Keras changes names in the same way.
        kwargs.setdefault("name", re.sub(r"\W+", "", name))
        super().__init__(function, **kwargs)
        self.function = function

    def __call__(self, y_true: Nest, y_pred: Nest, sample_weight: Nest = None) -> tf.Tensor:
        """Returns the loss of a batch."""
        if not contains((y_true, y_pred), is_extension):
            return super().__call__(y_true, y_pred, sample_weight)
        losses = self.function(y_true, y_pred)
        if isinstance(losses, tf.RaggedTensor):
            sample_weight = weights_of_values(losses, sample_weight, takes_mean(self))
            losses = losses.flat_values
        return _ComputedLoss(reduction=self.reduction, dtype=self.dtype)(
            losses, losses, sample_weight
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {
            "function": keras.saving.serialize_keras_object(self.function),
            "name": self.name,
            "reduction": self.reduction,
        }


class _ComputedLoss(keras.losses.Loss):
    """A loss whose values are computed already, and only weighted and reduced."""

    def call(self, y_true: Nest, y_pred: Nest) -> tf.Tensor:
        return y_pred


def with_function_losses(loss: Nest) -> Nest:
    """Returns the argument `loss` of `compile` with each function wrapped in a `FunctionLoss`."""
    return map_leaves(_with_function, loss)


def _with_function(loss: Nest) -> Nest:
    is_function = callable(loss) and not isinstance(loss, (type, keras.losses.Loss))
    if not is_function or getattr(loss, "__module__", "").startswith("keras."):
        return loss
    return FunctionLoss(loss)


def check_losses(loss: Nest, y_pred: Nest, model: str) -> None:
    """Raises if a loss that takes tensors would get an extension value.

    Args:
        loss: The argument of `compile`, after `with_function_losses`.
        y_pred: The outputs that the loss would get.
        model: The model's name, for the error.

    Raises:
        DTypeError: If a loss would get an extension value; the error names the output (also a
            TypeError).
    """
    if isinstance(loss, dict):
        for name in loss if isinstance(y_pred, dict) else ():
            check_losses(loss[name], y_pred.get(name), f"{model}: output {name}")
    elif isinstance(loss, (FunctionLoss, list, tuple)) or loss is None:
        return
    elif contains(y_pred, is_extension):
        expected = f"a tensor or a ragged tensor, the input of the loss {_loss_name(loss)}"
        fix = (
            'Give losses by field, compile(loss={"score": "mse"}), or a function '
            "loss(y_true, y_pred) that takes whole values."
        )
        raise DTypeError(model, expected, "an extension value", fix)


def check_targets(loss: Nest, y: Nest, path: str) -> None:
    """Raises if a loss would get strings.

    Args:
        loss: The argument of `compile`.
        y: The targets that the loss would get.
        path: The name of the targets, for the error.

    Raises:
        DTypeError: If a loss would get strings; the error names the target (also a TypeError).
    """
    if isinstance(y, dict):
        for name, target in y.items():
            check_targets(
                loss.get(name) if isinstance(loss, dict) else loss, target, f"{path} {name}"
            )
    elif isinstance(y, (list, tuple)):
        losses = loss if isinstance(loss, (list, tuple)) else [loss] * len(y)
        for i, (each, target) in enumerate(zip(losses, y, strict=False)):
            check_targets(each, target, f"{path} {i}")
    elif loss is not None and getattr(y, "dtype", None) == tf.string:
        fix = (
            "Replace each string by its number in a vocabulary before fit: "
            "keras.layers.StringLookup(vocabulary=words, num_oov_indices=0)(labels)."
        )
        raise DTypeError(path, f"numbers, because of the loss {_loss_name(loss)}", "strings", fix)


def _loss_name(loss: Nest) -> str:
    return loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
