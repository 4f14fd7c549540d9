"""Which classes TensorFlow makes a tensor of.

| name | why |
| --- | --- |
| `tensor_conversion_registry` | Which classes somebody said how to make a tensor of. |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow.python.framework import tensor_conversion_registry

from extensor._lookup import defines, lineage, namespace

_REFUSES = "_extensor_refuses"


def refusing(convert: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a conversion function that makes no tensor, but raises an error that says why."""
    vars(convert)[_REFUSES] = True
    return convert


def is_registered(kind: type) -> bool:
    """Returns whether somebody registered how TensorFlow makes a tensor of a value of a type.

    >>> [is_registered(kind) for kind in (tf.TensorShape, tf.IndexedSlices, tf.RaggedTensor)]
    [True, True, False]
    """
    try:
        found = tensor_conversion_registry.get(kind)
    except Exception:  # a class without a hash, which TensorFlow cannot look up either
        return False
    # The function for `object` takes all there is, and then fails.
    return any(base is not object and not hasattr(convert, _REFUSES) for base, convert in found)


def is_array(kind: type) -> bool:
    """Returns whether NumPy, and so TensorFlow, makes an array of a value of a type."""
    found = [namespace(base).get(_INTERFACE) for base in lineage(kind)]
    return defines(kind, "__array__") or any(
        one is not None and not isinstance(one, NoArray) for one in found
    )


_INTERFACE = "__array_interface__"


class NoArray:
    """The `__array_interface__` of a class whose values NumPy shall not take for sequences.

    A subclass that is made an array of is left alone.

    Args:
        refuse: Gets a value of which NumPy, or TensorFlow, wants an array, and raises an error.
    """

    def __init__(self, refuse: Callable[[Any], None]) -> None:
        self.refuse = refuse

    def __get__(self, value: Any, owner: type | None = None) -> Any:
        if value is None or is_array(type(value)):
            raise AttributeError(_INTERFACE)
        return self.refuse(value)
