"""Errors of the iteration of a dataset, as what they say of extension values and of `xt.data`."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._patches.patch import replaces
from extensor._raised import raise_marked
from extensor._tf import describes_extension

_OF_OTHER_SIZES = "Cannot batch tensors with different shapes"


@replaces(
    "tensorflow.python.data.ops.iterator_ops.OwnedIterator._next_internal",
    reason="An error during the iteration of a dataset of `xt.data` is the error that names the "
    "file, and no InvalidArgumentError with a traceback as its text. For extension values of "
    "different sizes, the error of `batch` names `ragged_batch`.",
    probe="raised_errors",
)
def next_element(plain: Any) -> Any:
    def _next_internal(self: Any) -> Any:
        """Calls TensorFlow's function; raises an exception of `marked` as it was."""
        try:
            return plain(self)
        except tf.errors.OpError as error:
            raise_marked(error.message)
            if _OF_OTHER_SIZES in error.message and _has_extension(self.element_spec):
                fix = "Use Dataset.ragged_batch for values of different sizes, or padded_batch."
                raise type(error)(
                    error.node_def, error.op, f"{error.message.rstrip()} {fix}"
                ) from None
            raise

    return _next_internal


def _has_extension(element_spec: Any) -> bool:
    return any(map(describes_extension, tf.nest.flatten(element_spec)))
