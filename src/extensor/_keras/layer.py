"""Layers whose `call` takes and returns extension values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import keras

from extensor._keras.lowering import contains, is_lowered, lower, one_mask, raised
from extensor._keras.node import as_wholes, taken_apart
from extensor._keras.serialization import kept, revived

# The layer whose method is running: a `super().call()` in it must not lower its result.
_calling: ContextVar[Any] = ContextVar("_calling", default=None)


class Raising:
    """Lowers extension values at the door of a Keras layer and raises them inside `call`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("call", "compute_output_spec"):
            method = vars(cls).get(name)
            if method is not None and not getattr(method, "takes_lowered", False):
                setattr(cls, name, _raising(method, lower if name == "call" else as_wholes))
        mask, config = vars(cls).get("compute_mask"), vars(cls).get("get_config")
        if mask is not None:
            cls.compute_mask = _masking(mask)  # type: ignore[attr-defined]
        if config is not None:
            cls.get_config = _keeping(config)  # type: ignore[attr-defined]

    def get_build_config(self) -> Any:
        """Returns None where the call of a model builds the layer.

        So it does with extension values, and with a layer that has no `build` of its own.
        """
        if type(self).build is keras.layers.Layer.build:  # type: ignore[attr-defined]
            return None
        config = super().get_build_config()  # type: ignore[misc]
        return None if contains(config, is_lowered) else config

    @classmethod
    def from_config(cls, config: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Returns the layer of a configuration, which may hold specs and extension values."""
        return super().from_config(revived(config), *args, **kwargs)  # type: ignore[misc]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer on values or placeholders."""
        args, kwargs = lower((args, kwargs))
        return raised(taken_apart(super().__call__(*args, **kwargs)))  # type: ignore[misc]

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Returns placeholders for what `call` makes of placeholders."""
        calling = _calling.set(None)
        try:
            args, kwargs = lower((args, kwargs))
            return as_wholes(super().compute_output_spec(*args, **kwargs))  # type: ignore[misc]
        finally:
            _calling.reset(calling)


def _is_mask(name: str) -> bool:
    return name == "mask" or name.endswith("_mask")  # so Keras calls the arguments that it fills


def _masking(compute_mask: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compute_mask)
    def masking_compute_mask(self: Any, inputs: Any, previous_mask: Any = None) -> Any:
        return compute_mask(self, raised(inputs), one_mask(previous_mask))

    return masking_compute_mask


def _keeping(get_config: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(get_config)
    def keeping_get_config(self: Any) -> Any:
        return kept(get_config(self))

    return keeping_get_config


def _raising(method: Callable[..., Any], lower: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def raising_method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _calling.get() is self:
            return method(self, *args, **kwargs)
        calling = _calling.set(self)
        try:
            masks = {name: one_mask(kwargs.pop(name)) for name in list(kwargs) if _is_mask(name)}
            outputs = method(self, *raised(args), **raised(kwargs), **masks)
        finally:
            _calling.reset(calling)
        return lower(outputs)

    return raising_method


class Layer(Raising, keras.layers.Layer):
    """A Keras layer whose `call` takes and returns extension values beside plain tensors.

    Subclass it as `keras.layers.Layer`. It may be called on values, and on the placeholders of a
    functional model, its own as well as Keras's; `call` always sees values.

    >>> class TotalTime(xt.keras.Layer):
    ...     def call(self, recipes):
    ...         return tf.reduce_sum(recipes["minutes"], axis=1)
    >>> recipes = xt.DenseStructuredTensor([2], {"minutes": tf.ragged.constant([[5., 20.], [8.]])})
    >>> TotalTime()(recipes).numpy()
    array([25.,  8.], dtype=float32)
    """
