"""Which classes TensorFlow converts to tensors.

| name | why |
| --- | --- |
| `tensor_conversion_registry` | The registered conversions of classes to tensors. |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from tensorflow.python.framework import tensor_conversion_registry

from extensor._lookup import defines, lineage, namespace

_REFUSES = "_extensor_refuses"


def refusing(convert: Callable[..., object]) -> Callable[..., object]:
    """Marks a conversion function that only raises an error."""
    vars(convert)[_REFUSES] = True
    return convert


def is_registered(kind: type) -> bool:
    """Returns whether a conversion to a tensor is registered for a type.

    >>> from extensor._tf._tf_as_tensor import is_registered
    >>> import tensorflow as tf
    >>> [is_registered(kind) for kind in (tf.TensorShape, tf.IndexedSlices, tf.RaggedTensor)]
    [True, True, False]
    """
    try:
        found = tensor_conversion_registry.get(kind)
    except Exception:  # a class without a hash, which TensorFlow cannot look up either
        return False
    # The conversion of `object` accepts every type, and fails later.
    return any(base is not object and not hasattr(convert, _REFUSES) for base, convert in found)


def is_array(kind: type) -> bool:
    """Returns whether NumPy, and so TensorFlow, converts values of a type to arrays."""
    found = [namespace(base).get(ARRAY_INTERFACE) for base in lineage(kind)]
    return defines(kind, "__array__") or any(
        one is not None and not isinstance(one, NoArray) for one in found
    )


def refusal_of(kind: type) -> Callable[[object], NoReturn] | None:
    """Returns the function that refuses to convert values of a type, if the type has one."""
    found = [namespace(base).get(ARRAY_INTERFACE) for base in lineage(kind)]
    return next((one.refuse for one in found if isinstance(one, NoArray)), None)


ARRAY_INTERFACE = "__array_interface__"


class NoArray:
    """An `__array_interface__` that raises, so that NumPy does not treat values as sequences.

    It does nothing for a subclass that converts to an array.

    Args:
        refuse: Takes a value that NumPy or TensorFlow tries to convert, and raises an error.
    """

    def __init__(self, refuse: Callable[[object], NoReturn]) -> None:
        self.refuse = refuse

    def __get__(self, value: object, owner: type | None = None) -> NoReturn:
        if value is None or is_array(type(value)):
            raise AttributeError(ARRAY_INTERFACE)
        self.refuse(value)
