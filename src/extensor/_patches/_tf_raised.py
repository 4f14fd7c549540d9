"""Errors of the iteration of a dataset, as what they say of extension values and of `xt.data`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._patches.patch import overrides
from extensor._raised import raise_marked
from extensor._tf._tf_data import has_extension
from extensor._typing import Nest

_OTHER_SIZES = "Cannot batch tensors with different shapes"


@overrides(
    "tensorflow.python.data.ops.iterator_ops.OwnedIterator.get_next_as_optional",
    reason="A loop over a dataset of a strategy asks for its batches by this function. Its errors "
    "are those of the iteration of any dataset.",
    probe="raised_errors",
)
@overrides(
    "tensorflow.python.data.ops.iterator_ops.OwnedIterator._next_internal",
    reason="An error during the iteration of a dataset of `xt.data` is the error that names the "
    "file, and no InvalidArgumentError with a traceback as its text. For extension values of "
    "different sizes, the error of `batch` names `ragged_batch`.",
    probe="raised_errors",
)
def next_element(self: Any, *, plain: Callable[..., Nest]) -> Nest:
    """Calls TensorFlow's function; raises an exception of `mark` as it was."""
    try:
        return plain(self)
    except tf.errors.OpError as error:
        raise_marked(error.message)
        if _OTHER_SIZES in error.message and has_extension(self):
            fix = "Use Dataset.ragged_batch for values of different sizes, or padded_batch."
            message = f"{error.message.rstrip()} {fix}"
            raise type(error)(error.node_def, error.op, message) from None
        raise
