"""Errors for extension values that TensorFlow tries to convert to one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import tensorflow as tf

from extensor._dispatch.operators import OperatorsMixin, refuse_as_tensor
from extensor._dispatch.switch import is_on
from extensor._lookup import class_attribute
from extensor._patches.patch import changes
from extensor._tf import Extension
from extensor._tf._tf_as_tensor import (
    is_array,
    refusal_of,
    refusing,
    tensor_conversion_registry,
)
from extensor._tf._tf_composite import Container, Guarded, refusal
from extensor._typing import Value
from extensor.errors import ExtensorError

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
    reason="TensorFlow would index values of types that override operations like sequences. Its "
    "errors for an extension value mention only lengths and NumPy, and not EXTENSOR_DISPATCH=0.",
    probe="tensor_conversion",
)
def refuse_values() -> None:
    # After the conversions that users register (100), before the one for `object` (200).
    _register((Extension, OperatorsMixin, Dispatchable), _refuse_value, 199)


class Dispatchable(metaclass=Guarded):
    """An abstract class of all values whose class has `__tf_dispatch__`, but numbers and text."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> bool:
        if cls is not Dispatchable or issubclass(subclass, (int, float, complex, str, bytes)):
            return NotImplemented
        return class_attribute(subclass, "__tf_dispatch__") is not None


def _register(kinds: type | tuple[type, ...], convert: Callable[..., Any], priority: int) -> None:
    registered = tensor_conversion_registry._tensor_conversion_func_registry[priority]
    # Remove the conversion of an earlier import of extensor; TensorFlow has no function for this.
    name = convert.__module__, convert.__qualname__
    registered[:] = [
        (base, other)
        for base, other in registered
        if (getattr(other, "__module__", None), getattr(other, "__qualname__", None)) != name
    ]
    tf.register_tensor_conversion_function(kinds, refusing(convert), priority)


def _refuse_container(value: Value, *args: object, **kwargs: object) -> NoReturn:
    raise refusal(type(value))


def _refuse_value(
    value: Value, dtype: tf.DType | None = None, name: str | None = None, as_ref: bool = False
) -> object:
    # A class may have a length and items, which are rows of the value, no numbers.
    kind = type(value)
    if not is_array(kind):
        own = isinstance(value, (Extension, OperatorsMixin))
        if not own and is_on() and class_attribute(kind, "__getitem__") is None:
            return NotImplemented  # TensorFlow's ValueError says as much
        return (refusal_of(kind) or refuse_as_tensor)(value)
    if not isinstance(value, Extension):
        return NotImplemented
    try:
        return tf.constant(value, dtype, name=name)  # what TensorFlow does without this function
    except ExtensorError:
        raise  # a type that refuses itself says more
    except (TypeError, ValueError):
        return refuse_as_tensor(value)
