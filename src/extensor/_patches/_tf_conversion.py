"""Errors for extension values that TensorFlow tries to convert to one tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import tensorflow as tf

from extensor._dispatch.operators import OperatorsMixin, refuse_as_tensor
from extensor._dispatch.switch import SWITCHED_OFF
from extensor._lookup import class_attribute, defines
from extensor._patches.patch import Patch, changes
from extensor._tf import Extension
from extensor._tf._tf_as_tensor import (
    ARRAY_INTERFACE,
    is_array,
    refusing,
    tensor_conversion_registry,
)
from extensor._tf._tf_composite import Container, Guarded, refusal
from extensor._typing import Value
from extensor.errors import DTypeError, ExtensorError

_REGISTRY = (
    "tensorflow.python.framework.tensor_conversion_registry._tensor_conversion_func_registry"
)


@changes(
    _REGISTRY,
    reason="TensorFlow packs a container that follows the protocol like a list or tuple.",
    probe="packed_containers",
)
def refuse_containers() -> None:
    # Priority 0, before the conversion of lists and tuples.
    _register(Container, _refuse_container, 0)


@changes(
    _REGISTRY,
    reason="TensorFlow would index values of types that override operations like sequences.",
    probe="tensor_conversion",
)
def refuse_values_with_operators() -> None:
    _register(OperatorsMixin, _refuse_with_operators, 198)


@changes(
    _REGISTRY,
    reason="TensorFlow's own errors for an extension value mention only lengths and NumPy.",
    probe="tensor_conversion",
)
def refuse_extension_values() -> None:
    # After the conversions that users register (100), before the one for `object` (200).
    _register(Extension, _refuse_extension_value, 199)


def refuse_values_with_handlers() -> Iterator[Patch]:
    """Yields the patch of errors while dispatch is switched off."""
    yield Patch(
        _REGISTRY,
        "While dispatch is off, TensorFlow's error for a value with __tf_dispatch__ does not "
        "mention EXTENSOR_DISPATCH=0, the cause.",
        "tensor_conversion",
        _refuse_with_handlers,
        functools.partial(_register, DispatchableValue, _refuse_with_handlers, 197),
    )


class DispatchableValue(metaclass=Guarded):
    """An abstract class of all values whose class has `__tf_dispatch__`."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> bool:
        return cls is DispatchableValue and class_attribute(subclass, "__tf_dispatch__") is not None


def _register(kind: type, convert: Callable[..., Any], priority: int) -> None:
    registered = tensor_conversion_registry._tensor_conversion_func_registry[priority]
    # Remove the conversion of an earlier import of extensor; TensorFlow has no function for this.
    name = convert.__module__, convert.__qualname__
    registered[:] = [
        (base, other)
        for base, other in registered
        if (getattr(other, "__module__", None), getattr(other, "__qualname__", None)) != name
    ]
    tf.register_tensor_conversion_function(kind, refusing(convert), priority)


def _refuse_container(value: Value, *args: object, **kwargs: object) -> NoReturn:
    raise refusal(type(value))


def _refuse_with_handlers(value: Value, *args: object, **kwargs: object) -> object:
    kind = type(value)
    if is_array(kind) or defines(kind, "__tf_tensor__"):
        return NotImplemented
    name = kind.__qualname__
    received = f"a {name}, whose handler is not called"
    raise DTypeError(name, "a tensor, or a value that converts to one", received, SWITCHED_OFF)


def _refuse_with_operators(value: Value, *args: object, **kwargs: object) -> object:
    return NotImplemented if is_array(type(value)) else refuse_as_tensor(value)


def _refuse_extension_value(
    value: Value, dtype: tf.DType | None = None, name: str | None = None, as_ref: bool = False
) -> tf.Tensor:
    # A class may have a length and items, which are rows of the value, no numbers.
    if not any(defines(type(value), attribute) for attribute in ("__array__", ARRAY_INTERFACE)):
        return refuse_as_tensor(value)
    try:
        return tf.constant(value, dtype, name=name)  # what TensorFlow does without this function
    except ExtensorError:
        raise  # a type that refuses itself, such as records, says more
    except (TypeError, ValueError):
        return refuse_as_tensor(value)
