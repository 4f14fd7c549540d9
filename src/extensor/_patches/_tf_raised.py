"""Errors of Python functions that an iterator calls, as the exceptions that they were."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._patches.patch import replaces
from extensor._raised import raise_marked


@replaces(
    "tensorflow.python.data.ops.iterator_ops.OwnedIterator._next_internal",
    reason="An error during the iteration of a dataset of `xt.data` is the error that names the "
    "file, and no InvalidArgumentError with a traceback as its text.",
    probe="raised_errors",
)
def next_element(plain: Any) -> Any:
    def _next_internal(self: Any) -> Any:
        """Calls TensorFlow's function; raises an exception of `marked` as it was."""
        try:
            return plain(self)
        except tf.errors.OpError as error:
            raise_marked(error.message)
            raise

    return _next_internal
