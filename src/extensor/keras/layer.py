"""Layers whose `call` takes and returns extension values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import keras

from extensor.keras.lower import contains, is_lowered, lower, raised

# The functional graph of Keras that is running. It wants what comes out of its layers in the same
# plain form that it put in.
_running: ContextVar[Any] = ContextVar("_running", default=None)

# The layer whose `call` is running: a `super().call()` in it must not lower its result.
_calling: ContextVar[Any] = ContextVar("_calling", default=None)


class Raising:
    """Lowers extension values at the door of a Keras layer and raises them inside `call`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        call = vars(cls).get("call")
        if call is not None and not getattr(call, "takes_lowered", False):
            cls.call = _raising(call)  # type: ignore[attr-defined]

    def get_build_config(self) -> Any:
        """Returns None for a layer of extension values: the call of a model builds it."""
        config = super().get_build_config()  # type: ignore[misc]
        return None if contains(config, is_lowered) else config

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer on values or placeholders."""
        args, kwargs = lower((args, kwargs))
        outputs = super().__call__(*args, **kwargs)  # type: ignore[misc]
        graph = _running.get()
        in_graph = graph is not None and any(layer is self for layer in graph.operations)
        return outputs if in_graph else raised(outputs)


def _raising(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def raising_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _calling.get() is self:
            return call(self, *args, **kwargs)
        calling, running = _calling.set(self), _running.set(None)
        try:
            outputs = call(self, *raised(args), **raised(kwargs))
        finally:
            _calling.reset(calling)
            _running.reset(running)
        return lower(outputs)

    return raising_call


@keras.saving.register_keras_serializable(package="extensor")
class Graph(keras.Model):
    """A functional model of Keras's own over lowered values, whose layers keep to that form."""

    # Keras takes the class for a functional model by this signature.
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        inputs = args[0] if args else kwargs["inputs"]
        # Keras 3.10 refuses an input that no layer reads, and a model need not read every field.
        keras.layers.Identity()(inputs)
        super().__init__(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the layers."""
        token = _running.set(self)
        try:
            return super().call(*args, **kwargs)
        finally:
            _running.reset(token)


class Layer(Raising, keras.layers.Layer):
    """A Keras layer whose `call` takes and returns extension values beside plain tensors.

    Subclass it as `keras.layers.Layer`. It may be called on values, and on the placeholders of a
    functional model; `call` always sees values. A layer that returns extension values belongs in
    an `xt.keras.Model`: the functional models of Keras itself know tensors only.

    >>> class TotalTime(xt.keras.Layer):
    ...     def call(self, recipes):
    ...         return tf.reduce_sum(recipes["minutes"], axis=1)
    >>> recipes = xt.DenseStructuredTensor([2], {"minutes": tf.ragged.constant([[5., 20.], [8.]])})
    >>> TotalTime()(recipes).numpy()
    array([25.,  8.], dtype=float32)
    """
