"""Lowering and raising of extension values around the `call` of a layer or a model.

Arguments are lowered for Keras and raised for `call`. Results of `call` are lowered for Keras and
raised for the caller. Masks and configurations are converted in the same way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import keras

from extensor._keras.graph_node import as_components, as_whole_values
from extensor._keras.lowering import contains, is_lowered, lowered, one_mask, raised
from extensor._keras.serialization import deserialized, serialized

# The layer whose method is running. A `super().call()` in the method must not lower its result.
_calling: ContextVar[Any] = ContextVar("_calling", default=None)


class TakesValues:
    """Lets the `call` of a Keras layer take and return extension values."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("call", "compute_output_spec"):
            method = vars(cls).get(name)
            if method is not None and not getattr(method, "takes_lowered", False):
                setattr(
                    cls, name, _with_values(method, lowered if name == "call" else as_whole_values)
                )
        mask, config = vars(cls).get("compute_mask"), vars(cls).get("get_config")
        if mask is not None:
            cls.compute_mask = _with_one_mask(mask)  # type: ignore[attr-defined]
        if config is not None:
            cls.get_config = _with_serialized_values(config)  # type: ignore[attr-defined]

    def get_build_config(self) -> Any:
        """Returns the build configuration, or None if the first call builds the layer.

        The first call builds a layer that takes extension values, or that has no own `build`.
        """
        if type(self).build is keras.layers.Layer.build:  # type: ignore[attr-defined]
            return None
        config = super().get_build_config()  # type: ignore[misc]
        return None if contains(config, is_lowered) else config

    @classmethod
    def from_config(cls, config: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Returns the layer of a configuration, which may contain specs and extension values."""
        return super().from_config(deserialized(config), *args, **kwargs)  # type: ignore[misc]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the outputs of the layer for values or placeholders."""
        args, kwargs = lowered((args, kwargs))
        return raised(as_components(super().__call__(*args, **kwargs)))  # type: ignore[misc]

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Returns placeholders for the outputs of `call` for placeholders."""
        calling = _calling.set(None)
        try:
            args, kwargs = lowered((args, kwargs))
            return as_whole_values(super().compute_output_spec(*args, **kwargs))  # type: ignore[misc]
        finally:
            _calling.reset(calling)


def _is_mask(name: str) -> bool:
    return name == "mask" or name.endswith("_mask")  # Keras's names of the arguments for masks


def _with_one_mask(compute_mask: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compute_mask)
    def compute_one_mask(self: Any, inputs: Any, previous_mask: Any = None) -> Any:
        return compute_mask(self, raised(inputs), one_mask(previous_mask))

    return compute_one_mask


def _with_serialized_values(get_config: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(get_config)
    def serialized_config(self: Any) -> Any:
        return serialized(get_config(self))

    return serialized_config


def _with_values(method: Callable[..., Any], lower: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def method_with_values(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _calling.get() is self:
            return method(self, *args, **kwargs)
        calling = _calling.set(self)
        try:
            masks = {name: one_mask(kwargs.pop(name)) for name in list(kwargs) if _is_mask(name)}
            outputs = method(self, *raised(args), **raised(kwargs), **masks)
        finally:
            _calling.reset(calling)
        return lower(outputs)

    return method_with_values
