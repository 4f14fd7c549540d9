"""What TensorFlow says of an extension value where it wants one tensor."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from extensor._dispatch.operators import OperatorsMixin, refuse_as_tensor
from extensor._dispatch.switch import SWITCHED_OFF
from extensor._lookup import class_attribute, defines
from extensor._patches.patch import Patch, changes
from extensor._tf import Extension
from extensor._tf._tf_as_tensor import is_array, refusing, tensor_conversion_registry
from extensor._tf._tf_composite import Container, Guarded, refused
from extensor.errors import DTypeError

_REGISTRY = (
    "tensorflow.python.framework.tensor_conversion_registry._tensor_conversion_func_registry"
)


@changes(
    _REGISTRY,
    reason="A container that follows the protocol is packed like a list or tuple.",
    probe="packed_containers",
)
def refuse_containers() -> None:
    # Before the one for lists and tuples, which packs them.
    _register(Container, _refuse_container, 0)


@changes(
    _REGISTRY,
    reason="Of values of types that say what operations do with them, TensorFlow asks for items.",
    probe="tensor_conversion",
)
def refuse_values_with_operators() -> None:
    _register(OperatorsMixin, _refuse_with_operators, 198)


@changes(
    _REGISTRY,
    reason="Where TensorFlow gets an extension value, its own errors speak of lengths and NumPy.",
    probe="tensor_conversion",
)
def refuse_extension_values() -> None:
    # After all that users register for their own classes (100), before that for `object` (200).
    _register(Extension, _refuse_extension_value, 199)


def refuse_values_with_handlers() -> Iterator[Patch]:
    """Yields the patch that names the switch, where functions do not ask types."""
    yield Patch(
        _REGISTRY,
        "A function that gets a value with __tf_dispatch__ does not ask its type, and its own "
        "error does not say that EXTENSOR_DISPATCH=0 is why.",
        "tensor_conversion",
        _refuse_with_handlers,
        functools.partial(_register, DispatchableValue, _refuse_with_handlers, 197),
    )


class DispatchableValue(metaclass=Guarded):
    """Has the values whose classes have a `__tf_dispatch__` as its instances."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        return cls is DispatchableValue and class_attribute(subclass, "__tf_dispatch__") is not None


def _register(kind: type, convert: Callable[..., Any], priority: int) -> None:
    registered = tensor_conversion_registry._tensor_conversion_func_registry[priority]
    # One of extensor as it was imported before. TensorFlow has no way to take one back.
    name = convert.__module__, convert.__qualname__
    registered[:] = [
        (base, other)
        for base, other in registered
        if (getattr(other, "__module__", None), getattr(other, "__qualname__", None)) != name
    ]
    tf.register_tensor_conversion_function(kind, refusing(convert), priority)


def _refuse_container(value: Any, *args: Any, **kwargs: Any) -> Any:
    raise refused(type(value))


def _refuse_with_handlers(
    value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False
) -> Any:
    kind = type(value)
    if is_array(kind) or defines(kind, "__tf_tensor__"):
        return NotImplemented
    raise DTypeError(
        path=kind.__qualname__,
        expected="a tensor, or what converts to one",
        received=f"a {kind.__qualname__}, whose handler is not asked",
        mend=SWITCHED_OFF,
    )


def _refuse_with_operators(
    value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False
) -> Any:
    return NotImplemented if is_array(type(value)) else refuse_as_tensor(value)


def _refuse_extension_value(
    value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False
) -> Any:
    try:
        return tf.constant(value, dtype, name=name)  # what would be tried without this function
    except (TypeError, ValueError) as error:
        raise DTypeError(
            path=type(value).__name__,
            expected="a tensor, or what converts to one",
            received="an extension value, which is made of several",
            mend="Give its components, xt.nest.flatten(value, expand_composites=True). To change "
            "them in place, hold a tf.Variable in a field.",
        ) from error
