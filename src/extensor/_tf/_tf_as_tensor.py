"""What an extension value says where TensorFlow wants one tensor.

| name | why |
| --- | --- |
| `tensor_conversion_registry` | Which classes somebody said how to make a tensor of. |
| `tf.register_tensor_conversion_function` (public) | Where TensorFlow wants one tensor and gets an extension value, its own errors speak of lengths and NumPy. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import tensor_conversion_registry

from extensor._lookup import defines, lineage, namespace
from extensor._tf._tf_protocol import Container, Extension, refused
from extensor.errors import DTypeError


def _refuse_as_tensor(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
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


def _refuse_container(value: Any, *args: Any, **kwargs: Any) -> Any:
    raise refused(type(value))


# Before the one for lists and tuples, which packs them.
tf.register_tensor_conversion_function(Container, _refuse_container, 0)
# After all that users register for their own classes (100), before the one for any object (200).
tf.register_tensor_conversion_function(Extension, _refuse_as_tensor, 199)
_refusals: list[Callable[..., Any]] = [_refuse_as_tensor]


def is_registered(kind: type) -> bool:
    """Returns whether somebody registered how TensorFlow makes a tensor of a value of a type.

    >>> from extensor._tf._tf_as_tensor import is_registered
    >>> [is_registered(kind) for kind in (tf.TensorShape, tf.IndexedSlices, tf.RaggedTensor)]
    [True, True, False]
    """
    try:
        found = tensor_conversion_registry.get(kind)
    except Exception:  # a class without a hash, which TensorFlow cannot look up either
        return False
    # The function for `object` takes all there is, and then fails.
    return any(base is not object and convert not in _refusals for base, convert in found)


def is_array(kind: type) -> bool:
    """Returns whether NumPy, and so TensorFlow, makes an array of a value of a type."""
    found = [namespace(base).get(_INTERFACE) for base in lineage(kind)]
    return defines(kind, "__array__") or any(
        one is not None and not isinstance(one, _NoArray) for one in found
    )


_INTERFACE = "__array_interface__"


class _NoArray:
    """The attribute of a class whose values NumPy shall not take for sequences."""

    def __init__(self, refuse: Callable[[Any], None]) -> None:
        self.refuse = refuse

    def __get__(self, value: Any, owner: type | None = None) -> Any:
        if value is None or is_array(type(value)):
            raise AttributeError(_INTERFACE)
        return self.refuse(value)


def refuse_as_tensor(cls: type, refuse: Callable[[Any], None]) -> None:
    """Lets a function raise where TensorFlow or NumPy would make a tensor of a value of a class.

    A subclass that is made an array of, or whose author registered how to convert it, is left
    alone.

    Args:
        cls: The class.
        refuse: Gets the value, and raises an error.
    """

    def convert(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
        return NotImplemented if is_array(type(value)) else refuse(value)

    _refusals.append(convert)
    tf.register_tensor_conversion_function(cls, convert, 198)
    setattr(cls, _INTERFACE, _NoArray(refuse))
