"""tf.compat.v1.Session fetches extension values, and takes them in feed_dict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.client import session

from extensor._patches.patch import changes
from extensor._protocol.casting import cast_value
from extensor._tf import Extension
from extensor._tf._tf_eager import eagerly
from extensor._typing import Value


@changes(
    "tensorflow.python.client.session._REGISTERED_EXPANSIONS",
    reason="Session.run fetches and feeds classes that are registered, as RaggedTensor is.",
    probe="session_run",
)
def run_extension_values() -> None:
    """Registers extension types with sessions."""
    registered: Any = session
    registered.register_session_run_conversion_functions(Extension, _fetch, _feed, _tensors)


def _tensors(value: Value) -> list[tf.Tensor]:
    return tf.nest.flatten(value, expand_composites=True)


def _fetch(value: Value) -> tuple[list[tf.Tensor], Callable[[list[np.ndarray[Any, Any]]], Value]]:
    """Returns the tensors to fetch, and a function that makes the result of their arrays."""
    tensors = _tensors(value)

    def result(arrays: list[np.ndarray[Any, Any]]) -> Value:
        with eagerly():
            eager = [tf.constant(a, t.dtype) for a, t in zip(arrays, tensors, strict=True)]
            made = tf.nest.pack_sequence_as(value, eager, expand_composites=True)
            concrete = getattr(type(made), "__tf_concrete__", None)
            return made if concrete is None else concrete(made)

    return tensors, result


def _feed(value: Value, given: Value) -> list[tuple[tf.Tensor, np.ndarray[Any, Any]]]:
    """Returns the tensors to feed, each with its array.

    Raises:
        DTypeError, StructureError: If the given value is not one of the spec.
    """
    with eagerly():
        if isinstance(given, getattr(type(value), "_value_type", ())):
            given = given.to_tensor()  # a StructuredTensorValue
        eager = cast_value(tf.type_spec_from_value(value), given, "feed_dict")
        arrays = [tensor.numpy() for tensor in _tensors(eager)]
    return list(zip(_tensors(value), arrays, strict=True))
