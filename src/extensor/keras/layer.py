"""Layers whose `call` takes and returns extension values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import keras

from extensor.keras.lower import lower, raised

# Whether the caller is a functional graph of Keras, which wants what comes out of a layer in the
# same plain form that it put in.
_in_graph: ContextVar[bool] = ContextVar("_in_graph", default=False)

# The layer whose `call` is running: a `super().call()` in it must not lower its result.
_calling: ContextVar[Any] = ContextVar("_calling", default=None)


class Raising:
    """Lowers extension values at the door of a Keras layer and raises them inside `call`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        call = vars(cls).get("call")
        if call is not None and not getattr(call, "takes_lowered", False):
            cls.call = _raising(call)  # type: ignore[attr-defined]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = lower((args, kwargs))
        outputs = super().__call__(*args, **kwargs)  # type: ignore[misc]
        return outputs if _in_graph.get() else raised(outputs)


def _raising(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def raising_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _calling.get() is self:
            return call(self, *args, **kwargs)
        calling, in_graph = _calling.set(self), _in_graph.set(False)
        try:
            outputs = call(self, *raised(args), **raised(kwargs))
        finally:
            _calling.reset(calling)
            _in_graph.reset(in_graph)
        return lower(outputs)

    return raising_call


def run_graph(graph: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a functional Keras model on lowered values, whose layers keep to that form."""
    token = _in_graph.set(True)
    try:
        return graph(*args, **kwargs)
    finally:
        _in_graph.reset(token)


class Layer(Raising, keras.layers.Layer):
    """A Keras layer whose `call` takes and returns extension values beside plain tensors.

    Subclass it as `keras.layers.Layer`. It may be called on values, and on the placeholders of a
    functional model; `call` always sees values.

    >>> class TotalTime(xt.keras.Layer):
    ...     def call(self, recipes):
    ...         return tf.reduce_sum(recipes["minutes"], axis=1)
    >>> recipes = xt.DenseStructuredTensor([2], {"minutes": tf.ragged.constant([[5., 20.], [8.]])})
    >>> TotalTime()(recipes).numpy()
    array([25.,  8.], dtype=float32)
    """
