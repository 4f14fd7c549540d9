"""Errors of Python functions that TensorFlow calls, as the exceptions that they were."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._patches.patch import replaces
from extensor._raised import as_raised


@replaces(
    "tensorflow.python.eager.core._status_to_exception",
    reason="An error during the iteration of a dataset of `xt.data` is the error that names the "
    "file, and no InvalidArgumentError with a traceback as its text.",
    probe="raised_errors",
)
def status_to_exception(plain: Any) -> Any:
    def _status_to_exception(status: Any) -> Any:
        """Like TensorFlow's function; for an exception of `marked`, returns that exception."""
        error = as_raised(status.message)
        return plain(status) if error is None else error

    return _status_to_exception


@replaces(
    "tensorflow.python.eager.context.Context.call_function",
    reason="Here a tf.function runs, such as a step of Keras, and TensorFlow raises the error of a "
    "dataset that it reads without _status_to_exception.",
    probe="raised_errors",
)
def call_function(plain: Any) -> Any:
    def _call_function(self: Any, name: Any, tensor_inputs: Any, num_outputs: Any) -> Any:
        """Like TensorFlow's method; raises exceptions of `marked` as they were."""
        try:
            return plain(self, name, tensor_inputs, num_outputs)
        except tf.errors.OpError as raised:
            if (error := as_raised(raised.message)) is None:
                raise
            cause = error
        raise cause

    return _call_function
